//! Import of a directory that `uftrace record` wrote.

use super::{FILE_VERSION, MAGIC, RECORD_MAGIC};
use crate::timed::{ThreadNumber, TimedCalls, TimedTables};
use kerntune_profile::{Address, CallKind, Symbol, ThreadKind};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::io::{self, Read};

/// Reason why a directory cannot be imported.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum ImportError {
    #[error("info is not of uftrace: it does not begin with \"Ftrace!\"")]
    NotUftrace,
    #[error("version {0} of uftrace's format; kerntune reads version 4, which uftrace 0.7 to 0.17 write")]
    Version(u32),
    #[error(
        "it was recorded on a machine of 32 bits or of the other byte order, which kerntune does not read"
    )]
    Machine,
    #[error("{file}, byte {at}: {what}")]
    Damaged { file: String, at: u64, what: &'static str },
    #[error(
        "{file} has arguments or return values of functions (uftrace record -A, -R or --auto-args), which kerntune \
         does not read: record without them"
    )]
    Arguments { file: String },
    #[error("it has no calls; `uftrace record PROGRAM` writes some if PROGRAM was built with -pg, or with -P for one that was not")]
    Empty,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Number of forks between a process and the one whose program it runs.
const MAX_FORKS: usize = 64;
/// Features of a file whose records differ.
const ARGUMENT: u64 = 1 << 3;
const RETURN: u64 = 1 << 4;
const RELATIVE_SYMBOLS: u64 = 1 << 5;

/// Kinds of records.
const ENTRY: u64 = 0;
const EXIT: u64 = 1;
const LOST: u64 = 2;

/// Program that ran in a process from some time on.
#[derive(Debug, Clone, Default)]
struct Session {
    id: String,
    process: u32,
    time: u64,
    program: String,
    /// Begin, end and path of each mapped file.
    mappings: Vec<(u64, u64, String)>,
}

/// Sorted symbols of a file.
#[derive(Debug, Default)]
struct SymbolTable {
    /// Address, type and name.
    symbols: Vec<(u64, char, String)>,
}

/// Number of left-out records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events beside functions.
    pub events: u64,
    /// Records that uftrace lost.
    pub lost: u64,
    /// Calls in no known function.
    pub unnamed: u64,
}

/// Importer of a directory, given the contents of its files.
#[derive(Debug)]
pub struct UftraceImporter {
    calls: TimedCalls,
    relative: bool,
    has_arguments: bool,
    sessions: Vec<Session>,
    /// Process of each thread, and the parent of each forked process.
    processes: HashMap<u32, u32>,
    parents: HashMap<u32, u32>,
    tables: HashMap<String, SymbolTable>,
    functions: HashMap<(String, String), u32>,
    left_out: LeftOut,
    records: u64,
    /// Release of the kernel, if the directory has it.
    pub release: Option<String>,
    /// Command that was recorded.
    pub command: Option<String>,
}

impl UftraceImporter {
    /// Reads `info` and `task.txt`.
    ///
    /// # Errors
    /// [`ImportError`] for another format or version.
    pub fn new(info: &[u8], tasks: &str) -> Result<Self, ImportError> {
        let (Some(header), true) = (info.get(..40), info.starts_with(&MAGIC)) else {
            return Err(ImportError::NotUftrace);
        };
        if header[14..16] != [1, 2] {
            return Err(ImportError::Machine);
        }
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
        let version = word(8) as u32;
        if version != FILE_VERSION {
            return Err(ImportError::Version(version));
        }
        let features = word(16);
        let text = String::from_utf8_lossy(&info[40..]);
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string);
        let mut made = Self {
            calls: TimedCalls::default(),
            relative: features & RELATIVE_SYMBOLS != 0,
            has_arguments: features & (ARGUMENT | RETURN) != 0,
            sessions: Vec::new(),
            processes: HashMap::new(),
            parents: HashMap::new(),
            tables: HashMap::new(),
            functions: HashMap::new(),
            left_out: LeftOut::default(),
            records: 0,
            release: line("osinfo:kernel=").map(|of| of.trim_start_matches("Linux ").trim().to_string()),
            command: line("cmdline:"),
        };
        tasks.lines().for_each(|line| made.task(line));
        made.sessions.sort_by_key(|session| session.time);
        Ok(made)
    }

    /// Adds a line of `task.txt`.
    fn task(&mut self, line: &str) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let field = |name: &str| {
            let at = rest.find(&format!("{name}="))? + name.len() + 1;
            let value = &rest[at..];
            Some(match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => value.split_whitespace().next().unwrap_or_default(),
            })
        };
        let number = |name: &str| field(name)?.parse::<u32>().ok();
        let time = || {
            let (seconds, nanoseconds) = field("timestamp")?.split_once('.')?;
            seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds.parse().ok()?)
        };
        let mut add = || {
            match kind {
                "SESS" => self.sessions.push(Session {
                    id: field("sid")?.into(),
                    process: number("pid")?,
                    time: time()?,
                    program: field("exename")?.into(),
                    mappings: Vec::new(),
                }),
                "TASK" => {
                    self.processes.insert(number("tid")?, number("pid")?);
                }
                "FORK" => {
                    self.processes.insert(number("pid")?, number("pid")?);
                    self.parents.insert(number("pid")?, number("ppid")?);
                }
                "DLOP" => {
                    let base = u64::from_str_radix(field("base")?, 16).ok()?;
                    let id = field("sid")?;
                    let library = field("libname")?.to_string();
                    let session = self.sessions.iter_mut().find(|session| session.id == id)?;
                    session.mappings.push((base, u64::MAX, library));
                }
                _ => {}
            }
            Some(())
        };
        // Lines of other versions are none of these.
        let _ = add();
    }

    /// Returns the ids of all sessions, whose memory maps are in `sid-ID.map`.
    pub fn sessions(&self) -> Vec<String> {
        self.sessions.iter().map(|session| session.id.clone()).collect()
    }

    /// Adds a session's memory map.
    pub fn add_map(&mut self, session: &str, text: &str) {
        let Some(session) = self.sessions.iter_mut().find(|known| known.id == session) else { return };
        let mut mappings: Vec<(u64, u64, String)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let range = words.next().and_then(|range| range.split_once('-'));
            let Some((begin, end)) = range else { continue };
            let Some(path) = words.nth(4).filter(|path| !path.starts_with('[')) else { continue };
            let numbers = [begin, end].map(|number| u64::from_str_radix(number, 16).ok());
            let [Some(begin), Some(end)] = numbers else { continue };
            match mappings.last_mut() {
                Some(last) if last.2 == path => last.1 = end,
                _ => mappings.push((begin, end, path.into())),
            }
        }
        // Libraries that were opened later come first: their end is not known.
        session.mappings.splice(0..0, mappings);
    }

    /// Adds the symbols of a file: the content of a file `*.sym`, whose first lines name it.
    pub fn add_symbols(&mut self, text: &str) {
        let mut table = SymbolTable::default();
        let mut path = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("# path name: ") {
                path = Some(name.trim().to_string());
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (Ok(address), Some(kind)) = (u64::from_str_radix(address, 16), kind.chars().next()) else {
                continue;
            };
            table.symbols.push((address, kind, name.trim().into()));
        }
        table.symbols.sort_by_key(|symbol| symbol.0);
        if let Some(path) = path {
            self.tables.insert(path, table);
        }
    }

    /// Adds the records of a thread: the content of `TID.dat`, of which `file` is the name.
    ///
    /// # Errors
    /// [`ImportError`] for damaged records, and records with arguments.
    pub fn add_thread(&mut self, tid: u32, file: &str, mut input: impl Read) -> Result<(), ImportError> {
        let process = self.processes.get(&tid).copied().unwrap_or(tid);
        let comm = {
            let session = self.session(process, u64::MAX).map(|at| &self.sessions[at].program);
            let name = session.map(|program| program.rsplit('/').next().unwrap_or_default().to_string());
            name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("pid {process}"))
        };
        let thread = self.calls.add_thread(ThreadKind::Thread, tid, process, &comm);
        // Addresses of the session in use.
        let mut known: FxHashMap<u64, Option<u32>> = FxHashMap::default();
        let mut session = None;
        let (mut at, mut last) = (0_u64, 0_u64);
        let mut record = [0; 16];
        while fill(&mut input, &mut record, file, at)? {
            let [time, word] = [&record[..8], &record[8..]]
                .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
            let (kind, more, magic) = (word & 3, word >> 2 & 1 == 1, word >> 3 & 7);
            let (depth, address) = ((word >> 6 & 0x3ff) as u32, word >> 16);
            let damaged = |what| ImportError::Damaged { file: file.into(), at, what };
            if magic != RECORD_MAGIC {
                return Err(damaged("not a record of uftrace"));
            }
            if more {
                return Err(match self.has_arguments || kind > EXIT {
                    true => ImportError::Arguments { file: file.into() },
                    false => damaged("a record has data that its directory does not declare"),
                });
            }
            if time < last && kind != LOST {
                return Err(damaged("the time is before that of the record before"));
            }
            at += 16;
            self.records += 1;
            match kind {
                ENTRY | EXIT => {
                    last = time;
                    let now = self.session(process, time);
                    if now != session {
                        known.clear();
                        session = now;
                    }
                    let function = match known.get(&address) {
                        Some(function) => *function,
                        None => {
                            let function = self.function(session, address);
                            known.insert(address, function);
                            function
                        }
                    };
                    self.call(thread, time, kind, depth, function.unwrap_or(u32::MAX), address);
                }
                LOST => {
                    self.left_out.lost = self.left_out.lost.saturating_add(address);
                    self.calls.cut(thread, self.calls.depth(thread), None);
                }
                _ => self.left_out.events += 1,
            }
        }
        // What is open ends with the thread, as in `uftrace report`.
        while self.calls.top(thread).is_some() {
            self.calls.exit(thread, last, None);
        }
        Ok(())
    }

    fn call(&mut self, thread: ThreadNumber, time: u64, kind: u64, depth: u32, function: u32, address: u64) {
        if kind == ENTRY {
            while self.calls.top(thread).is_some_and(|(.., open)| open >= Some(depth)) {
                self.calls.cut(thread, 1, None);
            }
            let function = match function {
                u32::MAX => {
                    self.left_out.unnamed += 1;
                    self.unnamed(address)
                }
                function => function,
            };
            self.calls.enter(thread, time, function, CallKind::Call, Some(depth));
            return;
        }
        if let Some(inside) = self.calls.find_open(thread, |_, _, open| open == Some(depth)) {
            self.calls.cut(thread, inside, None);
            self.calls.exit(thread, time, None);
        }
    }

    fn unnamed(&mut self, address: u64) -> u32 {
        let name = format!("0x{address:x}");
        self.add(String::new(), name, address, 0)
    }

    /// Returns the session of a process at a time, that of its parent for one that was forked.
    fn session(&self, process: u32, time: u64) -> Option<usize> {
        let mut process = process;
        for _ in 0..MAX_FORKS {
            let mut sessions = self.sessions.iter().enumerate().rev();
            let found = sessions
                .clone()
                .find(|(_, session)| session.process == process && session.time <= time)
                .or_else(|| sessions.find(|(_, session)| session.process == process));
            if let Some((at, _)) = found {
                return Some(at);
            }
            process = *self.parents.get(&process)?;
        }
        None
    }

    fn function(&mut self, session: Option<usize>, address: u64) -> Option<u32> {
        let session = self.sessions.get(session?)?;
        let inside = |(begin, end, _): &&(u64, u64, String)| (*begin..*end).contains(&address);
        // Of libraries that were opened later, the one that begins last before the address.
        let (begin, _, path) = session.mappings.iter().filter(inside).max_by_key(|mapping| mapping.0)?;
        let offset = if self.relative { address - begin } else { address };
        let table = &self.tables.get(path)?.symbols;
        let at = table.partition_point(|symbol| symbol.0 <= offset).checked_sub(1)?;
        let (start, kind, name) = &table[at];
        if !matches!(kind, 'T' | 't' | 'W' | 'w' | 'P' | 'i' | 'V' | 'v' | 'U' | 'K') {
            return None;
        }
        let size = table.get(at + 1).map_or(0, |next| next.0 - start);
        let (path, name, start) = (path.clone(), name.clone(), *start);
        Some(self.add(path, name, start, size))
    }

    fn add(&mut self, path: String, name: String, address: u64, size: u64) -> u32 {
        let calls = &mut self.calls;
        *self.functions.entry((path, name)).or_insert_with_key(|(path, name)| {
            let module = (!path.is_empty()).then(|| path.rsplit('/').next().unwrap_or_default().to_string());
            let symbol =
                Symbol { name: name.clone(), address: Address(address), size, module, ..Symbol::default() };
            calls.add_function(symbol, false)
        })
    }

    /// Returns the number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the tables, and what is not in them.
    ///
    /// # Errors
    /// [`ImportError::Empty`] without any call.
    pub fn finish(self) -> Result<(TimedTables, LeftOut), ImportError> {
        let made = self.calls.finish("uftrace");
        match made.tables.functions.is_empty() {
            true => Err(ImportError::Empty),
            false => Ok((made, self.left_out)),
        }
    }
}

/// Reads a record; false at the end.
fn fill(input: &mut impl Read, record: &mut [u8; 16], file: &str, at: u64) -> Result<bool, ImportError> {
    let mut read = 0;
    while read < record.len() {
        match input.read(&mut record[read..]) {
            Ok(0) if read == 0 => return Ok(false),
            Ok(0) => {
                return Err(ImportError::Damaged {
                    file: file.into(),
                    at,
                    what: "the last record is cut off",
                });
            }
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
