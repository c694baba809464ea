//! `kerntune export`: a file for each format. Start from [`ExportOptions`].

use crate::rooms::ROOMS;
use clap::Args;
use kerntune_command::{
    command, ChosenSubcommand, CliOutput, CommandEntry, Entry, Exit, Failure, GlobalOptions, ProfileSubject,
    RunSubcommand, SubcommandFolder, SubcommandRegistry,
};
use kerntune_compare::number::grouped;
use kerntune_convert::stacks::{self, CallStacks};
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/export.rs"));

pub const COMMAND: CommandEntry = command::<ExportOptions>("export", 85, "Look");

/// Write a profile in another tool's format
#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(subcommand)]
    format: ChosenSubcommand<ExportFormats>,
}

impl RunSubcommand<GlobalOptions> for ExportOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        self.format.run(global, output)
    }
}

/// Registry of all export formats.
#[derive(Debug)]
pub struct ExportFormats;

impl SubcommandRegistry for ExportFormats {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        let rooms = ROOMS.iter().map(|room| &room.exports as &dyn SubcommandFolder<GlobalOptions>);
        [&ENTRIES as _].into_iter().chain(rooms).collect()
    }
}

/// Prints the share of the execution that lies outside the kernel's image and is not exported. Both
/// figures are bytes times executions.
fn left_out(outside: u128, executed: u128, output: &CliOutput) {
    if outside > 0 {
        let share = 100.0 * outside as f64 / (outside + executed) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
    }
}

/// Returns the path of the recorded kernel's vmlinux for another tool's command line, or `VMLINUX`
/// if the kernel is gone.
fn vmlinux(of: &ProfileSubject) -> String {
    let kernel = of.work.find("kernels", &of.profile.manifest.kernel.id);
    kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string())
}

/// Input of the formats for call paths: a profile, and the call paths of its regions.
struct StackExport {
    subject: ProfileSubject,
    stacks: CallStacks,
    title: String,
}

impl StackExport {
    /// Loads the call paths of the regions named `region`, or of all regions.
    fn open(global: &GlobalOptions, profile: &str, region: Option<&str>) -> Result<Self, Failure> {
        let subject = ProfileSubject::open(global, profile)?;
        let scope = kerntune_report::scope(&subject.profile, region)?;
        let stacks = CallStacks::of(&subject.profile, &scope).map_err(Failure::usage)?;
        let region = region.map_or(String::new(), |name| format!(", region {name}"));
        let title = format!("{}{region}", stacks::title(&subject.profile));
        Ok(Self { subject, stacks, title })
    }

    /// Prints what was written, and the command that shows it.
    fn done(&self, path: &Path, what: &str, command: &str, output: &CliOutput) {
        let (total, unit) = (grouped(self.stacks.total()), self.stacks.unit.name());
        output.note(&format!("wrote {}: {what}, {total} {unit} in all", path.display()));
        output.note(command);
    }
}

/// Creator named in the files: program and version.
const CREATOR: &str = concat!("kerntune ", env!("CARGO_PKG_VERSION"));

/// Adds to the error for a missing trace that call paths can be exported.
fn without_trace(error: kerntune_tune::Error) -> Failure {
    match error {
        kerntune_tune::Error::NoTrace { profile } => Failure::usage(format!(
            "{} has no trace, and so no order in time: --paths writes its call paths",
            profile.display()
        )),
        other => other.into(),
    }
}
