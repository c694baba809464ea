//! Import of the text of `perf script`: samples with or without call chains, in the forms that
//! `stackcollapse-perf.pl` takes.
//!
//! A sample begins with a line `COMM TID [CPU] TIME: PERIOD EVENT:`, most parts of which may be left
//! out; its frames follow, innermost first, or one frame is on the same line.

#[cfg(test)]
mod tests;

use crate::sampled::{SampledStacks, StackFrame, StackRoot};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Frames of a sample that are kept, the innermost ones.
const MAX_FRAMES: usize = 4096;
/// Events whose samples are counted apart; further ones are one.
const MAX_EVENTS: usize = 256;
/// First address of the kernel's half of the address space.
const KERNEL: u64 = 1 << 63;
/// Name of a function that perf does not know.
const UNKNOWN: &str = "[unknown]";

/// Reason why a text cannot be imported.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum PerfScriptError {
    #[error("line {line} is neither a sample nor a frame of perf script: {text:?}")]
    Line { line: u64, text: String },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes: it is no output of perf script")]
    LongLine { line: u64 },
    #[error("it has no sample")]
    Empty,
    #[error("it has no sample of the event {event}; it has those of {known}")]
    NoEvent { event: String, known: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Choices of an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerfScriptOptions<'a> {
    /// Event to import; the first sample's if it is `None`.
    pub event: Option<&'a str>,
    /// Keeps functions of programs; otherwise user mode is one.
    pub user_chains: bool,
}

/// Imported samples.
#[derive(Debug)]
pub struct PerfScriptImport {
    /// The stacks, one sample each.
    pub stacks: SampledStacks,
    /// Event of the samples; `None` if the text names none.
    pub event: Option<String>,
    /// Mean period of the samples, in units of the event; `None` unless every sample has one.
    pub period: Option<u64>,
    /// Number of CPUs with samples; 0 if the text names none.
    pub cpus: usize,
    /// Samples of other events, which were left out.
    pub others: BTreeMap<String, u64>,
    /// Records beside samples, which were left out.
    pub records: u64,
    /// Release of the kernel, if the text has perf's header.
    pub release: Option<String>,
}

/// First line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLine<'a> {
    /// Name of the thread.
    pub comm: &'a str,
    /// Number of the thread, or of process and thread.
    pub thread: &'a str,
    /// Number of the CPU.
    pub cpu: Option<u32>,
    /// Period in units of the event.
    pub period: Option<u64>,
    /// Name of the event.
    pub event: Option<&'a str>,
    /// Text after these, such as a frame.
    pub rest: &'a str,
}

impl<'a> SampleLine<'a> {
    /// Parses a line; `None` if it does not begin a sample.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim_end();
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
        let time = words.iter().position(|word| is_time(word));
        // Names of threads may have blanks and numbers.
        let thread = match time {
            Some(time) => (1..time).rev().find(|at| is_thread(words[*at]))?,
            None => (1..words.len()).find(|at| is_thread(words[*at]))?,
        };
        let comm = line[..place(words[thread])].trim();
        let cpu =
            words.get(thread + 1).and_then(|word| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
        let mut next = time.unwrap_or(thread + usize::from(cpu.is_some())) + 1;
        let is_event = |word: &&&str| word.len() > 1 && word.ends_with(':');
        let mut period = None;
        if words.get(next + 1).filter(is_event).is_some() {
            period = words[next].parse().ok();
            next += usize::from(period.is_some());
        }
        let event = words.get(next).filter(is_event).map(|word| &word[..word.len() - 1]);
        next += usize::from(event.is_some());
        let rest = words.get(next).map_or("", |word| &line[place(word)..]);
        (time.is_some() || event.is_some() || Frame::parse(rest).is_some()).then_some(Self {
            comm,
            thread: words[thread],
            cpu,
            period,
            event,
            rest,
        })
    }

    /// Checks whether the sample is of the idle task.
    fn is_idle(&self) -> bool {
        self.thread.split('/').all(|number| number == "0")
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks for a thread's number, `TID` or `PID/TID`; perf shows the kernel's unknown threads as -1.
fn is_thread(word: &str) -> bool {
    let mut parts = word.split('/');
    let number = |part: &str| is_digits(part.strip_prefix('-').unwrap_or(part));
    parts.next().is_some_and(number) && parts.next().is_none_or(number) && parts.next().is_none()
}

/// Checks for a time, `SECONDS.FRACTION:`.
fn is_time(word: &str) -> bool {
    let parts = word.strip_suffix(':').and_then(|word| word.split_once('.'));
    parts.is_some_and(|(seconds, fraction)| is_digits(seconds) && is_digits(fraction))
}

/// A frame of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame<'a> {
    address: u64,
    /// Name of the function, without an offset.
    name: &'a str,
    /// Binary, as perf names it; empty if the text has none.
    binary: &'a str,
}

impl<'a> Frame<'a> {
    /// Parses `ADDRESS NAME+0xOFFSET (BINARY)`, where all but the address may be missing.
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (address, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
        let rest = rest.trim();
        let (name, binary) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some(parts) => parts,
            None => (rest, ""),
        };
        let name = match name.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
            _ => name,
        };
        Some(Self { address, name: name.trim(), binary })
    }

    fn is_kernel(&self) -> bool {
        self.address >= KERNEL
    }

    /// Returns the kernel module or the program's file; `None` for the kernel's image.
    fn module(&self) -> Option<String> {
        let file = self.binary.rsplit('/').next().unwrap_or_default();
        if !self.is_kernel() {
            return Some(if file.is_empty() { "user".into() } else { file.to_string() });
        }
        if let Some((module, _)) = file.split_once(".ko") {
            return Some(module.replace('-', "_"));
        }
        let module = file.strip_prefix('[')?.strip_suffix(']')?;
        let is_image =
            module.starts_with("kernel") || module.starts_with("guest.kernel") || module == "unknown";
        (!is_image).then(|| module.to_string())
    }

    /// Checks whether the function is the entry of an interrupt.
    fn is_interrupt(&self) -> bool {
        self.is_kernel() && (self.name.starts_with("asm_sysvec_") || self.name == "asm_common_interrupt")
    }
}

/// Samples while they are read.
struct Importer<'a> {
    options: PerfScriptOptions<'a>,
    made: PerfScriptImport,
    /// Sum of the periods, and number of samples with one.
    periods: (u128, u64),
    cpus: std::collections::BTreeSet<u32>,
    /// The sample that is being read: name of the thread, idle, and numbers of its frames from the
    /// innermost on.
    comm: String,
    is_idle: bool,
    frames: Vec<StackFrame>,
    has_interrupt: bool,
    has_kernel: bool,
    has_user: bool,
    is_open: bool,
}

impl Importer<'_> {
    fn begin(&mut self, sample: &SampleLine) {
        self.end();
        let event = sample.event.unwrap_or_default();
        if self.made.event.is_none() && sample.event.is_some() && self.options.event.is_none() {
            self.made.event = sample.event.map(String::from);
        }
        if self.made.event.as_deref().is_some_and(|chosen| chosen != event) {
            let others = &mut self.made.others;
            let name = if others.len() < MAX_EVENTS || others.contains_key(event) { event } else { "others" };
            *others.entry(name.to_string()).or_default() += 1;
            return;
        }
        if let Some(period) = sample.period {
            self.periods.0 += u128::from(period);
            self.periods.1 += 1;
        }
        self.cpus.extend(sample.cpu);
        sample.comm.clone_into(&mut self.comm);
        self.is_idle = sample.is_idle();
        self.is_open = true;
        if let Some(frame) = Frame::parse(sample.rest) {
            self.frame(&frame);
        }
    }

    /// Adds the caller of the frames so far.
    fn frame(&mut self, frame: &Frame) {
        if !self.is_open || self.has_interrupt || self.frames.len() >= MAX_FRAMES {
            return;
        }
        if frame.is_kernel() {
            self.has_kernel = true;
            self.has_interrupt = frame.is_interrupt();
        } else {
            self.has_user = true;
            if !self.options.user_chains {
                return;
            }
        }
        let is_unknown = frame.name.is_empty() || frame.name == UNKNOWN;
        let module = frame.module();
        let frame = match (is_unknown, &module) {
            (false, _) => {
                StackFrame::Function(self.made.stacks.function(frame.name, module.as_deref(), None))
            }
            (true, Some(binary)) => {
                let name = format!("[{}]", binary.trim_matches(['[', ']']));
                StackFrame::Function(self.made.stacks.function(&name, module.as_deref(), None))
            }
            (true, None) => StackFrame::Unattributed,
        };
        self.frames.push(frame);
    }

    /// Ends the sample that is being read.
    fn end(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let root = match (self.has_interrupt, self.is_idle) {
            (true, _) => StackRoot::Interrupt,
            (false, true) => StackRoot::Idle,
            (false, false) => StackRoot::Thread(&self.comm),
        };
        self.frames.reverse();
        if self.has_user && !self.has_kernel && !self.options.user_chains {
            self.frames.push(StackFrame::User);
        }
        self.made.stacks.add(root, &self.frames, 1);
        self.frames.clear();
        (self.has_interrupt, self.has_kernel, self.has_user) = (false, false, false);
    }
}

/// Reads the output of `perf script`.
///
/// # Errors
/// [`PerfScriptError`] with the first line that is neither sample nor frame, or if there is no sample
/// of the event.
pub fn import(
    mut input: impl BufRead,
    options: PerfScriptOptions,
) -> Result<PerfScriptImport, PerfScriptError> {
    let mut importer = Importer {
        options,
        made: PerfScriptImport {
            stacks: SampledStacks::default(),
            event: options.event.map(String::from),
            period: None,
            cpus: 0,
            others: BTreeMap::new(),
            records: 0,
            release: None,
        },
        periods: (0, 0),
        cpus: std::collections::BTreeSet::new(),
        comm: String::new(),
        is_idle: false,
        frames: Vec::new(),
        has_interrupt: false,
        has_kernel: false,
        has_user: false,
        is_open: false,
    };
    let (mut bytes, mut number, mut is_first) = (Vec::new(), 0, true);
    while input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes)? > 0 {
        number += 1;
        if bytes.len() as u64 > MAX_LINE_BYTES {
            return Err(PerfScriptError::LongLine { line: number });
        }
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end();
        if let Some(comment) = line.strip_prefix('#') {
            if let Some((_, release)) = comment.split_once("os release :") {
                importer.made.release = Some(release.trim().to_string());
            }
        } else if line.is_empty() {
            importer.end();
        } else if line.contains("PERF_RECORD_") {
            importer.end();
            importer.made.records += 1;
        } else if let Some(frame) = Frame::parse(line).filter(|_| line.starts_with('\t') && !is_first) {
            importer.frame(&frame);
        } else if let Some(sample) = SampleLine::parse(line) {
            importer.begin(&sample);
            is_first = false;
        } else {
            let text = line.chars().filter(|c| !c.is_control()).take(80).collect();
            return Err(PerfScriptError::Line { line: number, text });
        }
        drop(text);
        bytes.clear();
    }
    importer.end();
    let Importer { mut made, periods: (sum, with), cpus, .. } = importer;
    made.cpus = cpus.len();
    let samples = made.stacks.samples();
    if samples == 0 {
        return Err(match (options.event, made.others.is_empty()) {
            (Some(event), false) => {
                let known: Vec<&str> = made.others.keys().map(String::as_str).take(8).collect();
                PerfScriptError::NoEvent { event: event.into(), known: known.join(", ") }
            }
            _ => PerfScriptError::Empty,
        });
    }
    made.period = (with == samples).then(|| u64::try_from(sum / u128::from(with)).ok()).flatten();
    Ok(made)
}
