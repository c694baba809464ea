//! Remarks on a profile's anomalies and limits, in sentences.

use crate::sampled;
use kerntune_profile::Profile;
use kerntune_table::number::grouped;
use kerntune_table::Document;
use kerntune_table::{printable, TextRole};

/// Counters of [`kerntune_profile::Manifest::health`] that are no faults: checks and corrections,
/// calls that were open when recording began or paused, and counts that another remark covers.
const HARMLESS: [&str; 9] = [
    "clock_checks",
    "clock_error_ns",
    "cut_blocks",
    "cut_calls",
    "unattributed_ns",
    "lost_events",
    "open_at_begin",
    "open_at_end",
    "timer_wraps",
];

/// Returns one sentence for each remark that a reader needs; empty if there are none.
pub(crate) fn notes(profile: &Profile) -> Vec<String> {
    let manifest = &profile.manifest;
    let mut notes = sampled::notes(manifest);
    if manifest.lost_events > 0 && manifest.sampled.is_some() {
        notes.push(format!(
            "{} samples were lost: their time is in no function, because it is not known which ran.",
            grouped(manifest.lost_events)
        ));
    } else if manifest.lost_events > 0 {
        notes.push(format!(
            "{} events were lost: the figures are too low. Record again.",
            grouped(manifest.lost_events)
        ));
    }
    if !manifest.capture.functions {
        notes.push("Functions were not captured: there is no table of functions.".into());
    }
    for (what, &count) in &manifest.health {
        if count > 0 && !HARMLESS.contains(&what.as_str()) {
            notes.push(match what.as_str() {
                "clock_errors" => clock(count, manifest.health.get("clock_error_ns").copied()),
                what => note(what, count, manifest.events),
            });
        }
    }
    notes
}

/// Adds the remarks as lines after an empty one.
pub(crate) fn add(document: &mut Document, profile: &Profile) {
    for (at, note) in notes(profile).into_iter().enumerate() {
        document.text(if at == 0 { "\n" } else { "" });
        document.painted(TextRole::Bad, "note");
        document.text(format!("  {}\n", printable(&note)));
    }
}

/// Adds the remarks on one of two profiles, `A` or `B`.
pub(crate) fn add_side(document: &mut Document, side: &str, profile: &Profile) {
    for note in notes(profile) {
        document.painted(TextRole::Bad, "note");
        document.text(format!("  {side}: {}\n", printable(&note)));
    }
}

/// Describes in one sentence how far the guest's clock and the recorder's count differed.
fn clock(times: u64, ns: Option<u64>) -> String {
    let times = match times {
        1 => "once".to_owned(),
        more => format!("{} times", grouped(more)),
    };
    let ns = ns.map(|ns| format!(", by {} ns in all", grouped(ns))).unwrap_or_default();
    format!(
        "The guest's clock and the count of instructions differed {times}{ns}: run/recording.json says where, \
         docs/measuring.md why."
    )
}

fn note(what: &str, count: u64, events: u64) -> String {
    let (count, events) = (grouped(count), grouped(events));
    match what {
        "unmatched_returns" => {
            format!("{count} returns (of {events} events) could not be matched with a call.")
        }
        "unknown_tags" => format!("{count} records (of {events} events) have a tag that no names file has."),
        "uncertain_switches" => {
            format!("{count} context switches do not show with certainty which process continued.")
        }
        "repeated_switches" => format!("{count} context switches began within another one."),
        "unread_io" => {
            format!(
                "{count} requests to block devices or network packets could not be read; no figure includes \
                 them."
            )
        }
        "foreign_returns" => {
            format!(
                "{count} returns (of {events} events) were by code reached through a jump into a function."
            )
        }
        "unwound_frames" => {
            format!("{count} calls (of {events} events) ended without a return of their own.")
        }
        "lost_jumps" => {
            format!("{count} jumps out of the selection could not be followed: some times may be too long.")
        }
        "uncounted_blocks" => {
            format!("{count} executed blocks found no counter and are missing from the counts.")
        }
        "uncounted_edges" => {
            format!("{count} taken branches found no counter and are missing from the counts.")
        }
        "strange_runs" => {
            format!("{count} runs between two branches do not fit the kernel's code and were left out.")
        }
        "unplaced_runs" => {
            format!("{count} runs in the kernel's memory were left out: it has no function there.")
        }
        "speculated_branches" => {
            format!("{count} branches were not taken, or undone by the CPU, and were left out.")
        }
        "strange_lines" => format!("{count} lines of the samples could not be parsed and were left out."),
        "boots" => format!("The samples are of {count} boots or machines."),
        "calls_of_unknown_code" => {
            format!("{count} calls are of code that the image does not have, and were left out.")
        }
        "silent_cpus" => format!("{count} CPUs have no sample."),
        "unclosed_regions" => {
            format!("{count} regions were begun and never ended: their figures are incomplete.")
        }
        "region_mismatches" => format!("{count} marks of regions were out of order."),
        "region_mismatch_ns" => {
            format!("The times of regions and of their events differ by {count} ns.")
        }
        "stack_mismatches" | "running_mismatches" | "clock_mismatches" | "unmatched_exits" => {
            format!("{count} {} in the trace (of {events} events).", what.replace('_', " "))
        }
        "unnamed_frames" => format!("{count} frames of call chains are in code that no symbol names."),
        "cut_chains" => {
            format!(
                "{count} call chains were longer than the kernel records: their outer callers are missing \
                 (kernel.perf_event_max_stack)."
            )
        }
        "host_disks" => {
            "The disk is a file of the host: figures differ from run to run (docs/disk.md).".into()
        }
        "throttled" => {
            format!(
                "The kernel throttled sampling {count} times (kernel.perf_cpu_time_max_percent): use a lower \
                 --rate."
            )
        }
        "folded_samples" => {
            format!(
                "{count} samples (of {events}) had no room for their call path and are counted for one of \
                 its callers."
            )
        }
        "crowded_threads" => {
            format!("{count} samples are of threads that had no room in the table of threads.")
        }
        "crowded_switches" => format!("{count} context switches had no room in their table."),
        "lost_switch_samples" => {
            format!("{count} samples of context switches were lost: the others stand for them.")
        }
        // A newer recorder may have counters that this list does not know.
        _ => format!("{}: {count}.", what.replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_difference_is_one_line() {
        let line = |ns| {
            format!(
                "The guest's clock and the count of instructions differed {ns}: run/recording.json says \
                 where, docs/measuring.md why."
            )
        };
        assert_eq!(clock(1, Some(3)), line("once, by 3 ns in all"));
        assert_eq!(clock(5, Some(1_234)), line("5 times, by 1,234 ns in all"));
        assert_eq!(clock(2, None), line("2 times"));
    }
}
