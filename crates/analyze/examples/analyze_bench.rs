//! Benchmark of speed and memory of an analysis, with a generated trace.
//!
//! `cargo run --release -p kerntune-analyze --example analyze_bench -- [MILLIONS] [THREADS] [wide]
//! [random] [plain]
//! [file=PATH]`: million events (20), threads (1). With a file, the trace is written to and read from that file, otherwise
//! both in memory. A file that exists is analyzed as it is, with the recording in PATH.json. With
//! `plain`, every event is read, as for a partial result; otherwise repeated runs are memoized.
//!
//! The trace resembles a kernel's: 2,000 functions in twelve layers, each of which nearly always
//! calls the same others; 20 threads; 40 system calls of 100 to 1,000 events; occasional
//! interrupts, page faults, tail calls and switches. With `random`, a function calls any of five
//! others each time, at any depth, so that nearly every path is new: this shows the behavior with a
//! full tree.

#[path = "../tests/support/mod.rs"]
mod support;

use kerntune_analyze::{AnalysisInput, ReadAt};
use kerntune_trace::{EnterKind, Event, EventWeights, Recording};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::time::Instant;
use support::{symbols, TestTraceWriter};

const FUNCTIONS: u32 = APART * LAYER * LAYERS;
const THREADS: u32 = 20;
/// Payload bytes of a chunk, as in the recorder.
const CHUNK_BYTES: usize = 1 << 20;

/// Marsaglia's xorshift64: the same trace every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// Number of functions in a layer, and the difference of their numbers.
const LAYER: u32 = 170;
const APART: u32 = 25;
const LAYERS: u32 = 12;

/// The callees of function number `f`, in order: up to four of the next layer or the last.
fn body(f: u32) -> Vec<u32> {
    let (number, layer) = (f / APART, f / APART / LAYER);
    let mut random = Random(u64::from(number + 1) * 0x9e37_79b9_7f4a_7c15);
    random.below(2);
    let calls = if layer + 1 < LAYERS { [1, 2, 2, 4][random.below(4) as usize] } else { 0 };
    let callee = |_| {
        let to = if random.below(10) < 3 { LAYERS - 1 } else { layer + 1 };
        APART * (to * LAYER + random.below(LAYER) * random.below(LAYER) / LAYER)
    };
    (0..calls).map(callee).collect()
}

fn make<W: Write>(sink: W, events: u64, wide: bool, wild: bool) -> Result<(W, Recording), std::io::Error> {
    let mut w = TestTraceWriter::into(sink, THREADS as usize, wide);
    // The steps are for tests only.
    w.keep = false;
    w.recording.kernel_functions = FUNCTIONS;
    let mut random = Random(88_172_645_463_325_252);
    let bodies: Vec<Vec<u32>> = (0..LAYERS * LAYER).map(|number| body(number * APART)).collect();
    // Progress within each open frame.
    let mut done: Vec<Vec<usize>> = vec![Vec::new(); THREADS as usize];
    w.begin(0, "all");
    while w.recording.events < events {
        let delta = u64::from(random.below(30) + 5);
        let running = w.running;
        let depth = w.stacks[running].len();
        done[running].resize(depth, 0);
        let next = match (w.stacks[running].last(), done[running].last_mut()) {
            (Some((top, _)), _) if wild => {
                let number = top / APART;
                let callee = (number * (7 + random.below(5)) + 13) % (LAYER * LAYERS);
                (random.below(depth as u32) < 6).then_some(APART * callee)
            }
            (Some((top, _)), Some(at)) => {
                let body = &bodies[(top / APART) as usize];
                *at += 1 + usize::from(random.below(10) == 0);
                body.get(*at - 1).copied()
            }
            _ => None,
        };
        let handler = APART * (LAYER * 7 + random.below(6));
        let event = match (depth, random.below(1_000)) {
            (0, _) => Event::Enter { function: APART * random.below(40), how: EnterKind::Syscall },
            (_, 0..=2) => Event::Switch { thread: 1 + random.below(THREADS - 1) },
            (_, 3..=5) => Event::Enter { function: handler, how: EnterKind::Interrupt },
            (_, 6) => Event::Enter { function: handler, how: EnterKind::Exception },
            _ => match (next, w.stacks[running].last()) {
                (Some(function), Some((top, _))) => {
                    let how = if (top ^ function) % 16 == 1 { EnterKind::Jump } else { EnterKind::Call };
                    Event::Enter { function, how }
                }
                (_, Some((_, EnterKind::Interrupt | EnterKind::Exception))) => Event::Resume,
                (_, Some((_, EnterKind::Syscall))) => Event::Leave,
                _ => Event::Exit,
            },
        };
        if wide {
            let l1i_misses = u64::from(random.below(8) == 0);
            w.weights = EventWeights { taken_branches: delta / 6, l1i_misses, itlb_misses: 0 };
        }
        w.at(delta, event);
        if w.payload_bytes() >= CHUNK_BYTES {
            w.cut();
        }
    }
    w.end(1);
    Ok(w.finish())
}

/// CPU time of this process so far. Wall time says little on a machine with other load.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // utime and stime, in 1/100 s, are fields 14 and 15; the name before them may contain anything.
    let rest = text.rsplit(')').next().unwrap_or_default();
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}

/// Maximum resident memory of this process in MiB, since the last [`forget_peak`].
fn peak_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    let events = numbers.first().unwrap_or(&20) * 1_000_000;
    let threads = *numbers.get(1).unwrap_or(&1) as usize;
    let has = |word: &str| arguments.iter().any(|text| text == word);
    let (wide, wild, partial) = (has("wide"), has("random"), has("plain"));
    let path = arguments.iter().find_map(|text| text.strip_prefix("file="));
    let (trace, bytes, recording): (Box<dyn ReadAt>, u64, Recording) = match path {
        None => {
            let (bytes, recording) = make(Vec::new(), events, wide, wild)?;
            let leaked: &'static [u8] = Vec::leak(bytes);
            (Box::new(leaked), leaked.len() as u64, recording)
        }
        Some(path) => {
            let index = format!("{path}.json");
            if !std::path::Path::new(&index).exists() {
                let (file, recording) = make(BufWriter::new(File::create(path)?), events, wide, wild)?;
                file.into_inner()?.sync_all()?;
                std::fs::write(&index, serde_json::to_vec(&recording)?)?;
            }
            let recording = serde_json::from_slice(&std::fs::read(&index)?)?;
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            (Box::new(file), length, recording)
        }
    };
    let symbols = symbols(FUNCTIONS);
    println!(
        "{} events, {} chunks, {:.1} MB ({:.2} bytes/event), {} MiB resident at most so far",
        recording.events,
        recording.chunks.len(),
        bytes as f64 / 1e6,
        bytes as f64 / recording.events as f64,
        peak_mib()
    );
    for _ in 0..3 {
        forget_peak();
        let (started, cpu) = (Instant::now(), cpu_seconds());
        let input = AnalysisInput { threads, partial, ..AnalysisInput::new(&*trace, &recording, &symbols) };
        let analysis = kerntune_analyze::analyze(&input, &mut |_| ControlFlow::Continue(()))?;
        let seconds = started.elapsed().as_secs_f64();
        let cpu = cpu_seconds() - cpu;
        let million = analysis.events as f64 / 1e6;
        let rows = &analysis.tables;
        println!(
            "{threads} threads: {seconds:.2} s, {cpu:.2} s of CPU, {:.1} M events/s, {:.1} M events per s of CPU, {} MiB; \
             {} functions, {} arcs, {} buckets, {} paths, folded {}, busy {} ns",
            million / seconds,
            million / cpu,
            peak_mib(),
            rows.functions.len(),
            rows.arcs.len(),
            rows.histograms.len(),
            rows.paths.len(),
            analysis.health["folded_calls"],
            analysis.busy_ticks
        );
    }
    Ok(())
}
