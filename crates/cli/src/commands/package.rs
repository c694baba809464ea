//! The command `kerntune package`.

use super::bytes;
use clap::Args;
use kerntune_command::{
    command, output_directory, show_steps, CliOutput, CommandEntry, DryRunOptions, Exit, Failure,
    FormatOptions, GlobalOptions, RunSubcommand,
};
use kerntune_kernel::PackageManifest;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::package::package;
use kerntune_tune::Session;
use kerntune_work::{write_atomic, IoContext};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A package in the output of `--json`.
#[derive(Serialize)]
struct PackageJson<'a> {
    #[serde(flatten)]
    manifest: &'a PackageManifest,
    path: &'a Path,
}

pub const COMMAND: CommandEntry = command::<PackageOptions>("package", 125, "Tune");

/// Make a Debian package of a kernel: the measured image, its modules, and its profile
#[derive(Debug, Args)]
pub struct PackageOptions {
    /// The kernel: label, beginning of an id, or directory
    pub kernel: String,
    /// Also copy the package into this directory
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for PackageOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = self.dry.work_to_read(global)?;
        let kernel = kerntune_kernel::find(&work, &self.kernel)?;
        if self.dry.dry_run {
            let session = Session::on(kernel.manifest.arch, &work, output.progress())?;
            let mut dry = DryRun::new(&session);
            let found = dry.find(|session| package(session.work, &kernel, session.progress))?;
            let (label, found) = (&kernel.manifest.label, found.as_ref().map(|package| &*package.dir));
            let what = format!("pack {label} as a Debian package; its modules are built with it");
            dry.add("package", what, found, |dry| dry.of_rebuild(&kernel).ok());
            return Ok(show_steps(dry, self.format.json, output));
        }
        if let Some(directory) = &self.output {
            output_directory("--output", directory)?;
        }
        let package = package(&work, &kernel, output.progress())?;
        let mut path = package.file();
        if let Some(directory) = &self.output {
            let copy = directory.join(&package.manifest.file);
            write_atomic(&copy, &fs::read(&path).at("read", &path)?)?;
            path = copy.canonicalize().at("open", &copy)?;
        }
        let m = &package.manifest;
        let config = fs::read_to_string(kernel.config()).at("read", kernel.config())?;
        if !config.lines().any(|line| line == "CONFIG_ACPI=y") {
            output.progress().note(
                "warning: this kernel has no ACPI: `poweroff` halts the machine without switching it off. To \
                 switch it off, build with `--set CONFIG_ACPI=y`.",
            );
        }
        if self.format.json {
            output.json(&PackageJson { manifest: m, path: &path });
            return Ok(Exit::Ok);
        }
        let recipe = m.recipe.as_ref().map_or(String::new(), |recipe| format!(", recipe {recipe}"));
        let modules = match m.modules {
            0 => String::new(),
            count => format!("\n          {count} modules in /lib/modules/{}", m.release),
        };
        output.print(&format!(
            "package   {} {}\n\
             file      {} ({})\n\
             kernel    {} ({}){recipe}; `uname -r` says {}\n\
             installs  {}{modules}\n\
             install   apt-get install {}\n",
            m.package,
            m.version,
            path.display(),
            bytes(m.bytes),
            m.label,
            m.kernel,
            m.release,
            m.installs.join("\n          "),
            path.display(),
        ));
        Ok(Exit::Ok)
    }
}
