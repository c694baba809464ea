//! The records that the kernel writes into perf's buffers (`include/uapi/linux/perf_event.h`).
//!
//! Only those that a collector asks for are read; every field is checked to be there. Nothing is allocated.

/// `PERF_RECORD_…`.
mod kind {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const KSYMBOL: u32 = 17;
}

/// The CPU was in user mode, its own or a guest's (`PERF_RECORD_MISC_USER`, `…GUEST_USER`).
const USER_MODES: [u16; 2] = [2, 5];
/// The bits of `misc` that hold the mode.
const MODE: u16 = 7;
/// The name is that of a program that was just started.
const EXEC: u16 = 1 << 13;
/// From here on values in a call chain are marks (`PERF_CONTEXT_MAX`).
const MARKS: u64 = -4095_i64 as u64;
/// What follows is the kernel's part of a chain (`PERF_CONTEXT_KERNEL`).
const KERNEL: u64 = -128_i64 as u64;
/// What follows is the program's part (`PERF_CONTEXT_USER`).
const USER: u64 = -512_i64 as u64;
/// Code that is mapped may be executed (`PROT_EXEC`).
const EXECUTABLE: u32 = 4;
/// The code is gone.
const UNREGISTER: u16 = 1;
/// Code of a BPF program.
const BPF: u16 = 1;
/// Frames that are read of a chain; the kernel's limit is 127 unless somebody raises it.
const FRAMES: usize = 1024;

/// What a sample holds: instruction, thread, time and call chain always, and these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// How many events it stands for.
    pub period: bool,
    /// The bytes of a tracepoint.
    pub raw: bool,
}

/// Room for a call chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// The kernel's part, innermost first.
    pub kernel: Vec<u64>,
    /// The program's part.
    pub user: Vec<u64>,
}

impl Chain {
    /// Room for so many frames of each.
    pub fn with_capacity(frames: usize) -> Self {
        Self { kernel: Vec::with_capacity(frames), user: Vec::with_capacity(frames) }
    }

    fn clear(&mut self) {
        self.kernel.clear();
        self.user.clear();
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// A sample; its call chain is in the [`Chain`].
    Sample {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The instruction.
        ip: u64,
        /// Whether the CPU was in user mode.
        is_user: bool,
        /// Events that it stands for; 1 if it is not told.
        period: u64,
        /// The bytes of a tracepoint; empty if there are none.
        raw: &'a [u8],
    },
    /// A thread has another name.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Up to its first zero.
        name: &'a [u8],
        /// Whether it started a program.
        exec: bool,
    },
    /// A thread began.
    Fork {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Thread that made it.
        parent: u32,
        /// That one's process.
        parent_process: u32,
    },
    /// Code was mapped into a process.
    Mapped {
        /// Process.
        pid: u32,
        /// Its first byte.
        begin: u64,
        /// Bytes.
        size: u64,
        /// Offset in the file.
        offset: u64,
        /// The file's path, up to its first zero.
        path: &'a [u8],
    },
    /// A thread ended.
    Exit {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
    },
    /// Records that found no room.
    Lost(u64),
    /// The kernel takes fewer samples than it was asked for, for a while.
    Throttled,
    /// Code was loaded or is gone.
    Symbol {
        /// Its first byte.
        address: u64,
        /// Bytes.
        size: u32,
        /// Whether it is a BPF program.
        is_bpf: bool,
        /// Whether it is gone.
        gone: bool,
        /// Up to its first zero.
        name: &'a [u8],
    },
    /// Any other.
    Other,
}

/// Reads fields one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    /// What is left, up to its first zero.
    fn text(&self) -> &'a [u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Reads the record of this kind: `body` is what follows its header. `None` if it is damaged.
pub fn parse<'a>(
    kind: u32,
    misc: u16,
    body: &'a [u8],
    layout: Layout,
    chain: &mut Chain,
) -> Option<Record<'a>> {
    let mut fields = Fields(body);
    Some(match kind {
        kind::SAMPLE => sample(fields, USER_MODES.contains(&(misc & MODE)), layout, chain)?,
        kind::COMM => {
            let (pid, tid) = (fields.u32()?, fields.u32()?);
            Record::Comm { pid, tid, name: fields.text(), exec: misc & EXEC != 0 }
        }
        kind::FORK => {
            let (pid, parent_process, tid, parent) =
                (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            Record::Fork { pid, tid, parent, parent_process }
        }
        kind::EXIT => {
            let (pid, _, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
            Record::Exit { pid, tid }
        }
        kind::MMAP2 => {
            let (pid, _) = (fields.u32()?, fields.u32()?);
            let (begin, size, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            // Device, inode and generation, or a build id.
            fields.array::<24>()?;
            let (rights, _) = (fields.u32()?, fields.u32()?);
            match rights & EXECUTABLE != 0 {
                true => Record::Mapped { pid, begin, size, offset, path: fields.text() },
                false => Record::Other,
            }
        }
        kind::LOST => {
            fields.u64()?;
            Record::Lost(fields.u64()?)
        }
        kind::LOST_SAMPLES => Record::Lost(fields.u64()?),
        kind::THROTTLE => Record::Throttled,
        kind::KSYMBOL => {
            let (address, size, what, flags) = (fields.u64()?, fields.u32()?, fields.u16()?, fields.u16()?);
            Record::Symbol {
                address,
                size,
                is_bpf: what == BPF,
                gone: flags & UNREGISTER != 0,
                name: fields.text(),
            }
        }
        _ => Record::Other,
    })
}

/// When a record was made: in a sample behind instruction and thread, in others at their end (`sample_id_all`).
pub fn time(kind: u32, body: &[u8]) -> Option<u64> {
    let bytes = match kind {
        kind::SAMPLE => body.get(16..)?.first_chunk()?,
        _ => body.last_chunk()?,
    };
    Some(u64::from_ne_bytes(*bytes))
}

fn sample<'a>(
    mut fields: Fields<'a>,
    is_user: bool,
    layout: Layout,
    chain: &mut Chain,
) -> Option<Record<'a>> {
    chain.clear();
    let (ip, pid, tid, _time) = (fields.u64()?, fields.u32()?, fields.u32()?, fields.u64()?);
    let period = if layout.period { fields.u64()? } else { 1 };
    let frames = usize::try_from(fields.u64()?).ok()?;
    if frames > fields.0.len() / 8 {
        return None;
    }
    let (mut in_kernel, mut in_user) = (false, false);
    for _ in 0..frames {
        match fields.u64()? {
            mark if mark >= MARKS => (in_kernel, in_user) = (mark == KERNEL, mark == USER),
            address if in_kernel && chain.kernel.len() < FRAMES => chain.kernel.push(address),
            address if in_user && chain.user.len() < FRAMES => chain.user.push(address),
            _ => {}
        }
    }
    if chain.kernel.is_empty() && !is_user {
        chain.kernel.push(ip);
    }
    let mut raw = &[][..];
    if layout.raw {
        let size = fields.u32()? as usize;
        raw = fields.0.get(..size)?;
    }
    Some(Record::Sample { pid, tid, ip, is_user, period, raw })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sample_has_the_kernels_part_of_its_chain() {
        let thread = u64::from_ne_bytes([7, 0, 0, 0, 8, 0, 0, 0]);
        let user = -512_i64 as u64;
        let mut body =
            words(&[0xffff_ffff_8100_0010, thread, 77, 3, 6, KERNEL, 0x10, 0x20, user, 0x40, 0x50]);
        body.extend(4_u32.to_ne_bytes());
        body.extend(*b"abcd");
        let (mut chain, layout) = (Chain::default(), Layout { period: true, raw: true });
        let read = parse(kind::SAMPLE, 1, &body, layout, &mut chain).unwrap();
        let ip = 0xffff_ffff_8100_0010;
        assert_eq!(read, Record::Sample { pid: 7, tid: 8, ip, is_user: false, period: 3, raw: b"abcd" });
        assert_eq!((&chain.kernel[..], &chain.user[..]), (&[0x10, 0x20][..], &[0x40, 0x50][..]));
        assert_eq!(time(kind::SAMPLE, &body), Some(77));
        assert_eq!(time(kind::SAMPLE, &body[..23]), None);
        assert_eq!(parse(kind::SAMPLE, 1, &body[..body.len() - 1], layout, &mut chain), None);
        let forged = words(&[1, thread, 77, 3, u64::MAX]);
        assert_eq!(parse(kind::SAMPLE, 1, &forged, layout, &mut chain), None);
        // In user mode there is no chain of the kernel's; in the kernel there is at least the instruction.
        let plain = words(&[0x99, thread, 77, 0]);
        parse(kind::SAMPLE, 2, &plain, Layout::default(), &mut chain).unwrap();
        assert_eq!(chain, Chain::default());
        parse(kind::SAMPLE, 1, &plain, Layout::default(), &mut chain).unwrap();
        assert_eq!(chain.kernel, [0x99]);
    }

    #[test]
    fn names_and_code_are_read_up_to_a_zero() {
        let mut chain = Chain::default();
        let mut body = [7_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        body.extend(*b"redis\0\0\0");
        body.extend(words(&[0, 78]));
        assert_eq!((time(kind::COMM, &body), time(kind::COMM, b"short")), (Some(78), None));
        let comm = parse(kind::COMM, EXEC, &body, Layout::default(), &mut chain);
        assert_eq!(comm, Some(Record::Comm { pid: 7, tid: 8, name: b"redis", exec: true }));
        let mut body = words(&[0xf000]);
        body.extend([64_u32.to_ne_bytes(), [1, 0, 1, 0]].concat());
        body.extend(*b"bpf_prog_1\0");
        let symbol = parse(kind::KSYMBOL, 0, &body, Layout::default(), &mut chain);
        let expected =
            Record::Symbol { address: 0xf000, size: 64, is_bpf: true, gone: true, name: b"bpf_prog_1" };
        assert_eq!(symbol, Some(expected));
        let mut body = words(&[7, 0x5000, 0x1000, 0x200, 0, 0, 0]);
        body.extend([5_u32.to_ne_bytes(), 2_u32.to_ne_bytes()].concat());
        body.extend(*b"/bin/ls\0");
        let mapped = parse(kind::MMAP2, 2, &body, Layout::default(), &mut chain);
        let expected =
            Record::Mapped { pid: 7, begin: 0x5000, size: 0x1000, offset: 0x200, path: b"/bin/ls" };
        assert_eq!(mapped, Some(expected));
        assert_eq!(parse(99, 0, &[], Layout::default(), &mut chain), Some(Record::Other));
    }
}
