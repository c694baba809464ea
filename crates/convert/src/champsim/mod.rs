//! ChampSim's traces: 64 bytes for each instruction that was executed (`struct input_instr` of its `inc/trace_instruction.h`).
//!
//! Little endian: address u64; whether it is a branch, whether it was taken, 2 registers that it writes, 4 that it reads, a byte
//! each; 2 addresses that it writes to and 4 that it reads from, u64 each. 0 stands for none. ChampSim tells the kind of a branch
//! by the registers: those of [`STACK_POINTER`], [`FLAGS`] and [`INSTRUCTION_POINTER`] are its own numbers. What has no room is left
//! out and counted.

mod code;

use code::{Class, Code};
use flate2::write::GzEncoder;
use flate2::Compression;
use kerntune_trace::stream::{Step, StreamError, StreamReader};
use std::io::{self, Read, Write};

/// ChampSim's number of the stack pointer.
pub const STACK_POINTER: u8 = 6;
/// ChampSim's number of the flags.
pub const FLAGS: u8 = 25;
/// ChampSim's number of the instruction pointer.
pub const INSTRUCTION_POINTER: u8 = 26;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 64;

/// Addresses that a record has room for: written, read.
const WRITES: usize = 2;
const READS: usize = 4;

/// Which instructions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All.
    All,
    /// Those of the kernel.
    Kernel,
    /// Those of programs.
    User,
}

impl Mode {
    fn has(self, address: u64) -> bool {
        match self {
            Mode::All => true,
            Mode::Kernel => address >> 63 == 1,
            Mode::User => address >> 63 == 0,
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Converted {
    /// Records.
    pub instructions: u64,
    /// Of these, those at addresses of the kernel.
    pub kernel: u64,
    /// Branches.
    pub branches: u64,
    /// Of these, those that were taken.
    pub taken: u64,
    /// Addresses that were read from.
    pub reads: u64,
    /// Addresses that were written to.
    pub writes: u64,
    /// Accesses that a record had no room for.
    pub left_out: u64,
    /// Conditional branches after which an interrupt came: that they were not taken is a guess.
    pub guessed: u64,
    /// Bytes that are no instruction, and so have no registers.
    pub undecoded: u64,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is converted cannot be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// What is written cannot be.
    #[error("cannot write the trace: {0}")]
    Write(io::Error),
}

/// An instruction that was executed, and whose end is not known yet.
struct Open {
    code: usize,
    writes: [u64; WRITES],
    reads: [u64; READS],
    /// How many of both there were.
    seen: [usize; 2],
}

/// Converts a stream. The last instruction is left out if it is a conditional branch, as nobody knows where it went.
///
/// # Errors
/// A stream that is damaged; a writer that takes no more.
pub fn convert<R: Read>(
    mut stream: StreamReader<R>,
    mode: Mode,
    out: &mut impl Write,
) -> Result<Converted, Error> {
    let mut codes: Vec<Code> = Vec::new();
    let mut converted = Converted::default();
    let mut open: Option<Open> = None;
    while let Some(step) = stream.next()? {
        match step {
            Step::Instruction { address, length, bytes, .. } => {
                codes.push(Code::of(address, &bytes[..length.into()]));
            }
            Step::Execute(number) => {
                let next = codes.get(number as usize).map(|code| code.address);
                close(open.take(), &codes, next, mode, &mut converted, out)?;
                let (writes, reads) = ([0; WRITES], [0; READS]);
                open = Some(Open { code: number as usize, writes, reads, seen: [0; 2] });
            }
            Step::Read(address) => access(&mut open, address, false),
            Step::Write(address) => access(&mut open, address, true),
            Step::End { .. } => close(open.take(), &codes, None, mode, &mut converted, out)?,
        }
    }
    Ok(converted)
}

/// The same, compressed by gzip, which ChampSim reads by itself.
///
/// # Errors
/// As [`convert`].
pub fn convert_packed<R: Read>(
    stream: StreamReader<R>,
    mode: Mode,
    out: &mut impl Write,
) -> Result<Converted, Error> {
    let mut packed = GzEncoder::new(out, Compression::fast());
    let converted = convert(stream, mode, &mut packed)?;
    packed.finish().map_err(Error::Write)?;
    Ok(converted)
}

fn access(open: &mut Option<Open>, address: u64, store: bool) {
    let Some(open) = open else { return };
    let slots: &mut [u64] = if store { &mut open.writes } else { &mut open.reads };
    if let Some(slot) = slots.get_mut(open.seen[usize::from(store)]) {
        *slot = address;
    }
    open.seen[usize::from(store)] += 1;
}

/// Writes an instruction, after which the one at `next` was executed.
fn close(
    open: Option<Open>,
    codes: &[Code],
    next: Option<u64>,
    mode: Mode,
    converted: &mut Converted,
    out: &mut impl Write,
) -> Result<(), Error> {
    let Some(open) = open else { return Ok(()) };
    let Some(code) = codes.get(open.code).filter(|code| mode.has(code.address)) else { return Ok(()) };
    let taken = match (code.class, next) {
        (Class::Straight, _) => false,
        (Class::Conditional { .. }, None) => return Ok(()),
        (Class::Conditional { target }, Some(next)) => {
            converted.guessed += u64::from(next != target && next != code.end);
            next == target
        }
        (Class::Always, _) => true,
    };
    let is_branch = code.class != Class::Straight;
    converted.instructions += 1;
    converted.kernel += u64::from(Mode::Kernel.has(code.address));
    converted.branches += u64::from(is_branch);
    converted.taken += u64::from(taken);
    converted.undecoded += u64::from(code.is_unknown);
    let [reads, writes] = open.seen;
    converted.reads += reads.min(READS) as u64;
    converted.writes += writes.min(WRITES) as u64;
    converted.left_out += (reads.saturating_sub(READS) + writes.saturating_sub(WRITES)) as u64;
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&code.address.to_le_bytes());
    record[8] = is_branch.into();
    record[9] = taken.into();
    record[10..12].copy_from_slice(&code.written);
    record[12..16].copy_from_slice(&code.read);
    for (slot, address) in record[16..].chunks_exact_mut(8).zip(open.writes.iter().chain(&open.reads)) {
        slot.copy_from_slice(&address.to_le_bytes());
    }
    out.write_all(&record).map_err(Error::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_trace::stream::{pack, MOST_BYTES};

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn stream(steps: &[Step]) -> StreamReader<io::Cursor<Vec<u8>>> {
        let mut records = Vec::new();
        steps.iter().for_each(|step| step.write(&mut records).unwrap());
        StreamReader::new(io::Cursor::new(pack(&records).unwrap())).unwrap()
    }

    fn code(number: u32, address: u64, bytes: &[u8]) -> Step {
        let mut all = [0; MOST_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        Step::Instruction { number, address, length: bytes.len() as u8, bytes: all }
    }

    struct Record {
        address: u64,
        branch: [u8; 2],
        written: Vec<u8>,
        read: Vec<u8>,
        memory: Vec<u64>,
    }

    /// As ChampSim's header says it, and not as it is written above.
    fn records(bytes: &[u8]) -> Vec<Record> {
        let word = |at: &[u8]| u64::from_le_bytes(at.try_into().unwrap());
        bytes
            .chunks_exact(64)
            .map(|record| Record {
                address: word(&record[0..8]),
                branch: [record[8], record[9]],
                written: record[10..12].to_vec(),
                read: record[12..16].to_vec(),
                memory: record[16..64].chunks_exact(8).map(word).collect(),
            })
            .collect()
    }

    #[test]
    fn a_loop_with_a_call_is_what_champsim_expects() {
        let at = |offset: u64| KERNEL + offset;
        let steps = [
            code(0, at(0), &[0x48, 0x8b, 0x07]),             // mov rax, [rdi]
            code(1, at(3), &[0xe8, 0x00, 0x00, 0x00, 0x00]), // call at(8)
            code(2, at(8), &[0xc3]),                         // ret
            code(3, at(0x10), &[0x75, 0xee]),                // jne at(0)
            code(4, at(0x12), &[0xff, 0xe0]),                // jmp rax
            code(5, 0x1000, &[0x0f, 0x05]),                  // syscall
            Step::Execute(0),
            Step::Read(0x7000),
            Step::Execute(1),
            Step::Write(0x8ff8),
            Step::Execute(2),
            Step::Read(0x8ff8),
            Step::Execute(3),
            Step::Execute(0),
            Step::Read(0x7000),
            Step::Execute(3),
            Step::Execute(4),
            Step::Execute(5),
            Step::Execute(3),
            Step::End { instructions: 9 },
        ];
        let mut out = Vec::new();
        let converted = convert(stream(&steps), Mode::All, &mut out).unwrap();
        let all = records(&out);
        assert_eq!(
            converted,
            Converted {
                instructions: 8,
                kernel: 7,
                branches: 6,
                taken: 5,
                reads: 3,
                writes: 1,
                ..Converted::default()
            }
        );
        let addresses: Vec<u64> = all.iter().map(|record| record.address).collect();
        assert_eq!(
            addresses,
            [at(0), at(3), at(8), at(0x10), at(0), at(0x10), at(0x12), 0x1000],
            "the last branch went nobody knows where"
        );
        let branches: Vec<[u8; 2]> = all.iter().map(|record| record.branch).collect();
        assert_eq!(branches, [[0, 0], [1, 1], [1, 1], [1, 1], [0, 0], [1, 0], [1, 1], [1, 1]]);
        // rdi is read and rax is written.
        assert_eq!((&all[0].read, &all[0].written), (&vec![8, 0, 0, 0], &vec![1, 0]));
        assert_eq!(all[0].memory, [0, 0, 0x7000, 0, 0, 0]);
        assert_eq!(all[1].memory, [0x8ff8, 0, 0, 0, 0, 0]);
        // ChampSim: a call reads both pointers and writes both; a return reads the stack's alone; a conditional branch reads
        // the instruction pointer and the flags; an indirect jump reads something else and no instruction pointer.
        assert_eq!((&all[1].read, &all[1].written), (&vec![26, 6, 0, 0], &vec![26, 6]));
        assert_eq!((&all[2].read, &all[2].written), (&vec![6, 0, 0, 0], &vec![26, 6]));
        assert_eq!((&all[3].read, &all[3].written), (&vec![26, 25, 0, 0], &vec![26, 0]));
        assert_eq!((&all[6].read, &all[6].written), (&vec![1, 0, 0, 0], &vec![26, 0]));
        assert!(all[7].written == [26, 0] && !all[7].read.contains(&26) && all[7].read[0] != 0, "no call");

        let mut packed = Vec::new();
        assert_eq!(convert_packed(stream(&steps), Mode::All, &mut packed).unwrap(), converted);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, out);
        let kernel = convert(stream(&steps), Mode::Kernel, &mut Vec::new()).unwrap();
        let user = convert(stream(&steps), Mode::User, &mut Vec::new()).unwrap();
        assert_eq!((kernel.instructions, user.instructions), (7, 1));
    }

    #[test]
    fn what_has_no_room_and_what_nobody_knows_is_counted() {
        let mut steps = vec![
            code(0, KERNEL, &[0x0f, 0x0b, 0xff]), // no instruction, and an undefined one
            code(1, KERNEL + 3, &[0x74, 0x10]),
            code(2, KERNEL + 0x999, &[0x90]),
            Step::Execute(0),
        ];
        steps.extend([Step::Read(1); 6]);
        steps.extend([Step::Write(1); 3]);
        // An interrupt came after the branch.
        steps.extend([Step::Execute(1), Step::Execute(2), Step::End { instructions: 3 }]);
        let mut out = Vec::new();
        let converted = convert(stream(&steps), Mode::All, &mut out).unwrap();
        assert_eq!((converted.left_out, converted.guessed, converted.taken), (3, 1, 0));
        assert_eq!((converted.reads, converted.writes), (4, 2));
        assert_eq!(records(&out)[1].branch, [1, 0]);
    }

    #[test]
    fn a_stream_that_stops_is_refused() {
        let steps = [code(0, KERNEL, &[0x90]), Step::Execute(0)];
        let error = convert(stream(&steps), Mode::All, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("instruction stream ends in the middle"), "{error}");
    }
}
