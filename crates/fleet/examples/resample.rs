//! Makes a fleet of any size from a few real profiles of one kernel, and measures the cost of
//! merging it:
//!
//!     cargo run --release -p kerntune-fleet --example resample -- add PREFIX COUNT PROFILE…
//!     cargo run --release -p kerntune-fleet --example resample -- merge PREFIX
//!
//! Each profile is a sum of the real ones, each taken a random number of times (0 to 4): a
//! bootstrap, whose tables are as consistent as the original ones. Machines, days and workloads are
//! fictitious. The random numbers are the same each time.

use kerntune_fleet::{merge, Fleet, ProfileFilter, Weights};
use kerntune_profile::{merge as sum, Profile};
use kerntune_stats::SplitMix64;
use kerntune_work::NoProgress;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

const WORKLOADS: [&str; 3] = ["redis", "nginx", "build farm"];
const HOSTS: u64 = 200;
const DAYS: u64 = 28;
const MAX_TIMES: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "resample add PREFIX COUNT PROFILE… | resample merge PREFIX";
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("add"), Some(prefix)) => {
            let count = arguments.next().ok_or(usage)?.parse()?;
            let from: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
            add(Path::new(&prefix), count, &from)
        }
        (Some("merge"), Some(prefix)) => merge_all(Path::new(&prefix)),
        _ => Err(usage.into()),
    }
}

/// Returns a pseudorandom number.
fn number(of: u64) -> u64 {
    SplitMix64(of.wrapping_mul(0x9e37_79b9_7f4a_7c15)).bits()
}

fn add(prefix: &Path, count: u64, from: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let real: Vec<Profile> = from.iter().map(|dir| Profile::load(dir)).collect::<Result<_, _>>()?;
    let fleet = Fleet::open(prefix)?;
    let threads = std::thread::available_parallelism()?.get() as u64;
    let began = Instant::now();
    let one = |at: u64| -> Result<(), Box<dyn Error + Send + Sync>> {
        let times = |part: usize| number(at << 8 | part as u64) % MAX_TIMES;
        let mut parts: Vec<(&Profile, u64)> =
            real.iter().enumerate().map(|(part, profile)| (profile, times(part))).collect();
        if parts.iter().all(|(_, times)| *times == 0) {
            parts[0].1 = 1;
        }
        let mut made = sum(&parts)?;
        made.manifest.id = format!("{:016x}", number(at << 8 | 0xff));
        made.manifest.workload = WORKLOADS[(number(at) % 3) as usize].into();
        made.manifest.recorded = format!("2026-11-{:02}T12:00:00.000Z", 1 + number(at << 8 | 0xfe) % DAYS);
        let dir = prefix.join(format!(".made-{}-{at}", std::process::id()));
        std::fs::create_dir(&dir)?;
        made.save(&dir)?;
        fleet.add(&dir, &format!("web-{}", number(at << 8 | 0xfd) % HOSTS))?;
        std::fs::remove_dir_all(&dir)?;
        Ok(())
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || (thread..count).step_by(threads as usize).try_for_each(one)))
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
    .map_err(|error| error.to_string())?;
    let each = began.elapsed().as_secs_f64() * 1e3 / count as f64;
    println!("{count} profiles made and added, {each:.1} ms each");
    Ok(())
}

fn merge_all(prefix: &Path) -> Result<(), Box<dyn Error>> {
    let fleet = Fleet::existing(prefix)?;
    let began = Instant::now();
    let all = fleet.list(&ProfileFilter::default())?;
    let threads = std::thread::available_parallelism()?.get();
    let merged = merge(&all, &Weights::default(), threads, &NoProgress)?;
    let seconds = began.elapsed().as_secs_f64();
    let tables = &merged.profile.tables;
    let net: u64 = tables.functions.iter().map(|row| row.self_ticks.get()).sum();
    let calls: u64 = tables.functions.iter().map(|row| row.calls).sum();
    println!("profiles    {}", merged.parts);
    println!("threads     {threads}");
    println!("seconds     {seconds:.1}");
    println!("ms each     {:.2}", seconds * 1e3 / merged.parts as f64);
    println!("calls       {calls}");
    println!("self_ticks  {net}");
    println!("busy_ticks  {}", merged.profile.manifest.busy_ticks);
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}
