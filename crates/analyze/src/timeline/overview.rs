//! The whole trace in a few thousand bins.

use super::cpus::{self, CpuBin, CpuSlice, CpuState};
use super::{extend, holder, Holder, Slice, HALTED};
use crate::events::{replay, Bounds, Machine, Opening, Visitor};
use crate::trace_file::TraceFile;
use crate::{Error, Progress};
use kerntune_trace::{Event, Weights};
use std::collections::BTreeMap;

/// A stretch of recorded time without a gap, and its share of the bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Virtual time, ns.
    pub begin: u64,
    /// Virtual time, ns; after `begin`.
    pub end: u64,
    /// Number of its first bin.
    pub first_bin: u32,
    /// Number of its bins, at least one; all of one width, rounded to whole ns.
    pub bins: u32,
}

impl Span {
    /// Where bin `n` of this span begins, ns; its end for `n == bins`.
    pub fn edge(&self, n: u32) -> u64 {
        let offset = u128::from(self.end - self.begin) * u128::from(n) / u128::from(self.bins.max(1));
        self.begin + offset as u64
    }

    /// Width of a bin, ns, rounded up.
    pub fn width(&self) -> u64 {
        (self.end - self.begin).div_ceil(u64::from(self.bins.max(1)))
    }
}

/// Time of one holder in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Its number, counted over all spans.
    pub bin: u32,
    /// Who had the CPU.
    pub holder: Holder,
    /// For how long, ns.
    pub ns: u64,
}

/// Who had the CPU when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// The recorded stretches, in order.
    pub spans: Vec<Span>,
    /// All time, by bin. The times of a bin's rows sum to its width as long as the trace is whole.
    pub bins: Vec<Bin>,
    /// Stretches of one holder that are at least as long as a bin, in order.
    pub slices: Vec<Slice>,
    /// All time of each of several CPUs, by bin; empty of one. The times of each CPU's rows of a bin sum to its width.
    pub cpu_bins: Vec<CpuBin>,
    /// For each of several CPUs what it did for at least as long as a bin, in order; empty of one.
    pub cpu_slices: Vec<Vec<CpuSlice>>,
}

/// Reads the whole trace. `bins` is the number of bins to share out; each span gets at least one.
///
/// # Errors
/// Any damage, and [`Error::Stopped`] if `progress` breaks.
pub fn overview(trace: &TraceFile<'_>, bins: u32, progress: Progress<'_>) -> Result<Overview, Error> {
    let bounds = Bounds::of(trace.recording);
    let (mut paint, mut machine) = (Paint::new(spans(trace, bins), bounds), Machine::new(bounds));
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

/// Chunks that follow each other without a gap, with bins in proportion to their time.
fn spans(trace: &TraceFile<'_>, bins: u32) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for chunk in trace.recording.chunks.iter().filter(|chunk| chunk.end_ns > chunk.begin_ns) {
        match spans.last_mut() {
            // Not before: an index that goes backwards must not make spans that overlap.
            Some(last) if chunk.begin_ns <= last.end => last.end = last.end.max(chunk.end_ns),
            _ => spans.push(Span { begin: chunk.begin_ns, end: chunk.end_ns, first_bin: 0, bins: 0 }),
        }
    }
    let all: u128 = spans.iter().map(|span| u128::from(span.end - span.begin)).sum();
    let mut next = 0u32;
    for span in &mut spans {
        let length = u128::from(span.end - span.begin);
        let share = u128::from(bins) * length / all.max(1);
        // Never narrower than a nanosecond.
        span.bins = share.clamp(1, length) as u32;
        span.first_bin = next;
        next = next.saturating_add(span.bins);
    }
    spans
}

/// Collects time into bins.
struct Paint {
    out: Overview,
    span: usize,
    /// The bin that is being filled, within its span, and where it ends.
    bin: u32,
    edge: u64,
    cells: BTreeMap<Holder, u64>,
    cpu_cells: BTreeMap<(u32, CpuState), u64>,
    pending: Option<Slice>,
    /// The same of each CPU.
    cpu_pending: Vec<Option<CpuSlice>>,
    /// Who has had the CPU since when.
    holder: Holder,
    since: u64,
}

impl Visitor for Paint {
    type Frame = ();

    fn begin(&mut self, machine: &mut Machine<()>, opening: &Opening<'_>) {
        machine.take(opening);
        (self.since, self.holder) = (opening.begin, holder(machine));
    }

    #[inline]
    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, _: &Event) {
        let holder = holder(machine);
        if ns > 0 && holder != self.holder {
            self.until(machine);
            self.holder = holder;
        }
    }

    fn turn(&mut self, machine: &mut Machine<()>, _: usize) {
        self.until(machine);
    }

    fn turned(&mut self, machine: &mut Machine<()>) {
        self.holder = holder(machine);
    }

    fn idle(&mut self, machine: &mut Machine<()>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        self.until(machine);
        self.time(machine, asleep, awake, HALTED);
        self.since = awake;
    }
}

impl Paint {
    fn new(spans: Vec<Span>, bounds: Bounds) -> Self {
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
            out: Overview { spans, cpu_slices, ..Overview::default() },
        }
    }

    /// The holder has had the CPU until now.
    fn until(&mut self, machine: &Machine<()>) {
        self.time(machine, self.since, machine.now(), self.holder);
        self.since = machine.now();
    }

    /// `holder` had the CPU from `begin` to `end`. To be called in the order of time.
    fn time(&mut self, machine: &Machine<()>, begin: u64, end: u64, holder: Holder) {
        if end <= begin {
            return;
        }
        let cpu = if holder == HALTED { 0 } else { machine.cpu() as u32 };
        self.slice(Slice { begin, end, holder, cpu });
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

    /// Makes the bin that `at` lies in the current one; `false` behind the last.
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

    fn flush(&mut self, span: Span) {
        let bin = span.first_bin + self.bin;
        let cells = std::mem::take(&mut self.cells);
        self.out.bins.extend(cells.into_iter().map(|(holder, ns)| Bin { bin, holder, ns }));
        let cells = std::mem::take(&mut self.cpu_cells).into_iter();
        self.out.cpu_bins.extend(cells.map(|((cpu, state), ns)| CpuBin { bin, cpu, state, ns }));
    }

    /// Keeps what is long enough, joined across chunks.
    fn slice(&mut self, slice: Slice) {
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

    /// Whether a stretch of time is at least as long as a bin there.
    fn is_long(&self, begin: u64, end: u64) -> bool {
        let at = self.out.spans.partition_point(|span| span.end <= begin);
        self.out.spans.get(at).is_some_and(|span| end - begin >= span.width())
    }

    /// As [`Self::slice`], of one of several CPUs.
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

    fn finish(mut self) -> Overview {
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
