//! What the machine asks of the recorder.

use serde::{Deserialize, Serialize};

/// The recorder's input, as JSON in the file that the plugin's `spec=` argument names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecorderSpec {
    /// [`crate::VERSION`].
    pub version: u32,
    /// Directory for everything that the recorder writes; it exists.
    pub output: String,
    /// What to capture.
    pub capture: Capture,
    /// The kernel's functions by address, without overlaps in their starts.
    pub functions: Vec<FunctionSpec>,
    /// Binaries whose user functions are traced. Function `f` of binary `b` has the number
    /// `functions.len() + 1` + the functions of the binaries before `b` + `f`.
    #[serde(default)]
    pub binaries: Vec<BinarySpec>,
    /// Inline points: addresses of kernel instructions.
    #[serde(default)]
    pub points: Vec<u64>,
    /// Where a program puts event tags for McRae's profiler, if that is to be watched.
    #[serde(default)]
    pub tags: Option<TagWindow>,
    /// Where a thread's identity is in `struct task_struct`.
    pub task: TaskOffsets,
    /// Functions are called and return as the stack pointer says, and not by what instructions are: the kernel has
    /// retpolines and return thunks. All functions are traced then, and no user functions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stack_pointer: bool,
    /// Where the kernel keeps the offsets of what each CPU has one of (`__per_cpu_offset`), if locks are to be told apart.
    #[serde(default)]
    pub per_cpu: Option<u64>,
    /// A front-end model's TOML text (`machines/*.toml`), if its misses are wanted.
    pub model: Option<String>,
    /// What is needed to say what data is, if accesses to it go through the model, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<crate::data::DataSpec>,
    /// What is needed to read requests to block devices and network packets, where functions have such probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<crate::io::IoSpec>,
    /// Which instructions are written down one by one, if any are; of one CPU only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<crate::stream::StreamSpec>,
}

/// What to capture between marks. Instructions are always counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Entry and exit of every function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// [`crate::Weights`] with every event of the trace.
    #[serde(default)]
    pub weights: bool,
}

/// One function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSpec {
    /// Address of the first instruction.
    pub address: u64,
    /// Bytes; 0 if unknown.
    pub size: u64,
    /// What part it plays.
    pub kind: FunctionKind,
    /// Not to be traced: it is as if the function were a part of its callers. Says nothing of the
    /// kinds by which threads and stacks are known: interrupts, exceptions, system calls, switches.
    /// Where any function is skipped, code in no known function is, too, and the number of that
    /// stands for what a thread does when none of its open functions is traced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// What its arguments say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// Conditional jumps of other functions lead here. Matters where functions are skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
}

/// What a function's arguments say when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// The first is the thread that is to be woken up: [`crate::Event::Wake`] if it sleeps, and [`crate::Event::Delay`]
    /// when it runs.
    Wake,
    /// The first is a thread, the second the CPU that it is to run on: [`crate::Event::Migrate`] if that is another one.
    Place,
    /// The first is the CPU that is interrupted: [`crate::Event::Signal`].
    Signal,
    /// The first points to the CPUs that are interrupted, a bit each: [`crate::Event::Signal`] for each.
    SignalAll,
    /// The first is the lock that is waited for: [`crate::Event::Lock`] when the function ends.
    Lock,
    /// The first is a request that a device is given ([`crate::io`]).
    Issue,
    /// The first is a request that a device has done.
    Complete,
    /// The first is a batch of such requests.
    CompleteBatch,
    /// The first is such a request that is not needed any more.
    Release,
    /// The first is a packet that a device is to send.
    Send,
    /// The first points to a packet that a device has received.
    Receive,
}

/// A binary whose functions are traced in user mode.
///
/// Its code is known by its contents: a page of the guest's memory that holds the same bytes as
/// a page of the binary's code is that page, wherever a process has mapped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinarySpec {
    /// The file, for messages.
    pub path: String,
    /// Its pages of code: offset in the file (a multiple of 4096) and the hash of 4096 bytes.
    pub pages: Vec<PageSpec>,
    /// Functions by offset of their first byte in the file: `address` is that offset.
    pub functions: Vec<FunctionSpec>,
}

/// A page of a binary's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSpec {
    /// Offset in the file.
    pub offset: u64,
    /// [`page_hash`] of its 4096 bytes.
    pub hash: u64,
}

/// What [`PageSpec::hash`] is: 64-bit FNV-1a over little-endian words of 8 bytes.
pub fn page_hash(page: &[u8; 4096]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in page.chunks_exact(8) {
        hash ^= u64::from_le_bytes(word.try_into().unwrap_or_default());
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        // FNV's multiplier moves bits up only: bring the high ones back into play.
        hash ^= hash >> 32;
    }
    hash
}

/// Where event tags of McRae's profiler appear ("Hardware Profiling of Kernels"): a tag is the low 16 bits of what is
/// accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TagWindow {
    /// Instructions that access `base + tag` by an absolute or instruction-relative address.
    Memory(u64),
    /// `out` of 16 bits to this port: the tag is the value.
    Port(u16),
}

/// What part a function plays for the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionKind {
    /// A function.
    Plain,
    /// The entry of another function's split-off part (`foo.cold`): no function of its own.
    /// Holds the index of the function that it belongs to.
    Part(u32),
    /// A label in assembly code: a function only if it is called.
    Label,
    /// First instruction of an interrupt.
    Interrupt,
    /// First instruction of an exception.
    Exception,
    /// First instruction of the system call path.
    Syscall,
    /// `__switch_to_asm(prev, next)`.
    SwitchTo,
    /// A retpoline thunk: its `ret` is a jump.
    Thunk,
    /// What functions jump to instead of a `ret`: no function of its own.
    ReturnThunk,
    /// Replaces the program that a thread runs: its user frames end with the system call.
    Exec,
}

/// Byte offsets inside `struct task_struct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOffsets {
    /// `pid`, 4 bytes.
    pub pid: u32,
    /// `tgid`, 4 bytes.
    pub tgid: u32,
    /// `comm`, 16 bytes.
    pub comm: u32,
}
