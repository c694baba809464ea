//! ChampSim's traces: 64 bytes for each executed instruction (`struct input_instr` of its
//! `inc/trace_instruction.h`).
//!
//! All fields are little-endian. A record has the address (u64), one byte each for "is a branch",
//! "was taken", 2 registers written and 4 read, and then 2 addresses written and 4 read, u64 each.
//! 0 stands for none. ChampSim derives the kind of a branch from the registers; the numbers
//! [`STACK_POINTER`], [`FLAGS`] and [`INSTRUCTION_POINTER`] are ChampSim's own. Accesses that do
//! not fit are left out and counted.

mod code;
mod export;

use code::{DecodedInstruction, FlowClass};
use flate2::write::GzEncoder;
use flate2::Compression;
use kerntune_command::Room;
use kerntune_trace::stream::{StreamError, StreamReader, StreamRecord};
use std::io::{self, Read, Write};

/// The export format `champsim`.
pub static ROOM: Room =
    Room { exports: &[&export::ENTRY], examples: include_str!("examples.tsv"), ..Room::EMPTY };

/// ChampSim's number of the stack pointer.
pub const STACK_POINTER: u8 = 6;
/// ChampSim's number of the flags.
pub const FLAGS: u8 = 25;
/// ChampSim's number of the instruction pointer.
pub const INSTRUCTION_POINTER: u8 = 26;

/// Size of a record in bytes.
pub const RECORD_BYTES: usize = 64;

/// Number of addresses written and read that fit into a record.
const WRITES: usize = 2;
const READS: usize = 4;

/// Selection of the instructions to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionFilter {
    /// All instructions.
    All,
    /// Instructions of the kernel.
    Kernel,
    /// Instructions of user programs.
    User,
}

impl InstructionFilter {
    fn has(self, address: u64) -> bool {
        match self {
            InstructionFilter::All => true,
            InstructionFilter::Kernel => address >> 63 == 1,
            InstructionFilter::User => address >> 63 == 0,
        }
    }
}

/// Totals of a converted trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChampSimTotals {
    /// Number of records.
    pub instructions: u64,
    /// Records at kernel addresses.
    pub kernel: u64,
    /// Number of branches.
    pub branches: u64,
    /// Number of taken branches.
    pub taken: u64,
    /// Number of addresses read.
    pub reads: u64,
    /// Number of addresses written.
    pub writes: u64,
    /// Accesses that did not fit into a record.
    pub left_out: u64,
    /// Conditional branches followed by an interrupt; they are assumed not taken.
    pub guessed: u64,
    /// Undecodable instructions, which have no registers.
    pub undecoded: u64,
}

/// Failure to convert a trace.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum ChampSimError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("cannot write the trace: {0}")]
    Write(io::Error),
}

/// Executed instruction whose successor is not known yet.
struct PendingInstruction {
    code: usize,
    writes: [u64; WRITES],
    reads: [u64; READS],
    /// Numbers of reads and writes, including those without a slot.
    seen: [usize; 2],
}

/// Converts a stream. A conditional branch at its end is left out, because its outcome is unknown.
///
/// # Errors
/// A damaged stream; a writer that fails.
pub fn convert<R: Read>(
    mut stream: StreamReader<R>,
    mode: InstructionFilter,
    out: &mut impl Write,
) -> Result<ChampSimTotals, ChampSimError> {
    let mut codes: Vec<DecodedInstruction> = Vec::new();
    let mut converted = ChampSimTotals::default();
    let mut open: Option<PendingInstruction> = None;
    while let Some(step) = stream.next()? {
        match step {
            StreamRecord::Instruction { address, length, bytes, .. } => {
                codes.push(DecodedInstruction::of(address, &bytes[..length.into()]));
            }
            StreamRecord::Execute(number) => {
                let next = codes.get(number as usize).map(|code| code.address);
                close(open.take(), &codes, next, mode, &mut converted, out)?;
                let (writes, reads) = ([0; WRITES], [0; READS]);
                open = Some(PendingInstruction { code: number as usize, writes, reads, seen: [0; 2] });
            }
            StreamRecord::Read(address) => access(&mut open, address, false),
            StreamRecord::Write(address) => access(&mut open, address, true),
            StreamRecord::End { .. } => close(open.take(), &codes, None, mode, &mut converted, out)?,
        }
    }
    Ok(converted)
}

/// Converts a stream to a trace compressed by gzip, which ChampSim reads directly.
///
/// # Errors
/// Those of [`convert`].
pub fn convert_packed<R: Read>(
    stream: StreamReader<R>,
    mode: InstructionFilter,
    out: &mut impl Write,
) -> Result<ChampSimTotals, ChampSimError> {
    let mut packed = GzEncoder::new(out, Compression::fast());
    let converted = convert(stream, mode, &mut packed)?;
    packed.finish().map_err(ChampSimError::Write)?;
    Ok(converted)
}

fn access(open: &mut Option<PendingInstruction>, address: u64, store: bool) {
    let Some(open) = open else { return };
    let slots: &mut [u64] = if store { &mut open.writes } else { &mut open.reads };
    if let Some(slot) = slots.get_mut(open.seen[usize::from(store)]) {
        *slot = address;
    }
    open.seen[usize::from(store)] += 1;
}

/// Writes a pending instruction, now that the next one at `next` is known.
fn close(
    open: Option<PendingInstruction>,
    codes: &[DecodedInstruction],
    next: Option<u64>,
    mode: InstructionFilter,
    converted: &mut ChampSimTotals,
    out: &mut impl Write,
) -> Result<(), ChampSimError> {
    let Some(open) = open else { return Ok(()) };
    let Some(code) = codes.get(open.code).filter(|code| mode.has(code.address)) else { return Ok(()) };
    let taken = match (code.class, next) {
        (FlowClass::Straight, _) => false,
        (FlowClass::Conditional { .. }, None) => return Ok(()),
        (FlowClass::Conditional { target }, Some(next)) => {
            converted.guessed += u64::from(next != target && next != code.end);
            next == target
        }
        (FlowClass::Always, _) => true,
    };
    let is_branch = code.class != FlowClass::Straight;
    converted.instructions += 1;
    converted.kernel += u64::from(InstructionFilter::Kernel.has(code.address));
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
    out.write_all(&record).map_err(ChampSimError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_trace::stream::{pack, MAX_INSN_BYTES};

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn stream(steps: &[StreamRecord]) -> StreamReader<io::Cursor<Vec<u8>>> {
        let mut records = Vec::new();
        steps.iter().for_each(|step| step.write(&mut records).unwrap());
        StreamReader::new(io::Cursor::new(pack(&records).unwrap())).unwrap()
    }

    fn code(number: u32, address: u64, bytes: &[u8]) -> StreamRecord {
        let mut all = [0; MAX_INSN_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        StreamRecord::Instruction { number, address, length: bytes.len() as u8, bytes: all }
    }

    struct InputInstruction {
        address: u64,
        branch: [u8; 2],
        written: Vec<u8>,
        read: Vec<u8>,
        memory: Vec<u64>,
    }

    /// Reads records by ChampSim's header, independently of the writer above.
    fn records(bytes: &[u8]) -> Vec<InputInstruction> {
        let word = |at: &[u8]| u64::from_le_bytes(at.try_into().unwrap());
        bytes
            .chunks_exact(64)
            .map(|record| InputInstruction {
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
            StreamRecord::Execute(0),
            StreamRecord::Read(0x7000),
            StreamRecord::Execute(1),
            StreamRecord::Write(0x8ff8),
            StreamRecord::Execute(2),
            StreamRecord::Read(0x8ff8),
            StreamRecord::Execute(3),
            StreamRecord::Execute(0),
            StreamRecord::Read(0x7000),
            StreamRecord::Execute(3),
            StreamRecord::Execute(4),
            StreamRecord::Execute(5),
            StreamRecord::Execute(3),
            StreamRecord::End { instructions: 9 },
        ];
        let mut out = Vec::new();
        let converted = convert(stream(&steps), InstructionFilter::All, &mut out).unwrap();
        let all = records(&out);
        assert_eq!(
            converted,
            ChampSimTotals {
                instructions: 8,
                kernel: 7,
                branches: 6,
                taken: 5,
                reads: 3,
                writes: 1,
                ..ChampSimTotals::default()
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
        // ChampSim: a call reads and writes both pointers; a return reads only the stack pointer; a
        // conditional branch reads the instruction pointer and the flags; an indirect jump reads
        // something else and no instruction pointer.
        assert_eq!((&all[1].read, &all[1].written), (&vec![26, 6, 0, 0], &vec![26, 6]));
        assert_eq!((&all[2].read, &all[2].written), (&vec![6, 0, 0, 0], &vec![26, 6]));
        assert_eq!((&all[3].read, &all[3].written), (&vec![26, 25, 0, 0], &vec![26, 0]));
        assert_eq!((&all[6].read, &all[6].written), (&vec![1, 0, 0, 0], &vec![26, 0]));
        assert!(all[7].written == [26, 0] && !all[7].read.contains(&26) && all[7].read[0] != 0, "no call");

        let mut packed = Vec::new();
        assert_eq!(convert_packed(stream(&steps), InstructionFilter::All, &mut packed).unwrap(), converted);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, out);
        let kernel = convert(stream(&steps), InstructionFilter::Kernel, &mut Vec::new()).unwrap();
        let user = convert(stream(&steps), InstructionFilter::User, &mut Vec::new()).unwrap();
        assert_eq!((kernel.instructions, user.instructions), (7, 1));
    }

    #[test]
    fn what_has_no_room_and_what_nobody_knows_is_counted() {
        let mut steps = vec![
            code(0, KERNEL, &[0x0f, 0x0b, 0xff]), // no instruction, and an undefined one
            code(1, KERNEL + 3, &[0x74, 0x10]),
            code(2, KERNEL + 0x999, &[0x90]),
            StreamRecord::Execute(0),
        ];
        steps.extend([StreamRecord::Read(1); 6]);
        steps.extend([StreamRecord::Write(1); 3]);
        // An interrupt came after the branch.
        steps.extend([
            StreamRecord::Execute(1),
            StreamRecord::Execute(2),
            StreamRecord::End { instructions: 3 },
        ]);
        let mut out = Vec::new();
        let converted = convert(stream(&steps), InstructionFilter::All, &mut out).unwrap();
        assert_eq!((converted.left_out, converted.guessed, converted.taken), (3, 1, 0));
        assert_eq!((converted.reads, converted.writes), (4, 2));
        assert_eq!(records(&out)[1].branch, [1, 0]);
    }

    #[test]
    fn a_stream_that_stops_is_refused() {
        let steps = [code(0, KERNEL, &[0x90]), StreamRecord::Execute(0)];
        let error = convert(stream(&steps), InstructionFilter::All, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("instruction stream ends in the middle"), "{error}");
    }
}
