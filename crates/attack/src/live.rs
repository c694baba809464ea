//! Readers of the running kernel's interfaces.

use kerntune_convert::perf::{BootSamples, BranchStacks};
use kerntune_convert::perf_data::{PerfEvent, PerfSample};
use kerntune_live::{
    cpu_list, parse_cgroup, parse_cgroup_record, parse_hits, parse_interrupts, parse_mapping, parse_record,
    parse_softirqs, parse_stat, parse_vmstat, read_archive, read_trace_event, Aggregate, CallChain,
    PerfRecord, SampleLayout, TableBounds, TraceEvent,
};
use kerntune_symbols::{slide_in_vmcoreinfo, symbols_in_vmcoreinfo, vmcoreinfo, FunctionTable, Kallsyms};

/// A list of the kernel's symbols, and lookups of all its addresses.
pub fn kallsyms(bytes: &[u8]) {
    let Ok(list) = Kallsyms::parse(bytes, "attack") else { return };
    let addresses: Vec<u64> = list.symbols.iter().map(|symbol| symbol.address).collect();
    let mut table = FunctionTable::new(list.symbols);
    for address in &addresses {
        let _ = (table.lookup(*address), table.lookup(address.wrapping_sub(1)));
    }
    for function in table.functions() {
        assert!(function.size > 0 || function.address == u64::MAX, "{function:?}");
    }
    for (at, address) in addresses.iter().enumerate().take(8) {
        table.add("later", "bpf", *address, at as u64);
        table.forget(*address);
    }
}

/// A record of perf: kind, contents, mode, then its body.
pub fn perf_record(bytes: &[u8]) {
    let [kind, holds, mode, body @ ..] = bytes else { return };
    let layout = SampleLayout { period: holds & 1 != 0, raw: holds & 2 != 0 };
    let mut chain = CallChain::default();
    let read = parse_record((*kind).into(), (*mode).into(), body, layout, &mut chain);
    assert!(chain.kernel.len() + chain.user.len() <= body.len() / 8 + 1, "a chain out of nothing");
    if let Some(PerfRecord::Sample { raw, .. }) = read {
        assert!(raw.len() <= body.len());
    }
    // Instruction, thread, time, branches; with an index of the hardware or without.
    let index = if holds & 4 != 0 { 1 << 17 } else { 0 };
    let (mut sample, mut stacks) = (PerfSample::default(), BranchStacks::of_boot(BootSamples::default()));
    if sample.read(&PerfEvent::of_ring(0x807, index), (*mode).into(), body).is_some() {
        assert!(sample.branches.len() <= body.len() / 24, "branches out of nothing");
        let _ = stacks.sample(&sample.branches, Some(0));
        assert!(stacks.kept() <= 2 * sample.branches.len());
    }
}

/// An event of a tracepoint: which one, its `format` file up to a zero, the size of the registers
/// after it, then its raw bytes; and a record of a cgroup.
pub fn trace_event(bytes: &[u8]) {
    const PATHS: [&str; 7] = [
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_wakeup_new",
        "lock/contention_begin",
        "lock/contention_end",
        "raw_syscalls/sys_enter",
        "raw_syscalls/sys_exit",
    ];
    let [path, rest @ ..] = bytes else { return };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (format, rest) = rest.split_at(end);
    let raw = rest.get(1..).unwrap_or_default();
    let registers = &raw[..raw.len().min(8)];
    let bounds = TableBounds { waits: 4, ..TableBounds::default() };
    let mut all = Aggregate::new(FunctionTable::new(Vec::new()), bounds);
    let path = PATHS[usize::from(*path) % PATHS.len()];
    let format = String::from_utf8_lossy(format);
    for time in [10, 7, 20] {
        let event = TraceEvent { time, tid: 7, cpu: 0, raw, kernel: &[0x1000, 0x2000], registers };
        let _ = read_trace_event(path, &format, &event, &mut all);
    }
    assert!(all.waits.calls.rows().len() <= 4 && all.waits.locks.rows().len() <= 4);
    if let Some((_, path)) = parse_cgroup_record(raw) {
        assert!(path.len() < raw.len());
    }
    if let Some(path) = parse_cgroup(&format) {
        assert!(path.starts_with('/'));
    }
}

/// Tables below /proc.
pub fn proc_counts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for cpus in [&[][..], &[0, 7]] {
        let _ = (parse_interrupts(&text, cpus), parse_softirqs(&text, cpus), parse_stat(&text, cpus));
        let _ = parse_vmstat(&text);
    }
    for line in text.lines() {
        if let Some((begin, end, ..)) = parse_mapping(line) {
            assert!(begin < end);
        }
    }
    let mut hits = std::collections::BTreeMap::new();
    parse_hits(&text, &mut hits);
    assert!(hits.len() <= text.lines().count());
    if let Ok(cpus) = cpu_list(&text) {
        assert!(!cpus.is_empty());
    }
}

/// Notes of a kernel's memory, and the text in them.
pub fn notes(bytes: &[u8]) {
    let _ = vmcoreinfo(bytes).and_then(slide_in_vmcoreinfo);
    let _ = slide_in_vmcoreinfo(bytes);
    let _ = symbols_in_vmcoreinfo(bytes);
}

/// An archive of counters that another machine sends.
pub fn gcov_archive(bytes: &[u8]) {
    let (mut files, mut size) = (0, 0);
    let _ = read_archive(bytes, &mut |name, content| {
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        assert!(name.components().all(plain), "{name:?}");
        (files, size) = (files + 1, size + content.len());
        Ok(())
    });
    assert!(files * 512 <= bytes.len() && size <= bytes.len(), "counters out of nothing");
}
