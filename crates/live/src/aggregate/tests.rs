use super::*;
use kerntune_symbols::KernelSymbol;

/// Functions 0 to 6 at 0x1000, 0x1100 and so on.
const NAMES: [&str; 7] = [
    "entry_SYSCALL_64",
    "ksys_read",
    "asm_sysvec_apic_timer_interrupt",
    "handle_softirqs",
    "pv_native_safe_halt",
    "do_idle",
    "schedule",
];

fn aggregate() -> Aggregate {
    let symbol = |(at, name): (usize, &&str)| KernelSymbol {
        address: 0x1000 + 0x100 * at as u64,
        name: (*name).into(),
        is_global: true,
        module: None,
    };
    let end = KernelSymbol { address: 0x1700, name: "_etext".into(), is_global: true, module: None };
    let symbols = NAMES.iter().enumerate().map(symbol).chain([end]).collect();
    Aggregate::new(
        FunctionTable::new(symbols),
        TableBounds { paths: 100, threads: 10, names: 10, switches: 10, calls: 4, user: 0, waits: 0 },
    )
}

fn at(function: u64) -> u64 {
    0x1000 + 0x100 * function + 0x10
}

/// Returns each path as text, with its samples.
fn paths(aggregate: &Aggregate) -> Vec<(String, u64)> {
    let nodes = aggregate.tree.nodes();
    let word = |key: SampleFrame| match key {
        SampleFrame::Function(function) => NAMES[function as usize].to_string(),
        SampleFrame::Thread(comm) => aggregate.threads.name(comm).to_string(),
        other => format!("{other:?}"),
    };
    let path = |node: &SampleNode| {
        let mut words = vec![word(node.key)];
        let mut above = node.parent;
        while let Some(node) = nodes.get(above as usize) {
            words.insert(0, word(node.key));
            above = node.parent;
        }
        words.join(" ")
    };
    nodes.iter().filter(|node| node.samples > 0).map(|node| (path(node), node.samples)).collect()
}

#[test]
fn samples_go_to_their_thread_to_interrupts_or_to_idle() {
    let mut all = aggregate();
    all.threads.named(7, 7, "redis");
    let kernel = |tid, kernel: &[u64]| StackSample {
        tid,
        tgid: tid,
        is_user: false,
        kernel: kernel.to_vec().leak(),
        user: &[],
    };
    all.sample(&kernel(7, &[at(1), at(0)]));
    all.sample(&StackSample { tid: 7, tgid: 7, is_user: true, kernel: &[], user: &[] });
    // A softirq at the exit of an interrupt that hit a system call.
    all.sample(&kernel(7, &[at(3), at(2), at(1), at(0)]));
    all.sample(&kernel(0, &[at(4), at(5)]));
    all.sample(&kernel(0, &[at(5)]));
    all.sample(&kernel(7, &[0x9000, at(1), at(0)]));
    all.sample(&kernel(7, &[]));
    let expected = [
        ("redis entry_SYSCALL_64 ksys_read", 1),
        ("redis User", 1),
        ("Interrupt asm_sysvec_apic_timer_interrupt handle_softirqs", 1),
        ("Idle do_idle", 1),
        ("redis entry_SYSCALL_64 ksys_read Unattributed", 1),
        ("redis Unattributed", 1),
    ];
    assert_eq!(paths(&all), expected.map(|(path, samples)| (path.to_string(), samples)));
    assert_eq!((all.samples, all.halted, all.interrupts, all.idle), (7, 1, 1, 1));
    assert_eq!(all.health, BTreeMap::from([(Anomaly::UnnamedFrames, 1)]));
    let row = all.threads.rows().next().unwrap();
    assert_eq!((row.user, row.kernel), (1, 3));
    all.clear();
    assert_eq!((paths(&all).len(), all.samples), (0, 0));
}

#[test]
fn a_return_address_behind_a_function_is_that_functions() {
    let mut all = aggregate();
    all.threads.named(7, 7, "x");
    // The call is the last instruction of ksys_read.
    all.sample(&StackSample { tid: 7, tgid: 7, is_user: false, kernel: &[at(3), 0x1200, at(0)], user: &[] });
    assert_eq!(paths(&all)[0].0, "x entry_SYSCALL_64 ksys_read handle_softirqs");
}

#[test]
fn a_switch_has_the_reason_outside_of_the_scheduler() {
    let mut all = aggregate();
    let switch = SwitchSample {
        from: Some(1),
        to: None,
        preempted: Some(false),
        kernel: &[at(6), at(6), at(1)],
        weight: 5,
    };
    all.switch(&switch);
    let (found, count) = all.switches.rows()[0];
    assert_eq!((found.reason, found.to, found.kind, count), (Some(1), None, SwitchKind::Voluntary, 5));
}
