//! Where the code of programs is, and the names of its functions.
//!
//! A process' mappings are read when one begins to watch, and told by the kernel from then on. Buffers of different CPUs are read one
//! after the other, so that a mapping may be told after a sample in it: that sample is in user mode, without a name.

use kerntune_symbols::{Program, Table};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Processes whose mappings are known.
const PROCESSES: usize = 1 << 13;
/// Mappings of one process.
const MAPPINGS: usize = 1 << 12;
/// Files that are read.
const FILES: usize = 1 << 12;
/// Bytes of a function: itself, its name, and its number.
const FUNCTION_BYTES: usize = 160;
/// Bytes of a process' mappings, on average.
const PROCESS_BYTES: usize = 4096;

/// Code of a file in a process' memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    begin: u64,
    end: u64,
    /// Offset in the file.
    offset: u64,
    file: u32,
}

#[derive(Debug, Clone)]
struct File {
    path: String,
    /// Read at the first sample in it; `None` inside if that failed.
    program: Option<Option<Box<Program>>>,
    /// Of its functions in the table, as far as they were sampled.
    numbers: HashMap<u32, u32>,
}

/// Programs and libraries.
#[derive(Debug, Clone)]
pub struct UserCode {
    processes: HashMap<u32, Vec<Mapping>>,
    files: Vec<File>,
    by_path: HashMap<String, u32>,
    /// Functions for which there is still room.
    left: usize,
}

impl UserCode {
    /// One that never knows more than so many functions; with 0 it is of no use, and takes no memory.
    pub fn new(functions: usize) -> Self {
        Self { processes: HashMap::new(), files: Vec::new(), by_path: HashMap::new(), left: functions }
    }

    /// Bytes that one takes at most.
    pub fn bound(functions: usize) -> usize {
        let rest = if functions == 0 { 0 } else { PROCESSES * PROCESS_BYTES };
        functions.saturating_mul(FUNCTION_BYTES).saturating_add(rest)
    }

    /// The mappings that a process has now.
    pub fn read_process(&mut self, process: u32) {
        let Ok(text) = fs::read_to_string(format!("/proc/{process}/maps")) else { return };
        for line in text.lines() {
            if let Some((begin, end, offset, path)) = parse_mapping(line) {
                self.mapped(process, begin, end, offset, path);
            }
        }
    }

    /// Code was mapped into a process.
    pub fn mapped(&mut self, process: u32, begin: u64, end: u64, offset: u64, path: &str) {
        if !path.starts_with('/') || path.starts_with("//") || path.ends_with(" (deleted)") {
            return;
        }
        let file = match self.by_path.get(path) {
            Some(file) => *file,
            None if self.files.len() >= FILES => return,
            None => {
                let file = self.files.len() as u32;
                self.files.push(File { path: path.into(), program: None, numbers: HashMap::new() });
                self.by_path.insert(path.into(), file);
                file
            }
        };
        if !self.processes.contains_key(&process) && self.processes.len() >= PROCESSES {
            return;
        }
        let mappings = self.processes.entry(process).or_default();
        mappings.retain(|old| old.end <= begin || old.begin >= end);
        if mappings.len() < MAPPINGS {
            let at = mappings.partition_point(|old| old.begin < begin);
            mappings.insert(at, Mapping { begin, end, offset, file });
        }
    }

    /// A process has the mappings of the one that made it.
    pub fn forked(&mut self, process: u32, parent: u32) {
        if process != parent && self.processes.len() < PROCESSES {
            if let Some(mappings) = self.processes.get(&parent).cloned() {
                self.processes.insert(process, mappings);
            }
        }
    }

    /// A process began a program, or ended: it has no mappings any more.
    pub fn cleared(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Number of the function that is at an address of a process.
    pub fn lookup(&mut self, process: u32, address: u64, table: &mut Table) -> Option<u32> {
        let mappings = self.processes.get(&process)?;
        let at = mappings.partition_point(|mapping| mapping.begin <= address).checked_sub(1)?;
        let mapping = mappings.get(at).filter(|mapping| address < mapping.end)?;
        let offset = mapping.offset.checked_add(address - mapping.begin)?;
        let file = self.files.get_mut(mapping.file as usize)?;
        if file.program.is_none() {
            // Where there is no room no file is read for it.
            let read = (self.left > 0).then(|| Program::read(Path::new(&file.path), self.left)).flatten();
            self.left -= read.as_ref().map_or(0, |program| program.functions().len());
            file.program = Some(read.map(Box::new));
        }
        let program = file.program.as_ref()?.as_ref()?;
        let function = program.at_offset(offset)?;
        let key = u32::try_from(function).ok()?;
        if let Some(number) = file.numbers.get(&key) {
            return Some(*number);
        }
        let found = &program.functions()[function];
        let number = table.add_foreign(&found.name, &file.path, found.address, found.size)?;
        file.numbers.insert(key, number);
        Some(number)
    }
}

/// Beginning, end, offset and file of executable code, from a line of `/proc/PID/maps`.
pub fn parse_mapping(line: &str) -> Option<(u64, u64, u64, &str)> {
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start_matches(' ');
        let (word, after) = trimmed.split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (range, rights, offset, _device, _inode) = (word()?, word()?, word()?, word()?, word()?);
    let (begin, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (begin, end, offset) = (hex(begin)?, hex(end)?, hex(offset)?);
    let path = rest.trim_start_matches(' ');
    (rights.contains('x') && begin < end && !path.is_empty()).then_some((begin, end, offset, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "7f1c2a028000-7f1c2a17d000 r-xp 00026000 fe:00 1835033                    /usr/lib/a b.so";
        assert_eq!(
            parse_mapping(line),
            Some((0x7f1c_2a02_8000, 0x7f1c_2a17_d000, 0x26000, "/usr/lib/a b.so"))
        );
        assert_eq!(parse_mapping(&line.replace("r-xp", "r--p")), None);
        assert_eq!(parse_mapping("7f1c2a028000-7f1c2a17d000 r-xp 0 0:0 0"), None);
        assert_eq!(parse_mapping("x"), None);
    }

    #[test]
    fn the_code_of_this_process_has_names() {
        let (mut user, mut table) = (UserCode::new(1 << 18), Table::default());
        let me = std::process::id();
        user.read_process(me);
        let address = lines_of_maps as fn() as usize as u64;
        let number = user.lookup(me, address, &mut table).unwrap();
        assert!(table.functions()[number as usize].name.contains("lines_of_maps"));
        assert_eq!(user.lookup(me, address + 1, &mut table), Some(number));
        assert_eq!((user.lookup(me, 8, &mut table), user.lookup(1 << 30, address, &mut table)), (None, None));
        user.forked(1 << 30, me);
        assert_eq!(user.lookup(1 << 30, address, &mut table), Some(number));
        user.cleared(1 << 30);
        assert_eq!(user.lookup(1 << 30, address, &mut table), None);
        assert_eq!(table.lookup(address), None, "it is no code of the kernel's");
    }
}
