//! `kerntune export`: a file for each format.

use crate::exit::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{Chosen, Folder, Registry, Run};
use crate::subject::Subject;
use kerntune_compare::number::grouped;
use kerntune_convert::stacks::{self, Stacks};
use kerntune_report::Subcommand;
use std::path::Path;

/// A format's subcommand.
type Entry = Subcommand<dyn Run<Global>>;

include!(concat!(env!("OUT_DIR"), "/export.rs"));

/// The format that was chosen.
pub type Format = Chosen<Formats>;

/// All of them.
#[derive(Debug)]
pub struct Formats;

impl Registry for Formats {
    type On = Global;

    fn folders() -> Vec<&'static dyn Folder<Global>> {
        vec![&ENTRIES]
    }
}

/// Says how much of what ran is not in an export of the kernel's image; bytes times executions.
fn left_out(outside: u128, executed: u128, output: &Output) {
    if outside > 0 {
        let share = 100.0 * outside as f64 / (outside + executed) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
    }
}

/// The image to name to another tool: the recorded kernel's, or a word for it if it is not here.
fn vmlinux(of: &Subject) -> String {
    let kernel = of.work.find("kernels", &of.profile.manifest.kernel.id);
    kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string())
}

/// What a format of call paths is made of: the paths of a profile's regions, and what it is of.
struct Stacked {
    subject: Subject,
    stacks: Stacks,
    title: String,
}

impl Stacked {
    /// Those of the regions of a name, or of all.
    fn open(global: &Global, profile: &str, region: Option<&str>) -> Result<Self, Failure> {
        let subject = Subject::open(global, profile)?;
        let scope = kerntune_report::scope(&subject.profile, region)?;
        let stacks = Stacks::of(&subject.profile, &scope).map_err(Failure::usage)?;
        let region = region.map_or(String::new(), |name| format!(", region {name}"));
        let title = format!("{}{region}", stacks::title(&subject.profile));
        Ok(Self { subject, stacks, title })
    }

    /// Says what was written, and how to look at it.
    fn done(&self, path: &Path, what: &str, command: &str, output: &Output) {
        let (total, unit) = (grouped(self.stacks.total()), self.stacks.unit.name());
        output.note(&format!("wrote {}: {what}, {total} {unit} in all", path.display()));
        output.note(command);
    }
}

/// Who wrote a file.
const CREATOR: &str = concat!("kerntune ", env!("CARGO_PKG_VERSION"));

/// Says what is there of a profile without a trace.
fn without_trace(error: kerntune_tune::Error) -> Failure {
    match error {
        kerntune_tune::Error::NoTrace { profile } => Failure::usage(format!(
            "{} has no trace, and so no order in time: --paths writes its call paths",
            profile.display()
        )),
        other => other.into(),
    }
}
