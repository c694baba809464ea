//! Records of mappings, threads and losses.

use super::fields::Fields;
use super::kind;
use super::sample::PerfSample;

const MISC_BUILD_ID: u16 = 1 << 14;
const MISC_EXEC: u16 = 1 << 13;
const MISC_DATA: u16 = 1 << 13;
const EXECUTABLE: u32 = 4;
const UNREGISTER: u16 = 1;

/// A record.
#[derive(Debug, Clone, Copy)]
pub enum PerfRecord<'a> {
    /// A sample.
    Sample(&'a PerfSample),
    /// New mapping of code.
    Map(MapRecord<'a>),
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
        /// Process id of the parent.
        parent_process: u32,
        /// Thread id of the parent.
        parent: u32,
    },
    /// End of a thread.
    Exit {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
    },
    /// Loaded or removed code of the kernel, such as a BPF program.
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
    /// Records that found no room in the kernel's buffer.
    Lost(u64),
    /// Samples that found no room in the kernel's buffer.
    LostSamples(u64),
    /// The kernel stopped an event for a while, because it had too many samples.
    Throttled,
    /// A context switch, without figures.
    Switch,
    /// Bytes of hardware tracing (Intel PT, Arm SPE and the like).
    Aux(u64),
    /// User call chain that the kernel wrote later than its sample.
    DeferredChain,
    /// Any other record.
    Other,
}

/// A mapping of code: of a program, of the kernel's image, or of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRecord<'a> {
    /// Process id; `u32::MAX` for the kernel.
    pub pid: u32,
    /// Address of the first byte.
    pub begin: u64,
    /// Size in bytes.
    pub size: u64,
    /// Offset in the file; the address of a symbol for the kernel's image.
    pub offset: u64,
    /// Path up to the first NUL: `[kernel.kallsyms]_text`, `[nf_tables]`, a path.
    pub path: &'a [u8],
    /// Build id of the file, if the kernel recorded it.
    pub build_id: Option<&'a [u8]>,
    /// True for code of the kernel.
    pub is_kernel: bool,
}

impl<'a> PerfRecord<'a> {
    /// Parses a record other than a sample, by type and `misc` of its header and what follows them; `None`
    /// if it is too short for its fields.
    pub fn parse(kind: u32, misc: u16, body: &'a [u8]) -> Option<Self> {
        parse(kind, misc, body)
    }
}

fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<PerfRecord<'_>> {
    let mut fields = Fields(body);
    Some(match kind {
        kind::MMAP | kind::MMAP2 => {
            let (pid, _) = (fields.u32()?, fields.u32()?);
            let (begin, size, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let (mut build_id, mut is_code) = (None, misc & MISC_DATA == 0);
            if kind == kind::MMAP2 {
                let inode = fields.take(24)?;
                if misc & MISC_BUILD_ID != 0 {
                    build_id = inode.get(4..4 + usize::from(inode[0]));
                }
                let (rights, _) = (fields.u32()?, fields.u32()?);
                is_code = rights & EXECUTABLE != 0 || pid == u32::MAX;
            }
            // 1 is the host's kernel.
            let is_kernel = misc & 7 == 1 || pid == u32::MAX && misc & 7 != 4;
            match is_code {
                true => PerfRecord::Map(MapRecord {
                    pid,
                    begin,
                    size,
                    offset,
                    path: fields.text(),
                    build_id,
                    is_kernel,
                }),
                false => PerfRecord::Other,
            }
        }
        kind::COMM => {
            let (pid, tid) = (fields.u32()?, fields.u32()?);
            PerfRecord::Comm { pid, tid, name: fields.text(), exec: misc & MISC_EXEC != 0 }
        }
        kind::FORK => {
            let (pid, parent_process) = (fields.u32()?, fields.u32()?);
            PerfRecord::Fork { pid, parent_process, tid: fields.u32()?, parent: fields.u32()? }
        }
        kind::EXIT => {
            let (pid, _, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
            PerfRecord::Exit { pid, tid }
        }
        kind::LOST => {
            fields.u64()?;
            PerfRecord::Lost(fields.u64()?)
        }
        kind::LOST_SAMPLES => PerfRecord::LostSamples(fields.u64()?),
        kind::THROTTLE => PerfRecord::Throttled,
        kind::SWITCH | kind::SWITCH_CPU_WIDE => PerfRecord::Switch,
        kind::AUX => {
            fields.u64()?;
            PerfRecord::Aux(fields.u64()?)
        }
        kind::KSYMBOL => {
            let (address, size) = (fields.u64()?, fields.u32()?);
            let (what, flags) = (fields.u16()?, fields.u16()?);
            let name = fields.text();
            PerfRecord::Symbol { address, size, is_bpf: what == 1, gone: flags & UNREGISTER != 0, name }
        }
        kind::CALLCHAIN_DEFERRED => PerfRecord::DeferredChain,
        _ => PerfRecord::Other,
    })
}
