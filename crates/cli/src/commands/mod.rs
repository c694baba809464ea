//! A file for each command: its arguments, what it does, and its entry in [`COMMANDS`].

mod advise;
mod anatomy;
mod bench;
mod bisect;
mod characterize;
pub mod command_line;
mod compare;
mod counters;
mod cpu_times;
mod doctor;
mod explain;
mod gcov;
mod guard;
mod hints;
mod kernel;
mod live;
mod optimize;
mod package;
mod profile;
mod profile_for;
mod prove;
mod record;
mod store;
mod time;
mod trial;
mod trim;
mod tune;
mod view;
mod workload;

use crate::{export, import, report};
use kerntune_command::{bytes, CommandEntry};
use kerntune_kernel::{Kernel, KernelManifest};
use kerntune_report::html::ProvenanceLine;

/// The commands of every build, in the order of the overview.
pub static COMMANDS: &[&CommandEntry] = &[
    &doctor::COMMAND,
    &record::COMMAND,
    &report::COMMAND,
    &view::COMMAND,
    &tune::COMMAND,
    &live::COMMAND,
    &advise::COMMAND,
    &anatomy::COMMAND,
    &characterize::COMMAND,
    &profile::COMMAND,
    &export::COMMAND,
    &import::COMMAND,
    &workload::COMMAND,
    &kernel::COMMAND,
    &optimize::COMMAND,
    &gcov::COMMAND,
    &trial::COMMAND,
    &trim::COMMAND,
    &hints::COMMAND,
    &package::COMMAND,
    &compare::COMMAND,
    &bench::COMMAND,
    &time::COMMAND,
    &prove::COMMAND,
    &guard::COMMAND,
    &store::CHECK,
    &store::GC,
    &command_line::COMMAND,
];

/// Returns the provenance of two kernels, for a page.
fn provenance(base: &Kernel, tuned: &Kernel) -> Vec<ProvenanceLine> {
    let line = |what: &str, of: &dyn Fn(&KernelManifest) -> String| {
        let (base, tuned) = (of(&base.manifest), of(&tuned.manifest));
        ProvenanceLine { what: what.into(), tuned: (tuned != base).then_some(tuned), base }
    };
    vec![
        line("kernel", &|m| format!("{} ({})", m.label, m.id)),
        line("version", &|m| m.version.clone()),
        line("source", &|m| format!("{} ({})", m.source.origin, m.source.hash)),
        line("configuration", &|m| m.config_hash.clone()),
        line("compiler", &|m| m.compiler.version.clone()),
        line("flags", &|m| m.kcflags.join(" ")),
        line("profile", &|m| m.profile_id.clone().unwrap_or_default()),
        line("code", &|m| bytes(m.text_bytes)),
        line("image", &|m| bytes(m.image_bytes)),
        line("built", &|m| format!("{} in {:.0} s", m.built, m.build_seconds)),
    ]
}
