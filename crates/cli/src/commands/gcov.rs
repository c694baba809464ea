//! The commands `kerntune gcov build|reset|collect`.

use clap::Subcommand;
use kerntune_command::{
    command_group, exclusions, work, CliOutput, CommandEntry, ExcludeOptions, Exit, Failure, FormatOptions,
    GlobalOptions, RecipeFlags, RunSubcommand,
};
use kerntune_kernel::build_id_in_notes;
use kerntune_live::{collect_gcov, reset_gcov, GcovMachine, GcovManifest};
use kerntune_tune::instrument::instrument;
use kerntune_tune::Session;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub const COMMAND: CommandEntry = command_group::<GcovCommand>("gcov", 105, "Tune");

/// Build an instrumented kernel, and take the counters out of it while it runs
#[derive(Debug, Subcommand)]
pub enum GcovCommand {
    /// Build the instrumented kernel of a kernel, for `deploy` or `package`
    Build {
        /// The kernel that is to be tuned: label, beginning of an id, or directory
        #[arg(long)]
        kernel: String,
        #[command(flatten)]
        of_recipe: RecipeFlags,
        #[command(flatten)]
        exclude: ExcludeOptions,
        /// Number of parallel jobs of make [default: number of CPUs]
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Set all counters to 0, before the work that the kernel is to be trained with
    Reset {
        #[command(flatten)]
        of: MachineOption,
    },
    /// Copy all counters, those of modules too, into a new directory for `optimize --gcda`
    Collect {
        /// The new directory; it appears complete, or not at all
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
        #[command(flatten)]
        of: MachineOption,
        #[command(flatten)]
        format: FormatOptions,
    },
}

/// Machine whose kernel counts.
#[derive(Debug, clap::Args)]
pub struct MachineOption {
    /// Ask this machine by ssh, as root or with sudo that asks for no password; nothing is installed
    /// there [default: this machine]
    #[arg(long, value_name = "USER@MACHINE")]
    host: Option<String>,
    /// Give ssh this option, as in `ssh -o`; may be repeated
    #[arg(long, value_name = "OPTION", requires = "host")]
    ssh_option: Vec<String>,
}

impl MachineOption {
    fn machine(&self) -> Result<GcovMachine, Failure> {
        match &self.host {
            None => Ok(GcovMachine::Here),
            Some(host) => Ok(GcovMachine::ssh(host, &self.ssh_option)?),
        }
    }
}

impl RunSubcommand<GlobalOptions> for GcovCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::Build { kernel, of_recipe, exclude, jobs, format } => {
                let work = work(global)?;
                let base = kerntune_kernel::find(&work, kernel)?;
                let session = Session::on(base.manifest.arch, &work, output.progress())?.with_jobs(*jobs);
                let exclusions = exclusions(exclude)?;
                let counting = instrument(&session, &base, of_recipe.values, &exclusions)?;
                super::kernel::show(&counting, format.json, output)?;
                output.note(&format!(
                    "\nnext: kerntune deploy {0} --host …, or kerntune package {0}; then gcov reset, the work, gcov collect; \
                     kerntune optimize --kernel {1} --gcda DIR",
                    counting.manifest.id, base.manifest.label
                ));
            }
            Self::Reset { of } => {
                reset_gcov(&of.machine()?)?;
                output.note("all counters are 0");
            }
            Self::Collect { output: directory, of, format } => {
                let manifest = collect_gcov(&of.machine()?, directory, build_id_in_notes)?;
                match format.json {
                    true => output.json(&manifest),
                    false => {
                        output.print(&text(&manifest));
                        output.note(&format!(
                            "\n{}; next: kerntune optimize --gcda {} …",
                            directory.display(),
                            directory.display()
                        ));
                    }
                }
            }
        }
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        false
    }
}

fn text(manifest: &GcovManifest) -> String {
    let GcovManifest { release, build_id, files, bytes, modules, .. } = manifest;
    let of = manifest.host.as_deref().map_or(String::new(), |host| format!(" of {host}"));
    let id = build_id.as_deref().map_or("no build id".to_owned(), |id| format!("build id {id}"));
    let mut out = format!("kernel     Linux {release}{of}, {id}\n");
    out += &format!("counters   {files} files, {}\n", super::bytes(*bytes));
    let named: Vec<&str> =
        modules.iter().filter(|module| !module.files.is_empty()).map(|module| module.name.as_str()).collect();
    out += &format!(
        "modules    {} loaded, {} with counters by their name{}{}\n",
        modules.len(),
        named.len(),
        if named.is_empty() { "" } else { ": " },
        named.join(", ")
    );
    out
}
