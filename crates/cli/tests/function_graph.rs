//! Compares `kerntune anatomy` with the kernel's own function_graph tracer, which traces the same
//! operations in the same guest.
//!
//! For one operation of each row of `embedded/guest/operations.c`, tracer and recorder must show the same
//! calls in the same order and at the same depth, except functions that the tracer cannot hook
//! (available_filter_functions). The operations before it were recorded without a tracer; `anatomy`
//! shows the typical one of them.
//!
//! `KERNTUNE_GRAPH_KERNEL=LABEL cargo test … --test cli function_graph:: -- --nocapture` runs the
//! comparison on another kernel, and prints the figures of docs/results/anatomy.md. The tracer
//! returns to a caller with a call and a return that do not pair. The recorder can follow this if
//! it recognizes calls by the stack pointer, as it does for kernels with mitigations; for other
//! kernels only the typical call is compared.

use crate::support::{self, checkout, json};
use kerntune_analyze::path::{collect, CallStart, PathEntryKind, PathSelection, PathSpan};
use kerntune_analyze::TraceFile;
use kerntune_profile::{CallKind, FunctionIndex, Profile};
use kerntune_tune::run_files::RunFiles;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A row of embedded/guest/operations.c, the function to examine, the number of its call within the traced
/// operation (which includes the system calls that switch the tracer), and a boundary.
const OPERATIONS: [(&str, &str, u64, &str); 7] = [
    ("direct_read", "__x64_sys_pread64", 1, "submit_bio"),
    ("buffered_read", "__x64_sys_pread64", 1, "lib/iov_iter.c"),
    ("tcp_rr", "__x64_sys_write", 2, "drivers/net/loopback.c"),
    ("tcp_rr", "__x64_sys_read", 1, "schedule"),
    ("fork", "kernel_clone", 1, "wake_up_new_task"),
    ("page_fault", "handle_mm_fault", 1, "mm/page_alloc.c"),
    ("futex_wake", "futex_wake", 1, "try_to_wake_up"),
];

/// Rows whose calls depend only on the operation and on the scheduler, so that the traced one is the
/// typical one outside of [`SCHEDULER`]. The tracer makes all operations longer, so that a tick may
/// fall into the others; and what the scheduler adds up depends on how long a thread ran.
const ALIKE: [(&str, &str); 3] = [
    ("direct_read", "__x64_sys_pread64"),
    ("buffered_read", "__x64_sys_pread64"),
    ("page_fault", "handle_mm_fault"),
];

/// Function that calls the scheduler.
const SCHEDULER: &str = "schedule";

/// Function that runs while the stack already belongs to the next thread and `current` does not
/// (`__switch_to`). The tracer attributes it to the previous thread, the recorder to the next one,
/// so it is not compared.
const WHOSE: &str = "save_fpregs_to_fpstate";

/// A call with its depth; 0 for the operation.
type GraphCall = (usize, String);

/// Recordings of both tools on one kernel.
struct FunctionGraph {
    profile: Profile,
    files: RunFiles,
    graph: PathBuf,
    /// Functions that the tracer can hook.
    hooks: BTreeSet<String>,
}

fn recorded(kernel: String) -> (String, FunctionGraph) {
    let text = std::fs::read_to_string(checkout().join("data/workloads/operations.toml")).unwrap();
    let text = text.replace(
        "command = [\"operations\"",
        "command = [\"busybox\", \"env\", \"KT_GRAPH=1\", \"operations\"",
    );
    let text = text.replace("memory_mb", "binaries = [\"busybox\"]\nprograms = [\"operations\"]\nmemory_mb");
    let directory = tempfile::tempdir().unwrap();
    let file = support::workload(&directory, &text);
    let summary = json(["record", "--kernel", &kernel, "--workload", &file, "--no-edges", "--json"]);
    let id = summary["profile"].as_str().unwrap().to_owned();
    let directory = support::work_dir().join("profiles").join(&id);
    let graph = directory.join("run/guest/graph");
    let hooks = std::fs::read_to_string(graph.join("available_filter_functions")).unwrap();
    let hooks = hooks.lines().filter_map(|line| line.split_whitespace().next()).map(String::from).collect();
    let (profile, files) = (Profile::load(&directory).unwrap(), RunFiles::open(&directory).unwrap());
    (id, FunctionGraph { profile, files, graph, hooks })
}

/// Returns the first call of a function by a process that the tracer recorded completely, with the
/// calls below it.
fn theirs(file: &Path, function: &str, pid: u32) -> Vec<GraphCall> {
    let text = std::fs::read_to_string(file).unwrap();
    // Number of open calls, and the call of interest once it has begun: its depth and the calls
    // below it.
    let (mut depth, mut found): (usize, Option<(usize, Vec<GraphCall>)>) = (0, None);
    for line in text.lines() {
        // ` operati-45    |      vfs_read() {`
        let Some((task, what)) = line.split_once('|') else { continue };
        let what = what.trim();
        if task.trim().rsplit_once('-').is_none_or(|(_, number)| number.parse() != Ok(pid)) {
            continue;
        }
        let name = what.strip_suffix("() {").or_else(|| what.strip_suffix("();"));
        if let Some(name) = name {
            let name = name.split_whitespace().next().unwrap();
            if found.is_none() && name == function {
                found = Some((depth, Vec::new()));
            }
            if let Some((base, calls)) = &mut found {
                calls.push((depth - *base, name.to_owned()));
            }
        }
        depth = match (what.ends_with('{'), what.starts_with('}')) {
            (true, _) => depth + 1,
            // A call that was open when the tracer started.
            (_, true) => depth.saturating_sub(1),
            _ => depth,
        };
        if !what.ends_with('{') && found.as_ref().is_some_and(|(base, _)| depth <= *base) {
            let mut calls = found.unwrap_or_default().1;
            calls.retain(|(_, name)| name != WHOSE);
            return calls;
        }
    }
    panic!("{function} is not in {}:\n{text}", file.display());
}

/// A call as the recorder saw it.
#[derive(Default)]
struct OwnTrace {
    pid: u32,
    /// Calls of hooked functions, and whether an interrupt made them.
    calls: Vec<(GraphCall, bool)>,
    /// The same without interrupts, and without calls that exist only while a tracer is active.
    own: Vec<GraphCall>,
    /// Number of calls of functions without a hook, by name and source file.
    without: BTreeMap<(String, String), u64>,
    /// Number of interrupts during the call.
    interrupts: u64,
}

impl FunctionGraph {
    fn ours(&self, start: CallStart) -> OwnTrace {
        let trace = TraceFile::open(&self.files.trace, &self.files.recording).unwrap();
        let span = PathSpan::Call(start);
        let selection = PathSelection { span, thread: None, all: false, depth: None, limit: 10_000_000 };
        let symbols = &self.profile.tables.symbols;
        let path = collect(&trace, symbols.len(), &selection).unwrap();
        let thread = path.threads.iter().find(|thread| Some(thread.thread) == path.call).unwrap();
        let known = self.files.recording.threads.get(thread.thread as usize);
        let mut ours = OwnTrace { pid: known.map_or(0, |known| known.pid), ..OwnTrace::default() };
        // Open calls of hooked functions; the depth of an interrupt, and of the tracer's own calls.
        let (mut open, mut interrupt, mut tracer): (Vec<u32>, Option<u32>, Option<u32>) = Default::default();
        for entry in &thread.entries {
            let PathEntryKind::Call { function, how } = entry.kind else { continue };
            open.retain(|level| *level < entry.level);
            [&mut interrupt, &mut tracer]
                .into_iter()
                .for_each(|of| *of = of.filter(|level| *level < entry.level));
            let symbol = &symbols[function.get() as usize];
            if how == CallKind::Interrupt && interrupt.is_none() {
                interrupt = Some(entry.level);
                ours.interrupts += 1;
            }
            if symbol.name.starts_with("__traceiter_") && tracer.is_none() {
                tracer = Some(entry.level);
            }
            if !self.hooks.contains(&symbol.name) {
                let file = symbol.file.clone().unwrap_or_default();
                *ours.without.entry((symbol.name.clone(), file)).or_default() += 1;
                continue;
            }
            if symbol.name == WHOSE {
                continue;
            }
            let call = (open.len(), symbol.name.clone());
            if interrupt.is_none() && tracer.is_none() {
                ours.own.push(call.clone());
            }
            ours.calls.push((call, interrupt.is_some()));
            open.push(entry.level);
        }
        ours
    }

    fn function(&self, name: &str) -> FunctionIndex {
        kerntune_report::names::function(&self.profile.tables, name).unwrap()
    }
}

/// Checks that both have the same functions in the same order, and at the same depth except for
/// interrupts. An interrupt that arrives while the tracer records the end of a function counts
/// inside the function for the tracer, and inside its caller for the recorder.
fn compare(ours: &[(GraphCall, bool)], theirs: &[GraphCall], what: &str) {
    let same = |(((depth, name), interrupt), (other, function)): &(&(GraphCall, bool), &GraphCall)| {
        name == function && (*interrupt || depth == other)
    };
    let at = ours.iter().zip(theirs).take_while(same).count();
    let from = at.saturating_sub(5);
    let line = |(depth, name): &GraphCall| format!("{:depth$}{name}\n", "");
    let recorder: String = ours.iter().skip(from).take(12).map(|(call, _)| line(call)).collect();
    let tracer: String = theirs.iter().skip(from).take(12).map(line).collect();
    assert!(
        at == ours.len() && at == theirs.len(),
        "{what} after {at} calls; recorder:\n{recorder}function_graph:\n{tracer}"
    );
}

/// Returns the difference of call counts by function.
fn difference(one: &[GraphCall], other: &[GraphCall]) -> BTreeMap<String, i64> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    one.iter().for_each(|(_, name)| *counts.entry(name.clone()).or_default() += 1);
    other.iter().for_each(|(_, name)| *counts.entry(name.clone()).or_default() -= 1);
    counts.retain(|_, count| *count != 0);
    counts
}

fn at(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn calls_are_those_of_the_kernels_own_function_graph_tracer() {
    let other = std::env::var("KERNTUNE_GRAPH_KERNEL").ok();
    let (id, recorded) = recorded(other.clone().unwrap_or_else(support::ftrace_kernel));
    println!("profile {id}, kernel {}", recorded.profile.manifest.kernel.version);
    let mut main = None;
    for (row, function, nth, until) in OPERATIONS {
        let stats = std::fs::read_to_string(recorded.graph.join(format!("{row}.stats"))).unwrap();
        assert!(stats.contains("overrun: 0\n"), "the tracer lost something:\n{stats}");
        let index = recorded.function(function);
        // A peer makes the same call; the first one belongs to the traced process.
        let traced = (nth..nth + 4)
            .map(|nth| {
                recorded.ours(CallStart::Nth { function: index, nth, region: Some(format!("{row}_graph")) })
            })
            .find(|traced| *main.get_or_insert(traced.pid) == traced.pid)
            .unwrap();
        let theirs = theirs(&recorded.graph.join(row), function, traced.pid);
        let found =
            json(["anatomy", function, "--profile", &id, "--region", row, "--until", until, "--json"]);
        let (begin_ns, ns) = (at(&found["typical"], "begin_ns"), at(&found["typical"], "elapsed"));
        let start = CallStart::At { function: index, begin_ns, elapsed_ns: Some(ns..=ns) };
        let typical = recorded.ours(start);
        let seen = without_tracer(&theirs);
        let more = difference(&seen, &typical.own);
        let without = typical.without.values().sum::<u64>();
        println!(
            "{row} {function}: typical {} calls of {} functions, {ns} instructions, before {until} {}; {} have a hook, {without} \
             have none; function_graph {} calls, the recorder {} there, {} interrupts",
            at(&found["typical"], "calls"),
            at(&found["typical"], "functions"),
            found["before"]["spreads"]["elapsed"]["median"],
            typical.own.len(),
            theirs.len(),
            traced.calls.len(),
            traced.interrupts
        );
        println!("  no hook: {}", listed(&typical.without));
        println!("  traced, and not in the typical one: {more:?}");
        if other.is_none() {
            compare(&traced.calls, &theirs, &format!("{row} {function}"));
        }
        assert!(theirs.len() >= 10, "{row} {function}: {theirs:?}");
        assert!(typical.without.keys().all(|(name, _)| !recorded.hooks.contains(name)));
        if ALIKE.contains(&(row, function)) {
            let typical = without_below(&typical.own, |name| name == SCHEDULER);
            let typical: Vec<_> = typical.into_iter().map(|call| (call, false)).collect();
            let seen = without_below(&seen, |name| name == SCHEDULER);
            compare(&typical, &seen, &format!("{row} {function}, the typical call"));
        }
    }
}

/// Removes calls that the scheduler makes only for an active tracer.
fn without_tracer(calls: &[GraphCall]) -> Vec<GraphCall> {
    without_below(calls, |name| name.starts_with("__traceiter_"))
}

/// Removes calls of such functions, with the calls below them.
fn without_below(calls: &[GraphCall], is_left_out: impl Fn(&str) -> bool) -> Vec<GraphCall> {
    let mut below: Option<usize> = None;
    let own = calls.iter().filter(|(depth, name)| {
        below = below.filter(|level| level < depth);
        if below.is_none() && is_left_out(name) {
            below = Some(*depth);
        }
        below.is_none()
    });
    own.cloned().collect()
}

/// Lists functions by source file.
fn listed(functions: &BTreeMap<(String, String), u64>) -> String {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((name, file), count) in functions {
        files.entry(file).or_default().push(format!("{name} ×{count}"));
    }
    let line = |(file, names): (&str, Vec<String>)| format!("{file}: {}", names.join(", "));
    files.into_iter().map(line).collect::<Vec<_>>().join("; ")
}
