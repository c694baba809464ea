//! Mapped user code and the names of its functions.
//!
//! The mappings of existing processes are read at the start; later ones are reported by the kernel.
//! Buffers of different CPUs are read one after the other, so a mapping may be reported after a
//! sample in it. Such a sample counts as user mode without a name.

use kerntune_symbols::{program_build_id, FunctionTable, ProgramSymbols};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Maximum number of processes with known mappings.
const MAX_PROCESSES: usize = 1 << 13;
/// Maximum number of mappings per process.
const MAX_MAPPINGS: usize = 1 << 12;
/// Maximum number of files to read.
const MAX_FILES: usize = 1 << 12;
/// Memory of a function in bytes: entry, name and index.
const FUNCTION_BYTES: usize = 160;
/// Average memory of a process's mappings, in bytes.
const PROCESS_BYTES: usize = 4096;

/// Key of the code of a file that has no name.
const WHOLE_FILE: u32 = u32::MAX;

/// Code of a file mapped into a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeMapping {
    begin: u64,
    end: u64,
    /// Offset in the file.
    offset: u64,
    file: u32,
}

#[derive(Debug, Clone)]
struct MappedFile {
    path: String,
    /// Symbols, read at the first sample in the file; `Some(None)` if that failed.
    program: Option<Option<Box<ProgramSymbols>>>,
    /// Table indices of the functions sampled so far.
    numbers: HashMap<u32, u32>,
}

/// Mapped programs and libraries.
#[derive(Debug, Clone)]
pub struct UserCode {
    processes: HashMap<u32, Vec<CodeMapping>>,
    files: Vec<MappedFile>,
    by_path: HashMap<String, u32>,
    /// Number of functions that still find room.
    left: usize,
    /// Files whose code is that of a recording; `None` if all code runs on this machine now.
    recorded: Option<RecordedFiles>,
}

/// Files of a recording. A file on this machine gives names if it is the same one; code of any other
/// is one function with the file's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    /// Build ids in hexadecimal digits by path.
    pub build_ids: HashMap<String, String>,
    /// True if files without a build id are those of this machine.
    pub is_this_machine: bool,
}

impl RecordedFiles {
    fn is_same(&self, path: &str) -> bool {
        match self.build_ids.get(path) {
            Some(id) => program_build_id(Path::new(path)).as_ref() == Some(id),
            None => self.is_this_machine,
        }
    }
}

impl UserCode {
    /// Creates a table of at most this many functions; with 0 it stays empty and uses no memory.
    pub fn new(functions: usize) -> Self {
        Self {
            processes: HashMap::new(),
            files: Vec::new(),
            by_path: HashMap::new(),
            left: functions,
            recorded: None,
        }
    }

    /// Restricts names to those of a recording's files.
    pub fn set_recorded(&mut self, files: RecordedFiles) {
        self.recorded = Some(files);
    }

    /// Returns an upper bound for the table's memory, in bytes.
    pub fn bound(functions: usize) -> usize {
        let rest = if functions == 0 { 0 } else { MAX_PROCESSES * PROCESS_BYTES };
        functions.saturating_mul(FUNCTION_BYTES).saturating_add(rest)
    }

    /// Reads the present mappings of a process.
    pub fn read_process(&mut self, process: u32) {
        let Ok(text) = fs::read_to_string(format!("/proc/{process}/maps")) else { return };
        for line in text.lines() {
            if let Some((begin, end, offset, path)) = parse_mapping(line) {
                self.mapped(process, begin, end, offset, path);
            }
        }
    }

    /// Handles a new mapping of code.
    pub fn mapped(&mut self, process: u32, begin: u64, end: u64, offset: u64, path: &str) {
        if !path.starts_with('/') || path.starts_with("//") || path.ends_with(" (deleted)") {
            return;
        }
        let file = match self.by_path.get(path) {
            Some(file) => *file,
            None if self.files.len() >= MAX_FILES => return,
            None => {
                let file = self.files.len() as u32;
                self.files.push(MappedFile { path: path.into(), program: None, numbers: HashMap::new() });
                self.by_path.insert(path.into(), file);
                file
            }
        };
        if !self.processes.contains_key(&process) && self.processes.len() >= MAX_PROCESSES {
            return;
        }
        let mappings = self.processes.entry(process).or_default();
        mappings.retain(|old| old.end <= begin || old.begin >= end);
        if mappings.len() < MAX_MAPPINGS {
            let at = mappings.partition_point(|old| old.begin < begin);
            mappings.insert(at, CodeMapping { begin, end, offset, file });
        }
    }

    /// Handles the start of a process, which inherits its parent's mappings.
    pub fn forked(&mut self, process: u32, parent: u32) {
        if process != parent && self.processes.len() < MAX_PROCESSES {
            if let Some(mappings) = self.processes.get(&parent).cloned() {
                self.processes.insert(process, mappings);
            }
        }
    }

    /// Removes the mappings of a process that executes a new program or has ended.
    pub fn cleared(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Returns the table index of the function at an address of a process.
    pub fn lookup(&mut self, process: u32, address: u64, table: &mut FunctionTable) -> Option<u32> {
        let mappings = self.processes.get(&process)?;
        let at = mappings.partition_point(|mapping| mapping.begin <= address).checked_sub(1)?;
        let mapping = mappings.get(at).filter(|mapping| address < mapping.end)?;
        let offset = mapping.offset.checked_add(address - mapping.begin)?;
        let file = self.files.get_mut(mapping.file as usize)?;
        if file.program.is_none() {
            // Without room, no more files are read.
            let is_same = self.recorded.as_ref().is_none_or(|recorded| recorded.is_same(&file.path));
            let read = (self.left > 0 && is_same)
                .then(|| ProgramSymbols::read(Path::new(&file.path), self.left))
                .flatten();
            self.left -= read.as_ref().map_or(0, |program| program.functions().len());
            file.program = Some(read.map(Box::new));
        }
        let program = file.program.as_ref()?.as_ref();
        let found = program.and_then(|program| Some((program, program.at_offset(offset)?)));
        let Some((program, function)) = found else {
            self.recorded.as_ref()?;
            if let Some(number) = file.numbers.get(&WHOLE_FILE) {
                return Some(*number);
            }
            let name = format!("[{}]", file.path.rsplit('/').next().unwrap_or_default());
            let number = table.add_external(&name, &file.path, 0, 0)?;
            file.numbers.insert(WHOLE_FILE, number);
            return Some(number);
        };
        let key = u32::try_from(function).ok().filter(|key| *key != WHOLE_FILE)?;
        if let Some(number) = file.numbers.get(&key) {
            return Some(*number);
        }
        let found = &program.functions()[function];
        let number = table.add_external(&found.name, &file.path, found.address, found.size)?;
        file.numbers.insert(key, number);
        Some(number)
    }
}

/// Parses a line of `/proc/PID/maps`. Returns begin, end, file offset and path of executable code.
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
        let (mut user, mut table) = (UserCode::new(1 << 18), FunctionTable::default());
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
