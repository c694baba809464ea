//! Every instruction of a region with its accesses to memory, where that was asked for.

use crate::Failure;
use kerntune_isa::Insn;
use kerntune_trace::files;
use kerntune_trace::stream::{write_head, Step, StreamSpec, MOST_BYTES};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Keeps one core ahead of the emulator.
const LEVEL: i32 = 1;

/// What is known of an instruction.
type Code = (u64, u8, [u8; MOST_BYTES]);

/// Where instructions are written to.
pub struct Stream {
    pub(crate) spec: StreamSpec,
    pub(crate) out: zstd::Encoder<'static, BufWriter<File>>,
    /// All that were translated, each once.
    numbers: HashMap<Code, u32>,
    codes: Vec<Code>,
    /// Of each of them, its number in the file, once it was executed.
    written: Vec<Option<u32>>,
    seen: u32,
    /// Whether a region is open whose instructions are wanted, and there is room for more.
    pub(crate) is_open: bool,
    pub(crate) executed: u64,
}

impl Stream {
    /// An empty one in this directory.
    pub fn create(directory: &Path, spec: &StreamSpec) -> Result<Self, Failure> {
        let path = directory.join(files::STREAM);
        let file =
            File::create(&path).map_err(|e| Failure(format!("cannot write {}: {e}", path.display())))?;
        let mut file = BufWriter::new(file);
        write_head(&mut file)?;
        let mut out = zstd::Encoder::new(file, LEVEL)?;
        out.include_checksum(true)?;
        Ok(Self {
            spec: spec.clone(),
            out,
            numbers: HashMap::new(),
            codes: Vec::new(),
            written: Vec::new(),
            seen: 0,
            is_open: false,
            executed: 0,
        })
    }

    /// The number of an instruction that was translated.
    pub fn number(&mut self, insn: &Insn) -> u32 {
        let length = insn.length.min(MOST_BYTES);
        let mut bytes = [0; MOST_BYTES];
        bytes[..length].copy_from_slice(&insn.bytes[..length]);
        let code = (insn.address, length as u8, bytes);
        *self.numbers.entry(code).or_insert_with(|| {
            self.codes.push(code);
            self.written.push(None);
            self.codes.len() as u32 - 1
        })
    }

    pub(crate) fn execute(&mut self, code: u32) -> Result<(), Failure> {
        if self.executed >= self.spec.instructions {
            self.is_open = false;
            return Ok(());
        }
        let at = code as usize;
        let (Some(&(address, length, bytes)), Some(written)) = (self.codes.get(at), self.written.get_mut(at))
        else {
            return Ok(());
        };
        let number = match *written {
            Some(number) => number,
            None => {
                let number = self.seen;
                self.seen += 1;
                *written = Some(number);
                Step::Instruction { number, address, length, bytes }.write(&mut self.out)?;
                number
            }
        };
        Step::Execute(number).write(&mut self.out)?;
        self.executed += 1;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        Step::End { instructions: self.executed }.write(&mut self.out)?;
        self.out.finish()?.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_trace::stream::StreamReader;

    #[test]
    fn instructions_are_written_once_and_up_to_the_bound() {
        let directory = tempfile::tempdir().unwrap();
        let spec = StreamSpec { region: None, instructions: 3 };
        let mut stream = Stream::create(directory.path(), &spec).unwrap();
        let nop = stream.number(&Insn::new(0x1000, &[0x90]));
        let ret = stream.number(&Insn::new(0x1001, &[0xc3]));
        assert_eq!((nop, stream.number(&Insn::new(0x1000, &[0x90]))), (0, 0));
        // Another program's code at the same address is another instruction.
        assert_eq!((ret, stream.number(&Insn::new(0x1000, &[0xf4]))), (1, 2));
        stream.is_open = true;
        for code in [ret, nop, ret, nop, nop] {
            stream.execute(code).unwrap();
        }
        assert!(!stream.is_open);
        stream.finish().unwrap();
        let file = File::open(directory.path().join(files::STREAM)).unwrap();
        let mut reader = StreamReader::new(file).unwrap();
        let mut steps = Vec::new();
        while let Some(step) = reader.next().unwrap() {
            steps.push(step);
        }
        let numbers: Vec<u32> = steps
            .iter()
            .filter_map(|step| if let Step::Execute(n) = step { Some(*n) } else { None })
            .collect();
        // In the order in which they were executed first.
        assert_eq!(numbers, [0, 1, 0]);
        assert!(matches!(steps[0], Step::Instruction { number: 0, address: 0x1001, length: 1, .. }));
        assert_eq!(steps.last(), Some(&Step::End { instructions: 3 }));
    }
}
