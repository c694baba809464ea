//! Knowledge about instruction sets, in one place.
//!
//! The trait [`Isa`] covers decoding of code, registers and stacks at the points that the recorder
//! observes, special functions of the kernel, and the names that QEMU, Kbuild and Debian use.
//! [`X86_64`] implements it; another instruction set is another implementation. [`GuestIsa`] is the
//! one that kernels are built for and run on. Nothing here opens a file, and all calls are static:
//! the compiler knows the instruction set.
//!
//! ```
//! use kerntune_isa::{BlockEnding, GuestIsa, Isa};
//!
//! let code = [0x90, 0xc3]; // nop; ret
//! let last = GuestIsa::instructions(&code, 0x1000).last().unwrap();
//! assert_eq!((last.address, GuestIsa::ending(&last).0), (0x1001, BlockEnding::Return));
//! ```

mod cpu;
mod insn;
mod isa;
mod names;
mod x86_64;

pub use cpu::{AddressSpace, ExceptionFrame, Register, StoppedCpu};
pub use insn::{
    BlockEnding, BlockFlow, CountedFaults, ForgottenTranslations, Insn, InstructionText, TagAccess,
    TargetRole,
};
pub use isa::{BootMeasurement, ClockWait, EmulatedCpu, InterruptStub, Isa, VulnerableCpu};
pub use names::{IsaNames, KbuildNames};
pub use x86_64::X86_64;

/// The instruction set of the kernels that are built and run.
pub type GuestIsa = X86_64;

/// A decoded instruction of [`GuestIsa`].
pub type Decoded = <GuestIsa as Isa>::Decoded;
