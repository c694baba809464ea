//! Parser of GCC's `.gcno`, names and flow graphs of functions: the notes that the compiler writes
//! beside an instrumented object. The `.gcda` of the same compilation has the same stamp and idents.
//!
//! Defined by GCC's `gcc/gcov-io.h`, `gcc/coverage.cc` (`coverage_begin_function`) and
//! `gcc/profile.cc` (`branch_prob`), GCC 12 on: little-endian words, lengths in bytes, strings with
//! their length and a final NUL.

use std::collections::HashMap;

const MAGIC: u32 = 0x6763_6e6f;
const TAG_FUNCTION: u32 = 0x0100_0000;
const TAG_BLOCKS: u32 = 0x0141_0000;
const TAG_ARCS: u32 = 0x0143_0000;
/// Flag of an arc without a counter (`GCOV_ARC_ON_TREE`).
const ON_TREE: u32 = 1;
/// Flag of an arc for calls that do not return (`GCOV_ARC_FAKE`).
const FAKE: u32 = 1 << 1;

/// Contents of one `.gcno`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GcnoFile {
    /// The compiler's version word.
    pub version: u32,
    /// Stamp of the compilation.
    pub stamp: u32,
    /// Functions by ident.
    pub functions: HashMap<u32, FunctionNote>,
}

/// Note of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionNote {
    /// Checksum of the control-flow graph; in the `.gcda` too.
    pub cfg_checksum: u32,
    /// Assembler name.
    pub name: String,
    /// Source file, as passed to the compiler.
    pub file: String,
    /// Line of the declaration, from 1.
    pub line: u32,
    /// Flow graph.
    pub graph: FlowGraph,
}

/// Flow graph of a function when it was instrumented.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FlowGraph {
    /// Number of blocks; the function begins at block 0 and ends at block 1.
    pub blocks: usize,
    /// Arcs, in the order of the file.
    pub arcs: Vec<FlowArc>,
    /// Arcs that leave each block, and those that enter it.
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
}

/// Arc from block to block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowArc {
    pub from: usize,
    pub to: usize,
    /// Number of its counter; `None` if its count follows from others.
    pub counter: Option<usize>,
    /// True if it is not in the code: a call that may not return.
    pub is_fake: bool,
}

impl FlowGraph {
    /// Returns the arcs that leave a block.
    pub fn out_of(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        self.out[block].iter().copied()
    }

    /// Returns the arcs that enter a block.
    pub fn into(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        self.into[block].iter().copied()
    }

    fn set_blocks(&mut self, blocks: usize) {
        *self =
            Self { blocks, arcs: Vec::new(), out: vec![Vec::new(); blocks], into: vec![Vec::new(); blocks] };
    }

    fn add(&mut self, from: u32, to: u32, flags: u32) -> Result<(), String> {
        let (from, to) = (from as usize, to as usize);
        if from >= self.blocks || to >= self.blocks {
            return Err(format!("it has an arc from block {from} to block {to} of {}", self.blocks));
        }
        let number = self.arcs.iter().rev().find_map(|arc| arc.counter).map_or(0, |last| last + 1);
        let counter = (flags & ON_TREE == 0).then_some(number);
        self.out[from].push(self.arcs.len());
        self.into[to].push(self.arcs.len());
        self.arcs.push(FlowArc { from, to, counter, is_fake: flags & FAKE != 0 });
        Ok(())
    }
}

impl GcnoFile {
    /// Parses a whole file; the error describes the damage.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = GcnoReader { bytes, at: 0 };
        if reader.word()? != MAGIC {
            return Err("it is not a .gcno file".into());
        }
        let mut notes = GcnoFile { version: reader.word()?, stamp: reader.word()?, ..GcnoFile::default() };
        let _checksum = reader.word()?;
        let _directory = reader.string()?;
        let _has_unexecuted_blocks = reader.word()?;
        let (mut current, mut blocks_left) = (None, bytes.len() / 4);
        while reader.at < bytes.len() {
            let tag = reader.word()?;
            let length = reader.word()? as usize;
            let mut record = GcnoReader { bytes: reader.take(length)?, at: 0 };
            if tag == TAG_FUNCTION {
                let (ident, _lineno_checksum, cfg_checksum) =
                    (record.word()?, record.word()?, record.word()?);
                let name = record.string()?;
                let _artificial = record.word()?;
                let (file, line) = (record.string()?, record.word()?);
                let graph = FlowGraph::default();
                notes.functions.insert(ident, FunctionNote { cfg_checksum, name, file, line, graph });
                current = Some(ident);
                continue;
            }
            let Some(graph) = current.and_then(|ident| notes.functions.get_mut(&ident)) else { continue };
            let graph = &mut graph.graph;
            match tag {
                TAG_BLOCKS => match record.word()? {
                    // Every block has an arc, which takes eight bytes.
                    blocks if blocks as usize > blocks_left => {
                        return Err(format!("a function has {blocks} blocks, and it has no room for them"));
                    }
                    blocks => {
                        blocks_left -= blocks as usize;
                        graph.set_blocks(blocks as usize);
                    }
                },
                TAG_ARCS => {
                    let from = record.word()?;
                    while record.at < length {
                        let (to, flags) = (record.word()?, record.word()?);
                        graph.add(from, to, flags)?;
                    }
                }
                _ => {}
            }
        }
        Ok(notes)
    }
}

struct GcnoReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> GcnoReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("it is truncated at byte {}", self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u32, String> {
        let word = self.take(4)?;
        Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    fn string(&mut self) -> Result<String, String> {
        let length = self.word()? as usize;
        let text = self.take(length)?;
        Ok(String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text)).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn real() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let source =
            "static int twice(int x) { return x > 2 ? 2 * x : x; }\n\nint main(int c, char **v)\n{\n\
                      \tint s = 0;\n\tfor (int i = 0; i < c; i++)\n\t\ts += twice(i);\n\treturn s;\n}\n";
        std::fs::write(dir.path().join("main.c"), source).unwrap();
        let args = ["-O1", "-fno-early-inlining", "-fprofile-arcs", "-ftest-coverage", "-c", "main.c"];
        assert!(Command::new("gcc").current_dir(dir.path()).args(args).status().unwrap().success());
        std::fs::read(dir.path().join("main.gcno")).unwrap()
    }

    #[test]
    fn functions_have_name_and_place() {
        let notes = GcnoFile::parse(&real()).unwrap();
        let mut functions: Vec<_> =
            notes.functions.values().map(|f| (f.name.as_str(), f.file.as_str(), f.line)).collect();
        functions.sort();
        assert_eq!(functions, [("main", "main.c", 3), ("twice", "main.c", 1)]);
        assert!(notes.version.to_be_bytes()[0].is_ascii_uppercase());
        let graph = |name| &notes.functions.values().find(|f| f.name == name).unwrap().graph;
        let twice = graph("twice");
        // The ends of the function, its three blocks, and their arcs: a branch, two joins, both ends.
        assert!(twice.blocks >= 5 && twice.arcs.len() >= twice.blocks, "{twice:?}");
        let counters = |graph: &FlowGraph| graph.arcs.iter().filter(|arc| arc.counter.is_some()).count();
        assert!(counters(twice) >= 1 && counters(graph("main")) >= 2);
        assert_eq!(twice.out_of(0).count(), 1);
    }

    /// Notes of one program by several compilers (`notes/README.md`).
    const NOTES: [(&[u8; 4], &[u8]); 5] = [
        (b"B22*", include_bytes!("notes/gcc-12.gcno")),
        (b"B33*", include_bytes!("notes/gcc-13.gcno")),
        (b"B42*", include_bytes!("notes/gcc-14.gcno")),
        (b"B53*", include_bytes!("notes/gcc-15.gcno")),
        (b"B62*", include_bytes!("notes/gcc-16.gcno")),
    ];

    #[test]
    fn notes_of_each_compiler_have_the_same_graphs() {
        let (_, first) = NOTES[0];
        let first = GcnoFile::parse(first).unwrap();
        for (version, bytes) in NOTES {
            let notes = GcnoFile::parse(bytes).unwrap();
            assert_eq!(notes.version.to_be_bytes(), *version);
            assert_eq!(notes.functions, first.functions, "{}", version.escape_ascii());
        }
        let mut names: Vec<_> = first.functions.values().map(|of| (of.name.as_str(), of.line)).collect();
        names.sort();
        assert_eq!(names, [("main", 3), ("twice", 1)]);
    }

    #[test]
    fn blocks_that_are_not_there_take_no_memory() {
        let mut bytes = real();
        let tag = TAG_BLOCKS.to_le_bytes();
        let at = bytes.windows(4).position(|word| word == tag).unwrap() + 8;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(GcnoFile::parse(&bytes).unwrap_err().contains("no room for them"));
    }

    #[test]
    fn damage_is_said() {
        let bytes = real();
        let error = GcnoFile::parse(&bytes[..bytes.len() - 3]).unwrap_err();
        assert!(error.contains("truncated"), "{error}");
        assert_eq!(GcnoFile::parse(b"adcgadcg").unwrap_err(), "it is not a .gcno file");
    }

    proptest! {
        #[test]
        fn damaged_notes_are_read_or_refused(at in 0usize..200, value: u8, cut in 0usize..300) {
            use std::sync::OnceLock;
            static REAL: OnceLock<Vec<u8>> = OnceLock::new();
            let mut bytes = REAL.get_or_init(real).clone();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = GcnoFile::parse(&bytes);
        }
    }
}
