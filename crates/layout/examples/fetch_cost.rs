//! Measures the cost of one `FrontEnd::fetch`.
//!
//!     cargo run --release -p kerntune-layout --example fetch_cost

use kerntune_layout::{CpuMode, FrontEnd, FrontEndConfig};
use std::hint::black_box;
use std::time::Instant;

const FETCHES: u64 = 50_000_000;
const TEXT: u64 = 0xffff_ffff_8100_0000;

fn main() -> Result<(), kerntune_layout::Error> {
    println!(
        "{:<10} {:<34} {:>9} {:>12} {:>12}",
        "model", "pattern", "ns/fetch", "L1I miss %", "iTLB miss %"
    );
    for name in FrontEndConfig::built_in() {
        let config = FrontEndConfig::named(name)?;
        measure(&config, "one line again and again", |_, _| TEXT)?;
        measure(&config, "loop over 16 KiB, 20-byte blocks", |i, _| TEXT + i * 20 % 16384)?;
        measure(&config, "loop over 128 lines, 1 per 3 blocks", |i, _| {
            TEXT + (i / 3 % 128) * 64 + i % 3 * 20
        })?;
        measure(&config, "random in 24 KiB", |_, r| TEXT + r % 24576)?;
        measure(&config, "random in 256 KiB", |_, r| TEXT + r % (256 << 10))?;
        measure(&config, "random in 8 MiB", |_, r| TEXT + r % (8 << 20))?;
    }
    Ok(())
}

/// Measures fetches of 16-byte blocks at the addresses that `at(i, random)` returns.
fn measure(
    config: &FrontEndConfig,
    pattern: &str,
    at: impl Fn(u64, u64) -> u64,
) -> Result<(), kerntune_layout::Error> {
    // Addresses are computed in advance, so that only the model is timed.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let addresses: Vec<u64> = (0..1 << 16)
        .map(|i| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            at(i, random)
        })
        .collect();
    let mut front_end = FrontEnd::new(config)?;
    let begin = Instant::now();
    for i in 0..FETCHES {
        let address = addresses[(i & 0xffff) as usize];
        front_end.fetch(black_box(address), address + 15, CpuMode::Kernel, 0);
    }
    let nanoseconds = begin.elapsed().as_nanos() as f64 / FETCHES as f64;
    let counts = black_box(front_end.counts()).kernel;
    let percent = |n: u64| 100.0 * n as f64 / FETCHES as f64;
    println!(
        "{:<10} {pattern:<34} {nanoseconds:>9.2} {:>12.2} {:>12.2}",
        config.name,
        percent(counts.l1i_misses),
        percent(counts.itlb_misses)
    );
    Ok(())
}
