//! `kerntune anatomy` against the kernel's own function_graph tracer, which traces the same operations in the same guest.
//!
//! One operation of each row of `guest/operations.c` is seen by both, the tracer and the recorder: what it calls has to be the
//! same, in the same order and as deep, but for functions that the tracer has no hook in (available_filter_functions). The
//! operations before it were recorded with no tracer in place; the typical one of them is what `anatomy` shows.
//!
//! `KERNTUNE_GRAPH_KERNEL=LABEL cargo test … --test cli function_graph:: -- --nocapture` does the same on another kernel, and prints
//! the figures of docs/results/anatomy.md. The tracer returns to where a function was called from by a call and a return that do not
//! belong together. The recorder follows that where it tells calls by the stack pointer, in kernels with mitigations: of others
//! only the typical call is compared.

use crate::support::{self, checkout, json};
use kerntune_analyze::path::{collect, CallStart, EntryKind, Selection, Span};
use kerntune_analyze::TraceFile;
use kerntune_profile::{FunctionIndex, How, Profile};
use kerntune_tune::run_files::RunFiles;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A row of guest/operations.c, the function that is taken apart, its how manieth call in the traced operation that is (the
/// system calls that switch the tracer are seen, too), and a boundary.
const OPERATIONS: [(&str, &str, u64, &str); 7] = [
    ("direct_read", "__x64_sys_pread64", 1, "submit_bio"),
    ("buffered_read", "__x64_sys_pread64", 1, "lib/iov_iter.c"),
    ("tcp_rr", "__x64_sys_write", 2, "drivers/net/loopback.c"),
    ("tcp_rr", "__x64_sys_read", 1, "schedule"),
    ("fork", "kernel_clone", 1, "wake_up_new_task"),
    ("page_fault", "handle_mm_fault", 1, "mm/page_alloc.c"),
    ("futex_wake", "futex_wake", 1, "try_to_wake_up"),
];

/// Those whose calls hang on nothing but the operation: what is traced is the typical one. The tracer makes all of them longer, so that
/// a tick may fall into the others, and the scheduler finds something else to do.
const ALIKE: [(&str, &str); 3] = [
    ("direct_read", "__x64_sys_pread64"),
    ("buffered_read", "__x64_sys_pread64"),
    ("page_fault", "handle_mm_fault"),
];

/// What runs when the stack is another thread's already and `current` is not yet (`__switch_to`): to the tracer it is of who leaves the
/// CPU, to the recorder of who comes. Neither's is compared.
const WHOSE: &str = "save_fpregs_to_fpstate";

/// A call, and how deep: 0 for the operation.
type Call = (usize, String);

/// The work of this test on one kernel.
struct Recorded {
    profile: Profile,
    files: RunFiles,
    graph: PathBuf,
    /// Functions with a hook.
    hooks: BTreeSet<String>,
}

fn recorded(kernel: String) -> (String, Recorded) {
    let text = std::fs::read_to_string(checkout().join("workloads/operations.toml")).unwrap();
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
    (id, Recorded { profile, files, graph, hooks })
}

/// The first call of a function by a process that the tracer saw from entry to exit, and what it called.
fn theirs(file: &Path, function: &str, pid: u32) -> Vec<Call> {
    let text = std::fs::read_to_string(file).unwrap();
    // How many calls are open, and the one that is looked for, if it has begun: how deep, and what it called.
    let (mut depth, mut found): (usize, Option<(usize, Vec<Call>)>) = (0, None);
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
            // Of what was open when the tracer began.
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

/// What the recorder saw of a call.
#[derive(Default)]
struct Ours {
    pid: u32,
    /// What has a hook, and whether an interrupt did it.
    calls: Vec<(Call, bool)>,
    /// The same without what interrupts did, and without what the scheduler tells a tracer that is in place.
    own: Vec<Call>,
    /// What has no hook, and how often; with its source file.
    without: BTreeMap<(String, String), u64>,
    /// Interrupts on the way.
    interrupts: u64,
}

impl Recorded {
    fn ours(&self, start: CallStart) -> Ours {
        let trace = TraceFile::open(&self.files.trace, &self.files.recording).unwrap();
        let span = Span::Call(start);
        let selection = Selection { span, thread: None, all: false, depth: None, limit: 10_000_000 };
        let symbols = &self.profile.tables.symbols;
        let path = collect(&trace, symbols.len(), &selection).unwrap();
        let thread = path.threads.iter().find(|thread| Some(thread.thread) == path.call).unwrap();
        let known = self.files.recording.threads.get(thread.thread as usize);
        let mut ours = Ours { pid: known.map_or(0, |known| known.pid), ..Ours::default() };
        // Levels that are open, of those with a hook; those of an interrupt and of what is the tracer's.
        let (mut open, mut interrupt, mut tracer): (Vec<u32>, Option<u32>, Option<u32>) = Default::default();
        for entry in &thread.entries {
            let EntryKind::Call { function, how } = entry.kind else { continue };
            open.retain(|level| *level < entry.level);
            [&mut interrupt, &mut tracer]
                .into_iter()
                .for_each(|of| *of = of.filter(|level| *level < entry.level));
            let symbol = &symbols[function.get() as usize];
            if how == How::Interrupt && interrupt.is_none() {
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

/// Both have the same functions in the same order, and what no interrupt did is as deep. An interrupt that arrives while the tracer
/// notes that a function has ended is within that function to the tracer, and within its caller to the recorder.
fn compare(ours: &[(Call, bool)], theirs: &[Call], what: &str) {
    let same = |(((depth, name), interrupt), (other, function)): &(&(Call, bool), &Call)| {
        name == function && (*interrupt || depth == other)
    };
    let at = ours.iter().zip(theirs).take_while(same).count();
    let from = at.saturating_sub(5);
    let line = |(depth, name): &Call| format!("{:depth$}{name}\n", "");
    let recorder: String = ours.iter().skip(from).take(12).map(|(call, _)| line(call)).collect();
    let tracer: String = theirs.iter().skip(from).take(12).map(line).collect();
    assert!(
        at == ours.len() && at == theirs.len(),
        "{what} after {at} calls; recorder:\n{recorder}function_graph:\n{tracer}"
    );
}

/// How often each function is called more by one than by the other.
fn difference(one: &[Call], other: &[Call]) -> BTreeMap<String, i64> {
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
        // A peer does the same: the first by the process that is traced.
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
            let typical: Vec<_> = typical.own.into_iter().map(|call| (call, false)).collect();
            compare(&typical, &seen, &format!("{row} {function}, the typical call"));
        }
    }
}

/// Without what the scheduler tells a tracer that is in place.
fn without_tracer(calls: &[Call]) -> Vec<Call> {
    let mut tracer: Option<usize> = None;
    let own = calls.iter().filter(|(depth, name)| {
        tracer = tracer.filter(|level| level < depth);
        if tracer.is_none() && name.starts_with("__traceiter_") {
            tracer = Some(*depth);
        }
        tracer.is_none()
    });
    own.cloned().collect()
}

/// Functions by source file.
fn listed(functions: &BTreeMap<(String, String), u64>) -> String {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((name, file), count) in functions {
        files.entry(file).or_default().push(format!("{name} ×{count}"));
    }
    let line = |(file, names): (&str, Vec<String>)| format!("{file}: {}", names.join(", "));
    files.into_iter().map(line).collect::<Vec<_>>().join("; ")
}
