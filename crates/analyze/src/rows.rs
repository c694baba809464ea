//! From accounts to the profile's rows.

use crate::replay::{Closing, Known};
use kerntune_profile as profile;
use kerntune_profile::{
    Address, CallArc, FunctionIndex, FunctionStats, Instructions, Nanoseconds, RegionStats,
    Symbol, Tables, ThreadKind, ThreadStats,
};
use kerntune_trace::counts::{Counts, EdgeKind};
use kerntune_trace::{Health, How, Recording, Thread};
use std::collections::BTreeMap;

/// Whether a thread is an idle task, as opposed to one that was never identified.
pub(crate) fn is_idle(thread: &Thread) -> bool {
    thread.pid == 0 && thread.task != 0
}

pub(crate) fn tables(
    closing: Closing,
    recording: &Recording,
    counts: Option<&Counts>,
    symbols: &[Symbol],
    known: Known,
) -> Tables {
    let regions = regions(&closing, recording);
    let functions = closing.books.functions.iter().map(|(&(region, function), account)| FunctionStats {
        region,
        function: FunctionIndex(function),
        calls: account.calls,
        net_ns: Nanoseconds(account.net),
        elapsed_ns: Nanoseconds(account.elapsed),
        max_ns: Nanoseconds(account.max),
        min_ns: Nanoseconds(if account.calls == 0 { 0 } else { account.min }),
        slowest_ns: Nanoseconds(0),
        slowest_at_ns: Nanoseconds(0),
    });
    let arcs = closing.books.arcs.iter().map(|(&(region, key), &(calls, elapsed))| CallArc {
        region,
        caller: FunctionIndex(key.caller()),
        callee: FunctionIndex(key.callee()),
        how: how(key.how()),
        calls,
        elapsed_ns: Nanoseconds(elapsed),
    });
    let threads = closing.books.threads.iter().map(|(&(region, number), account)| {
        let (kind, pid, tgid, comm) = match recording.threads.get(number as usize) {
            Some(t) if is_idle(t) => (ThreadKind::Idle, t.pid, t.tgid, t.comm.as_str()),
            Some(t) => (ThreadKind::Thread, t.pid, t.tgid, t.comm.as_str()),
            None if number as usize == known.interrupt() => (ThreadKind::Interrupt, 0, 0, "[interrupt]"),
            None => (ThreadKind::Thread, 0, 0, "[unknown]"),
        };
        ThreadStats {
            region,
            thread: number,
            kind,
            pid,
            tgid,
            comm: comm.to_owned(),
            net_ns: Nanoseconds(account.net),
            user_ns: Nanoseconds(account.user),
            switches_in: account.switches_in,
        }
    });
    let mut tables = Tables {
        functions: functions.collect(),
        symbols: symbols.to_vec(),
        arcs: arcs.collect(),
        threads: threads.collect(),
        regions,
        ..Tables::default()
    };
    name_the_unknown(&mut tables);
    if let Some(counts) = counts {
        add_counts(&mut tables, counts);
    }
    tables
}

/// Code in no known function has the number after the last symbol; it gets one if it ran.
fn name_the_unknown(tables: &mut Tables) {
    let function = FunctionIndex(tables.symbols.len() as u32);
    let ran = tables.functions.iter().any(|row| row.function == function)
        || tables.arcs.iter().any(|row| row.caller == function || row.callee == function);
    if ran {
        let name = "[unknown]".to_owned();
        tables.symbols.push(Symbol { function, name, address: Address(0), size: 0, file: None, module: None });
    }
}

fn regions(closing: &Closing, recording: &Recording) -> Vec<RegionStats> {
    let accounts = closing.books.regions.iter().zip(&closing.measured);
    let rows = recording.regions.iter().zip(accounts).enumerate();
    rows.map(|(number, (region, (account, measured)))| {
        // The recorder's word for a region whose end it saw, the trace's for another.
        let (elapsed, idle) = match region.closed {
            true => (region.elapsed_ns, region.idle_ns),
            false => (measured.busy + measured.idle, measured.idle),
        };
        let (kernel, user) = (region.kernel, region.user);
        RegionStats {
            region: number as u32,
            name: region.name.clone(),
            begin_ns: Nanoseconds(region.begin_ns),
            elapsed_ns: Nanoseconds(elapsed),
            busy_ns: Nanoseconds(elapsed.saturating_sub(idle)),
            idle_ns: Nanoseconds(idle),
            user_ns: Nanoseconds(account.user),
            unattributed_ns: Nanoseconds(account.unattributed),
            operations: region.operations,
            depth: region.depth,
            kernel_instructions: Instructions(kernel.instructions),
            user_instructions: Instructions(user.instructions),
            kernel_taken_branches: kernel.taken_branches,
            user_taken_branches: user.taken_branches,
            kernel_l1i_misses: kernel.l1i_misses,
            user_l1i_misses: user.l1i_misses,
            kernel_itlb_misses: kernel.itlb_misses,
            user_itlb_misses: user.itlb_misses,
        }
    })
    .collect()
}

/// Everything that was not as it should be, the recorder's and ours; 0 where it was.
pub(crate) fn health(closing: &Closing, recording: &Recording) -> BTreeMap<String, u64> {
    let mut mismatch = 0u64;
    for (region, measured) in recording.regions.iter().zip(&closing.measured) {
        if region.closed && measured.whole {
            let busy = region.elapsed_ns.saturating_sub(region.idle_ns);
            let by = busy.abs_diff(measured.busy).saturating_add(region.idle_ns.abs_diff(measured.idle));
            mismatch = mismatch.saturating_add(by);
        }
    }
    let unclosed = recording.regions.iter().filter(|region| !region.closed).count() as u64;
    let unattributed = closing.books.regions.iter().map(|region| region.unattributed).sum();
    let troubles = closing.troubles;
    // Taken apart by name, so that nothing the recorder learns to count is left out.
    let Health {
        lost_events,
        unmatched_returns,
        foreign_returns,
        unwound_frames,
        uncounted_blocks,
        uncounted_edges,
        clock_checks,
        clock_errors,
        clock_error_ns,
        cut_blocks,
    } = recording.health;
    [
        ("lost_events", lost_events),
        ("unmatched_returns", unmatched_returns),
        ("foreign_returns", foreign_returns),
        ("unwound_frames", unwound_frames),
        ("uncounted_blocks", uncounted_blocks),
        ("uncounted_edges", uncounted_edges),
        ("clock_checks", clock_checks),
        ("clock_errors", clock_errors),
        ("clock_error_ns", clock_error_ns),
        ("cut_blocks", cut_blocks),
        ("stack_mismatches", troubles.stack_mismatches),
        ("running_mismatches", troubles.running_mismatches),
        ("clock_mismatches", troubles.clock_mismatches),
        ("clock_mismatch_ns", troubles.clock_mismatch_ns),
        ("unmatched_exits", troubles.unmatched_exits),
        ("cut_calls", troubles.cut_calls),
        ("outside_ns", troubles.outside_ns),
        ("region_mismatches", troubles.region_mismatches),
        ("region_mismatch_ns", mismatch),
        ("unclosed_regions", unclosed),
        ("unattributed_ns", unattributed),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into()
}

fn add_counts(tables: &mut Tables, counts: &Counts) {
    tables.edges = (counts.edges.iter())
        .map(|edge| profile::Edge {
            source: Address(edge.source),
            target: Address(edge.target),
            count: edge.count,
            kind: edge_kind(edge.kind),
        })
        .collect();
    tables.blocks = (counts.blocks.iter())
        .map(|block| profile::Block {
            start: Address(block.start),
            last: Address(block.last),
            count: block.count,
            instructions: Instructions(block.instructions.into()),
            bytes: block.bytes.into(),
        })
        .collect();
}

fn how(how: How) -> profile::How {
    match how {
        How::Call => profile::How::Call,
        How::Jump => profile::How::Jump,
        How::Interrupt => profile::How::Interrupt,
        How::Exception => profile::How::Exception,
        How::Syscall => profile::How::Syscall,
    }
}

fn edge_kind(kind: EdgeKind) -> profile::EdgeKind {
    match kind {
        EdgeKind::Conditional => profile::EdgeKind::Conditional,
        EdgeKind::Jump => profile::EdgeKind::Jump,
        EdgeKind::IndirectJump => profile::EdgeKind::IndirectJump,
        EdgeKind::Call => profile::EdgeKind::Call,
        EdgeKind::IndirectCall => profile::EdgeKind::IndirectCall,
        EdgeKind::Return => profile::EdgeKind::Return,
    }
}
