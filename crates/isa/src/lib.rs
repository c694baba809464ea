//! What kerntune knows of an instruction set, in one place.
//!
//! [`Isa`] is all that the rest of kerntune asks: how code is taken apart, what registers and stacks hold at the moments
//! that the recorder watches, which functions of a kernel play a part of their own, and what QEMU, Kbuild and Debian call
//! things. [`X86_64`] answers; another instruction set is another file that implements [`Isa`]. [`Guest`] is the one that
//! kernels are built for and run on. Nothing here opens a file, and nothing is called through a pointer: the compiler
//! knows which instruction set is meant.
//!
//! ```
//! use kerntune_isa::{Ending, Guest, Isa};
//!
//! let code = [0x90, 0xc3]; // nop; ret
//! let last = Guest::instructions(&code, 0x1000).last().unwrap();
//! assert_eq!((last.address, Guest::ending(&last).0), (0x1001, Ending::Return));
//! ```

mod cpu;
mod insn;
mod isa;
mod names;
mod x86_64;

pub use cpu::{AddressSpace, Cpu, ExceptionFrame, Register};
pub use insn::{Ending, Flow, Insn, Refusal, TagAccess, TargetRole};
pub use isa::{InterruptStub, Isa, Measured, VulnerableCpu};
pub use names::{KbuildNames, Names};
pub use x86_64::X86_64;

/// The instruction set of the kernels that are built and run.
pub type Guest = X86_64;

/// A decoded instruction of [`Guest`].
pub type Decoded = <Guest as Isa>::Decoded;
