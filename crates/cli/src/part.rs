//! Selection of a part of a trace for exports: regions, and virtual times.

use clap::Args;
use kerntune_analyze::timeline::{stream, StreamSelection, StreamSummary, TimelineSink};
use kerntune_analyze::TraceFile;
use kerntune_command::{CliOutput, Failure};
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;

/// Options that select the part of the trace to export.
#[derive(Debug, Clone, Args)]
pub struct TracePartOptions {
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Export only events from this time on (virtual: `5123456789`, `5.12s`, `5120ms`, `5120000us`)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Export only events before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Export call paths with their sums, without order in time, instead of the trace; the only
    /// choice for a profile without a trace
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub paths: bool,
}

impl TracePartOptions {
    /// Converts the options to a selection of at most `events` events.
    ///
    /// # Errors
    /// A region that the profile does not have; an end that is not after the beginning.
    pub fn part(&self, profile: &Profile, events: u64) -> Result<StreamSelection, Failure> {
        let scope = kerntune_report::scope(profile, self.region.as_deref())?;
        let regions = self
            .region
            .as_ref()
            .map(|_| (0..profile.tables.regions.len()).map(|region| scope.contains(region as u32)).collect());
        let (from, to) = (self.from.unwrap_or(0), self.to.unwrap_or(u64::MAX));
        if from >= to {
            return Err(Failure::usage("--to: the end is not after the beginning (--from)"));
        }
        Ok(StreamSelection { from, to, regions, events })
    }
}

/// Streams the selected part of the trace into `sink`.
///
/// # Errors
/// A damaged trace, an interruption, or a selection without events.
pub fn stream_events(
    files: &RunFiles,
    part: &StreamSelection,
    sink: &mut dyn TimelineSink,
    output: &CliOutput,
) -> Result<StreamSummary, Failure> {
    let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
    output.progress().begin("reading the trace", Some(files.recording.events.min(part.events)));
    let told = stream(&trace, part, sink, &mut |events| watch::report(output.progress(), events));
    output.progress().end();
    interrupt::check()?;
    let told = told.map_err(kerntune_tune::Error::from)?;
    match told.events {
        0 => Err(Failure::usage(
            "nothing was recorded in that part of the trace: `kerntune report PROFILE summary` lists the regions",
        )),
        _ => Ok(told),
    }
}

/// Returns a sentence on the events that were left out, or `None` if there are none.
pub fn left_out(told: &StreamSummary, files: &RunFiles) -> Option<String> {
    (!told.whole).then(|| {
        format!(
            "cut after {} events, at {} ns; the trace has {} events: choose a part with --region or --from and --to, or \
             more with --events",
            grouped(told.events),
            grouped(told.end),
            grouped(files.recording.events)
        )
    })
}

/// Adds the exported share of the part to a title, as in `rr on base, first 3 % only`; unchanged if
/// all of it was exported.
pub fn cut_title(title: &str, told: &StreamSummary, part: &StreamSelection, profile: &Profile) -> String {
    if told.whole {
        return title.to_owned();
    }
    let is_all = part.from == 0 && part.to == u64::MAX;
    let chosen = |number: usize, depth: u32| match &part.regions {
        Some(regions) => regions.get(number).copied().unwrap_or(false),
        None => depth == 0,
    };
    let regions = profile.tables.regions.iter().enumerate();
    let busy = regions.filter(|(number, region)| is_all && chosen(*number, region.depth));
    let busy: u64 = busy.map(|(_, region)| region.busy_ticks.get()).sum();
    format!(
        "{title}, first {} only",
        share(told.busy, busy).unwrap_or_else(|| format!("{} events", grouped(told.events)))
    )
}

/// Formats a share as `3 %`, with decimals below 1 %. `None` if `whole` is 0 or less than `part`.
fn share(part: u64, whole: u64) -> Option<String> {
    if whole == 0 || part > whole {
        return None;
    }
    let percent = 100.0 * part as f64 / whole as f64;
    Some(match percent {
        percent if percent >= 1.0 => format!("{percent:.0} %"),
        percent if percent >= 0.01 => format!("{percent:.2} %"),
        _ => "0.01 %".to_owned(),
    })
}

/// Summarizes the exported events in a sentence.
pub fn summary(told: &StreamSummary, unit: &str) -> String {
    format!(
        "{} events from {} to {} ns: {} {unit} executed, {} ns halted",
        grouped(told.events),
        grouped(told.begin),
        grouped(told.end),
        grouped(told.busy),
        grouped(told.idle)
    )
}

/// Parses a time with a unit (`s`, `ms`, `us`, `ns`) into nanoseconds; a number without a unit is
/// in nanoseconds.
pub fn time(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time: write 5123456789, 5.12s, 5120ms or 5120000us");
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.iter().find_map(|&(name, per)| text.strip_suffix(name).map(|number| (number, per)));
    let (number, per) = found.unwrap_or((text, 1u64));
    let number = number.trim().replace([',', '_'], "");
    let (whole, part) = number.split_once('.').unwrap_or((&number, "0"));
    // Parsed digit by digit, because a float cannot represent every nanosecond.
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let mut ns = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(per)).ok_or_else(wrong)?;
    let mut worth = per;
    for byte in part.bytes() {
        worth /= 10;
        ns = ns.checked_add(u64::from(byte - b'0') * worth).ok_or_else(wrong)?;
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::{share, time};

    #[test]
    fn a_share_is_never_nothing_and_never_more_than_all() {
        let all =
            [(33, 1037), (1, 200), (1, 1 << 40), (3, 3), (4, 3), (1, 0)].map(|(part, all)| share(part, all));
        let said = ["3 %", "0.50 %", "0.01 %", "100 %"].map(|said| Some(said.to_owned()));
        assert_eq!((&all[..4], &all[4..]), (&said[..], &[None, None][..]));
    }

    #[test]
    fn times_to_the_nanosecond() {
        let all = ["5123456789", "5.123456789s", "5,123,456.789us", "0.5ms", "7 ns", "9007199.254740993s"];
        let found = all.map(|text| time(text).unwrap());
        assert_eq!(found, [5_123_456_789, 5_123_456_789, 5_123_456_789, 500_000, 7, 9_007_199_254_740_993]);
        for wrong in ["", "s", "-1", "1e9", "5m", "1.", "99999999999999999999"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
