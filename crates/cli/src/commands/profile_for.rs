//! `kerntune profile for`: files for a kernel that users build themselves.

use clap::Args;
use kerntune_command::{
    build_request, exclusions, output_directory, show_steps, workload, BuildOptions, CliOutput, CpuOptions,
    DryRunOptions, ExcludeOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions,
};
use kerntune_kernel::{Compiler, KernelSource};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::own_build::{make_files, FilesRequest};
use kerntune_tune::{Session, TuningSettings};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `kerntune profile for`.
#[derive(Debug, Args)]
pub struct ForOptions {
    /// The workload to profile: a name or a .toml file
    #[arg(long)]
    workload: String,
    #[command(flatten)]
    build: BuildOptions,
    /// With Clang, for Linux 6.13 and later: build a second kernel, and write Propeller's files too
    #[arg(long)]
    propeller: bool,
    /// Write to this directory, which is new or empty
    #[arg(long, short, default_value = "profiles", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    cpus: CpuOptions,
    #[command(flatten)]
    exclude: ExcludeOptions,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    dry: DryRunOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// Output of `--json`.
#[derive(Serialize)]
struct ForJson<'a> {
    schema: &'static str,
    base: &'a str,
    recording: &'a str,
    output: &'a Path,
    files: Vec<&'a Path>,
}

impl ForOptions {
    pub fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let exclusions = exclusions(&self.exclude)?;
        let workload = workload(&self.workload, &self.cpus)?;
        let build = with_needs(build_request(&self.with_config(), LABEL, Compiler::default())?, [&workload]);
        let model = self.model.find(false)?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let settings = TuningSettings { exclusions: &exclusions, ..TuningSettings::new(&model) };
        let request =
            FilesRequest { build: &build, workload: &workload, propeller: self.propeller, settings };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            request.dry_run(&mut dry)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        output_directory("--output", &self.output)?;
        // Files of another profile would lie among these.
        if self.output.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let place = self.output.display();
            return Err(Failure::usage(format!("--output: {place} is not empty; name a new directory")));
        }
        let steps = request.steps()?;
        let made = make_files(&session, &request, &|name, found| {
            let number = 1 + steps.iter().position(|step| *step == name).unwrap_or_default();
            let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
            output.note(&format!("[{number}/{}] {name}{found}", steps.len()));
        })?;
        made.write(&self.output)?;
        if self.format.json {
            output.json(&ForJson {
                schema: "kerntune-own-build-files/1",
                base: &made.base.manifest.id,
                recording: &made.recording,
                output: &self.output,
                files: made.files.iter().map(|(name, _)| name.as_path()).collect(),
            });
            return Ok(Exit::Ok);
        }
        output.print(&format!(
            "{} files in {}; README.md has the lines for make, PKGBUILD, RPM and debian/rules.\nAfter your build: kerntune \
             profile check {} --kernel vmlinux",
            made.files.len(),
            self.output.display(),
            made.recording
        ));
        Ok(Exit::Ok)
    }

    /// Returns the options of the build, with the configuration of a tree that was built in place if
    /// none was given.
    fn with_config(&self) -> BuildOptions {
        let mut build = self.build.clone();
        if let (None, KernelSource::Directory(tree)) = (&build.config, &build.source) {
            build.config = Some(tree.join(".config")).filter(|config| config.is_file());
        }
        build
    }
}
