//! Output at the end of the run.

use crate::blocks::BlockInfo;
use crate::counters::BlockCounters;
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::BlockFlow;
use kerntune_trace::counts::{BlockCount, EdgeCount, ExecutionCounts};
use kerntune_trace::data::DataFile;
use kerntune_trace::loaded::LoadedCode;
use kerntune_trace::{files, Recording, VERSION};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};

impl Recorder {
    /// Ends the run and writes all files.
    pub fn finish(&mut self, counts: &mut BlockCounters) -> Result<(), Failure> {
        if self.recording {
            // The guest ended inside a region. The data is kept, and the region stays open.
            self.notes.push("the guest ended inside a region".into());
            self.stop(counts)?;
        }
        let (chunks, events) = match self.trace.take() {
            Some(trace) => trace.finish()?,
            None => (Vec::new(), 0),
        };
        if let Some(tags) = self.tags.take() {
            tags.finish()?;
        }
        if let Some(stream) = self.planner.stream.take() {
            stream.finish()?;
        }
        self.notes.extend(self.clock_errors.note());
        self.health.lost_jumps += self.planner.unguarded_jumps;
        self.health.uncounted_edges = self.edges.uncounted;
        if self.planner.capture.edges {
            self.health.uncounted_blocks = self.blocks.len().saturating_sub(counts.room()) as u64;
            write(&self.output.join(files::COUNTS), &self.counts().to_bytes())?;
        }
        if let Some(data) = &mut self.data {
            write_data(&self.output.join(files::DATA), &data.finish())?;
        }
        if let Some(io) = &mut self.io {
            write(&self.output.join(files::IO), &serde_json::to_vec(&io.finish())?)?;
        }
        let loaded = &self.planner.functions.loaded;
        let first_loaded = (!loaded.functions().is_empty()).then(|| loaded.first());
        if first_loaded.is_some() {
            let code = LoadedCode { functions: loaded.functions().to_vec() };
            write(&self.output.join(files::LOADED), &serde_json::to_vec(&code)?)?;
        }
        if self.unread_code > 0 {
            self.notes.push(format!(
                "the symbols of {} modules or BPF programs could not be read",
                self.unread_code
            ));
        }
        let recording = Recording {
            version: VERSION,
            capture: self.planner.capture,
            kernel_functions: self.planner.functions.unknown(),
            first_loaded,
            ran: self.ran(|_| true),
            ran_since_boot: self.ran_since_boot(counts),
            cpus: self.cpus.count() as u32,
            per_cpu: std::mem::take(&mut self.per_cpu.1),
            regions: std::mem::take(&mut self.regions.list),
            threads: self.threads.iter().map(|stack| stack.thread.clone()).collect(),
            chunks,
            events,
            health: self.health,
            notes: std::mem::take(&mut self.notes),
        };
        write(&self.output.join(files::RECORDING), &serde_json::to_vec_pretty(&recording)?)
    }

    /// Returns the kernel functions with code in the selected blocks.
    fn ran(&self, is_meant: impl Fn(usize) -> bool) -> Vec<u32> {
        let functions = &self.planner.functions;
        let mut ran = vec![false; functions.unknown() as usize];
        let blocks = self.blocks.iter().enumerate().filter(|(id, info)| !info.user && is_meant(*id));
        for (_, info) in blocks {
            for function in functions.within(info.start..info.end) {
                if let Some(ran) = ran.get_mut(function as usize) {
                    *ran = true;
                }
            }
        }
        (0..).zip(ran).filter_map(|(function, ran)| ran.then_some(function)).collect()
    }

    /// Returns the kernel functions that ran since the first program began; empty if blocks are not
    /// counted.
    fn ran_since_boot(&mut self, counts: &BlockCounters) -> Vec<u32> {
        if !self.planner.capture.edges {
            return Vec::new();
        }
        self.note_used(counts);
        let used = self.used.as_deref().unwrap_or_default();
        // A block without a counter may have run.
        self.ran(|id| id >= counts.room() || used.get(id).copied().unwrap_or(false))
    }

    /// Sums blocks and edges by address. Differently cut blocks of the same code add up.
    fn counts(&self) -> ExecutionCounts {
        let mut blocks: BTreeMap<(u64, u64), BlockCount> = BTreeMap::new();
        for (id, &count) in self.block_totals.iter().enumerate().filter(|(_, &count)| count != 0) {
            let Some(info) = self.blocks.get(id as u32).filter(|info| !info.user) else { continue };
            let BlockInfo { start, last, end, .. } = *info;
            blocks
                .entry((start, end))
                .or_insert(BlockCount {
                    start,
                    last,
                    count: 0,
                    instructions: info.instructions() as u32,
                    bytes: (end - start) as u32,
                })
                .count += count;
        }
        let mut edges: BTreeMap<(u64, u64), EdgeCount> = BTreeMap::new();
        for (from, to, count) in self.edges.iter() {
            let (Some(from), Some(to)) = (self.blocks.get(from), self.blocks.get(to)) else { continue };
            let BlockFlow::Branch(kind) = from.flow else { continue };
            edges
                .entry((from.last, to.start))
                .or_insert(EdgeCount { source: from.last, target: to.start, count: 0, kind })
                .count += count;
        }
        ExecutionCounts { blocks: blocks.into_values().collect(), edges: edges.into_values().collect() }
    }
}

fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|e| Failure(format!("cannot write {}: {e}", path.display())))
}

/// Writes the data accesses, which may take hundreds of megabytes, without keeping the text in memory.
fn write_data(path: &std::path::Path, data: &DataFile) -> Result<(), Failure> {
    const BUFFER_BYTES: usize = 1 << 18;
    let failure = |e: std::io::Error| Failure(format!("cannot write {}: {e}", path.display()));
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path).map_err(failure)?);
    serde_json::to_writer(&mut file, data)?;
    file.flush().map_err(failure)
}
