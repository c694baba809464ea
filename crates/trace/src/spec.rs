//! The recorder's input.

use serde::{Deserialize, Serialize};

/// Input of the recorder, as JSON in the file named by the plugin argument `spec=`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecorderSpec {
    /// Format version: [`crate::VERSION`].
    pub version: u32,
    /// Existing directory for all files of the recorder.
    pub output: String,
    /// Kinds of data to capture.
    pub capture: CaptureSpec,
    /// Kernel functions, sorted by address, with distinct addresses.
    pub functions: Vec<FunctionSpec>,
    /// Binaries whose user functions are traced. Function `f` of binary `b` has the number
    /// `functions.len() + 1` + the functions of the binaries before `b` + `f`.
    #[serde(default)]
    pub binaries: Vec<BinarySpec>,
    /// Inline points: addresses of kernel instructions.
    #[serde(default)]
    pub points: Vec<u64>,
    /// Location of the event tags of McRae's profiler, if they are to be recorded.
    #[serde(default)]
    pub tags: Option<TagSource>,
    /// Offsets of a thread's identity in `struct task_struct`.
    pub task: TaskOffsets,
    /// True if the stack pointer decides which function was called or returned, instead of the
    /// instructions. Needed for kernels with retpolines and return thunks. All kernel functions are
    /// then traced, and no user functions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stack_pointer: bool,
    /// Address of `__per_cpu_offset`, needed to tell locks in per-CPU variables apart.
    #[serde(default)]
    pub per_cpu: Option<u64>,
    /// Front-end model as TOML text (`data/cpu-models/*.toml`), if misses are to be computed.
    pub model: Option<String>,
    /// Description of the kernel's data, if the model is to include data accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<crate::data::DataSpec>,
    /// Layouts of requests and packets, for functions with I/O probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<crate::io::IoSpec>,
    /// Instructions to write to the instruction stream, if any. Requires a single CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<crate::stream::StreamSpec>,
    /// Description of how the kernel loads code, if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<crate::loaded::LoadSpec>,
}

/// Data to capture between marks. Instructions are always counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSpec {
    /// Entries and exits of functions.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// [`crate::EventWeights`] with every event of the trace.
    #[serde(default)]
    pub weights: bool,
}

/// Function of the kernel or of a binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSpec {
    /// Address of the first instruction.
    pub address: u64,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    /// Role of the function for the shadow stacks.
    pub kind: FunctionKind,
    /// True if the function is not traced: its time then belongs to its callers. The recorder still
    /// uses interrupts, exceptions, system calls and switches of this kind to follow threads and
    /// stacks. If any function is skipped, code outside of all known functions is skipped as well.
    /// The number of that code then stands for a thread none of whose open functions is traced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// Use of the function's arguments, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeKind>,
    /// True if conditional jumps of other functions lead here. Used only if functions are skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
}

/// Meaning of a function's arguments at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// The first argument is the thread to wake: [`crate::Event::Wake`] if it sleeps, and
    /// [`crate::Event::Delay`] when it runs.
    Wake,
    /// The first argument is a thread, the second the CPU chosen for it: [`crate::Event::Migrate`]
    /// if the CPU changes.
    Place,
    /// The first argument is the CPU to interrupt: [`crate::Event::Signal`].
    Signal,
    /// The first argument points to a bit mask of CPUs to interrupt: [`crate::Event::Signal`] for
    /// each.
    SignalAll,
    /// The first argument is a contended lock: [`crate::Event::Lock`] when the function ends.
    Lock,
    /// The first argument is a request handed to a device ([`crate::io`]).
    Issue,
    /// The first argument is a completed request.
    Complete,
    /// The first argument is a batch of completed requests.
    CompleteBatch,
    /// The first argument is a request that the kernel frees.
    Release,
    /// The first argument is a packet to send.
    Send,
    /// The first argument points to a received packet.
    Receive,
}

/// Binary whose functions are traced in user mode.
///
/// Its code is recognized by content: a page of guest memory with the same bytes as a code page of
/// the binary is that page, wherever a process mapped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinarySpec {
    /// Path of the file, for messages.
    pub path: String,
    /// Code pages of the binary.
    pub pages: Vec<PageSpec>,
    /// Functions, sorted by file offset; `address` holds that offset.
    pub functions: Vec<FunctionSpec>,
}

/// Code page of a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSpec {
    /// Offset in the file, a multiple of 4096.
    pub offset: u64,
    /// Hash of the page's 4096 bytes by [`page_hash`].
    pub hash: u64,
}

/// Computes [`PageSpec::hash`]: 64-bit FNV-1a over little-endian words of 8 bytes.
pub fn page_hash(page: &[u8; 4096]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in page.chunks_exact(8) {
        hash ^= u64::from_le_bytes(word.try_into().unwrap_or_default());
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        // FNV's multiplication moves bits only upward. This brings the high bits back down.
        hash ^= hash >> 32;
    }
    hash
}

/// Event tags to record, and the layout of their records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagSource {
    /// Way in which tags are emitted.
    pub window: TagWindow,
    /// Layout of the records.
    pub layout: crate::TagLayout,
}

/// Way in which a program emits event tags of McRae's profiler ("Hardware Profiling of Kernels").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TagWindow {
    /// Access to `base + tag` by an absolute or instruction-relative address.
    Memory {
        /// Address of tag 0.
        base: u64,
        /// Size in bytes. With tags of 16 bits a window of more than 64 KiB has each tag several
        /// times.
        size: u64,
    },
    /// `out` to this port, of 16 bits, or of 32 bits if tags are wider. The tag is the value
    /// written.
    Port(u16),
}

/// Role of a function for the shadow stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionKind {
    /// Ordinary function.
    Plain,
    /// Entry of a split-off part (`foo.cold`), which is not a function of its own. Holds the index
    /// of the function it belongs to.
    Part(u32),
    /// Label in assembly code, which counts as a function only if it is called.
    Label,
    /// Entry point of an interrupt.
    Interrupt,
    /// Entry point of an exception.
    Exception,
    /// Entry point of system calls.
    Syscall,
    /// `__switch_to_asm(prev, next)`.
    SwitchTo,
    /// Retpoline thunk, whose `ret` acts as a jump.
    Thunk,
    /// Return thunk, to which functions jump instead of executing `ret`. Not a function of its own.
    ReturnThunk,
    /// Function that replaces a thread's program; the thread's user frames end with the system
    /// call.
    Exec,
}

/// Byte offsets in `struct task_struct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOffsets {
    /// Offset of `pid`, 4 bytes.
    pub pid: u32,
    /// Offset of `tgid`, 4 bytes.
    pub tgid: u32,
    /// Offset of `comm`, 16 bytes.
    pub comm: u32,
}
