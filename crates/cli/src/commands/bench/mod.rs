//! The commands `kerntune bench list|run|compare|correlate`.

mod compare;
mod correlate;
mod list;
mod run;

use clap::Subcommand;
use compare::BenchCompareOptions;
use correlate::BenchCorrelateOptions;
use kerntune_command::{
    command_group, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand,
};
use kerntune_kernel::Arch;
use kerntune_tune::bench::{host, timed};
use kerntune_tune::record;
use run::BenchRunOptions;

pub const COMMAND: CommandEntry = command_group::<BenchCommand>("bench", 110, "Compare");

/// Run rows of benchmark suites on a machine, and compare timed results of two kernels
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// List the rows of all suites and the machines that can run them
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Run rows of suites on a machine and record their figures
    Run(BenchRunOptions),
    /// Compare timed results of two kernels: ratios with confidence intervals, and a verdict for each row (docs/statistics.md)
    Compare(BenchCompareOptions),
    /// Compare the emulator's and its front-end model's figures of a recipe with measured times:
    /// rank correlation over rows and recipes (docs/models.md)
    #[command(alias = "predict")]
    Correlate(BenchCorrelateOptions),
}

impl RunSubcommand<GlobalOptions> for BenchCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::List { format } => list::run(format.json, output),
            Self::Run(options) => run::run(global, options, output),
            Self::Compare(options) => compare::run(options, output),
            Self::Correlate(options) => correlate::run(global, options, output),
        }
    }
}

/// Returns the machines that can run a suite.
fn machines(suite: &kerntune_guest::Suite) -> Vec<&'static str> {
    let timed = |arch, name| timed::unfit(arch, suite).is_none().then_some(name);
    let host = suite.guest_only().is_none().then_some(host::MACHINE);
    let others = [timed(Arch::X86_64, timed::KVM), timed(Arch::Um, timed::UML), host];
    [record::MACHINE].into_iter().chain(others.into_iter().flatten()).collect()
}
