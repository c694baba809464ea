//! `kerntune export`: a file for each format.

use crate::global::Global;
use crate::output::Output;
use crate::registry::{Chosen, Folder, Registry, Run};
use crate::subject::Subject;
use kerntune_report::Subcommand;

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
