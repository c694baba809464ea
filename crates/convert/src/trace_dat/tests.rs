//! Tests of the reader with traces of trace-cmd, against what `trace-cmd report` prints for them.

use super::*;
use kerntune_profile::{CallKind, FunctionIndex, Ticks};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

const NAMES: TraceNames = TraceNames {
    halts: |name| name == "pv_native_safe_halt",
    is_scheduler: |name| name.contains("schedule"),
};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tracers").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name.ends_with(".zst") {
        return zstd::decode_all(&bytes[..]).unwrap();
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<TraceImport> {
    let mut file = Cursor::new(bytes);
    let trace = TraceDat::open(&mut file)?;
    import(&trace, &mut file, NAMES)
}

/// Lines of a fixture's sums by their first word: names and numbers.
fn expected(name: &str, kind: &str) -> BTreeMap<Vec<String>, Vec<u64>> {
    let text = String::from_utf8(fixture(name)).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split('\t').collect();
        if words[0] != kind {
            return None;
        }
        let first = words.iter().position(|word| word.parse::<u64>().is_ok()).unwrap();
        let first = if kind == "syscall" { 2 } else { first };
        let numbers = words[first..].iter().map(|word| word.parse().unwrap()).collect();
        Some((words[1..first].iter().map(|word| (*word).into()).collect(), numbers))
    };
    text.lines().filter_map(line).collect()
}

/// Calls, ended calls and total time of functions that were called in this way, by name.
fn calls(made: &TraceImport, how: CallKind) -> BTreeMap<Vec<String>, Vec<u64>> {
    let tables = &made.made.tables;
    let mut rows: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| arc.how == how) {
        let row = rows.entry(vec![tables.name(arc.callee).to_string()]).or_insert(vec![0; 3]);
        for (sum, part) in row.iter_mut().zip([arc.calls, arc.ended, arc.total_ticks.get()]) {
            *sum += part;
        }
    }
    rows
}

fn switches(made: &TraceImport) -> BTreeMap<Vec<String>, Vec<u64>> {
    let mut rows: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in &made.made.tables.switches {
        rows.entry(vec![row.from.clone(), row.to.clone()]).or_insert(vec![0])[0] += row.count;
    }
    rows
}

/// Checks what holds for all profiles.
fn check(made: &TraceImport) {
    let (tables, totals) = (&made.made.tables, made.made.totals);
    let paths: u64 = tables.paths.iter().map(|path| path.self_ticks.get()).sum();
    let threads: u64 = tables.threads.iter().map(|thread| thread.self_ticks.get()).sum();
    assert_eq!((paths, threads), (totals.busy, totals.busy));
    assert_eq!(totals.elapsed, totals.busy + totals.idle);
    for row in &tables.functions {
        let arcs = tables.arcs.iter().filter(|arc| arc.callee == row.function);
        let (calls, total) =
            arcs.fold((0, Ticks::ZERO), |sum, arc| (sum.0 + arc.calls, sum.1 + arc.total_ticks));
        assert_eq!((calls, total), (row.calls, row.total_ticks), "{}", tables.name(row.function));
        let buckets = tables.histograms.iter().filter(|bucket| bucket.function == row.function);
        assert_eq!(buckets.map(|bucket| bucket.count).sum::<u64>(), row.ended);
    }
}

#[test]
fn functions_are_counted_with_their_callers() {
    let made = read(&fixture("function-6.dat.zst")).unwrap();
    check(&made);
    let tables = &made.made.tables;
    let arcs: BTreeMap<Vec<String>, Vec<u64>> = tables
        .arcs
        .iter()
        .map(|arc| (vec![tables.name(arc.caller).into(), tables.name(arc.callee).into()], vec![arc.calls]))
        .collect();
    assert_eq!(arcs, expected("function.tsv", "arc"));
    assert_eq!(switches(&made), expected("function.tsv", "switch"));
    assert_eq!((made.release.as_deref(), made.cpus), (Some("6.12.117+deb12-cloud-amd64"), 2));
    assert!(made.left_out.is_empty(), "{:?}", made.left_out);
}

#[test]
fn durations_are_those_of_the_function_graph() {
    let made = read(&fixture("plain.dat.zst")).unwrap();
    check(&made);
    assert_eq!(calls(&made, CallKind::Call), expected("plain.tsv", "call"));
    assert!(!made.made.totals.has_switches);
}

#[test]
fn time_off_the_cpu_is_subtracted_if_the_trace_has_switches() {
    for file in ["graph.dat", "graph-6.dat.zst"] {
        let made = read(&fixture(file)).unwrap();
        check(&made);
        assert_eq!(calls(&made, CallKind::Call), expected("graph.tsv", "call"), "{file}");
        assert_eq!(switches(&made), expected("graph.tsv", "switch"), "{file}");
    }
}

#[test]
fn interrupts_and_system_calls_are_calls() {
    let made = read(&fixture("events.dat.zst")).unwrap();
    check(&made);
    let counts = |how| -> BTreeMap<_, _> {
        calls(&made, how).into_iter().map(|(name, row)| (name, vec![row[0]])).collect()
    };
    assert_eq!(counts(CallKind::Interrupt), expected("events.tsv", "interrupt"));
    let named: BTreeMap<_, _> = expected("events.tsv", "syscall")
        .into_iter()
        .map(|(name, count)| {
            let call = syscalls::x86_64::Sysno::new(name[0].parse().unwrap()).unwrap();
            (vec![format!("sys_{}", call.name())], count)
        })
        .collect();
    assert_eq!(counts(CallKind::Syscall), named);
    assert_eq!(switches(&made), expected("events.tsv", "switch"));
    let left_out: Vec<_> = made.left_out.keys().map(String::as_str).collect();
    assert_eq!(left_out, ["irq:softirq_raise", "kmem:kfree"]);
    let cpus = &made.made.tables.cpus;
    assert_eq!(cpus.len(), 2);
    let times: u64 = cpus.iter().map(|cpu| cpu.busy_ticks.get() + cpu.halted_ticks.get()).sum();
    assert!(times >= made.made.totals.elapsed, "{times} {:?}", made.made.totals);
}

#[test]
fn named_system_calls_have_their_time() {
    let made = read(&fixture("calls.dat.zst")).unwrap();
    check(&made);
    let rows = calls(&made, CallKind::Syscall);
    let counts: BTreeMap<_, _> = rows.iter().map(|(name, row)| (name.clone(), vec![row[0]])).collect();
    assert_eq!(counts, expected("calls.tsv", "syscall"));
    // 20 ms of sleep are no time on the CPU.
    let sleep = &rows[&vec!["sys_clock_nanosleep".to_string()]];
    assert!(sleep[1] >= 1 && sleep[2] > 0 && sleep[2] < 10_000_000, "{sleep:?}");
    assert!(made.made.tables.regions[0].user_ticks > Ticks::ZERO);
}

#[test]
fn lost_events_are_counted() {
    let made = read(&fixture("lost.dat")).unwrap();
    let stated = expected("lost.tsv", "lost")[&Vec::<String>::new()][0];
    assert!(stated > 0 && made.lost >= stated, "{} {stated}", made.lost);
    let counts: BTreeMap<Vec<String>, u64> = made
        .made
        .tables
        .functions
        .iter()
        .map(|row| (vec![made.made.tables.name(row.function).into()], row.calls))
        .filter(|(_, calls)| *calls > 0)
        .collect();
    let named = expected("lost.tsv", "call").into_iter().map(|(name, row)| (name, row[0])).collect();
    assert_eq!(counts, named);
}

#[test]
fn files_without_events_for_a_profile_are_refused() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let mut latency = fixture("function-6.dat.zst");
    let at = latency.windows(10).position(|bytes| bytes == b"flyrecord\0").unwrap();
    latency[at..at + 10].copy_from_slice(b"latency  \0");
    assert!(error(&latency).starts_with("it has the text of a latency tracer"));
    // A tracer that kerntune does not know.
    let other = error(&fixture("latency.dat"));
    assert_eq!(other, "it has no events");
    assert!(error(b"perf").starts_with("not a trace.dat"));
    let mut other = fixture("graph.dat");
    other[10] = b'5';
    assert!(error(&other).starts_with("a trace.dat of version 5; kerntune reads 6 and 7"));
    let whole = fixture("plain.dat.zst");
    let cut = error(&whole[..whole.len() - 10_000]);
    assert!(cut.starts_with("truncated: "), "{cut}");
}

#[test]
fn any_prefix_and_any_flipped_byte_does_no_harm() {
    let whole = fixture("graph.dat");
    for at in (0..whole.len()).step_by(61) {
        let _ = read(&whole[..at]);
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        let _ = read(&flipped);
    }
}

#[test]
fn functions_keep_one_number() {
    let made = read(&fixture("graph.dat")).unwrap();
    let symbols = &made.made.tables.symbols;
    let mut names: Vec<_> = symbols.iter().map(|symbol| (&symbol.name, symbol.address)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), symbols.len());
    assert!(symbols.iter().zip(0..).all(|(symbol, number)| symbol.function == FunctionIndex(number)));
}
