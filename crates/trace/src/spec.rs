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
    /// Where a thread's identity is in `struct task_struct`.
    pub task: TaskOffsets,
    /// A front-end model's TOML text (`machines/*.toml`), if its misses are wanted.
    pub model: Option<String>,
}

/// What to capture between marks. Instructions are always counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Entry and exit of every function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
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
