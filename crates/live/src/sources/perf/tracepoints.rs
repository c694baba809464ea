//! Events of tracepoints, all of them, for times of waits. Their fields are where the `format` files
//! of this kernel say.

use super::events::EventKind;
use crate::aggregate::{LeftState, LockWaiter, SystemCallKey};
use crate::tracefs::{field, TracefsDir};
use crate::{Aggregate, Error, Result, TraceOptions};
use kerntune_profile::Anomaly;
use std::borrow::Cow;
use std::ops::Range;

/// Bits of `prev_state` that mark a runnable thread (`TASK_REPORT_MAX`).
const WANTS_TO_RUN: u64 = 0x100;
/// Bits of `prev_state` that mark a thread that has ended (`EXIT_DEAD`, `EXIT_ZOMBIE`).
const HAS_ENDED: u64 = 0x30;

/// Tracepoint whose events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    Switch,
    Waking,
    WakeupNew,
    ContentionBegin,
    ContentionEnd,
    CallEnter,
    CallExit,
}

impl Tracepoint {
    /// Tracepoints of time off the CPU.
    const OFF_CPU: [Self; 3] = [Self::Switch, Self::Waking, Self::WakeupNew];
    /// Tracepoints of waits for locks.
    const LOCKS: [Self; 2] = [Self::ContentionBegin, Self::ContentionEnd];
    /// Tracepoints of system calls.
    const SYSTEM_CALLS: [Self; 2] = [Self::CallEnter, Self::CallExit];

    fn all() -> impl Iterator<Item = Self> {
        Self::OFF_CPU.into_iter().chain(Self::LOCKS).chain(Self::SYSTEM_CALLS)
    }

    /// Returns the directory in `events/` of tracefs.
    fn path(self) -> &'static str {
        match self {
            Self::Switch => "sched/sched_switch",
            Self::Waking => "sched/sched_waking",
            Self::WakeupNew => "sched/sched_wakeup_new",
            Self::ContentionBegin => "lock/contention_begin",
            Self::ContentionEnd => "lock/contention_end",
            Self::CallEnter => "raw_syscalls/sys_enter",
            Self::CallExit => "raw_syscalls/sys_exit",
        }
    }

    /// Returns the fields that are read.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Switch => &["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"],
            Self::Waking | Self::WakeupNew => &["pid"],
            Self::ContentionBegin => &["lock_addr", "flags"],
            Self::ContentionEnd => &["lock_addr"],
            Self::CallEnter => &["id"],
            Self::CallExit => &["id", "ret"],
        }
    }

    /// Returns true if the event's call chain is read.
    pub fn has_chain(self) -> bool {
        match self {
            Self::Switch | Self::Waking | Self::ContentionBegin => true,
            Self::WakeupNew | Self::ContentionEnd | Self::CallEnter | Self::CallExit => false,
        }
    }

    /// Returns true if the event is read on the whole machine, whatever is watched: another thread
    /// causes it.
    pub fn is_machine_wide(self) -> bool {
        match self {
            Self::Switch | Self::Waking | Self::WakeupNew => true,
            Self::ContentionBegin | Self::ContentionEnd | Self::CallEnter | Self::CallExit => false,
        }
    }

    /// Returns the size of an event's buffer in bytes, a power of two.
    pub fn buffer_bytes(self) -> usize {
        match self {
            Self::Switch | Self::Waking | Self::ContentionBegin => 1 << 20,
            Self::CallEnter | Self::CallExit => 2 << 20,
            Self::ContentionEnd => 512 << 10,
            Self::WakeupNew => 64 << 10,
        }
    }
}

/// Tracepoint with its id and the places of its fields in the raw bytes.
#[derive(Debug, Clone)]
pub(crate) struct TracepointReader {
    pub point: Tracepoint,
    pub id: u64,
    places: Vec<Range<usize>>,
}

/// Finds the tracepoints that the options ask for.
///
/// # Errors
/// [`Error::NoTracepoints`] if this kernel does not let them be read.
pub(super) fn find(options: &TraceOptions) -> Result<Vec<TracepointReader>> {
    let mut wanted: Vec<(&'static str, Tracepoint)> = Vec::new();
    if options.off_cpu {
        wanted.extend(Tracepoint::OFF_CPU.map(|point| ("--off-cpu", point)));
    }
    if options.locks {
        wanted.extend(Tracepoint::LOCKS.map(|point| ("--locks", point)));
    }
    if options.system_calls {
        wanted.extend(Tracepoint::SYSTEM_CALLS.map(|point| ("--syscalls", point)));
    }
    let Some((option, _)) = wanted.first().copied() else { return Ok(Vec::new()) };
    let no = |option, reason: String| Error::NoTracepoints { option, reason };
    let tracefs = TracefsDir::open().map_err(|error| {
        no(option, format!("tracefs cannot be opened ({error}): the kernel has no tracepoints, or its lockdown forbids them"))
    })?;
    let reader = |(option, point): (&'static str, Tracepoint)| {
        let path = point.path();
        let read = || Ok((tracefs.event_id(path)?, tracefs.read(&format!("events/{path}/format"))?));
        let (id, format) = read().map_err(|error: std::io::Error| {
            no(option, format!("this kernel has no tracepoint {} ({error})", path.replace('/', ":")))
        })?;
        TracepointReader::parse(point, id, &format).ok_or_else(|| {
            no(option, format!("the tracepoint {} has other fields here", path.replace('/', ":")))
        })
    };
    wanted.into_iter().map(reader).collect()
}

impl TracepointReader {
    fn parse(point: Tracepoint, id: u64, format: &str) -> Option<Self> {
        Self::with_fields(point, id, |name| field(format, name))
    }

    /// Creates the reader of a tracepoint by its name (`sched:sched_switch`), with a function that
    /// returns offset and size of a field. Returns `None` for other tracepoints, and if a field is
    /// missing.
    pub fn find(name: &str, field: impl Fn(&str) -> Option<(usize, usize)>) -> Option<Self> {
        let point = Tracepoint::all().find(|point| point.path().replace('/', ":") == name)?;
        Self::with_fields(point, 0, field)
    }

    fn with_fields(
        point: Tracepoint,
        id: u64,
        field: impl Fn(&str) -> Option<(usize, usize)>,
    ) -> Option<Self> {
        let place = |name: &&str| field(name).map(|(at, size)| at..at.saturating_add(size));
        let places = point.fields().iter().map(place).collect::<Option<Vec<_>>>()?;
        Some(Self { point, id, places })
    }

    /// Returns the event to open.
    pub(super) fn event(&self) -> EventKind {
        EventKind::Tracepoint {
            id: self.id,
            chain: self.point.has_chain(),
            registers: self.point == Tracepoint::CallEnter,
        }
    }

    /// Returns the name of the source in a profile.
    pub fn source(&self) -> String {
        format!("perf: every {}", self.point.path().replace('/', ":"))
    }

    /// Returns a field by its number in [`Tracepoint::fields`].
    fn bytes<'a>(&self, raw: &'a [u8], field: usize) -> Option<&'a [u8]> {
        raw.get(self.places.get(field)?.clone())
    }

    fn number(&self, raw: &[u8], field: usize) -> Option<u64> {
        let bytes = self.bytes(raw, field)?;
        match bytes.len() {
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    fn thread(&self, raw: &[u8], field: usize) -> Option<u32> {
        u32::try_from(self.number(raw, field)?).ok()
    }

    fn name<'a>(&self, raw: &'a [u8], field: usize) -> Option<Cow<'a, str>> {
        let bytes = self.bytes(raw, field)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes))
    }
}

/// Event of a tracepoint, as a sample has it.
#[derive(Debug, Clone, Copy)]
pub struct TraceEvent<'a> {
    /// Time in ns.
    pub time: u64,
    /// Thread that caused it.
    pub tid: u32,
    /// Number of the buffer among those of this tracepoint: that of the CPU.
    pub cpu: usize,
    /// Raw bytes.
    pub raw: &'a [u8],
    /// Kernel call chain, innermost first.
    pub kernel: &'a [u64],
    /// Bytes after the raw ones: the thread's registers, if they are sampled.
    pub registers: &'a [u8],
}

/// Kind of the thread's registers in a sample that are those of 32-bit code.
const COMPAT_REGISTERS: u64 = perf_event_open_sys::bindings::PERF_SAMPLE_REGS_ABI_32 as u64;

/// Returns what follows the raw bytes of a sample's body, before which come five words of eight
/// bytes, the last of them the number of frames, the frames, and the size of the raw bytes.
pub(super) fn after_raw<'a>(body: &'a [u8], raw: &[u8]) -> &'a [u8] {
    let frames = body.get(32..40).and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
    let begin = frames
        .and_then(|frames| usize::try_from(frames).ok()?.checked_mul(8)?.checked_add(44))
        .and_then(|begin| begin.checked_add(raw.len()));
    begin.and_then(|begin| body.get(begin..)).unwrap_or_default()
}

/// Thread that each CPU runs: id and index of the name.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningThreads {
    cpus: Vec<Option<(u32, u32)>>,
    /// True once an idle task lost its CPU: events of single threads have no such switch.
    has_idle: bool,
}

impl RunningThreads {
    pub fn new(cpus: usize) -> Self {
        Self { cpus: vec![None; cpus], has_idle: false }
    }

    /// Forgets what runs.
    pub fn clear(&mut self) {
        self.cpus.fill(None);
    }

    /// Handles a context switch from the thread `out`. Returns true if another thread was running: the
    /// switch to `out` is missing.
    fn switched(&mut self, cpu: usize, out: u32, next: (u32, u32)) -> bool {
        self.has_idle |= out == 0;
        let known = self.cpus.get_mut(cpu).and_then(|place| place.replace(next));
        self.has_idle && known.is_some_and(|(tid, _)| tid != out)
    }

    /// Returns the index of the name of a thread that runs on a CPU.
    fn comm(&self, cpu: usize, tid: u32, all: &Aggregate) -> u32 {
        let known = self.cpus.get(cpu).copied().flatten().filter(|(thread, _)| *thread == tid);
        known.map(|(_, comm)| comm).or_else(|| all.threads.comm_of(tid)).unwrap_or(0)
    }
}

/// Returns the waiter of a lock. All idle tasks have the same thread id.
fn waiter(tid: u32, cpu: usize) -> LockWaiter {
    LockWaiter { tid, cpu: if tid == 0 { u32::try_from(cpu).unwrap_or(u32::MAX) } else { 0 } }
}

/// Adds an event to the aggregate.
pub(crate) fn take(
    reader: &TracepointReader,
    event: &TraceEvent<'_>,
    running: &mut RunningThreads,
    into: &mut Aggregate,
) {
    if read(reader, event, running, into).is_none() {
        into.note(Anomaly::DamagedRecords, 1);
    }
}

/// Adds an event of a tracepoint, by its path in tracefs (`sched/sched_switch`) and the text of its
/// `format` file. Returns false if the tracepoint is not read, or has other fields.
pub fn read_trace_event(path: &str, format: &str, event: &TraceEvent<'_>, into: &mut Aggregate) -> bool {
    let point = Tracepoint::all().find(|point| point.path() == path);
    let reader = point.and_then(|point| TracepointReader::parse(point, 0, format));
    reader.is_some_and(|reader| read(&reader, event, &mut RunningThreads::new(1), into).is_some())
}

fn read(
    reader: &TracepointReader,
    event: &TraceEvent<'_>,
    running: &mut RunningThreads,
    into: &mut Aggregate,
) -> Option<()> {
    let &TraceEvent { time, tid, cpu, raw, kernel, registers } = event;
    match reader.point {
        Tracepoint::Switch => {
            let (out, left) = (reader.thread(raw, 0)?, reader.number(raw, 2)?);
            let state = match left {
                _ if left == 0 || left & WANTS_TO_RUN != 0 => LeftState::Runnable,
                _ if left & HAS_ENDED != 0 => LeftState::Ended,
                _ => LeftState::Blocked,
            };
            let comm = into.threads.number(&reader.name(raw, 1)?);
            let next = (reader.thread(raw, 3)?, into.threads.number(&reader.name(raw, 4)?));
            if running.switched(cpu, out, next) {
                into.note(Anomaly::MissedSwitches, 1);
            }
            into.off_cpu_switch(time, (out, comm, state), kernel, next);
        }
        Tracepoint::Waking => {
            let woken = reader.thread(raw, 0)?;
            let waker = running.comm(cpu, tid, into);
            into.off_cpu_wake(time, woken, waker, kernel);
        }
        Tracepoint::WakeupNew => {
            let new = reader.thread(raw, 0)?;
            let waker = running.comm(cpu, tid, into);
            into.off_cpu_start(time, new, waker);
        }
        Tracepoint::ContentionBegin => {
            let (address, flags) = (reader.number(raw, 0)?, reader.thread(raw, 1)?);
            into.lock_wait(time, waiter(tid, cpu), address, flags, kernel);
        }
        Tracepoint::ContentionEnd => {
            into.waits.locks.end(time, waiter(tid, cpu), reader.number(raw, 0)?);
        }
        Tracepoint::CallEnter => {
            let number = reader.number(raw, 0)?;
            let kind = registers.first_chunk().map(|kind| u64::from_ne_bytes(*kind));
            // A debugger or a filter may give a call a number that none has.
            if let Ok(number) = u32::try_from(number) {
                let comm = into.threads.comm_of(tid).unwrap_or(0);
                let is_compat = kind == Some(COMPAT_REGISTERS);
                into.waits.calls.enter(time, tid, SystemCallKey { comm, number, is_compat });
            }
        }
        Tracepoint::CallExit => {
            let (number, returned) = (reader.number(raw, 0)?, reader.number(raw, 1)?);
            if let Ok(number) = u32::try_from(number) {
                into.waits.calls.exit(time, tid, number, returned as i64);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableBounds;
    use kerntune_symbols::FunctionTable;

    /// Linux 6.18.
    const SYS_EXIT: &str = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n";
    const SYS_ENTER: &str = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n";

    #[test]
    fn a_call_of_a_32_bit_program_is_known_by_its_registers() {
        let mut all = Aggregate::new(
            FunctionTable::new(Vec::new()),
            TableBounds { waits: 8, ..TableBounds::default() },
        );
        let word = |word: i64| word.to_ne_bytes();
        let enter = [word(0), word(3)].concat();
        let exit = [word(0), word(3), word(-9)].concat();
        let kind = 1_u64.to_ne_bytes();
        let event = |time, raw, registers| TraceEvent { time, tid: 7, cpu: 0, raw, kernel: &[], registers };
        assert!(read_trace_event("raw_syscalls/sys_enter", SYS_ENTER, &event(10, &enter, &kind), &mut all));
        assert!(read_trace_event("raw_syscalls/sys_exit", SYS_EXIT, &event(15, &exit, &[]), &mut all));
        let [(key, totals)] = all.waits.calls.rows()[..] else { panic!() };
        assert!(key.is_compat && key.number == 3);
        assert_eq!((totals.errors, totals.ns), (1, 5));
        assert!(!read_trace_event("raw_syscalls/sys_exit", SYS_EXIT, &event(15, &exit[..23], &[]), &mut all));
        assert!(!read_trace_event("raw_syscalls/sys_exit", SYS_ENTER, &event(15, &exit, &[]), &mut all));
        assert!(!read_trace_event("irq/softirq_entry", SYS_ENTER, &event(15, &exit, &[]), &mut all));
    }

    #[test]
    fn a_switch_that_is_missing_is_seen_where_cpus_are_traced() {
        let mut running = RunningThreads::new(2);
        // Of one thread, only the switches away from it are recorded.
        assert!(!running.switched(0, 5, (6, 0)) && !running.switched(0, 5, (7, 0)));
        assert!(!running.switched(1, 0, (8, 0)) && !running.switched(1, 8, (0, 0)));
        assert!(running.switched(1, 9, (0, 0)) && running.switched(0, 5, (0, 0)));
        running.clear();
        assert!(!running.switched(0, 3, (0, 0)) && !running.switched(7, 3, (0, 0)));
    }

    #[test]
    fn registers_follow_the_raw_bytes() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let raw = [7; 12];
        let body = [
            words(&[1, 2, 3, 1, 2, 0xaa, 0xbb]),
            12_u32.to_ne_bytes().to_vec(),
            raw.to_vec(),
            words(&[2, 9]),
        ];
        assert_eq!(after_raw(&body.concat(), &raw), words(&[2, 9]));
        assert!(after_raw(&words(&[1, 2, 3, 1, u64::MAX]), &raw).is_empty());
        assert!(after_raw(&[], &raw).is_empty());
    }
}
