//! Head and tail of the text: title, sums, legend, and omissions.

use super::PathView;
use crate::unit::DisplayUnit;
use kerntune_analyze::path::PathEntryKind;
use kerntune_table::number::{fixed, grouped};
use kerntune_table::share;
use kerntune_table::{printable, Style, TextRole};

/// Formats a time exactly: `23,318 ns`.
pub(super) fn exact(ns: u64) -> String {
    let unit = DisplayUnit::for_largest(ns);
    format!("{} {}", unit.format(ns), unit.name())
}

const LEGEND: [&str; 2] = [
    "sec:milli micro nano  (net, total)  > at least: not seen whole  ×N so often in a row",
    "-> call  ~> tail call  => system call  <- return  == point  ?! exception  !! interrupt",
];

/// Renders title, sums and legend.
pub(super) fn head(shown: &PathView, style: Style) -> String {
    let path = shown.path;
    let totals = &path.totals;
    let wall = path.end_ns.saturating_sub(path.begin_ns);
    let mut out = style.paint(TextRole::Head, &format!("Path of {}", printable(shown.title))) + "\n\n";
    let mut line = |head: &str, value: String| out += &format!("{head:<20} = {value}\n");
    let part = |ns: u64| format!("{:>15}  ({:>6}%)", exact(ns), fixed(share(ns, wall), 2));
    let entries = || path.threads.iter().flat_map(|thread| &thread.entries);
    if path.more > 0 {
        let shown = entries().count() as u64;
        let all = grouped(shown.saturating_add(path.more));
        let until = entries().filter_map(|entry| entry.begin_ns).max().unwrap_or(path.begin_ns);
        let until = exact(until.saturating_sub(path.begin_ns));
        let first = format!("the first {} of {all} (--top), {until} into the path", grouped(shown));
        line("Entries shown", format!("{first}; the figures below are of all of it"));
    }
    if !path.threads.is_empty() {
        let all: Vec<String> = path.threads.iter().map(|thread| shown.thread(thread.thread)).collect();
        let more = if all.len() > 6 { format!(" and {} more", all.len() - 6) } else { String::new() };
        line(if all.len() == 1 { "Thread" } else { "Threads" }, all[..all.len().min(6)].join(", ") + &more);
    }
    let regions: Vec<&str> = (shown.recording.regions.iter())
        .filter(|r| r.begin_ns <= path.begin_ns && path.begin_ns <= r.begin_ns.saturating_add(r.elapsed_ns))
        .map(|r| r.name.as_str())
        .collect();
    let region = regions.last().map_or(String::new(), |name| format!(", in region {}", printable(name)));
    line("Begins at", format!("{} ns{region}", grouped(path.begin_ns)));
    match path.call_entry() {
        Some(call) => {
            let at_least = if call.complete() { "" } else { ", its end was not recorded" };
            line("From entry to exit", format!("{:>15}{at_least}", exact(wall)));
            line("Elapsed time", part(call.total_ns));
            line("Net time", part(call.self_ticks));
            let of_call =
                |kind: &PathEntryKind| matches!(kind, PathEntryKind::Away { .. } | PathEntryKind::Turn);
            let thread = path.threads.iter().find(|thread| Some(thread.thread) == path.call);
            let away = thread.into_iter().flat_map(|thread| &thread.entries).filter(|e| of_call(&e.kind));
            let away: u64 = away.map(|entry| entry.total_ns).sum();
            let rest = wall.saturating_sub(call.total_ns).saturating_sub(away);
            for (head, ns) in [("Interrupts", rest), ("Off the CPU", away)] {
                if ns > 0 {
                    line(head, part(ns));
                }
            }
        }
        None => {
            line("Elapsed time", format!("{:>15}", exact(wall)));
            line("Accumulated run time", part(totals.busy_ticks));
            for (head, ns) in [
                ("Idle time", totals.idle_ns),
                ("User time", totals.user_ticks),
                ("Interrupts", totals.interrupt_ns),
                ("No function known", totals.unattributed_ticks),
            ] {
                if ns > 0 {
                    line(head, part(ns));
                }
            }
        }
    }
    let mut what = vec![format!("{} (depth {})", grouped(totals.calls), totals.depth)];
    for (count, one, many) in [
        (totals.syscalls, "system call", "system calls"),
        (totals.exceptions, "exception", "exceptions"),
        (totals.interrupts, "interrupt", "interrupts"),
        (totals.switches, "context switch", "context switches"),
    ] {
        if count > 0 {
            what.push(format!("{} {}", grouped(count), if count == 1 { one } else { many }));
        }
    }
    line("Calls", what.join(", "));
    if shown.profile.manifest.exact {
        let with = if path.call.is_some() && totals.interrupt_ns > 0 { "; with interrupts" } else { "" };
        line("Instructions", format!("{} (one takes 1 ns{with})", grouped(totals.busy_ticks)));
    }
    let weights = totals.weights;
    if weights.taken_branches > 0 {
        let misses = format!(
            "{} L1I misses, {} iTLB misses (model)",
            grouped(weights.l1i_misses),
            grouped(weights.itlb_misses)
        );
        line("Branches taken", format!("{}, {misses}", grouped(weights.taken_branches)));
    }
    let legend = LEGEND.map(|line| style.paint(TextRole::Faint, line) + "\n").concat();
    out + "\n" + &legend + "\n"
}

/// Renders what was left out.
pub(super) fn tail(shown: &PathView, style: Style) -> String {
    let path = shown.path;
    let mut out = String::new();
    let mut line = |text: String| {
        out += &style.paint(TextRole::Faint, &text);
        out.push('\n');
    };
    if path.more > 0 {
        line(format!("… {} more entries (--top)", grouped(path.more)));
    }
    if path.hidden > 0 {
        line(format!("{} calls are deeper than what is shown (--depth)", grouped(path.hidden)));
    }
    if path.threads.is_empty() {
        line("none of the selected threads ran in this time".into());
    }
    out
}
