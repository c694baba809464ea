//! Benchmark of reading the path of one call, at several places of a trace.
//!
//! `cargo run --release -p kerntune-analyze --example path_bench -- TRACE RECORDING [FUNCTIONS]`:
//! `trace.kt` and `recording.json` of a recording, or the output of `analyze_bench file=PATH` (PATH
//! and PATH.json), and the number of functions (default: the recording's kernel functions and
//! 1,000,000 of user code). Calls are taken at ten places from the beginning to the end of the
//! trace.

use kerntune_analyze::path::{collect, fold, CallStart, PathSelection, PathSpan};
use kerntune_analyze::TraceFile;
use kerntune_trace::Recording;
use std::fs::File;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, recording, ..] = arguments.as_slice() else {
        return Err("TRACE RECORDING [FUNCTIONS]".into());
    };
    let recording: Recording = serde_json::from_slice(&std::fs::read(recording)?)?;
    let functions = match arguments.get(2) {
        Some(number) => number.parse()?,
        None => recording.kernel_functions as usize + 1_000_000,
    };
    let source = File::open(trace)?;
    let trace = TraceFile::open(&source, &recording)?;
    let (first, last) = match (recording.chunks.first(), recording.chunks.last()) {
        (Some(first), Some(last)) => (first.begin_ns, last.end_ns),
        _ => return Err("the trace is empty".into()),
    };
    println!("{} events, {} chunks", recording.events, recording.chunks.len());
    for tenth in 0..10 {
        let begin_ns = first + (last - first) / 10 * tenth;
        let span = PathSpan::Call(CallStart::From { begin_ns });
        let started = Instant::now();
        let path = collect(&trace, functions, &PathSelection { span, ..PathSelection::default() })?;
        let read = started.elapsed();
        let lines: usize = path.threads.iter().map(|thread| fold(&thread.entries, false).len()).sum();
        println!(
            "call at {} ns: {} calls in {} ns, {} chunks, {lines} lines; read in {:.1} ms, folded in {:.1} ms",
            path.begin_ns,
            path.totals.calls,
            path.call_ns(),
            path.chunks,
            read.as_secs_f64() * 1e3,
            (started.elapsed() - read).as_secs_f64() * 1e3
        );
    }
    Ok(())
}
