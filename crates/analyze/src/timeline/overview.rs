//! Overview of a whole trace in a few thousand bins.

use super::cpus::{self, CpuBin, CpuSlice, CpuState};
use super::{extend, holder, CpuHolder, HolderSlice, HALTED};
use crate::events::{replay, ChunkOpening, EventVisitor, ReplayState, TraceBounds};
use crate::trace_file::TraceFile;
use crate::{Error, EventProgress};
use kerntune_trace::{Event, EventWeights};
use std::collections::BTreeMap;

/// A recorded period without a gap, and its share of the bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedSpan {
    /// Virtual time of its beginning, in ticks.
    pub begin: u64,
    /// Virtual time of its end, in ticks; after `begin`.
    pub end: u64,
    /// Number of its first bin.
    pub first_bin: u32,
    /// Number of its bins, at least one. All have the same width, rounded to whole ticks.
    pub bins: u32,
}

impl RecordedSpan {
    /// Returns the virtual time at which bin `n` of this span begins; for `n == bins`, at which the
    /// span ends.
    pub fn edge(&self, n: u32) -> u64 {
        let offset = u128::from(self.end - self.begin) * u128::from(n) / u128::from(self.bins.max(1));
        self.begin + offset as u64
    }

    /// Returns the width of a bin in ticks, rounded up.
    pub fn width(&self) -> u64 {
        (self.end - self.begin).div_ceil(u64::from(self.bins.max(1)))
    }
}

/// Time of one holder within one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderBin {
    /// Number of the bin, counted over all spans.
    pub bin: u32,
    /// Holder of the executing CPU.
    pub holder: CpuHolder,
    /// Length of that time, in ticks.
    pub ns: u64,
}

/// Overview of a whole trace: holders of the CPU over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineOverview {
    /// Recorded periods, in order.
    pub spans: Vec<RecordedSpan>,
    /// Time by bin and holder. The times of a bin sum to its width, unless chunks are missing.
    pub bins: Vec<HolderBin>,
    /// Periods of one holder that are at least as long as a bin, in order.
    pub slices: Vec<HolderSlice>,
    /// Time by bin, CPU and state; empty with one CPU. The times of a CPU in a bin sum to the bin's
    /// width.
    pub cpu_bins: Vec<CpuBin>,
    /// Periods of one state that are at least as long as a bin, by CPU, in order; empty with one
    /// CPU.
    pub cpu_slices: Vec<Vec<CpuSlice>>,
}

/// Reads the whole trace. `bins` is the number of bins to divide among the spans; each span gets at
/// least one.
///
/// # Errors
/// Damage in the trace; [`Error::Stopped`] if `progress` breaks.
pub fn overview(
    trace: &TraceFile<'_>,
    bins: u32,
    progress: EventProgress<'_>,
) -> Result<TimelineOverview, Error> {
    let bounds = TraceBounds::of(trace.recording);
    let (mut paint, mut machine) =
        (OverviewCollector::new(spans(trace, bins), bounds), ReplayState::new(bounds));
    let mut reader = trace.reader()?;
    let mut events = 0;
    for number in 0..trace.chunks() {
        let chunk = reader.read(number)?;
        replay(&mut machine, &mut paint, &chunk)?;
        paint.until(&machine);
        events += u64::from(chunk.header.events);
        if progress(events).is_break() {
            return Err(Error::Stopped);
        }
    }
    Ok(paint.finish())
}

/// Joins chunks without a gap to spans, with bins in proportion to their lengths.
fn spans(trace: &TraceFile<'_>, bins: u32) -> Vec<RecordedSpan> {
    let mut spans: Vec<RecordedSpan> = Vec::new();
    for chunk in trace.recording.chunks.iter().filter(|chunk| chunk.end_ns > chunk.begin_ns) {
        match spans.last_mut() {
            // `<=`: an index that goes backwards must not make spans that overlap.
            Some(last) if chunk.begin_ns <= last.end => last.end = last.end.max(chunk.end_ns),
            _ => spans.push(RecordedSpan { begin: chunk.begin_ns, end: chunk.end_ns, first_bin: 0, bins: 0 }),
        }
    }
    let all: u128 = spans.iter().map(|span| u128::from(span.end - span.begin)).sum();
    let mut next = 0u32;
    for span in &mut spans {
        let length = u128::from(span.end - span.begin);
        let share = u128::from(bins) * length / all.max(1);
        // At least one tick wide.
        span.bins = share.clamp(1, length) as u32;
        span.first_bin = next;
        next = next.saturating_add(span.bins);
    }
    spans
}

/// Visitor that collects time into bins.
struct OverviewCollector {
    out: TimelineOverview,
    span: usize,
    /// The current bin, within its span, and the virtual time at which it ends.
    bin: u32,
    edge: u64,
    cells: BTreeMap<CpuHolder, u64>,
    cpu_cells: BTreeMap<(u32, CpuState), u64>,
    pending: Option<HolderSlice>,
    /// Like `pending`, by CPU.
    cpu_pending: Vec<Option<CpuSlice>>,
    /// Current holder, and the virtual time since which it has had the CPU.
    holder: CpuHolder,
    since: u64,
}

impl EventVisitor for OverviewCollector {
    type PerFrame = ();

    fn begin(&mut self, machine: &mut ReplayState<()>, opening: &ChunkOpening<'_>) {
        machine.adopt(opening);
        (self.since, self.holder) = (opening.begin, holder(machine));
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState<()>, ns: u64, _: EventWeights, _: &Event) {
        let holder = holder(machine);
        if ns > 0 && holder != self.holder {
            self.until(machine);
            self.holder = holder;
        }
    }

    fn turn(&mut self, machine: &mut ReplayState<()>, _: usize) {
        self.until(machine);
    }

    fn turned(&mut self, machine: &mut ReplayState<()>) {
        self.holder = holder(machine);
    }

    fn idle(&mut self, machine: &mut ReplayState<()>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        self.until(machine);
        self.time(machine, asleep, awake, HALTED);
        self.since = awake;
    }
}

impl OverviewCollector {
    fn new(spans: Vec<RecordedSpan>, bounds: TraceBounds) -> Self {
        let edge = spans.first().map_or(0, |span| span.edge(1));
        let cpu_slices = cpus::lanes(bounds);
        Self {
            span: 0,
            bin: 0,
            edge,
            cells: BTreeMap::new(),
            cpu_cells: BTreeMap::new(),
            pending: None,
            cpu_pending: vec![None; cpu_slices.len()],
            holder: HALTED,
            since: 0,
            out: TimelineOverview { spans, cpu_slices, ..TimelineOverview::default() },
        }
    }

    /// Adds the time of the current holder up to now.
    fn until(&mut self, machine: &ReplayState<()>) {
        self.time(machine, self.since, machine.now(), self.holder);
        self.since = machine.now();
    }

    /// Adds the time from `begin` to `end` for `holder`. Must be called in the order of time.
    fn time(&mut self, machine: &ReplayState<()>, begin: u64, end: u64, holder: CpuHolder) {
        if end <= begin {
            return;
        }
        let cpu = if holder == HALTED { 0 } else { machine.cpu() as u32 };
        self.slice(HolderSlice { begin, end, holder, cpu });
        for (cpu, state) in cpus::states(machine, holder).enumerate() {
            self.cpu_slice(cpu, CpuSlice { begin, end, state });
        }
        let mut at = begin;
        while at < end && self.seek(at) {
            let until = end.min(self.edge);
            *self.cells.entry(holder).or_default() += until - at;
            for (cpu, state) in (0..).zip(cpus::states(machine, holder)) {
                *self.cpu_cells.entry((cpu, state)).or_default() += until - at;
            }
            at = until;
        }
    }

    /// Makes the bin that contains `at` the current one; returns `false` after the last bin.
    fn seek(&mut self, at: u64) -> bool {
        while at >= self.edge {
            let Some(span) = self.out.spans.get(self.span).copied() else { return false };
            self.flush(span);
            if at >= span.end {
                self.span += 1;
                self.bin = 0;
            } else {
                self.bin = (self.bin + 1).min(span.bins - 1);
            }
            let Some(span) = self.out.spans.get(self.span) else { return false };
            self.edge = span.edge(self.bin + 1);
        }
        true
    }

    fn flush(&mut self, span: RecordedSpan) {
        let bin = span.first_bin + self.bin;
        let cells = std::mem::take(&mut self.cells);
        self.out.bins.extend(cells.into_iter().map(|(holder, ns)| HolderBin { bin, holder, ns }));
        let cells = std::mem::take(&mut self.cpu_cells).into_iter();
        self.out.cpu_bins.extend(cells.map(|((cpu, state), ns)| CpuBin { bin, cpu, state, ns }));
    }

    /// Joins slices across chunks, and keeps long ones.
    fn slice(&mut self, slice: HolderSlice) {
        match &mut self.pending {
            Some(last) if slice.follows(last) => last.end = slice.end,
            _ => {
                self.keep();
                self.pending = Some(slice);
            }
        }
    }

    fn keep(&mut self) {
        let Some(slice) = self.pending.take() else { return };
        if self.is_long(slice.begin, slice.end) {
            extend(&mut self.out.slices, slice);
        }
    }

    /// Checks whether a period is at least as long as a bin at its time.
    fn is_long(&self, begin: u64, end: u64) -> bool {
        let at = self.out.spans.partition_point(|span| span.end <= begin);
        self.out.spans.get(at).is_some_and(|span| end - begin >= span.width())
    }

    /// Like [`Self::slice`], for one of several CPUs.
    fn cpu_slice(&mut self, cpu: usize, slice: CpuSlice) {
        match self.cpu_pending.get_mut(cpu) {
            Some(Some(last)) if last.end == slice.begin && last.state == slice.state => last.end = slice.end,
            Some(pending) => {
                let before = pending.replace(slice);
                self.keep_of_cpu(cpu, before);
            }
            None => {}
        }
    }

    fn keep_of_cpu(&mut self, cpu: usize, slice: Option<CpuSlice>) {
        let long = slice.filter(|slice| self.is_long(slice.begin, slice.end));
        if let (Some(slice), Some(slices)) = (long, self.out.cpu_slices.get_mut(cpu)) {
            cpus::extend(slices, slice);
        }
    }

    fn finish(mut self) -> TimelineOverview {
        self.keep();
        for (cpu, slice) in std::mem::take(&mut self.cpu_pending).into_iter().enumerate() {
            self.keep_of_cpu(cpu, slice);
        }
        if let Some(span) = self.out.spans.get(self.span).copied() {
            self.flush(span);
        }
        self.out
    }
}
