//! Analyzes a recorder's output directory, to inspect the recorder's work without the rest of
//! kerntune: `cargo run --release -p kerntune-analyze --example analyze_recording -- RECORDING
//! [PROFILE]`
//!
//! Prints the anomalies, each region's sum rule, and the functions with most self time. Function
//! names are taken from `names.json` (an array in the order of the functions) if it is there. With
//! PROFILE, an existing directory, the profile is saved there.

use kerntune_profile::{Address, FunctionIndex, KernelId, Manifest, Profile, Symbol};
use kerntune_trace::counts::ExecutionCounts;
use kerntune_trace::{files, RecorderSpec, Recording};
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let dir = arguments.next().ok_or("give a recording's directory")?;
    let recording: Recording = serde_json::from_slice(&fs::read(dir.join(files::RECORDING))?)?;
    let spec: RecorderSpec = serde_json::from_slice(&fs::read(dir.join(files::SPEC))?)?;
    let names: Vec<String> = match fs::read(dir.join("names.json")) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => Vec::new(),
    };
    let symbol = |(i, function): (usize, &kerntune_trace::FunctionSpec)| Symbol {
        function: FunctionIndex(i as u32),
        name: names.get(i).cloned().unwrap_or_else(|| format!("{:#x}", function.address)),
        address: Address(function.address),
        size: function.size,
        file: None,
        module: None,
    };
    let symbols: Vec<Symbol> = spec.functions.iter().enumerate().map(symbol).collect();
    let counts = match recording.capture.edges {
        true => Some(ExecutionCounts::parse(&fs::read(dir.join(files::COUNTS))?)?),
        false => None,
    };
    let trace = File::open(dir.join(files::TRACE))?;
    let started = Instant::now();
    let input = kerntune_analyze::AnalysisInput {
        counts: counts.as_ref(),
        partial: true,
        ..kerntune_analyze::AnalysisInput::new(&trace, &recording, &symbols)
    };
    let analysis = kerntune_analyze::analyze(&input, &mut |_| ControlFlow::Continue(()))?;
    for missing in &analysis.missing {
        println!("  chunk {} is missing: {}", missing.chunk, missing.reason);
    }
    println!("{} events in {:.2} s", analysis.events, started.elapsed().as_secs_f64());
    for (name, count) in analysis.health.iter().filter(|(_, count)| **count != 0) {
        println!("  {name} {count}");
    }
    println!("{:>14} {:>12} {:>12} {:>10} {:>6}  sum", "region", "busy", "functions", "user", "unattr");
    let tables = &analysis.tables;
    for region in &tables.regions {
        let within = tables.within(region.region);
        let inside = |r: u32| within.contains(&r);
        let net: u64 = tables.functions.iter().filter(|f| inside(f.region)).map(|f| f.self_ticks.0).sum();
        let rows = tables.regions.iter().filter(|r| inside(r.region));
        let (user, unattributed) =
            rows.fold((0, 0), |sum, r| (sum.0 + r.user_ticks.0, sum.1 + r.unattributed_ticks.0));
        let busy = region.busy_ticks.0;
        let rest = i128::from(net + user + unattributed) - i128::from(busy);
        println!("{:>14} {busy:>12} {net:>12} {user:>10} {unattributed:>6}  {rest:+}", region.name);
    }
    let mut totals = tables.totals(|_| true);
    totals.sort_by_key(|row| std::cmp::Reverse(row.self_ticks));
    println!(
        "{:>10} {:>12} {:>12} {:>8} {:>8} {:>8}  function",
        "calls", "net", "elapsed", "max", "avg", "min"
    );
    for row in totals.iter().take(20) {
        println!(
            "{:>10} {:>12} {:>12} {:>8} {:>8} {:>8}  {}",
            row.calls,
            row.self_ticks,
            row.total_ticks,
            row.max_ticks,
            row.avg_ticks(),
            row.min_ticks,
            tables.name(row.function)
        );
    }
    if let Some(out) = arguments.next() {
        let mut manifest = Manifest::new("example", KernelId::default(), "unknown", "emulator");
        let tables = analysis.describe(&mut manifest);
        Profile { manifest, tables }.save(&out)?;
    }
    Ok(())
}
