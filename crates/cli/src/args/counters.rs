//! The option `--counters`: CPU and kernel counters to read during timed runs.

use clap::Args;
use kerntune_stats::PerfCounter;
use std::str::FromStr;

#[derive(Debug, Clone, Args)]
pub struct CounterOptions {
    /// On kvm and host: counters to read during timed runs, separated by commas: instructions,
    /// cycles, branches, branch_misses, l1i_misses, itlb_misses, page_faults, context_switches, or
    /// none [default: the CPU counters, which are the first six]
    #[arg(long, value_name = "LIST")]
    counters: Option<CounterList>,
}

impl CounterOptions {
    /// Returns the counters to read on a machine that has them.
    pub fn chosen(&self) -> &[PerfCounter] {
        self.counters.as_ref().map_or(PerfCounter::HARDWARE, |CounterList(counters)| counters)
    }

    /// Returns true if `--counters` named at least one counter.
    pub fn are_asked(&self) -> bool {
        self.counters.as_ref().is_some_and(|CounterList(counters)| !counters.is_empty())
    }
}

/// Counters parsed from names separated by commas; `none` is the empty list.
#[derive(Debug, Clone, PartialEq)]
struct CounterList(Vec<PerfCounter>);

impl FromStr for CounterList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(Vec::new())),
            names => names.split(',').map(PerfCounter::from_str).collect::<Result<_, _>>().map(Self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_commas() {
        let parse = |text: &str| text.parse::<CounterList>();
        assert_eq!(parse("none"), Ok(CounterList(vec![])));
        assert_eq!(
            parse("cycles,page_faults"),
            Ok(CounterList(vec![PerfCounter::Cycles, PerfCounter::PageFaults]))
        );
        assert!(parse("cycles,,").unwrap_err().contains("instructions, cycles"));
        assert_eq!(CounterOptions { counters: None }.chosen(), PerfCounter::HARDWARE);
        let command = CounterOptions::augment_args(clap::Command::new("test"));
        let help = command.get_arguments().find_map(clap::Arg::get_help).unwrap().to_string();
        assert!(PerfCounter::all().all(|counter| help.contains(counter.name())), "{help}");
    }
}
