//! Which counters stand beside times.

use clap::Args;
use kerntune_stats::Counter;
use std::str::FromStr;

#[derive(Debug, Clone, Args)]
pub struct Counters {
    /// On kvm and host: counters to read beside the times, separated by commas: instructions, cycles, branches, branch_misses,
    /// l1i_misses, itlb_misses, page_faults, context_switches, or none [default: those of the CPU, the first six]
    #[arg(long, value_name = "LIST")]
    counters: Option<List>,
}

impl Counters {
    /// What is to be counted on a machine that can.
    pub fn chosen(&self) -> &[Counter] {
        self.counters.as_ref().map_or(Counter::HARDWARE, |List(counters)| counters)
    }

    /// Whether somebody asked for something.
    pub fn are_asked(&self) -> bool {
        self.counters.as_ref().is_some_and(|List(counters)| !counters.is_empty())
    }
}

/// Names by commas.
#[derive(Debug, Clone, PartialEq)]
struct List(Vec<Counter>);

impl FromStr for List {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(Vec::new())),
            names => names.split(',').map(Counter::from_str).collect::<Result<_, _>>().map(Self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_commas() {
        let parse = |text: &str| text.parse::<List>();
        assert_eq!(parse("none"), Ok(List(vec![])));
        assert_eq!(parse("cycles,page_faults"), Ok(List(vec![Counter::Cycles, Counter::PageFaults])));
        assert!(parse("cycles,,").unwrap_err().contains("instructions, cycles"));
        assert_eq!(Counters { counters: None }.chosen(), Counter::HARDWARE);
        let command = Counters::augment_args(clap::Command::new("test"));
        let help = command.get_arguments().find_map(clap::Arg::get_help).unwrap().to_string();
        assert!(Counter::all().all(|counter| help.contains(counter.name())), "{help}");
    }
}
