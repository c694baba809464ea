//! Sums over a selected stretch of time, fast enough for interactive selection. Every chunk of the
//! trace is counted once; a selection adds up the records of whole chunks, many at a time
//! ([`blocks`]), and recounts only the parts of chunks at its ends.
//!
//! The sums equal those of an analysis of the stretch ([`kerntune_analyze::cut`]) exactly; tests
//! compare both. `scripts/trace/` does the same in a page that embeds its trace.

mod add;
mod blocks;
mod counter;
mod names;

use super::data::{group_tables, StretchTables};
use super::groups::RegionGroups;
use super::numbers::{code, PageIndex};
use crate::{Error, Result};
use add::StretchSums;
use blocks::ChunkBlocks;
use counter::{ChunkCounter, ChunkRecord, CountingSetup, ReplayState, BUCKETS};
use kerntune_analyze::events::replay;
use kerntune_analyze::{ChunkReader, TraceFile};
use kerntune_profile::{
    add_up, CallArc, CallKind, FunctionIndex, FunctionStats, FunctionTotals, HistogramBucket, PathFrame,
    Profile, Tables, Ticks,
};
use names::{NameTable, NOTHING};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Trace with the counts of its chunks.
pub struct TraceSums<'a> {
    trace: TraceFile<'a>,
    setting: CountingSetup,
    /// Names of threads, by the code of their roots.
    comms: Vec<String>,
    names: Mutex<NameTable>,
    records: Vec<OnceLock<Arc<ChunkRecord>>>,
    blocks: ChunkBlocks,
    /// Idle counters, for reuse.
    counters: Mutex<Vec<ChunkCounter>>,
    threads: usize,
}

/// Sums over a selection, to be rendered as a page's tables.
pub struct SelectionTables {
    added: StretchSums,
}

/// Chunk number, begin and end of the piece, and whether it is the whole chunk.
type ChunkPiece = (usize, u64, u64, bool);

/// Part of a selection: a piece, or the block of chunks that begins with it, whose record is known.
struct SelectionPart {
    piece: ChunkPiece,
    record: OnceLock<Arc<ChunkRecord>>,
}

impl<'a> TraceSums<'a> {
    /// Creates the sums of a profile's trace without reading it. `region` is the page's.
    ///
    /// # Errors
    /// [`Error::NoRegion`].
    pub fn new(profile: &Profile, region: Option<&str>, trace: TraceFile<'a>) -> Result<Self> {
        let groups = RegionGroups::new(profile, region)?;
        let mut comms: Vec<String> = Vec::new();
        let mut number = |comm: &str| {
            let known = comms.iter().position(|other| other == comm);
            known.unwrap_or_else(|| {
                comms.push(comm.to_owned());
                comms.len() - 1
            }) as i64
        };
        let functions = profile.tables.symbols.len();
        let setting = CountingSetup::new(trace.recording, functions, trace.wide, &groups, &mut number);
        Ok(Self {
            trace,
            setting,
            comms,
            names: Mutex::default(),
            records: (0..trace.chunks()).map(|_| OnceLock::new()).collect(),
            blocks: ChunkBlocks::new(trace.chunks()),
            counters: Mutex::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Counts all uncounted chunks in order. `each` is called with the number of finished chunks
    /// and can stop the loop.
    ///
    /// # Errors
    /// A damaged trace.
    pub fn prepare(&self, each: &mut dyn FnMut(usize) -> std::ops::ControlFlow<()>) -> Result<()> {
        let mut reader = self.trace.reader().map_err(Error::Trace)?;
        for number in 0..self.records.len() {
            if self.records[number].get().is_none() {
                let record = self.count(&mut reader, (number, 0, u64::MAX, true))?;
                let _ = self.records[number].set(Arc::new(record));
            }
            let merge = |parts: &[Arc<ChunkRecord>]| blocks::merge(parts, &mut lock(&self.names));
            self.blocks.extend(number, merge, |chunk| self.records.get(chunk)?.get());
            if each(number + 1).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Sums the events from `from` up to `to`.
    ///
    /// # Errors
    /// A damaged trace; [`kerntune_analyze::Error::Stopped`] once `stop` returns true.
    pub fn select(&self, from: u64, to: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<SelectionTables> {
        let records = self.records_of(self.parts(from, to), stop)?;
        let names = lock(&self.names);
        let mut added = StretchSums::new(
            names.nodes.len(),
            names.accounts.len(),
            names.cells.len(),
            self.setting.group_count,
        );
        drop(names);
        added.add(records.iter().map(Arc::as_ref));
        Ok(SelectionTables { added })
    }

    /// Divides a selection into blocks of chunks, whole chunks, and pieces at its ends, in time
    /// order.
    fn parts(&self, from: u64, to: u64) -> Vec<SelectionPart> {
        let chunks = &self.trace.recording.chunks;
        let is_whole = |number: usize| {
            chunks.get(number).is_some_and(|index| index.begin_ns >= from && index.end_ns < to)
        };
        let covering = self.trace.covering(from, to);
        let mut parts = Vec::new();
        let mut number = covering.start;
        while number < covering.end {
            let whole = is_whole(number);
            let until = (number..covering.end).find(|at| !is_whole(*at)).unwrap_or(covering.end);
            let (known, size) = match self.blocks.largest(number, until) {
                Some((block, size)) => (Some(block), size),
                None => (self.records[number].get().filter(|_| whole).cloned(), 1),
            };
            if chunks.get(number).is_some_and(|index| index.begin_ns < to && index.end_ns >= from) {
                let record = known.map_or_else(OnceLock::new, OnceLock::from);
                parts.push(SelectionPart { piece: (number, from, to, whole), record });
            }
            number += size;
        }
        parts
    }

    /// Returns the records of parts in order; counts missing ones in parallel.
    fn records_of(
        &self,
        parts: Vec<SelectionPart>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Arc<ChunkRecord>>> {
        let missing: Vec<&SelectionPart> = parts.iter().filter(|part| part.record.get().is_none()).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            let mut reader = self.trace.reader().map_err(Error::Trace)?;
            while let Some(part) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop() {
                    return Err(Error::Trace(kerntune_analyze::Error::Stopped));
                }
                let (number, _, _, whole) = part.piece;
                let record = Arc::new(self.count(&mut reader, part.piece)?);
                if whole {
                    let _ = self.records[number].set(Arc::clone(&record));
                }
                let _ = part.record.set(record);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.min(missing.len())).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let theirs = others.into_iter().map(|other| other.join().unwrap_or(Ok(())));
            theirs.fold(mine, |so_far, one| so_far.and(one))
        })?;
        let stopped = || Error::Trace(kerntune_analyze::Error::Stopped);
        parts.into_iter().map(|part| part.record.into_inner().ok_or_else(stopped)).collect()
    }

    fn count(
        &self,
        reader: &mut ChunkReader<'_>,
        (number, from, to, whole): ChunkPiece,
    ) -> Result<ChunkRecord> {
        let idle = lock(&self.counters).pop();
        let mut counter = idle.unwrap_or_else(|| ChunkCounter::new(self.setting.clone()));
        match whole {
            true => counter.between(0, u64::MAX),
            false => counter.between(from, to),
        }
        let chunk = reader.read(number).map_err(Error::Trace)?;
        let mut machine = ReplayState::new(self.setting.bounds);
        replay(&mut machine, &mut counter, &chunk).map_err(Error::Trace)?;
        let mut record = counter.take(&mut machine, chunk.header.end);
        let ChunkCounter { names: mine, nodes_of_all, accounts_of_all, .. } = &mut counter;
        lock(&self.names).learn(mine, nodes_of_all, accounts_of_all);
        for node in &mut record.nodes {
            *node = nodes_of_all[*node as usize];
        }
        let account_of_all = |account: u32| accounts_of_all.get(account as usize).copied().unwrap_or(NOTHING);
        for account in &mut record.accounts {
            *account = account_of_all(*account);
        }
        for (_, account, _) in &mut record.theirs {
            *account = account_of_all(*account);
        }
        let mut names = lock(&self.names);
        for (cell, _) in &mut record.cells {
            let (account, bucket) = (*cell / BUCKETS as u64, *cell % BUCKETS as u64);
            *cell = names.cell(account_of_all(account as u32), bucket as u32).into();
        }
        drop(names);
        lock(&self.counters).push(counter);
        Ok(record)
    }

    /// Converts a selection's sums to tables, in the page's numbering.
    pub(super) fn tables(&self, index: &mut PageIndex, selected: &SelectionTables) -> StretchTables {
        let names = lock(&self.names);
        let StretchSums { calls, self_weights, ended, times, .. } = &selected.added;
        // A selection made before names were learned has none of them.
        let nodes = &names.nodes[..calls.len()];
        let mut used: Vec<bool> = calls
            .iter()
            .zip(self_weights)
            .map(|(calls, self_weights)| *calls > 0 || *self_weights != [0; 4])
            .collect();
        add_up(&mut used, |at, _| nodes[at].parent as usize, |above, below| *above |= *below);
        let rows = nodes.iter().enumerate().filter(|(at, _)| used[*at]).map(|(at, node)| {
            let key = match node.what {
                code::USER => PathFrame::User,
                code::UNATTRIBUTED => PathFrame::Unattributed,
                code::INTERRUPT => PathFrame::Interrupt,
                code::IDLE => PathFrame::Idle,
                what => match u32::try_from(what) {
                    Ok(function) => PathFrame::Function(FunctionIndex(function)),
                    Err(_) => {
                        let comm =
                            usize::try_from(code::THREAD - what).ok().and_then(|at| self.comms.get(at));
                        PathFrame::Thread(comm.map_or("", String::as_str))
                    }
                },
            };
            let how = CallKind::ALL.get(node.how as usize).copied().unwrap_or(CallKind::Call);
            (at as u32, node.group, node.parent, key, how, calls[at], self_weights[at])
        });
        let trees = super::tree::trees_of(self.setting.group_count, nodes.len(), rows);
        let tables = self.account_tables(&names, selected, &used, ended);
        group_tables(index, &trees, &tables, times.clone())
    }

    /// Builds functions, arcs and histograms; each group is represented by one of its regions.
    fn account_tables(
        &self,
        names: &NameTable,
        selected: &SelectionTables,
        used: &[bool],
        ended: &[counter::EndedCalls],
    ) -> Tables {
        let StretchSums { calls, self_weights, cells, joined, .. } = &selected.added;
        let region = |group: u32| {
            let place = self.setting.groups.iter().position(|of| *of == Some(group));
            place.map_or(u32::MAX, |at| at as u32)
        };
        let regions: Vec<u32> = (0..self.setting.group_count as u32).map(region).collect();
        let region = |group: u32| regions.get(group as usize).copied().unwrap_or(u32::MAX);
        let mut functions: BTreeMap<(u32, u32), FunctionStats> = BTreeMap::new();
        let function = |functions: &mut BTreeMap<(u32, u32), FunctionStats>,
                        group: u32,
                        function: u32,
                        add: &dyn Fn(&mut FunctionStats)| {
            let none = || FunctionTotals::none(FunctionIndex(function)).row(region(group));
            let row = functions.entry((group, function)).or_insert_with(none);
            add(row);
        };
        // By account: calls, if any node is used, and self time.
        let mut arcs: Vec<Option<(u64, u64)>> = vec![None; ended.len()];
        for (at, node) in names.nodes.iter().enumerate().take(calls.len()) {
            let Some(made) = arcs.get_mut(node.account as usize).filter(|_| used[at]) else { continue };
            let (made, net) = made.get_or_insert_default();
            *made += calls[at];
            *net += self_weights[at][0];
        }
        let mut tables = Tables::default();
        for (at, (name, ended)) in names.accounts.iter().zip(ended).enumerate() {
            if let Some((made, net)) = arcs[at] {
                function(&mut functions, name.group, name.function, &|row| {
                    row.calls += made;
                    row.self_ticks.0 += net;
                });
            }
            if ended.count > 0 {
                function(&mut functions, name.group, name.function, &|row| {
                    let mut sum = counter::EndedCalls {
                        count: row.ended,
                        elapsed: row.total_ticks.0,
                        slowest: row.slowest_ticks.0,
                        at: row.slowest_at_ticks.0,
                    };
                    sum.add(ended);
                    row.ended = sum.count;
                    (row.total_ticks.0, row.slowest_ticks.0, row.slowest_at_ticks.0) =
                        (sum.elapsed, sum.slowest, sum.at);
                });
            }
            let made = arcs[at].map(|(made, _)| made);
            let Some(calls) = made.or((ended.count > 0).then_some(0)) else { continue };
            let callee = FunctionIndex(name.function);
            tables.arcs.push(CallArc {
                region: region(name.group),
                caller: caller(name.caller),
                callee,
                how: CallKind::ALL.get(name.how as usize).copied().unwrap_or(CallKind::Call),
                calls,
                ended: ended.count,
                total_ticks: Ticks(ended.elapsed),
            });
        }
        let known = names.cells.iter().copied().zip(cells.iter().copied());
        for ((account, bucket), count) in known.chain(joined.iter().map(|(cell, count)| (*cell, *count))) {
            let Some(name) = names.accounts.get(account as usize).filter(|_| count > 0) else { continue };
            tables.histograms.push(HistogramBucket {
                region: region(name.group),
                caller: caller(name.caller),
                function: FunctionIndex(name.function),
                bucket,
                count,
                example_ticks: Ticks(0),
            });
        }
        tables.functions = functions.into_values().collect();
        tables
    }
}

fn caller(function: u32) -> FunctionIndex {
    match function {
        NOTHING => FunctionIndex::NONE,
        function => FunctionIndex(function),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
