//! Unit of a profile's ticks, and units in which columns are displayed.

use kerntune_profile::{Profile, ScopeTotals};
use kerntune_table::number;
use kerntune_table::printable;
use kerntune_table::share;

pub(crate) use kerntune_table::unit::{per_second, readable, seconds, seconds_at, DisplayUnit};

/// Meaning of a tick in a profile: an instruction or a nanosecond.
///
/// The exact machine has no clock: an instruction is a nanosecond of its virtual time, so that code
/// times are instruction counts. Idle time, elapsed time of the machine, and points in time are
/// virtual time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickUnit {
    /// Exact machine: ticks of code are instructions.
    Instructions,
    /// Sampled or clocked times: ticks are nanoseconds.
    Time,
}

impl TickUnit {
    /// Returns the tick unit of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self::exact(profile.manifest.exact)
    }

    /// Returns the unit in which two profiles can be compared: instructions only if both are exact.
    pub fn common_to(profiles: [&Profile; 2]) -> Self {
        Self::exact(profiles.iter().all(|profile| profile.manifest.exact))
    }

    pub(crate) fn exact(exact: bool) -> Self {
        if exact {
            TickUnit::Instructions
        } else {
            TickUnit::Time
        }
    }

    /// Returns the unit's name in JSON, for figures whose keys have no unit.
    pub fn name(self) -> &'static str {
        match self {
            TickUnit::Instructions => "instructions",
            TickUnit::Time => "ns",
        }
    }

    /// Returns the unit in which the largest value of a column has at most eight digits.
    pub fn unit(self, largest: u64) -> DisplayUnit {
        match (self, DisplayUnit::for_largest(largest)) {
            (TickUnit::Time, unit) => unit,
            (TickUnit::Instructions, DisplayUnit::Nanoseconds) => DisplayUnit::Instructions,
            (TickUnit::Instructions, DisplayUnit::Microseconds) => DisplayUnit::Thousands,
            (TickUnit::Instructions, _) => DisplayUnit::Millions,
        }
    }

    /// Returns the unit for a column beside columns with much smaller values: instructions stay
    /// whole there, so that a row has one unit.
    pub fn row_unit(self, largest: u64) -> DisplayUnit {
        match self {
            TickUnit::Time => self.unit(largest),
            TickUnit::Instructions => DisplayUnit::Instructions,
        }
    }

    /// Returns the unit of single values: instructions or nanoseconds.
    pub fn smallest_unit(self) -> DisplayUnit {
        self.unit(0)
    }

    /// Formats a value for running text: `155.86 M instr.`, `5.02 k instr.`, `300 instr.`, or
    /// [`readable`] time.
    pub fn readable(self, value: u64) -> String {
        match (self, value) {
            (TickUnit::Time, _) => readable(value),
            (_, 0..=9_999) => format!("{} instr.", number::grouped(value)),
            (_, 10_000..=999_999) => format!("{} k instr.", number::fixed(value as f64 / 1e3, 2)),
            _ => format!("{} M instr.", number::fixed(value as f64 / 1e6, 2)),
        }
    }

    /// Formats a value in full, for a report's header: `155,856,612 instr.`, `0 sec 497272 us`.
    pub fn whole(self, value: u64) -> String {
        match self {
            TickUnit::Time => seconds(value),
            TickUnit::Instructions => format!("{} instr.", number::grouped(value)),
        }
    }
}

/// Returns a report's header: its region, and the times that percentages refer to.
pub(crate) fn header(profile: &Profile, totals: &ScopeTotals, region: Option<&str>) -> String {
    let mut out = region.map_or(String::new(), |name| format!("Region {}\n", printable(name)));
    out += &whole(profile, totals.elapsed_ticks.get(), totals.busy_ticks.get(), totals.idle_ticks.get(), "");
    out
}

/// Returns the header's times: elapsed, busy and idle; `events` stands beside the first.
pub(crate) fn whole(profile: &Profile, elapsed: u64, busy: u64, idle: u64, events: &str) -> String {
    let percent = |part: u64| format!("({:>6}%)", number::fixed(share(part, elapsed), 2));
    let line = |head: &str, figure: String, tail: String| {
        format!("{head:<20} = {figure}  {tail}").trim_end().to_string() + "\n"
    };
    let (time, run) = match TickUnit::of(profile) {
        TickUnit::Instructions => ("Virtual time", "Instructions"),
        TickUnit::Time => ("Elapsed time", "Accumulated run time"),
    };
    line(time, seconds(elapsed), events.into())
        + &line(run, run_time(profile, busy), percent(busy))
        + &line("Idle time", seconds(idle), percent(idle))
}

/// Formats busy time in the width of the times around it.
pub(crate) fn run_time(profile: &Profile, value: u64) -> String {
    match TickUnit::of(profile) {
        TickUnit::Instructions => format!("{:>15}", number::grouped(value)),
        TickUnit::Time => seconds(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_the_exact_machine_and_times_of_others() {
        let [exact, timed] = [true, false].map(TickUnit::exact);
        assert_eq!(
            [9_999, 12_345, 155_856_612].map(|value| exact.readable(value)),
            ["9,999 instr.", "12.35 k instr.", "155.86 M instr."]
        );
        assert_eq!(timed.readable(12_345), "12.35 us");
        for (largest, name, ns) in [(99_999_999, "instr.", "ns"), (100_000_000, "k instr.", "us")] {
            assert_eq!((exact.unit(largest).name(), timed.unit(largest).name()), (name, ns));
        }
        assert_eq!(exact.unit(u64::MAX).format(1_500_000), "2");
        assert_eq!(
            (exact.whole(1_234), timed.whole(1_234)),
            ("1,234 instr.".into(), "0 sec      1 us".into())
        );
    }
}
