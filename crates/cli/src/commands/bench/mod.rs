//! `kerntune bench`.

mod compare;
mod correlate;
mod list;
mod run;

use crate::args::{Bench, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_kernel::Arch;
use kerntune_tune::bench::{host, timed};
use kerntune_tune::record;

pub fn run(global: &Global, command: &Bench, output: &Output) -> Result<Exit, Failure> {
    match command {
        Bench::List { format } => list::run(format.json, output),
        Bench::Run(options) => run::run(global, options, output),
        Bench::Compare(options) => compare::run(options, output),
        Bench::Correlate(options) => correlate::run(global, options, output),
    }
}

/// The machines that a suite runs on.
fn machines(suite: &kerntune_guest::Suite) -> Vec<&'static str> {
    let timed = |arch, name| timed::unfit(arch, suite).is_none().then_some(name);
    let host = suite.guest_only().is_none().then_some(host::MACHINE);
    let others = [timed(Arch::X86_64, timed::KVM), timed(Arch::Um, timed::UML), host];
    [record::MACHINE].into_iter().chain(others.into_iter().flatten()).collect()
}
