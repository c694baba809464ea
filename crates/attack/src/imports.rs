//! Readers of other tools' traces and samples, and their seeds: files of the tools themselves.

use kerntune_convert::timed::TimedTables;
use kerntune_convert::trace_dat::{import, TraceDat, TraceNames};
use kerntune_convert::uftrace::UftraceImporter;
use kerntune_convert::{autofdo, folded, perf_script, pprof};
use kerntune_profile::Tables;
use std::io::Cursor;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../convert/fixtures/tracers/", $name))
    };
}

/// Checks what holds for the tables of all imports.
fn check(tables: &Tables) {
    let paths = tables.paths.iter().fold(0, |sum: u64, path| sum.saturating_add(path.self_ticks.get()));
    assert_eq!(paths, tables.regions[0].busy_ticks.get());
    assert!(tables.paths.iter().all(|path| path.parent == u32::MAX || path.parent < path.path));
}

fn check_timed(made: &TimedTables) {
    check(&made.tables);
}

/// A trace of trace-cmd.
pub fn trace_dat(bytes: &[u8]) {
    let names = TraceNames { halts: |name| name.contains("idle"), is_scheduler: |name| name == "schedule" };
    let mut file = Cursor::new(bytes);
    let Ok(trace) = TraceDat::open(&mut file) else { return };
    let Ok(made) = import(&trace, &mut file, names) else { return };
    check_timed(&made.made);
}

/// Traces of both versions, compressed and not, with and without lost events.
pub fn trace_dat_seeds() -> Vec<Vec<u8>> {
    let plain = |bytes: &[u8]| zstd::decode_all(bytes).unwrap_or_default();
    vec![
        fixture!("graph.dat").to_vec(),
        fixture!("lost.dat").to_vec(),
        plain(fixture!("function-6.dat.zst")),
        plain(fixture!("calls.dat.zst")),
        plain(fixture!("events.dat.zst")),
    ]
}

/// Files of a directory of uftrace, one after another, each with its size before it.
pub fn uftrace(bytes: &[u8]) {
    let mut rest = bytes;
    let mut next = || {
        let (size, after) = rest.split_at_checked(4)?;
        let size = u32::from_le_bytes(size.try_into().ok()?) as usize;
        let (file, after) = after.split_at(size.min(after.len()));
        rest = after;
        Some(file)
    };
    let mut texts = [(); 4].map(|()| next().unwrap_or_default()).into_iter();
    let info = texts.next().unwrap_or_default();
    let [tasks, map, symbols] =
        [(); 3].map(|()| String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned());
    let Ok(mut importer) = UftraceImporter::new(info, &tasks) else { return };
    for session in importer.sessions() {
        importer.add_map(&session, &map);
    }
    importer.add_symbols(&symbols);
    for tid in 1.. {
        let Some(records) = next() else { break };
        if importer.add_thread(tid, "records", records).is_err() {
            return;
        }
    }
    if let Ok((made, _)) = importer.finish() {
        check_timed(&made);
    }
}

pub fn uftrace_seeds() -> Vec<Vec<u8>> {
    let files: [&[u8]; 6] = [
        fixture!("sums.uftrace/info"),
        fixture!("sums.uftrace/task.txt"),
        fixture!("sums.uftrace/sid-cbc7c5bf1cb2b4c3.map"),
        fixture!("sums.uftrace/sums.sym"),
        fixture!("sums.uftrace/1181.dat"),
        fixture!("sums.uftrace/1183.dat"),
    ];
    let file = |file: &&[u8]| [&(file.len() as u32).to_le_bytes()[..], file].concat();
    vec![files.iter().flat_map(file).collect()]
}

/// Folded stacks.
pub fn folded(bytes: &[u8]) {
    for functions_only in [false, true] {
        let Ok(made) = folded::import(|| Ok(bytes), functions_only) else { continue };
        if let Some(tables) = made.stacks.finish("folded", 1) {
            check(&tables);
        }
    }
}

pub fn folded_seeds() -> Vec<Vec<u8>> {
    vec![
        b"rr;main;write_[k] 3\nrr;main 2\nswapper;do_idle_[k] 4\n\nvfs_[k] 1.6\n[interrupt];irq 9\n".to_vec(),
        b"# comment\na;b;c 18446744073709551615\na;[user] 1\na;[unattributed] 2\n".to_vec(),
    ]
}

/// Text of perf script.
pub fn perf_script(bytes: &[u8]) {
    for user_chains in [false, true] {
        let options = perf_script::PerfScriptOptions { event: None, user_chains };
        let Ok(made) = perf_script::import(bytes, options) else { continue };
        if let Some(tables) = made.stacks.finish("samples", made.period.unwrap_or(1)) {
            check(&tables);
        }
    }
}

pub fn perf_script_seeds() -> Vec<Vec<u8>> {
    let sample =
        b"sh 7/8 [001] 5.7: 1000 cpu-clock: \n\tffffffffc0252e5c f+0xc ([m])\n\t 166cc0 g (/x/libc.so.6)\n\n"
            .to_vec();
    let line =
        b"# os release : 6.1\nmy app 2 15747 3.5: cycles:k:  ffffffff82252e5c h+0x1 (/x/ext-4.ko.xz)\n"
            .to_vec();
    vec![[&sample[..], &line].concat(), sample, line]
}

/// A profile of pprof, uncompressed or not.
pub fn pprof(bytes: &[u8]) {
    for wanted in [None, Some("samples")] {
        let Ok(made) = pprof::import(bytes, wanted) else { continue };
        if let Some(tables) = made.stacks.finish("pprof", made.each.unwrap_or(1)) {
            check(&tables);
        }
    }
}

/// A profile by hand: two types, two samples, three locations.
pub fn pprof_seeds() -> Vec<Vec<u8>> {
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8][..], bytes].concat()
    }
    let strings = ["", "samples", "count", "cpu", "nanoseconds", "main", "inner", "app", "thread", "rr"];
    let mut profile = [
        field(1, &[8, 1, 16, 2]),
        field(1, &[8, 3, 16, 4]),
        field(2, &[10, 2, 2, 1, 18, 2, 3, 30]),
        field(2, &[10, 1, 1, 18, 2, 2, 20, 26, 4, 8, 8, 16, 9]),
        field(3, &[8, 1, 40, 7]),
        field(4, &[8, 1, 16, 1, 34, 2, 8, 1]),
        field(4, &[8, 2, 16, 1, 34, 2, 8, 2, 34, 2, 8, 1]),
        field(5, &[8, 1, 16, 5]),
        field(5, &[8, 2, 16, 6]),
        field(11, &[8, 3, 16, 4]),
        vec![12 << 3, 10],
    ]
    .concat();
    profile.extend(strings.iter().flat_map(|text| field(6, text.as_bytes())));
    vec![profile]
}

/// A sample profile as text, as weights of functions.
pub fn sample_weights(bytes: &[u8]) {
    let Ok(made) = autofdo::import(&String::from_utf8_lossy(bytes)) else { return };
    if let Some(tables) = made.stacks.finish("samples", 1) {
        check(&tables);
    }
}
