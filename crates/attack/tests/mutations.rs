//! Tests all readers of untrusted bytes with a fixed number of damaged inputs: none may panic, take
//! memory that its input does not justify, or run forever.
//!
//! `KERNTUNE_ATTACK_MUTATIONS` is the number of inputs for each target (2,000),
//! `KERNTUNE_ATTACK_TARGET` selects one target. An input at which a target fails is kept in the
//! directory for temporary files, and named in the message.

#![expect(unsafe_code, reason = "an allocator that counts")]

use kerntune_attack::{mutate, targets, AttackTarget};
use kerntune_stats::Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Duration;

/// Default number of inputs for each target.
const MUTATIONS: usize = 2_000;
/// Maximum memory for reading one input, in bytes. The largest inputs have one MiB.
const MEMORY: usize = 512 << 20;
/// Maximum CPU time for reading one input: some thousand times the usual.
const SECONDS: i64 = 30;

/// Counts memory, and aborts with a message at a limit that no reader comes near.
struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
const NEVER: usize = 8 << 30;

// SAFETY: all memory is the system allocator's; this only counts.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        if live > NEVER {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The current target and input, for the message of whoever ends the process.
static NOW: Mutex<(&str, Vec<u8>)> = Mutex::new(("", Vec::new()));
/// Number of inputs so far.
static INPUTS: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicBool = AtomicBool::new(false);

/// CPU time of this process in seconds.
fn cpu_seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec
}

/// Ends the process when one input takes too much CPU time.
fn watch() {
    let (mut input, mut since) = (0, cpu_seconds());
    while !DONE.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let now = INPUTS.load(Relaxed);
        if now != input {
            (input, since) = (now, cpu_seconds());
        } else if cpu_seconds() - since > SECONDS {
            let (target, bytes) = &*NOW.lock().unwrap_or_else(|poison| poison.into_inner());
            eprintln!("{target}: an input took more than {SECONDS} s: {}", keep(target, bytes));
            std::process::abort();
        }
    }
}

/// Saves an input for inspection; returns its path.
fn keep(target: &str, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("kerntune-attack-{target}-{}", std::process::id()));
    match std::fs::write(&path, bytes) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{}: {error}", path.display()),
    }
}

/// Attacks one target; returns a description of the failure, if there is one.
fn attack(target: &AttackTarget, mutations: usize) -> Option<String> {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let mut failures = Vec::new();
    for number in 0..mutations + seeds.len() {
        let seed = &seeds[number % seeds.len()];
        // First each seed as it is, then damaged ones.
        let bytes = match number.checked_sub(seeds.len()) {
            None => seed.clone(),
            Some(number) => mutate(seed, &seeds, &mut Rng::new(number as u64)),
        };
        *NOW.lock().unwrap_or_else(|poison| poison.into_inner()) = (target.name, bytes.clone());
        INPUTS.fetch_add(1, Relaxed);
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let run = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        let took = PEAK.load(Relaxed).saturating_sub(before);
        if run.is_err() {
            failures.push(format!("input {number} made it panic: {}", keep(target.name, &bytes)));
        } else if took > MEMORY {
            failures.push(format!("input {number} took {took} bytes: {}", keep(target.name, &bytes)));
        }
        if failures.len() == 3 {
            break;
        }
    }
    (!failures.is_empty()).then(|| format!("{}: {}", target.name, failures.join("; ")))
}

#[test]
fn damaged_input_is_read_or_refused() {
    let mutations = std::env::var("KERNTUNE_ATTACK_MUTATIONS")
        .map_or(MUTATIONS, |text| text.parse().expect("KERNTUNE_ATTACK_MUTATIONS is a number"));
    let only = std::env::var("KERNTUNE_ATTACK_TARGET").ok();
    let chosen: Vec<AttackTarget> = targets()
        .into_iter()
        .filter(|target| only.as_deref().is_none_or(|only| only == target.name))
        .collect();
    assert!(!chosen.is_empty(), "there is no target {only:?}");
    let watcher = std::thread::spawn(watch);
    let failures: Vec<String> = chosen.iter().filter_map(|target| attack(target, mutations)).collect();
    DONE.store(true, Relaxed);
    watcher.join().expect("the watcher ends");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
