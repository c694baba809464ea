//! Counters of an instrumented kernel from a recording of it.
//!
//! Objects compiled with `-fprofile-info-section` describe their counters by static data and need
//! nothing of the kernel: no constructors, no debugfs, and no other configuration. Nobody reads the
//! counters. A counter's value is how often the instructions ran that increment it, which a recording
//! with blocks says exactly, and for its regions alone.
//!
//! The data is GCC's `struct gcov_info` (`libgcc/libgcov.h`, the kernel's `kernel/gcov/gcc_4_7.c`), as
//! GCC 12 and later write it for 64-bit machines.

use super::compiler::gcc_version;
use crate::{Error, Result};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use kerntune_convert::gcda::{
    ByteOrder, CounterKind, CounterRecord, CounterValues, Gcda, GcdaFunction, GcovVersion,
};
use kerntune_debuginfo::{Elf, MappedFile, Section};
use kerntune_kernel::Kernel;
use kerntune_profile::{Block, ExecutionCounts, Profile};
use kerntune_work::{IoContext, RelativePath};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Offsets in `struct gcov_info`.
mod info {
    pub const STAMP: u64 = 16;
    pub const CHECKSUM: u64 = 20;
    pub const FILE_NAME: u64 = 24;
    pub const MERGE: u64 = 32;
}

/// Offsets in `struct gcov_fn_info`.
mod function {
    pub const KEY: u64 = 0;
    pub const IDENT: u64 = 8;
    pub const LINENO_CHECKSUM: u64 = 12;
    pub const CFG_CHECKSUM: u64 = 16;
    pub const COUNTERS: u64 = 24;
    pub const VALUES: u64 = 32;
}

const WORD: u64 = 8;
/// Most functions of an object, and most counters of a function.
const MAX_COUNT: u32 = 1 << 20;
/// Longest path of a file.
const MAX_NAME: u64 = 4096;

/// Writes the counters of a recording of the instrumented `kernel` to `dir`, as gcov would export
/// them: `<build path>/kernel/fork.gcda`. Returns their number of files.
///
/// # Errors
/// An image without counters or with damaged ones; code that uses a counter in an unknown way; files
/// that cannot be read or written.
pub fn write_counters(recording: &Profile, kernel: &Kernel, dir: &Path) -> Result<usize> {
    let path = kernel.vmlinux();
    let bytes = MappedFile::open(&path).at("read", &path)?;
    let bad = |reason: String| Error::ImageCounters { kernel: kernel.manifest.label.clone(), reason };
    let gcc = gcc_version(&kernel.manifest.compiler).ok_or_else(|| bad("its compiler is no GCC".into()))?;
    let mut counters = ImageCounters::read(&bytes, gcc).map_err(bad)?;
    counters.count(&recording.tables.blocks).map_err(bad)?;
    for (name, gcda) in &counters.files {
        let to = dir.join(name);
        let parent = to.parent().unwrap_or(dir);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::write(&to, gcda.to_bytes()).at("write", &to)?;
    }
    Ok(counters.files.len())
}

/// Place of a counter: file, function and number.
type CounterPlace = (usize, usize, usize);

/// Counters of an image, and the code that increments them.
struct ImageCounters<'data> {
    files: Vec<(RelativePath, Gcda)>,
    places: HashMap<u64, CounterPlace>,
    code: Vec<Section<'data>>,
}

impl<'data> ImageCounters<'data> {
    /// Reads the counters of an image that was compiled by this version of GCC.
    fn read(image: &'data [u8], gcc: (u32, u32)) -> std::result::Result<Self, String> {
        let elf = Elf::parse_any(image).map_err(|error| error.to_string())?;
        if !elf.is_x86_64() {
            return Err("it is not for x86-64".into());
        }
        let sections = elf.sections().map_err(|error| error.to_string())?;
        let memory = ImageMemory(sections.iter().filter(|section| section.loaded).collect());
        let mut found = Self {
            files: Vec::new(),
            places: HashMap::new(),
            code: elf.code_sections().map_err(|error| error.to_string())?,
        };
        for section in memory.0.iter().filter(|section| !section.code) {
            let first = section.start.next_multiple_of(WORD);
            for address in (first..section.end).step_by(WORD as usize) {
                let version = memory.word(address).map(GcovVersion);
                let version = version.filter(|version| version.major_minor() == Some(gcc));
                if let Some(info) = version.and_then(|version| ObjectInfo::at(&memory, address, version)) {
                    found.add(&memory, info)?;
                }
            }
        }
        match found.places.is_empty() {
            true => Err("its image has no counters".into()),
            false => Ok(found),
        }
    }

    fn add(&mut self, memory: &ImageMemory, info: ObjectInfo) -> std::result::Result<(), String> {
        let damaged = || format!("the description of {} is damaged", info.name);
        let mut functions = Vec::new();
        for number in 0..info.functions {
            let at = memory.address(info.list + u64::from(number) * WORD).ok_or_else(damaged)?;
            let key = memory.address(at.saturating_add(function::KEY));
            // The place of a function that another object brought into the image.
            if at == 0 || key != Some(info.address) {
                functions.push(GcdaFunction::default());
                continue;
            }
            let word = |offset| memory.word(at.saturating_add(offset)).ok_or_else(damaged);
            let count = word(function::COUNTERS)?;
            let values = memory.address(at.saturating_add(function::VALUES)).ok_or_else(damaged)?;
            if count > MAX_COUNT || values % WORD != 0 {
                return Err(damaged());
            }
            for counter in 0..count {
                let place = (self.files.len(), functions.len(), counter as usize);
                self.places.insert(values.wrapping_add(u64::from(counter) * WORD), place);
            }
            functions.push(GcdaFunction {
                ident: word(function::IDENT)?,
                lineno_checksum: word(function::LINENO_CHECKSUM)?,
                cfg_checksum: word(function::CFG_CHECKSUM)?,
                counters: vec![CounterRecord {
                    kind: CounterKind::Arcs,
                    values: CounterValues::Listed(vec![0; count as usize]),
                }],
            });
        }
        let gcda = Gcda {
            byte_order: ByteOrder::Little,
            version: info.version,
            stamp: info.stamp,
            checksum: info.checksum,
            summary: None,
            functions,
            end_marker: false,
        };
        self.files.push((info.name, gcda));
        Ok(())
    }

    /// Sets each counter to the executions of the instructions that increment it.
    fn count(&mut self, blocks: &[Block]) -> std::result::Result<(), String> {
        let executions = ExecutionCounts::of(blocks);
        for section in &self.code {
            let mut decoder = Decoder::with_ip(64, section.data, section.start, DecoderOptions::NONE);
            let mut instruction = Instruction::default();
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                let Some(counter) = memory_operand(&instruction) else { continue };
                let Some(&(file, function, number)) = self.places.get(&counter) else { continue };
                let count = executions.at(instruction.ip());
                if count == 0 {
                    continue;
                }
                if !increments(&instruction) {
                    return Err(format!(
                        "the code at {:#x} uses a counter in an unknown way",
                        instruction.ip()
                    ));
                }
                let records = &mut self.files[file].1.functions[function].counters;
                if let Some(CounterValues::Listed(values)) =
                    records.first_mut().map(|record| &mut record.values)
                {
                    values[number] = values[number].saturating_add_unsigned(count);
                }
            }
        }
        Ok(())
    }
}

/// Returns the address of an operand in memory that is the same at each execution.
fn memory_operand(instruction: &Instruction) -> Option<u64> {
    let is_memory = (0..instruction.op_count()).any(|number| instruction.op_kind(number) == OpKind::Memory);
    let is_fixed = instruction.is_ip_rel_memory_operand()
        || instruction.memory_base() == iced_x86::Register::None
            && instruction.memory_index() == iced_x86::Register::None;
    (is_memory && is_fixed).then(|| instruction.memory_displacement64())
}

/// Checks whether an instruction adds 1 to its operand in memory.
fn increments(instruction: &Instruction) -> bool {
    let by = |amount: u64| {
        instruction.op_count() == 2 && {
            let kinds = [OpKind::Immediate8to64, OpKind::Immediate32to64];
            kinds.contains(&instruction.op1_kind()) && instruction.immediate(1) == amount
        }
    };
    instruction.op0_kind() == OpKind::Memory
        && match instruction.mnemonic() {
            Mnemonic::Inc => true,
            Mnemonic::Add => by(1),
            Mnemonic::Sub => by(u64::MAX),
            _ => false,
        }
}

/// `struct gcov_info`: the counters of an object.
struct ObjectInfo {
    address: u64,
    version: GcovVersion,
    stamp: u32,
    checksum: u32,
    name: RelativePath,
    functions: u32,
    list: u64,
}

impl ObjectInfo {
    /// Reads the description at an address, if it is one.
    fn at(memory: &ImageMemory, address: u64, version: GcovVersion) -> Option<Self> {
        let merge_functions = u64::from(version.counter_kinds()?) * WORD;
        let functions = info::MERGE + merge_functions;
        let name = memory.text(memory.address(address + info::FILE_NAME)?)?;
        let name = name.strip_prefix('/')?.to_owned();
        Some(Self {
            address,
            version,
            stamp: memory.word(address + info::STAMP)?,
            checksum: memory.word(address + info::CHECKSUM)?,
            name: Some(name).filter(|name| name.ends_with(".gcda"))?.parse().ok()?,
            functions: memory.word(address + functions).filter(|count| *count <= MAX_COUNT)?,
            list: memory.address(address + functions + WORD)?,
        })
    }
}

/// Contents of an image by address.
struct ImageMemory<'a, 'data>(Vec<&'a Section<'data>>);

impl ImageMemory<'_, '_> {
    fn bytes(&self, address: u64, size: u64) -> Option<&[u8]> {
        let section = self.0.iter().find(|section| (section.start..section.end).contains(&address))?;
        section.bytes(address, size)
    }

    fn word(&self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(address, 4)?.first_chunk()?))
    }

    fn address(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes(address, WORD)?.first_chunk()?))
    }

    fn text(&self, address: u64) -> Option<&str> {
        let bytes = self.bytes(address, MAX_NAME)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::gcno::GcnoFile;
    use super::super::ObjectCounts;
    use super::*;
    use kerntune_profile::{Address, Instructions};
    use std::process::Command;

    const PROGRAM: &str = "int sink;\n\
        __attribute__((noipa)) int ran(int x) { if (x > 3) sink += x; while (x-- > 0) sink ^= x; return x; }\n\
        __attribute__((noipa)) int never(int x) { return x ? ran(x) : sink; }\n\
        int main(int c, char **v) { return never(c) + ran(c); }\n";

    fn block(start: u64, last: u64, count: u64) -> Block {
        let (start, last) = (Address(start), Address(last));
        Block { start, last, count, instructions: Instructions(1), bytes: 1 }
    }

    #[test]
    fn a_counter_is_what_its_increments_executed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("all.c"), PROGRAM).unwrap();
        let flags = "-O2 -no-pie -fno-pie -fprofile-arcs -ftest-coverage -fno-tree-loop-im \
                     -fprofile-update=prefer-atomic -fprofile-info-section=.rodata \
                     -Wa,--defsym,__gcov_merge_add=0 all.c -o image -nostdlib -Wl,-emain";
        let status = Command::new("gcc").current_dir(dir.path()).args(flags.split_whitespace()).status();
        assert!(status.unwrap().success());
        let image = fs::read(dir.path().join("image")).unwrap();
        let said = Command::new("gcc").args(["-dumpfullversion"]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let mut numbers = said.trim().split('.').map(|number| number.parse::<u32>().unwrap());
        let gcc = (numbers.next().unwrap(), numbers.next().unwrap());

        let mut counters = ImageCounters::read(&image, gcc).unwrap();
        let elf = Elf::parse_any(&image).unwrap();
        let symbol = |name: &str| {
            let mut symbols = elf.symbols().map(Result::unwrap);
            symbols.find(|symbol| symbol.name == name).map(|symbol| (symbol.address, symbol.size)).unwrap()
        };
        let (ran, size) = symbol("ran");
        let never = symbol("never").0;
        // `ran` from end to end in two ways, and the first instruction of `never`.
        let blocks = [block(ran, ran + size - 1, 3), block(ran, ran + size - 1, 4), block(never, never, 9)];
        counters.count(&blocks).unwrap();
        let notes = GcnoFile::parse(&fs::read(dir.path().join("image-all.gcno")).unwrap()).unwrap();
        let [(name, gcda)] = &counters.files[..] else { panic!("{} files", counters.files.len()) };
        assert!(name.to_string().ends_with("/image-all.gcda"), "{name}");
        assert_eq!((gcda.stamp, gcda.version.0), (notes.stamp, notes.version));
        let gcda = Gcda::parse(&gcda.to_bytes()).unwrap();
        let object = ObjectCounts::join("all.o".into(), &gcda, &notes).unwrap();
        let total = |name: &str| object.functions.iter().find(|f| f.name == name).unwrap().total;
        let of_ran = &gcda.functions[notes_position(&gcda, &notes, "ran")].counters[0].values;
        assert!(of_ran.iter().all(|count| count == 7) && of_ran.len() >= 2, "{of_ran:?}");
        assert_eq!(total("ran"), 7 * of_ran.len() as u64);
        assert!(total("main") == 0 && [0, 9].contains(&total("never")), "{object:?}");

        assert!(ImageCounters::read(&image, (9, 9)).is_err_and(|reason| reason.contains("no counters")));
        assert!(ImageCounters::read(b"no ELF", gcc).is_err());
        for at in (0..image.len()).step_by(97) {
            let mut damaged = image.clone();
            damaged[at] ^= 0xff;
            if let Ok(mut counters) = ImageCounters::read(&damaged, gcc) {
                let _ = counters.count(&blocks);
            }
        }
    }

    fn notes_position(gcda: &Gcda, notes: &GcnoFile, name: &str) -> usize {
        let is_it = |function: &GcdaFunction| notes.functions[&function.ident].name == name;
        gcda.functions.iter().position(is_it).unwrap()
    }

    #[test]
    fn executions_are_sums_of_the_blocks_over_an_instruction() {
        let executions = ExecutionCounts::of(&[block(10, 20, 3), block(15, 30, 4), block(31, 31, 5)]);
        let counts = [9, 10, 14, 15, 20, 21, 30, 31, 32].map(|address| executions.at(address));
        assert_eq!(counts, [0, 3, 3, 7, 7, 4, 4, 5, 0]);
        let full = ExecutionCounts::of(&[block(1, 2, u64::MAX), block(1, 2, u64::MAX)]);
        assert_eq!((full.at(1), full.at(3)), (u64::MAX, 0));
    }
}
