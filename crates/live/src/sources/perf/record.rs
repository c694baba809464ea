//! Records in perf's buffers (`include/uapi/linux/perf_event.h`).
//!
//! Only the records that the collector requests are parsed. Every field is bounds-checked, and
//! nothing is allocated (docs/decisions/0024-own-readers-of-kernel-data.md).

use perf_event_open_sys::bindings::{
    PERF_CONTEXT_KERNEL as KERNEL, PERF_CONTEXT_MAX as FIRST_MARKER, PERF_CONTEXT_USER as USER,
    PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER as UNREGISTER, PERF_RECORD_KSYMBOL_TYPE_BPF as BPF,
    PERF_RECORD_MISC_COMM_EXEC as EXEC, PERF_RECORD_MISC_CPUMODE_MASK as MODE,
    PERF_RECORD_MISC_GUEST_USER as GUEST_USER, PERF_RECORD_MISC_USER as HOST_USER,
};

/// Record types.
mod kind {
    pub use perf_event_open_sys::bindings::{
        PERF_RECORD_COMM as COMM, PERF_RECORD_EXIT as EXIT, PERF_RECORD_FORK as FORK,
        PERF_RECORD_KSYMBOL as KSYMBOL, PERF_RECORD_LOST as LOST, PERF_RECORD_LOST_SAMPLES as LOST_SAMPLES,
        PERF_RECORD_MMAP2 as MMAP2, PERF_RECORD_SAMPLE as SAMPLE, PERF_RECORD_THROTTLE as THROTTLE,
    };
}

/// Protection flag of executable mappings (`PROT_EXEC`).
const EXECUTABLE: u32 = 4;
/// Maximum number of frames read; the kernel's default limit is 127.
const MAX_FRAMES: usize = 1024;

/// Optional fields of a sample. Instruction, thread, time and call chain are always present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleLayout {
    /// Number of events that the sample stands for.
    pub period: bool,
    /// Raw bytes of a tracepoint.
    pub raw: bool,
}

/// Reusable buffer for a call chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallChain {
    /// Kernel part, innermost first.
    pub kernel: Vec<u64>,
    /// User part, innermost first.
    pub user: Vec<u64>,
}

impl CallChain {
    /// Creates a buffer for this many frames in each part.
    pub fn with_capacity(frames: usize) -> Self {
        Self { kernel: Vec::with_capacity(frames), user: Vec::with_capacity(frames) }
    }

    fn clear(&mut self) {
        self.kernel.clear();
        self.user.clear();
    }
}

/// Parsed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerfRecord<'a> {
    /// Sample; its call chain is in the [`CallChain`].
    Sample {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// Address of the instruction.
        ip: u64,
        /// True if the CPU was in user mode.
        is_user: bool,
        /// Number of events that the sample stands for; 1 if not recorded.
        period: u64,
        /// Raw bytes of the tracepoint; empty if not recorded.
        raw: &'a [u8],
    },
    /// New name of a thread.
    Comm {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// Name, up to the first NUL.
        name: &'a [u8],
        /// True if the thread executed a program.
        exec: bool,
    },
    /// Start of a thread.
    Fork {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// Thread id of the parent.
        parent: u32,
        /// Process id of the parent.
        parent_process: u32,
    },
    /// New executable mapping of a process.
    Mapped {
        /// Process id.
        pid: u32,
        /// Address of the first byte.
        begin: u64,
        /// Size in bytes.
        size: u64,
        /// Offset in the file.
        offset: u64,
        /// Path of the file, up to the first NUL.
        path: &'a [u8],
    },
    /// End of a thread.
    Exit {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
    },
    /// Number of records lost because the buffer was full.
    Lost(u64),
    /// Temporarily reduced sampling rate.
    Throttled,
    /// Loaded or removed code.
    Symbol {
        /// Address of the first byte.
        address: u64,
        /// Size in bytes.
        size: u32,
        /// True for a BPF program.
        is_bpf: bool,
        /// True if the code was removed.
        gone: bool,
        /// Name, up to the first NUL.
        name: &'a [u8],
    },
    /// Any other record.
    Other,
}

/// Reader of consecutive fields.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
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

    /// Returns the rest, up to the first NUL.
    fn text(&self) -> &'a [u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Parses a record of this type; `body` follows its header. Returns `None` if the record is
/// damaged.
pub fn parse<'a>(
    kind: u32,
    misc: u16,
    body: &'a [u8],
    layout: SampleLayout,
    chain: &mut CallChain,
) -> Option<PerfRecord<'a>> {
    let (mut fields, misc) = (FieldReader(body), u32::from(misc));
    Some(match kind {
        kind::SAMPLE => sample(fields, matches!(misc & MODE, HOST_USER | GUEST_USER), layout, chain)?,
        kind::COMM => {
            let (pid, tid) = (fields.u32()?, fields.u32()?);
            PerfRecord::Comm { pid, tid, name: fields.text(), exec: misc & EXEC != 0 }
        }
        kind::FORK => {
            let (pid, parent_process, tid, parent) =
                (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            PerfRecord::Fork { pid, tid, parent, parent_process }
        }
        kind::EXIT => {
            let (pid, _, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
            PerfRecord::Exit { pid, tid }
        }
        kind::MMAP2 => {
            let (pid, _) = (fields.u32()?, fields.u32()?);
            let (begin, size, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            // Device, inode and generation, or a build id.
            fields.array::<24>()?;
            let (rights, _) = (fields.u32()?, fields.u32()?);
            match rights & EXECUTABLE != 0 {
                true => PerfRecord::Mapped { pid, begin, size, offset, path: fields.text() },
                false => PerfRecord::Other,
            }
        }
        kind::LOST => {
            fields.u64()?;
            PerfRecord::Lost(fields.u64()?)
        }
        kind::LOST_SAMPLES => PerfRecord::Lost(fields.u64()?),
        kind::THROTTLE => PerfRecord::Throttled,
        kind::KSYMBOL => {
            let (address, size, what, flags) = (fields.u64()?, fields.u32()?, fields.u16()?, fields.u16()?);
            PerfRecord::Symbol {
                address,
                size,
                is_bpf: u32::from(what) == BPF,
                gone: u32::from(flags) & UNREGISTER != 0,
                name: fields.text(),
            }
        }
        _ => PerfRecord::Other,
    })
}

/// Returns the time of a record: after instruction and thread in a sample, at the end of others
/// (`sample_id_all`).
pub fn time(kind: u32, body: &[u8]) -> Option<u64> {
    let bytes = match kind {
        kind::SAMPLE => body.get(16..)?.first_chunk()?,
        _ => body.last_chunk()?,
    };
    Some(u64::from_ne_bytes(*bytes))
}

fn sample<'a>(
    mut fields: FieldReader<'a>,
    is_user: bool,
    layout: SampleLayout,
    chain: &mut CallChain,
) -> Option<PerfRecord<'a>> {
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
            mark if mark >= FIRST_MARKER => (in_kernel, in_user) = (mark == KERNEL, mark == USER),
            address if in_kernel && chain.kernel.len() < MAX_FRAMES => chain.kernel.push(address),
            address if in_user && chain.user.len() < MAX_FRAMES => chain.user.push(address),
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
    Some(PerfRecord::Sample { pid, tid, ip, is_user, period, raw })
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
        let mut body =
            words(&[0xffff_ffff_8100_0010, thread, 77, 3, 6, KERNEL, 0x10, 0x20, USER, 0x40, 0x50]);
        body.extend(4_u32.to_ne_bytes());
        body.extend(*b"abcd");
        let (mut chain, layout) = (CallChain::default(), SampleLayout { period: true, raw: true });
        let read = parse(kind::SAMPLE, 1, &body, layout, &mut chain).unwrap();
        let ip = 0xffff_ffff_8100_0010;
        assert_eq!(read, PerfRecord::Sample { pid: 7, tid: 8, ip, is_user: false, period: 3, raw: b"abcd" });
        assert_eq!((&chain.kernel[..], &chain.user[..]), (&[0x10, 0x20][..], &[0x40, 0x50][..]));
        assert_eq!(time(kind::SAMPLE, &body), Some(77));
        assert_eq!(time(kind::SAMPLE, &body[..23]), None);
        assert_eq!(parse(kind::SAMPLE, 1, &body[..body.len() - 1], layout, &mut chain), None);
        let forged = words(&[1, thread, 77, 3, u64::MAX]);
        assert_eq!(parse(kind::SAMPLE, 1, &forged, layout, &mut chain), None);
        // In user mode there is no kernel chain; in the kernel it contains at least the
        // instruction.
        let plain = words(&[0x99, thread, 77, 0]);
        parse(kind::SAMPLE, 2, &plain, SampleLayout::default(), &mut chain).unwrap();
        assert_eq!(chain, CallChain::default());
        parse(kind::SAMPLE, 1, &plain, SampleLayout::default(), &mut chain).unwrap();
        assert_eq!(chain.kernel, [0x99]);
    }

    #[test]
    fn names_and_code_are_read_up_to_a_zero() {
        let mut chain = CallChain::default();
        let mut body = [7_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        body.extend(*b"redis\0\0\0");
        body.extend(words(&[0, 78]));
        assert_eq!((time(kind::COMM, &body), time(kind::COMM, b"short")), (Some(78), None));
        let comm = parse(kind::COMM, EXEC as u16, &body, SampleLayout::default(), &mut chain);
        assert_eq!(comm, Some(PerfRecord::Comm { pid: 7, tid: 8, name: b"redis", exec: true }));
        let mut body = words(&[0xf000]);
        body.extend([64_u32.to_ne_bytes(), [1, 0, 1, 0]].concat());
        body.extend(*b"bpf_prog_1\0");
        let symbol = parse(kind::KSYMBOL, 0, &body, SampleLayout::default(), &mut chain);
        let expected =
            PerfRecord::Symbol { address: 0xf000, size: 64, is_bpf: true, gone: true, name: b"bpf_prog_1" };
        assert_eq!(symbol, Some(expected));
        let mut body = words(&[7, 0x5000, 0x1000, 0x200, 0, 0, 0]);
        body.extend([5_u32.to_ne_bytes(), 2_u32.to_ne_bytes()].concat());
        body.extend(*b"/bin/ls\0");
        let mapped = parse(kind::MMAP2, 2, &body, SampleLayout::default(), &mut chain);
        let expected =
            PerfRecord::Mapped { pid: 7, begin: 0x5000, size: 0x1000, offset: 0x200, path: b"/bin/ls" };
        assert_eq!(mapped, Some(expected));
        assert_eq!(parse(99, 0, &[], SampleLayout::default(), &mut chain), Some(PerfRecord::Other));
    }
}
