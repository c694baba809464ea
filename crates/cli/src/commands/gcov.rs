//! The commands `kerntune gcov reset|collect`.

use clap::Subcommand;
use kerntune_command::{
    command_group, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand,
};
use kerntune_kernel::build_id_in_notes;
use kerntune_live::{collect_gcov, reset_gcov, GcovMachine, GcovManifest};
use std::path::PathBuf;

pub const COMMAND: CommandEntry = command_group::<GcovCommand>("gcov", 105, "Tune");

/// Take the counters out of a running instrumented kernel
#[derive(Debug, Subcommand)]
pub enum GcovCommand {
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
}

impl MachineOption {
    fn machine(&self) -> Result<GcovMachine, Failure> {
        Ok(self.host.as_deref().map_or(Ok(GcovMachine::Here), GcovMachine::ssh)?)
    }
}

impl RunSubcommand<GlobalOptions> for GcovCommand {
    fn run(&self, _: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
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
