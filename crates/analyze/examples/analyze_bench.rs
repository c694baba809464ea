//! How fast traces are analysed: makes one in memory and analyses it.
//!
//! `cargo run --release -p kerntune-analyze --example analyze_bench [-- MILLIONS_OF_EVENTS]`
//!
//! The trace has the shape of a kernel's: about 2,000 functions, unevenly often; 20 threads;
//! system calls of 100 to 200 events; now and then an interrupt, a page fault, a tail call, a switch.

#[path = "../tests/support/mod.rs"]
mod support;

use kerntune_trace::{Event, How};
use std::ops::ControlFlow;
use std::time::Instant;
use support::{symbols, Writer};

const FUNCTIONS: u32 = 50_000;
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

    /// A function that `caller` calls: one of eight, the first ones mostly, two of them leaves
    /// that many call.
    fn callee(&mut self, caller: u32) -> u32 {
        let caller = caller / 25;
        match self.below(8).min(self.below(8)) {
            choice @ 0..=1 => 25 * ((caller + choice * 17) % 40),
            choice => 25 * ((caller * 7 + choice * 31 + 11) % 2_000),
        }
    }
}

fn make(events: u64) -> Writer {
    let mut w = Writer::new(THREADS as usize);
    let mut random = Random(88_172_645_463_325_252);
    w.begin(0, "all");
    while w.recording.events < events {
        let delta = u64::from(random.below(30) + 5);
        let depth = w.stacks[w.running].len();
        let top = w.stacks[w.running].last().map_or(0, |frame| frame.0);
        let function = random.callee(top);
        let how = match random.below(1_000) {
            0..=3 => How::Interrupt,
            4 => How::Exception,
            5..=60 => How::Jump,
            _ => How::Call,
        };
        let event = match (depth, random.below(1_000)) {
            (0, _) => Event::Enter { function: 25, how: How::Syscall },
            (_, 0..=4) => Event::Switch { thread: 1 + random.below(THREADS - 1) },
            (_, 5..=11) => Event::Leave,
            (1..=5, _) => Event::Enter { function, how },
            (6..=25, n) if n % 2 == 0 => Event::Enter { function, how },
            _ => Event::Exit,
        };
        w.at(delta, event);
        if w.payload_bytes() >= CHUNK_BYTES {
            w.cut();
        }
        // What happened step by step is for the tests.
        w.steps.clear();
    }
    w.end(1);
    w
}

/// CPU time of this thread so far: on a machine that does other work, wall time says little.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: u64 = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let (bytes, recording) = make(millions * 1_000_000).finish();
    let symbols = symbols(FUNCTIONS);
    println!(
        "{} events, {} chunks, {:.1} MB ({:.2} bytes/event)",
        recording.events,
        recording.chunks.len(),
        bytes.len() as f64 / 1e6,
        bytes.len() as f64 / recording.events as f64
    );
    for _ in 0..3 {
        let (started, cpu) = (Instant::now(), cpu_seconds());
        let analysis = kerntune_analyze::analyze(&bytes[..], &recording, None, &symbols, &mut |_| {
            ControlFlow::Continue(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let cpu = cpu_seconds() - cpu;
        let rows = &analysis.tables;
        println!(
            "{seconds:.2} s, {cpu:.2} s of CPU, {:.1} M events per s of CPU; {} functions, {} arcs, busy {} ns",
            analysis.events as f64 / cpu / 1e6,
            rows.functions.len(),
            rows.arcs.len(),
            analysis.busy_ns
        );
    }
    Ok(())
}
