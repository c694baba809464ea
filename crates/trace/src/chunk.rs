//! Binary layout of the trace file: a header, then chunks that can each be read alone.
//!
//! All numbers are little endian. The file begins with magic `KTTRACE\0`, version u32, flags u32
//! (bit 0: wide, see [`TraceHeader::wide`]). A chunk begins with magic `KTCH`, vcpu u32, sequence
//! u32, events u32, begin u64 (virtual ns), end u64, state u32 (bytes), payload u32 (bytes, raw),
//! compressed u32 (bytes that follow). One zstd frame with a checksum follows; it holds the
//! [`ChunkState`], then the payload.

use crate::{check_version, EnterKind, Error, VERSION};

/// Size of an encoded [`TraceHeader`], in bytes.
pub const TRACE_HEADER_BYTES: usize = 16;
/// Size of an encoded [`ChunkHeader`], in bytes.
pub const CHUNK_HEADER_BYTES: usize = 44;

const TRACE_MAGIC: [u8; 8] = *b"KTTRACE\0";
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"KTCH");

const WIDE: u32 = 1;

/// Header of the trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHeader {
    /// True if every event carries [`crate::EventWeights`].
    pub wide: bool,
}

impl TraceHeader {
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; TRACE_HEADER_BYTES] {
        let mut out = [0; TRACE_HEADER_BYTES];
        out[..8].copy_from_slice(&TRACE_MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..].copy_from_slice(&u32::from(self.wide).to_le_bytes());
        out
    }

    /// Parses a header and checks its magic and version.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let found: [u8; 8] = read(bytes, 0, "trace")?;
        if found != TRACE_MAGIC {
            return Err(Error::Magic { what: "trace", found });
        }
        check_version("trace", u32::from_le_bytes(read(bytes, 8, "trace")?))?;
        match u32::from_le_bytes(read(bytes, 12, "trace")?) {
            flags @ 0..=WIDE => Ok(Self { wide: flags == WIDE }),
            flags => Err(Error::Invalid { what: "trace", found: flags.into(), at: 12 }),
        }
    }
}

/// Header of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Virtual CPU that executes where the chunk begins.
    pub vcpu: u32,
    /// Number of the chunk in the trace, from 0.
    pub sequence: u32,
    /// Number of events in the chunk.
    pub events: u32,
    /// Virtual time of the chunk's beginning, in ns.
    pub begin: u64,
    /// Virtual time of the chunk's last event, in ns.
    pub end: u64,
    /// Size of the encoded [`ChunkState`] before compression, in bytes.
    pub state: u32,
    /// Size of the encoded events before compression, in bytes.
    pub payload: u32,
    /// Size of the zstd frame that follows, in bytes.
    pub compressed: u32,
}

impl ChunkHeader {
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut out = Vec::with_capacity(CHUNK_HEADER_BYTES);
        for word in [CHUNK_MAGIC, self.vcpu, self.sequence, self.events] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.begin.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        for word in [self.state, self.payload, self.compressed] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let mut fixed = [0; CHUNK_HEADER_BYTES];
        fixed.copy_from_slice(&out);
        fixed
    }

    /// Parses a header and rejects sizes beyond fixed limits, so that a damaged header cannot
    /// exhaust memory.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let word = |at| read(bytes, at, "chunk header").map(u32::from_le_bytes);
        let long = |at| read(bytes, at, "chunk header").map(u64::from_le_bytes);
        let magic = word(0)?;
        if magic != CHUNK_MAGIC {
            return Err(Error::Invalid { what: "chunk header", found: magic.into(), at: 0 });
        }
        let header = Self {
            vcpu: word(4)?,
            sequence: word(8)?,
            events: word(12)?,
            begin: long(16)?,
            end: long(24)?,
            state: word(32)?,
            payload: word(36)?,
            compressed: word(40)?,
        };
        for (at, size) in [(32, header.state), (36, header.payload), (40, header.compressed)] {
            if size > 1 << 28 {
                return Err(Error::Invalid { what: "chunk header", found: size.into(), at });
            }
        }
        Ok(header)
    }
}

/// State of the machine where a chunk begins. It makes the chunk readable without the earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkState {
    /// True if the executing CPU is in user mode.
    pub user: bool,
    /// CPUs that do not execute now; their time stands still.
    pub waiting: Vec<WaitingCpu>,
    /// Open regions as indices into [`crate::Recording::regions`], outermost first.
    pub regions: Vec<u32>,
    /// Stacks of all threads with open frames and of the running thread.
    pub stacks: Vec<OpenStack>,
}

/// CPU that waits for its turn, or is halted, where a chunk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingCpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Thread that runs on the CPU, as an index into [`crate::Recording::threads`].
    pub thread: u32,
    /// True if the CPU is in user mode.
    pub user: bool,
    /// True if the CPU is halted; false if it only waits for its turn.
    pub halted: bool,
}

impl WaitingCpu {
    /// Size of an encoded CPU, in bytes.
    const BYTES: usize = 10;
}

impl ChunkState {
    /// Appends the part of the state that precedes the stacks ([`OpenStack::write`]).
    ///
    /// Format: user u8; number of waiting CPUs u32, then for each cpu u32, thread u32, user u8,
    /// halted u8; number of open regions u32, then their indices u32.
    pub fn write_head(
        user: bool,
        waiting: impl ExactSizeIterator<Item = WaitingCpu>,
        regions: impl ExactSizeIterator<Item = u32>,
        out: &mut Vec<u8>,
    ) {
        out.push(user.into());
        out.extend_from_slice(&(waiting.len() as u32).to_le_bytes());
        for WaitingCpu { cpu, thread, user, halted } in waiting {
            out.extend_from_slice(&cpu.to_le_bytes());
            out.extend_from_slice(&thread.to_le_bytes());
            out.push(user.into());
            out.push(halted.into());
        }
        out.extend_from_slice(&(regions.len() as u32).to_le_bytes());
        for region in regions {
            out.extend_from_slice(&region.to_le_bytes());
        }
    }

    /// Appends the whole encoded state.
    pub fn write(&self, out: &mut Vec<u8>) {
        Self::write_head(self.user, self.waiting.iter().copied(), self.regions.iter().copied(), out);
        for stack in &self.stacks {
            OpenStack::write(stack.thread, stack.running, &stack.frames, out);
        }
    }

    /// Parses the state of a chunk.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "chunk's CPUs and open regions";
        let flag = |at| match read(bytes, at, WHAT)? {
            [flag @ (0 | 1)] => Ok(flag == 1),
            [found] => Err(Error::Invalid { what: WHAT, found: found.into(), at }),
        };
        let word = |at| read(bytes, at, WHAT).map(u32::from_le_bytes);
        // Check that the bytes of a list exist before memory is reserved for it.
        let list = |at: usize, size: usize| {
            let count = word(at)? as usize;
            let end = count.checked_mul(size).and_then(|length| length.checked_add(at + 4));
            match end.filter(|&end| end <= bytes.len()) {
                Some(end) => Ok((at + 4..end).step_by(size)),
                None => Err(Error::Truncated { what: WHAT, at: bytes.len() }),
            }
        };
        let user = flag(0)?;
        let cpus = list(1, WaitingCpu::BYTES)?;
        let after = 5 + cpus.len() * WaitingCpu::BYTES;
        let waiting = cpus.map(|at| {
            let (user, halted) = (flag(at + 8)?, flag(at + 9)?);
            Ok(WaitingCpu { cpu: word(at)?, thread: word(at + 4)?, user, halted })
        });
        let waiting = waiting.collect::<Result<_, Error>>()?;
        let open = list(after, 4)?;
        let end = after + 4 + open.len() * 4;
        let regions = open.map(word).collect::<Result<_, Error>>()?;
        Ok(Self { user, waiting, regions, stacks: OpenStack::parse_all(&bytes[end..])? })
    }
}

/// Open frames of one thread where a chunk begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStack {
    /// Thread as an index into [`crate::Recording::threads`].
    pub thread: u32,
    /// True if this thread runs.
    pub running: bool,
    /// Function index and kind of entry of each frame, outermost first.
    pub frames: Vec<(u32, EnterKind)>,
}

impl OpenStack {
    /// Appends one encoded stack: thread u32, running u8, frame count u32, then for each frame
    /// function u32 and kind u8.
    pub fn write(thread: u32, running: bool, frames: &[(u32, EnterKind)], out: &mut Vec<u8>) {
        out.extend_from_slice(&thread.to_le_bytes());
        out.push(running.into());
        out.extend_from_slice(&(frames.len() as u32).to_le_bytes());
        for (function, how) in frames {
            out.extend_from_slice(&function.to_le_bytes());
            out.push(*how as u8);
        }
    }

    /// Parses all stacks of a chunk.
    pub fn parse_all(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        const WHAT: &str = "chunk's open stacks";
        let mut stacks = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let thread = u32::from_le_bytes(read(bytes, at, WHAT)?);
            let [running] = read(bytes, at + 4, WHAT)?;
            let count = u32::from_le_bytes(read(bytes, at + 5, WHAT)?);
            at += 9;
            let mut frames = Vec::new();
            for _ in 0..count {
                let function = u32::from_le_bytes(read(bytes, at, WHAT)?);
                let [code] = read(bytes, at + 4, WHAT)?;
                let how = EnterKind::from_code(code).ok_or(Error::Invalid {
                    what: WHAT,
                    found: code.into(),
                    at: at + 4,
                })?;
                frames.push((function, how));
                at += 5;
            }
            stacks.push(Self { thread, running: running != 0, frames });
        }
        Ok(stacks)
    }
}

/// Returns the `N` bytes at offset `at`, or an error if the buffer is shorter.
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize, what: &'static str) -> Result<[u8; N], Error> {
    bytes
        .get(at..at + N)
        .and_then(|slice| slice.try_into().ok())
        .ok_or(Error::Truncated { what, at: bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_stacks_round_trip() {
        for wide in [false, true] {
            let header = TraceHeader { wide };
            assert_eq!(TraceHeader::parse(&header.to_bytes()), Ok(header));
        }
        let header = ChunkHeader {
            vcpu: 1,
            sequence: 2,
            events: 3,
            begin: 4,
            end: 5,
            state: 6,
            payload: 7,
            compressed: 8,
        };
        assert_eq!(ChunkHeader::parse(&header.to_bytes()), Ok(header));
        let stack = OpenStack {
            thread: 3,
            running: true,
            frames: vec![(9, EnterKind::Syscall), (70_000, EnterKind::Jump)],
        };
        let waiting = vec![
            WaitingCpu { cpu: 2, thread: 70_000, user: true, halted: false },
            WaitingCpu { cpu: 0, thread: 1, user: false, halted: true },
        ];
        let state = ChunkState { user: true, waiting, regions: vec![4, 9], stacks: vec![stack] };
        let mut bytes = Vec::new();
        state.write(&mut bytes);
        assert_eq!(ChunkState::parse(&bytes), Ok(state));
        assert!(ChunkState::parse(&bytes[..bytes.len() - 1]).is_err());
        assert!((0..37).all(|length| ChunkState::parse(&bytes[..length]).is_err()));
    }

    #[test]
    fn foreign_files_are_refused_by_name() {
        let error = TraceHeader::parse(b"\x7fELF\x02\x01\x01\0\0\0\0\0").unwrap_err();
        assert!(error.to_string().contains("not a kerntune trace"));
    }
}
