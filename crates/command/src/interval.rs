//! The option `--interval`: method for confidence intervals of measured times.

use clap::{Args, ValueEnum};
use kerntune_stats::RatioMethod;

// Not a doc comment: it would replace the help of the command that flattens this struct.
#[derive(Debug, Clone, Copy, Args)]
#[allow(missing_docs)]
pub struct IntervalOptions {
    /// Method for intervals: student (of the units' means), bootstrap (hierarchical and
    /// studentized), or hodges-lehmann (of the ratios of all pairs of units; for noisy shared
    /// machines)
    #[arg(long, value_enum, default_value_t = IntervalMethod::Student, value_name = "METHOD")]
    interval: IntervalMethod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IntervalMethod {
    Bootstrap,
    HodgesLehmann,
    Student,
}

impl IntervalOptions {
    /// Returns the chosen method.
    pub fn method(self) -> RatioMethod {
        match self.interval {
            IntervalMethod::Bootstrap => RatioMethod::Bootstrap,
            IntervalMethod::HodgesLehmann => RatioMethod::HodgesLehmann,
            IntervalMethod::Student => RatioMethod::Student,
        }
    }

    /// Returns true if the method is not the default.
    pub fn is_asked(self) -> bool {
        self.interval != IntervalMethod::Student
    }

    /// Formats the option for a command line, with a leading space; empty for the default.
    pub fn to_argument(self) -> String {
        let value = self.interval.to_possible_value().filter(|_| self.is_asked());
        value.map(|value| format!(" --interval {}", value.get_name())).unwrap_or_default()
    }
}
