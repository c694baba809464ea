//! The commands `kerntune bench list|run|compare|correlate`.

mod compare;
mod correlate;
mod list;
mod run;

use crate::args::{BenchCommand, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use kerntune_kernel::Arch;
use kerntune_tune::bench::{host, timed};
use kerntune_tune::record;

pub fn run(global: &GlobalOptions, command: &BenchCommand, output: &CliOutput) -> Result<Exit, Failure> {
    match command {
        BenchCommand::List { format } => list::run(format.json, output),
        BenchCommand::Run(options) => run::run(global, options, output),
        BenchCommand::Compare(options) => compare::run(options, output),
        BenchCommand::Correlate(options) => correlate::run(global, options, output),
    }
}

/// Returns the machines that can run a suite.
fn machines(suite: &kerntune_guest::Suite) -> Vec<&'static str> {
    let timed = |arch, name| timed::unfit(arch, suite).is_none().then_some(name);
    let host = suite.guest_only().is_none().then_some(host::MACHINE);
    let others = [timed(Arch::X86_64, timed::KVM), timed(Arch::Um, timed::UML), host];
    [record::MACHINE].into_iter().chain(others.into_iter().flatten()).collect()
}
