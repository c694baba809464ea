use super::*;
use crate::{StackSample, TableBounds};
use kerntune_symbols::{FunctionTable, KernelSymbol};

const NAMES: [&str; 5] =
    ["entry_SYSCALL_64", "read", "asm_sysvec_apic_timer_interrupt", "pv_native_safe_halt", "do_idle"];

fn at(function: u64) -> u64 {
    0x1000 + 0x100 * function + 0x10
}

fn aggregate() -> Aggregate {
    let symbol = |(at, name): (usize, &&str)| KernelSymbol {
        address: 0x1000 + 0x100 * at as u64,
        name: (*name).into(),
        is_global: true,
        module: None,
    };
    let mut all = Aggregate::new(
        FunctionTable::new(NAMES.iter().enumerate().map(symbol).collect()),
        TableBounds::default(),
    );
    all.threads.named(7, 7, "redis");
    let samples: [(u32, bool, &[u64]); 7] = [
        (7, false, &[at(1), at(1), at(0)]),
        (7, false, &[at(1), at(0)]),
        (7, false, &[at(0)]),
        (7, true, &[]),
        (7, false, &[at(2), at(1), at(0)]),
        (0, false, &[at(3), at(4)]),
        (0, false, &[at(4)]),
    ];
    for (tid, is_user, kernel) in samples {
        all.sample(&StackSample { tid, tgid: tid, is_user, kernel, user: &[] });
    }
    all
}

fn profile(all: &Aggregate, coverage: Coverage, sees_idle: bool, halted_ns: u64) -> Result<Profile> {
    let description = SourceDescription { name: "test".into(), sees_idle, ..SourceDescription::default() };
    let builder = ProfileBuilder {
        all,
        running: &RunningKernel::default(),
        descriptions: &[description],
        coverage,
        halted_ns,
        counted: Vec::new(),
        filter: &SamplingFilter::default(),
        wall: Duration::from_secs(1),
        bound_bytes: 1,
    };
    builder.build(&ProfileLabels { id: "p".into(), region: "live".into(), ..ProfileLabels::default() })
}

/// Returns the sums that must be equal in every profile: of functions, threads and paths, and the
/// busy time.
fn sums(profile: &Profile) -> [u64; 4] {
    let tables = &profile.tables;
    let region = &tables.regions[0];
    let functions: Ticks = tables.functions.iter().map(|row| row.self_ticks).sum();
    let beside = region.user_ticks + region.unattributed_ticks;
    let threads: Ticks = tables.threads.iter().map(|row| row.self_ticks).sum();
    let paths: Ticks = tables.paths.iter().map(|row| row.self_ticks).sum();
    [(functions + beside).get(), threads.get(), paths.get(), profile.manifest.busy_ticks.get()]
}

#[test]
fn everything_sums_to_the_time_that_was_watched() {
    let mut all = aggregate();
    let made = profile(&all, Coverage { ns: 8_005, cpus: 2, lost: 1 }, true, 0).unwrap();
    let sampled = made.manifest.sampled.as_ref().unwrap();
    assert_eq!((sampled.sample_ns, sampled.samples, made.manifest.lost_events), (Ticks(1_000), 7, 1));
    assert_eq!((made.manifest.idle_ticks, made.manifest.busy_ticks), (Ticks(1_000), Ticks(7_005)));
    assert_eq!(sums(&made), [7_005; 4]);
    // Without samples of halted CPUs, the others share the remaining time.
    all.halted = 0;
    all.samples = 6;
    let made = profile(&all, Coverage { ns: 8_005, cpus: 2, lost: 0 }, false, 2_000).unwrap();
    assert_eq!((made.manifest.idle_ticks, sums(&made)), (Ticks(2_000), [6_005; 4]));
}

#[test]
fn time_on_the_stack_counts_once_for_each_sample() {
    let made = profile(&aggregate(), Coverage { ns: 7_000, cpus: 1, lost: 0 }, true, 0).unwrap();
    let rows: Vec<(&str, u64, u64)> = made
        .tables
        .functions
        .iter()
        .map(|row| (made.tables.name(row.function), row.self_ticks.get(), row.total_ticks.get()))
        .collect();
    let expected = [
        ("entry_SYSCALL_64", 1_000, 3_000),
        ("read", 2_000, 2_000),
        ("asm_sysvec_apic_timer_interrupt", 1_000, 1_000),
        ("do_idle", 1_000, 1_000),
    ];
    assert_eq!(rows, expected);
    let arcs: Vec<(u32, u32, CallKind, u64)> = made
        .tables
        .arcs
        .iter()
        .map(|row| (row.caller.get(), row.callee.get(), row.how, row.total_ticks.get()))
        .collect();
    let none = FunctionIndex::NONE.get();
    let expected = [
        (0, 1, CallKind::Call, 2_000),
        (1, 1, CallKind::Call, 1_000),
        (none, 0, CallKind::Syscall, 3_000),
        (none, 2, CallKind::Interrupt, 1_000),
        (none, 4, CallKind::Call, 1_000),
    ];
    assert_eq!(arcs, expected);
    assert!(made.tables.functions.iter().all(|row| row.calls == 0));
}

#[test]
fn what_found_no_room_is_told_and_still_in_the_sum() {
    let mut all = aggregate();
    let mut small = Aggregate::new(
        all.table.clone(),
        TableBounds { paths: 1, threads: 1, names: 4, switches: 1, calls: 4, user: 0, waits: 0 },
    );
    std::mem::swap(&mut all, &mut small);
    all.threads.named(7, 7, "a");
    for tid in [7, 8, 0] {
        all.sample(&StackSample { tid, tgid: tid, is_user: false, kernel: &[at(1), at(0)], user: &[] });
    }
    let made = profile(&all, Coverage { ns: 3_000, cpus: 1, lost: 0 }, true, 0).unwrap();
    assert_eq!(made.manifest.health["crowded_threads"], 1);
    assert_eq!(made.manifest.health["folded_samples"], 3);
    assert_eq!(sums(&made), [3_000; 4]);
}

#[test]
fn no_time_is_no_profile() {
    let error = profile(&aggregate(), Coverage::default(), true, 0).unwrap_err().to_string();
    assert!(error.contains("there were no samples"), "{error}");
}
