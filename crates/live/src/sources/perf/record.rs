//! Records in perf's buffers, as the sources of this crate need them. The bytes are read by
//! [`kerntune_convert::perf_data`], as those of files are.

use kerntune_convert::perf_data::{CpuMode, PerfEvent, PerfSample};
use perf_event_open_sys::bindings::PERF_RECORD_SAMPLE as SAMPLE;

/// Maximum number of frames kept; the kernel's default limit is 127.
const MAX_FRAMES: usize = 1024;

/// Bits of `sample_type`: instruction, thread, time and call chain, which all samples have; period, raw
/// bytes of a tracepoint.
const ALWAYS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
const PERIOD: u64 = 1 << 8;
const RAW: u64 = 1 << 10;

/// Optional fields of a sample. Instruction, thread, time and call chain are always present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleLayout {
    /// Number of events that the sample stands for.
    pub period: bool,
    /// Raw bytes of a tracepoint.
    pub raw: bool,
}

impl SampleLayout {
    fn event(self) -> PerfEvent {
        let has = |is: bool, bit: u64| if is { bit } else { 0 };
        PerfEvent::of_ring(ALWAYS | has(self.period, PERIOD) | has(self.raw, RAW), 0)
    }
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

/// Parses a record of this type; `body` follows its header. Returns `None` if the record is
/// damaged.
pub fn parse<'a>(
    kind: u32,
    misc: u16,
    body: &'a [u8],
    layout: SampleLayout,
    chain: &mut CallChain,
) -> Option<PerfRecord<'a>> {
    use kerntune_convert::perf_data::PerfRecord as Read;
    if kind == SAMPLE {
        return sample(misc, body, layout, chain);
    }
    Some(match Read::parse(kind, misc, body)? {
        Read::Comm { pid, tid, name, exec } => PerfRecord::Comm { pid, tid, name, exec },
        Read::Fork { pid, tid, parent_process, parent } => {
            PerfRecord::Fork { pid, tid, parent, parent_process }
        }
        Read::Exit { pid, tid } => PerfRecord::Exit { pid, tid },
        Read::Map(map) if !map.is_kernel => PerfRecord::Mapped {
            pid: map.pid,
            begin: map.begin,
            size: map.size,
            offset: map.offset,
            path: map.path,
        },
        Read::Lost(count) | Read::LostSamples(count) => PerfRecord::Lost(count),
        Read::Throttled => PerfRecord::Throttled,
        Read::Symbol { address, size, is_bpf, gone, name } => {
            PerfRecord::Symbol { address, size, is_bpf, gone, name }
        }
        _ => PerfRecord::Other,
    })
}

/// Returns the time of a record: after instruction and thread in a sample, at the end of others
/// (`sample_id_all`).
pub fn time(kind: u32, body: &[u8]) -> Option<u64> {
    SampleLayout::default().event().time_of(kind, body)
}

fn sample<'a>(
    misc: u16,
    body: &'a [u8],
    layout: SampleLayout,
    chain: &mut CallChain,
) -> Option<PerfRecord<'a>> {
    // The chain's lists are lent, so that they keep their memory.
    let (kernel, user) = (std::mem::take(&mut chain.kernel), std::mem::take(&mut chain.user));
    let mut sample = PerfSample { kernel, user, ..PerfSample::default() };
    let read = sample.read(&layout.event(), misc, body);
    let PerfSample { pid, tid, ip, mode, period, raw_at, kernel, user, .. } = sample;
    (chain.kernel, chain.user) = (kernel, user);
    chain.kernel.truncate(MAX_FRAMES);
    chain.user.truncate(MAX_FRAMES);
    read?;
    let is_user = matches!(mode, CpuMode::User | CpuMode::GuestUser);
    if chain.kernel.is_empty() && !is_user {
        chain.kernel.push(ip);
    }
    Some(PerfRecord::Sample { pid, tid, ip, is_user, period: period.unwrap_or(1), raw: body.get(raw_at)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event_open_sys::bindings::{
        PERF_CONTEXT_KERNEL as KERNEL, PERF_CONTEXT_USER as USER, PERF_RECORD_COMM, PERF_RECORD_KSYMBOL,
        PERF_RECORD_MISC_COMM_EXEC as EXEC, PERF_RECORD_MMAP2,
    };

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
        let read = parse(SAMPLE, 1, &body, layout, &mut chain).unwrap();
        let ip = 0xffff_ffff_8100_0010;
        assert_eq!(read, PerfRecord::Sample { pid: 7, tid: 8, ip, is_user: false, period: 3, raw: b"abcd" });
        assert_eq!((&chain.kernel[..], &chain.user[..]), (&[0x10, 0x20][..], &[0x40, 0x50][..]));
        assert_eq!(time(SAMPLE, &body), Some(77));
        assert_eq!(time(SAMPLE, &body[..23]), None);
        assert_eq!(parse(SAMPLE, 1, &body[..body.len() - 1], layout, &mut chain), None);
        let forged = words(&[1, thread, 77, 3, u64::MAX]);
        assert_eq!(parse(SAMPLE, 1, &forged, layout, &mut chain), None);
        // In user mode there is no kernel chain; in the kernel it contains at least the
        // instruction.
        let plain = words(&[0x99, thread, 77, 0]);
        parse(SAMPLE, 2, &plain, SampleLayout::default(), &mut chain).unwrap();
        assert_eq!(chain, CallChain::default());
        parse(SAMPLE, 1, &plain, SampleLayout::default(), &mut chain).unwrap();
        assert_eq!(chain.kernel, [0x99]);
    }

    #[test]
    fn names_and_code_are_read_up_to_a_zero() {
        let mut chain = CallChain::default();
        let mut body = [7_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        body.extend(*b"redis\0\0\0");
        body.extend(words(&[0, 78]));
        assert_eq!((time(PERF_RECORD_COMM, &body), time(PERF_RECORD_COMM, b"short")), (Some(78), None));
        let comm = parse(PERF_RECORD_COMM, EXEC as u16, &body, SampleLayout::default(), &mut chain);
        assert_eq!(comm, Some(PerfRecord::Comm { pid: 7, tid: 8, name: b"redis", exec: true }));
        let mut body = words(&[0xf000]);
        body.extend([64_u32.to_ne_bytes(), [1, 0, 1, 0]].concat());
        body.extend(*b"bpf_prog_1\0");
        let symbol = parse(PERF_RECORD_KSYMBOL, 0, &body, SampleLayout::default(), &mut chain);
        let expected =
            PerfRecord::Symbol { address: 0xf000, size: 64, is_bpf: true, gone: true, name: b"bpf_prog_1" };
        assert_eq!(symbol, Some(expected));
        let mut body = words(&[7, 0x5000, 0x1000, 0x200, 0, 0, 0]);
        body.extend([5_u32.to_ne_bytes(), 2_u32.to_ne_bytes()].concat());
        body.extend(*b"/bin/ls\0");
        let mapped = parse(PERF_RECORD_MMAP2, 2, &body, SampleLayout::default(), &mut chain);
        let expected =
            PerfRecord::Mapped { pid: 7, begin: 0x5000, size: 0x1000, offset: 0x200, path: b"/bin/ls" };
        assert_eq!(mapped, Some(expected));
        assert_eq!(parse(99, 0, &[], SampleLayout::default(), &mut chain), Some(PerfRecord::Other));
    }
}
