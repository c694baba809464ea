//! `kerntune export`: a file for each format. Start from [`ExportFormat`].

use crate::exit::Failure;
use crate::global::GlobalOptions;
use crate::output::CliOutput;
use crate::registry::{ChosenSubcommand, RunSubcommand, SubcommandFolder, SubcommandRegistry};
use crate::subject::ProfileSubject;
use kerntune_compare::number::grouped;
use kerntune_convert::stacks::{self, CallStacks};
use kerntune_report::Subcommand;
use std::path::Path;

/// Entry of a format in the registry.
type Entry = Subcommand<dyn RunSubcommand<GlobalOptions>>;

include!(concat!(env!("OUT_DIR"), "/export.rs"));

/// The format that the user chose, with its arguments.
pub type ExportFormat = ChosenSubcommand<ExportFormats>;

/// Registry of all export formats.
#[derive(Debug)]
pub struct ExportFormats;

impl SubcommandRegistry for ExportFormats {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        vec![&ENTRIES]
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
