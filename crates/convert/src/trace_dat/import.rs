//! Tables of a profile from the events of a trace.

use super::cpu::{LostEvents, TraceEvent};
use super::format::{EventField, EventFormat};
use super::header::{CpuData, TraceBuffer, TraceDat};
use super::{Result, TraceDatError};
use crate::system_call_name;
use crate::timed::{ThreadNumber, TimedCalls, TimedTables};
use kerntune_profile::{Address, Anomaly, CallKind, CpuStats, SwitchKind, Symbol, ThreadKind, Ticks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Largest number of threads.
const MAX_THREADS: usize = 1 << 18;

/// Knowledge about names that the trace itself does not have.
#[derive(Debug, Clone, Copy)]
pub struct TraceNames {
    /// Tells whether the CPU is halted in a function.
    pub halts: fn(&str) -> bool,
    /// Tells whether a function is the scheduler's.
    pub is_scheduler: fn(&str) -> bool,
}

/// Tables of a trace, and what they have and lack.
#[derive(Debug)]
pub struct TraceImport {
    /// Tables and totals.
    pub made: TimedTables,
    /// Events of all kinds.
    pub events: u64,
    /// Used kinds of events and their numbers, by `system:name`.
    pub used: BTreeMap<String, u64>,
    /// Kinds of events that are left out and their numbers.
    pub left_out: BTreeMap<String, u64>,
    /// Events that the tracer lost: the maximum of what pages and statistics state.
    pub lost: u64,
    /// Places where events were lost whose number nothing states.
    pub uncounted_losses: u64,
    /// Events of known kinds that are too short for their format.
    pub damaged: u64,
    /// Number of CPUs with events.
    pub cpus: usize,
    /// Release of the kernel, from the machine's `uname`.
    pub release: Option<String>,
    /// Name of the machine, from its `uname`.
    pub host: Option<String>,
    /// Names of other instances with data, which are left out.
    pub other_buffers: Vec<String>,
    /// Health of the profile.
    pub health: Vec<(Anomaly, u64)>,
}

/// Fields of the kinds of events that are used.
#[derive(Debug, Clone)]
enum EventKind {
    Function {
        ip: EventField,
        parent: EventField,
    },
    GraphEntry {
        function: EventField,
        depth: EventField,
    },
    /// Without times, those of the events are taken.
    GraphExit {
        function: EventField,
        depth: EventField,
        times: Option<(EventField, EventField)>,
    },
    Switch {
        from: EventField,
        state: EventField,
        to: EventField,
        pid: EventField,
    },
    Wakeup {
        comm: EventField,
        pid: EventField,
    },
    IrqEntry {
        irq: EventField,
        name: Option<EventField>,
    },
    IrqExit,
    SoftirqEntry {
        vector: EventField,
    },
    SoftirqExit,
    CallEntry {
        number: EventField,
    },
    CallExit,
    NamedCallEntry {
        name: String,
    },
    NamedCallExit,
    Other,
}

impl EventKind {
    fn of(format: &EventFormat) -> Self {
        let field = |name: &str| format.field(name).cloned();
        let kind = || {
            Some(match (format.system.as_str(), format.name.as_str()) {
                ("ftrace", "function") => Self::Function { ip: field("ip")?, parent: field("parent_ip")? },
                ("ftrace", "funcgraph_entry" | "funcgraph_retaddr_entry") => {
                    Self::GraphEntry { function: field("func")?, depth: field("depth")? }
                }
                ("ftrace", "funcgraph_exit" | "funcgraph_retaddr_exit") => Self::GraphExit {
                    function: field("func")?,
                    depth: field("depth")?,
                    times: field("calltime").zip(field("rettime")),
                },
                ("sched", "sched_switch") => Self::Switch {
                    from: field("prev_comm")?,
                    state: field("prev_state")?,
                    to: field("next_comm")?,
                    pid: field("next_pid")?,
                },
                ("sched", "sched_wakeup" | "sched_wakeup_new" | "sched_waking") => {
                    Self::Wakeup { comm: field("comm")?, pid: field("pid")? }
                }
                ("irq", "irq_handler_entry") => Self::IrqEntry { irq: field("irq")?, name: field("name") },
                ("irq", "irq_handler_exit") => Self::IrqExit,
                ("irq", "softirq_entry") => Self::SoftirqEntry { vector: field("vec")? },
                ("irq", "softirq_exit") => Self::SoftirqExit,
                ("raw_syscalls", "sys_enter") => Self::CallEntry { number: field("id")? },
                ("raw_syscalls", "sys_exit") => Self::CallExit,
                ("syscalls", name) => match name.strip_prefix("sys_enter_") {
                    Some(call) => Self::NamedCallEntry { name: format!("sys_{call}") },
                    None if name.starts_with("sys_exit_") => Self::NamedCallExit,
                    None => Self::Other,
                },
                _ => Self::Other,
            })
        };
        kind().unwrap_or(Self::Other)
    }
}

/// State of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct CpuState {
    cpu: u32,
    /// Thread id of `running`.
    pid: u32,
    running: Option<ThreadNumber>,
    idle: Option<ThreadNumber>,
    first: Option<u64>,
    interrupts: u64,
    switches: u64,
}

struct Importer<'a> {
    trace: &'a TraceDat,
    names: TraceNames,
    /// Name of the machine as `uname -m` prints it.
    machine: String,
    calls: TimedCalls,
    /// Functions by address, also by addresses inside of them, as far as seen.
    addresses: FxHashMap<u64, u32>,
    named: FxHashMap<String, u32>,
    is_scheduler: Vec<bool>,
    threads: FxHashMap<u32, ThreadNumber>,
    cpus: Vec<CpuState>,
    irqs: FxHashMap<u64, u32>,
    softirqs: FxHashMap<u64, u32>,
    system_calls: FxHashMap<u64, u32>,
    /// Function of each named system call, by the number of its event's kind.
    call_events: FxHashMap<usize, u32>,
    has_switches: bool,
    has_raw_calls: bool,
    damaged: u64,
}

/// Makes tables of a trace: of its top instance, or of the first other one if that has no data.
///
/// # Errors
/// [`TraceDatError`] for damaged pages, a clock that does not count time, and a trace without
/// events that are used.
pub fn import<R: Read + Seek>(trace: &TraceDat, file: &mut R, names: TraceNames) -> Result<TraceImport> {
    let has_data = |buffer: &&TraceBuffer| buffer.cpus.iter().any(|cpu| cpu.size > 0);
    let Some(buffer) = trace.buffers.iter().find(has_data) else {
        return Err(if trace.has_latency_text { TraceDatError::Latency } else { TraceDatError::Empty });
    };
    let others = trace.buffers.iter().filter(has_data).filter(|other| !std::ptr::eq(*other, buffer));
    let other_buffers =
        others.map(|other| if other.name.is_empty() { "top".into() } else { other.name.clone() }).collect();
    let clock = Clock::of(trace, buffer)?;
    let [host, release, machine] = uname(trace.uname.as_deref().unwrap_or_default());
    let mut importer = Importer::new(trace, names, machine.unwrap_or_default(), buffer);
    let kinds = EventKinds::new(trace);
    let mut counts = vec![0_u64; kinds.kinds.len()];
    let mut unknown: BTreeMap<u32, u64> = BTreeMap::new();
    let mut stream = trace.events(buffer, file)?;
    let mut events = 0_u64;
    while let Some(event) = stream.next_event()? {
        events += 1;
        let Some(id) = event.bytes.get(..2).map(|bytes| trace.order.number(bytes) as u32) else {
            importer.damaged += 1;
            continue;
        };
        let Some(&number) = kinds.places.get(id as usize).filter(|number| **number != u32::MAX) else {
            *unknown.entry(id).or_default() += 1;
            continue;
        };
        counts[number as usize] += 1;
        let time = clock.nanoseconds(event.time);
        if importer.event(&kinds, number as usize, &event, time).is_none() {
            importer.damaged += 1;
        }
        if importer.threads.len() > MAX_THREADS {
            return Err(TraceDatError::Threads(MAX_THREADS));
        }
    }
    let lost = stream.lost();
    let mut used = BTreeMap::new();
    let mut left_out = BTreeMap::new();
    for ((kind, format), count) in kinds.kinds.iter().zip(&trace.events).zip(counts).filter(|(_, n)| *n > 0) {
        let name = format!("{}:{}", format.system, format.name);
        *match kind {
            EventKind::Other => &mut left_out,
            _ => &mut used,
        }
        .entry(name)
        .or_default() += count;
    }
    left_out.extend(unknown.into_iter().map(|(id, count)| (format!("event {id} without a format"), count)));
    if events == 0 {
        return Err(TraceDatError::Empty);
    }
    if used.is_empty() {
        let names: Vec<String> =
            left_out.iter().take(4).map(|(name, count)| format!("{count} {name}")).collect();
        return Err(TraceDatError::NothingUsed { events, names: names.join(", ") });
    }
    Ok(importer.finish(Summary { events, used, left_out, lost, release, host, other_buffers }))
}

/// Facts that an import knows beside the calls.
struct Summary {
    events: u64,
    used: BTreeMap<String, u64>,
    left_out: BTreeMap<String, u64>,
    lost: LostEvents,
    release: Option<String>,
    host: Option<String>,
    other_buffers: Vec<String>,
}

/// Kinds of events, by the events' own numbers.
struct EventKinds {
    kinds: Vec<EventKind>,
    /// Place in `kinds`, by number; the maximum for none.
    places: Vec<u32>,
    pid: Option<EventField>,
}

impl EventKinds {
    fn new(trace: &TraceDat) -> Self {
        let mut places = Vec::new();
        for (place, format) in (0..).zip(&trace.events) {
            let id = format.id as usize;
            if id > usize::from(u16::MAX) {
                continue;
            }
            if places.len() <= id {
                places.resize(id + 1, u32::MAX);
            }
            places[id] = place;
        }
        let pid = trace.events.first().and_then(|format| format.field("common_pid")).cloned();
        Self { kinds: trace.events.iter().map(EventKind::of).collect(), places, pid }
    }
}

/// Clock of a trace.
#[derive(Debug, Clone, Copy)]
enum Clock {
    Nanoseconds,
    Cycles { multiplier: u32, shift: u32 },
}

impl Clock {
    fn of(trace: &TraceDat, buffer: &TraceBuffer) -> Result<Self> {
        let name = buffer.clock.as_deref().or(trace.clock.as_deref()).unwrap_or("local");
        match name {
            "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai" | "" => Ok(Self::Nanoseconds),
            // The file has the factor with which trace-cmd makes nanoseconds of the counter.
            _ => match trace.tsc {
                Some((multiplier, shift)) if multiplier > 0 && shift < 64 => {
                    Ok(Self::Cycles { multiplier, shift })
                }
                _ => Err(TraceDatError::Clock(name.escape_debug().to_string())),
            },
        }
    }

    #[inline]
    fn nanoseconds(self, time: u64) -> u64 {
        match self {
            Self::Nanoseconds => time,
            Self::Cycles { multiplier, shift } => {
                ((u128::from(time) * u128::from(multiplier)) >> shift) as u64
            }
        }
    }
}

/// Returns host, release and machine of a line of `uname -a`: `Linux HOST RELEASE VERSION MACHINE`.
fn uname(line: &str) -> [Option<String>; 3] {
    let words: Vec<&str> = line.split_whitespace().collect();
    let word = |at: usize| words.get(at).map(|word| (*word).to_string());
    [word(1), word(2), words.last().filter(|_| words.len() > 3).map(|word| (*word).to_string())]
}

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl<'a> Importer<'a> {
    fn new(trace: &'a TraceDat, names: TraceNames, machine: String, buffer: &TraceBuffer) -> Self {
        let state = |data: &CpuData| CpuState { cpu: data.cpu, ..CpuState::default() };
        Self {
            trace,
            names,
            machine,
            calls: TimedCalls::default(),
            addresses: FxHashMap::default(),
            named: FxHashMap::default(),
            is_scheduler: Vec::new(),
            threads: FxHashMap::default(),
            cpus: buffer.cpus.iter().map(state).collect(),
            irqs: FxHashMap::default(),
            softirqs: FxHashMap::default(),
            system_calls: FxHashMap::default(),
            call_events: FxHashMap::default(),
            has_switches: false,
            has_raw_calls: false,
            damaged: 0,
        }
    }

    /// Adds an event; `None` if it is shorter than its format.
    #[inline]
    fn event(&mut self, kinds: &EventKinds, number: usize, event: &TraceEvent<'_>, time: u64) -> Option<()> {
        let order = self.trace.order;
        let pid = kinds.pid.as_ref()?.number(event.bytes, order)? as u32;
        let thread = self.thread_on(event.cpu, pid, time);
        let value = |field: &EventField| field.number(event.bytes, order);
        match &kinds.kinds[number] {
            EventKind::Function { ip, parent } => {
                let callee = self.function(value(ip)?);
                let caller = self.function(value(parent)?);
                self.calls.count(Some(caller), callee);
            }
            EventKind::GraphEntry { function, depth } => {
                let (function, depth) = (self.function(value(function)?), value(depth)? as u32);
                // Calls as deep as this one have ended, if their ends were lost.
                while let Some((_, CallKind::Call, Some(open))) = self.calls.top(thread) {
                    if open < depth {
                        break;
                    }
                    self.calls.cut(thread, 1, None);
                }
                self.calls.enter(thread, time, function, CallKind::Call, Some(depth));
            }
            EventKind::GraphExit { function, depth, times } => {
                let (function, depth) = (self.function(value(function)?), value(depth)? as u32);
                let duration = match times {
                    Some((begin, end)) => Some(value(end)?.saturating_sub(value(begin)?)),
                    None => None,
                };
                let found = self.calls.find_open(thread, |open, how, at| {
                    (open, how, at) == (function, CallKind::Call, Some(depth))
                });
                match found {
                    Some(inside) => {
                        self.calls.cut(thread, inside, None);
                        self.calls.exit(thread, time, duration);
                    }
                    None => {
                        if let Some(duration) = duration {
                            self.calls.headless(time, function, CallKind::Call, duration);
                        }
                    }
                }
            }
            EventKind::Switch { from, state, to, pid } => {
                let from = from.text(event.bytes, order)?;
                let to = to.text(event.bytes, order)?;
                self.switch(event.cpu, thread, [from, to], value(state)?, value(pid)? as u32, time);
            }
            EventKind::Wakeup { comm, pid } => {
                let pid = value(pid)? as u32;
                let comm = comm.text(event.bytes, order)?;
                if pid != 0 {
                    self.thread(pid, comm);
                }
            }
            EventKind::IrqEntry { irq, name } => {
                self.cpus[event.cpu].interrupts += 1;
                let irq = value(irq)?;
                let function = match self.irqs.get(&irq) {
                    Some(function) => *function,
                    None => {
                        let name = name.as_ref().and_then(|name| name.text(event.bytes, order));
                        let name = String::from_utf8_lossy(name.unwrap_or_default());
                        let function = self.named(format!("irq {irq} {name}").trim_end());
                        self.irqs.insert(irq, function);
                        function
                    }
                };
                self.calls.enter(thread, time, function, CallKind::Interrupt, None);
            }
            EventKind::SoftirqEntry { vector } => {
                let vector = value(vector)?;
                let function = match self.softirqs.get(&vector) {
                    Some(function) => *function,
                    None => {
                        let name = SOFTIRQS.get(vector as usize).map(|name| format!("softirq {name}"));
                        let function = self.named(&name.unwrap_or_else(|| format!("softirq {vector}")));
                        self.softirqs.insert(vector, function);
                        function
                    }
                };
                self.calls.enter(thread, time, function, CallKind::Interrupt, None);
            }
            EventKind::IrqExit | EventKind::SoftirqExit => self.end_of(thread, time, CallKind::Interrupt),
            EventKind::CallEntry { number } => {
                self.has_raw_calls = true;
                let number = value(number)?;
                let function = match self.system_calls.get(&number) {
                    Some(function) => *function,
                    None => {
                        let name = u32::try_from(number)
                            .ok()
                            .and_then(|number| system_call_name(number, &self.machine));
                        let name = name.map(|name| format!("sys_{name}"));
                        let function = self.named(&name.unwrap_or_else(|| format!("system call {number}")));
                        self.system_calls.insert(number, function);
                        function
                    }
                };
                self.system_call(thread, time, function);
            }
            // The raw events are of the same calls.
            EventKind::NamedCallEntry { .. } | EventKind::NamedCallExit if self.has_raw_calls => {}
            EventKind::NamedCallEntry { name } => {
                let function = match self.call_events.get(&number) {
                    Some(function) => *function,
                    None => {
                        let function = self.named(name);
                        self.call_events.insert(number, function);
                        function
                    }
                };
                self.system_call(thread, time, function);
            }
            EventKind::CallExit | EventKind::NamedCallExit => self.end_of(thread, time, CallKind::Syscall),
            EventKind::Other => {}
        }
        Some(())
    }

    fn system_call(&mut self, thread: ThreadNumber, time: u64, function: u32) {
        // A thread makes one system call at a time: the end of the other one was lost.
        if self.calls.find_open(thread, |_, how, _| how == CallKind::Syscall).is_some() {
            self.calls.cut(thread, self.calls.depth(thread), None);
        }
        self.calls.enter(thread, time, function, CallKind::Syscall, None);
    }

    /// Ends the innermost system call or interrupt. Without one, its begin was before the trace.
    fn end_of(&mut self, thread: ThreadNumber, time: u64, of: CallKind) {
        if let Some(inside) = self.calls.find_open(thread, |_, how, _| how == of) {
            self.calls.cut(thread, inside, None);
            self.calls.exit(thread, time, None);
        }
    }

    fn switch(
        &mut self,
        cpu: usize,
        thread: ThreadNumber,
        [from, to]: [&[u8]; 2],
        state: u64,
        pid: u32,
        time: u64,
    ) {
        self.has_switches = true;
        self.cpus[cpu].switches += 1;
        let scheduler = &self.is_scheduler;
        let reason = self
            .calls
            .open_function(thread, |function| !scheduler.get(function as usize).copied().unwrap_or_default());
        // The lowest bits are the state, in which 0 is running.
        let kind = if state & 0xff == 0 { SwitchKind::Preempted } else { SwitchKind::Voluntary };
        self.calls.leaves(thread, time);
        let next = if pid == 0 { self.idle(cpu) } else { self.thread(pid, to) };
        self.calls.runs(next, time);
        (self.cpus[cpu].running, self.cpus[cpu].pid) = (Some(next), pid);
        let name = |comm: &[u8]| match comm.starts_with(b"swapper/") {
            true => "[idle task]".to_string(),
            false => String::from_utf8_lossy(comm).into_owned(),
        };
        if pid != 0 {
            self.calls.rename(next, &name(to));
        }
        self.calls.switch(next, [&name(from), &name(to)], reason, kind);
    }

    /// Returns the thread of an event, which runs on its CPU.
    #[inline]
    fn thread_on(&mut self, cpu: usize, pid: u32, time: u64) -> ThreadNumber {
        let state = self.cpus[cpu];
        let thread = match (state.running, pid) {
            (Some(running), _) if state.pid == pid => running,
            (_, 0) => self.idle(cpu),
            _ => match self.threads.get(&pid) {
                Some(thread) => *thread,
                None => self.thread(pid, b""),
            },
        };
        let state = &mut self.cpus[cpu];
        state.first.get_or_insert(time);
        if state.running != Some(thread) {
            // A switch that the trace does not have.
            if let (Some(running), true) = (state.running, self.has_switches) {
                self.calls.leaves(running, time);
            }
            (state.running, state.pid) = (Some(thread), pid);
            self.calls.runs(thread, time);
        } else if self.has_switches {
            // The clocks of two CPUs may differ, so that its switch to this one came first.
            self.calls.runs(thread, time);
        }
        self.calls.at(time);
        thread
    }

    fn idle(&mut self, cpu: usize) -> ThreadNumber {
        let calls = &mut self.calls;
        *self.cpus[cpu].idle.get_or_insert_with(|| calls.add_thread(ThreadKind::Idle, 0, 0, "[idle task]"))
    }

    /// Returns the thread of a pid. Its name is the saved one, or else the given one.
    fn thread(&mut self, pid: u32, comm: &[u8]) -> ThreadNumber {
        if let Some(thread) = self.threads.get(&pid) {
            return *thread;
        }
        let comm = match self.trace.comms.get(&pid) {
            Some(saved) => saved.clone(),
            None if comm.is_empty() => format!("pid {pid}"),
            None => String::from_utf8_lossy(comm).into_owned(),
        };
        let thread = self.calls.add_thread(ThreadKind::Thread, pid, 0, &comm);
        self.threads.insert(pid, thread);
        thread
    }

    /// Returns the function at an address.
    #[inline]
    fn function(&mut self, address: u64) -> u32 {
        match self.addresses.get(&address) {
            Some(function) => *function,
            None => self.new_address(address),
        }
    }

    fn new_address(&mut self, address: u64) -> u32 {
        let symbol = self.trace.symbols.find(address).unwrap_or_else(|| Symbol {
            name: format!("0x{address:x}"),
            address: Address(address),
            ..Symbol::default()
        });
        // A function's entry address is always a key, so that no function has two numbers.
        let entry = symbol.address.get();
        let function = match self.addresses.get(&entry) {
            Some(function) => *function,
            None => {
                let function = self.add(symbol);
                self.addresses.insert(entry, function);
                function
            }
        };
        self.addresses.insert(address, function);
        function
    }

    /// Returns the function that stands for an interrupt or a system call.
    fn named(&mut self, name: &str) -> u32 {
        if let Some(function) = self.named.get(name) {
            return *function;
        }
        let function = self.add(Symbol { name: name.into(), ..Symbol::default() });
        self.named.insert(name.into(), function);
        function
    }

    fn add(&mut self, symbol: Symbol) -> u32 {
        let halts = (self.names.halts)(&symbol.name);
        self.is_scheduler.push((self.names.is_scheduler)(&symbol.name));
        self.calls.add_function(symbol, halts)
    }

    fn finish(mut self, summary: Summary) -> TraceImport {
        let mut cpus = Vec::new();
        self.calls.close();
        let end = self.calls.end();
        for state in &self.cpus {
            let Some(first) = state.first else { continue };
            let halted = match (state.idle, self.has_switches) {
                (Some(idle), true) => self.calls.halted(idle),
                _ => 0,
            };
            cpus.push(CpuStats {
                region: 0,
                cpu: state.cpu,
                busy_ticks: if self.has_switches {
                    Ticks((end - first).saturating_sub(halted))
                } else {
                    Ticks::ZERO
                },
                halted_ticks: Ticks(halted),
                interrupts: state.interrupts,
                switches: state.switches,
                ..CpuStats::default()
            });
        }
        let mut made = self.calls.finish("trace");
        let count = cpus.len();
        if count > 1 {
            made.tables.cpus = cpus;
        }
        let stated = self.trace.cpu_stats.iter().map(|text| lost_in(text)).fold(0, u64::saturating_add);
        let lost = summary.lost.counted.max(stated);
        let mismatches = made.mismatches;
        let health = [
            (Anomaly::LostEvents, lost),
            (Anomaly::OpenAtBegin, mismatches.headless),
            (Anomaly::CutCalls, mismatches.unended),
            (Anomaly::CrowdedCalls, mismatches.crowded),
            (Anomaly::DamagedRecords, self.damaged),
        ];
        TraceImport {
            made,
            events: summary.events,
            used: summary.used,
            left_out: summary.left_out,
            lost,
            uncounted_losses: if lost == 0 { summary.lost.uncounted } else { 0 },
            damaged: self.damaged,
            cpus: count,
            release: summary.release,
            host: summary.host,
            other_buffers: summary.other_buffers,
            health: health.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Returns the lost events of a CPU's `stats`.
fn lost_in(stats: &str) -> u64 {
    let line = |line: &str| {
        let (name, count) = line.split_once(':')?;
        let is_loss = matches!(name.trim(), "overrun" | "commit overrun" | "dropped events");
        is_loss.then(|| count.trim().parse::<u64>().ok()).flatten()
    };
    stats.lines().filter_map(line).fold(0, u64::saturating_add)
}
