//! Instruction stream: the instructions of a region with their memory accesses.

use crate::Failure;
use kerntune_isa::Insn;
use kerntune_trace::files;
use kerntune_trace::stream::{write_head, StreamRecord, StreamSpec, MAX_INSN_BYTES};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// zstd level, fast enough for one core to keep up with the emulator.
const LEVEL: i32 = 1;

/// Address, length and machine code of an instruction.
type InsnCode = (u64, u8, [u8; MAX_INSN_BYTES]);

/// Writer of the instruction stream.
pub struct StreamWriter {
    pub(crate) spec: StreamSpec,
    pub(crate) out: zstd::Encoder<'static, BufWriter<File>>,
    /// Number of each translated instruction.
    numbers: HashMap<InsnCode, u32>,
    codes: Vec<InsnCode>,
    /// Number of each instruction in the file, once it was executed.
    written: Vec<Option<u32>>,
    seen: u32,
    /// True while a requested region is open and the limit is not reached.
    pub(crate) is_open: bool,
    pub(crate) executed: u64,
}

impl StreamWriter {
    /// Creates an empty stream in this directory.
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

    /// Returns the number of a translated instruction, which may be a new one.
    pub fn number(&mut self, insn: &Insn) -> u32 {
        let length = insn.length.min(MAX_INSN_BYTES);
        let mut bytes = [0; MAX_INSN_BYTES];
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
                StreamRecord::Instruction { number, address, length, bytes }.write(&mut self.out)?;
                number
            }
        };
        StreamRecord::Execute(number).write(&mut self.out)?;
        self.executed += 1;
        Ok(())
    }

    /// Ends and closes the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        StreamRecord::End { instructions: self.executed }.write(&mut self.out)?;
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
        let mut stream = StreamWriter::create(directory.path(), &spec).unwrap();
        let nop = stream.number(&Insn::new(0x1000, &[0x90]));
        let ret = stream.number(&Insn::new(0x1001, &[0xc3]));
        assert_eq!((nop, stream.number(&Insn::new(0x1000, &[0x90]))), (0, 0));
        // Other code at the same address is another instruction.
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
            .filter_map(|step| if let StreamRecord::Execute(n) = step { Some(*n) } else { None })
            .collect();
        // Numbered in the order of first execution.
        assert_eq!(numbers, [0, 1, 0]);
        assert!(matches!(steps[0], StreamRecord::Instruction { number: 0, address: 0x1001, length: 1, .. }));
        assert_eq!(steps.last(), Some(&StreamRecord::End { instructions: 3 }));
    }
}
