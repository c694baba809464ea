//! How intervals of measured times are computed.

use clap::{Args, ValueEnum};
use kerntune_stats::Method;

#[derive(Debug, Clone, Copy, Args)]
pub struct Interval {
    /// How intervals are computed: student (of the units' means), bootstrap (hierarchical and studentised), or
    /// hodges-lehmann (of the ratios of all pairs of units: for a machine that others slow down at times)
    #[arg(long, value_enum, default_value_t = IntervalMethod::Student, value_name = "METHOD")]
    interval: IntervalMethod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IntervalMethod {
    Bootstrap,
    HodgesLehmann,
    Student,
}

impl Interval {
    /// The method that was chosen.
    pub fn method(self) -> Method {
        match self.interval {
            IntervalMethod::Bootstrap => Method::Bootstrap,
            IntervalMethod::HodgesLehmann => Method::HodgesLehmann,
            IntervalMethod::Student => Method::Student,
        }
    }

    /// Whether it is another than the default.
    pub fn is_asked(self) -> bool {
        self.interval != IntervalMethod::Student
    }

    /// The option as a command line has it, with a space before it; empty for the default.
    pub fn words(self) -> String {
        let value = self.interval.to_possible_value().filter(|_| self.is_asked());
        value.map(|value| format!(" --interval {}", value.get_name())).unwrap_or_default()
    }
}
