//! Recipe `bolt`: reorders the blocks of each function by execution counts, in the linked kernel
//! itself.
//!
//! After M. Panchenko, R. Auler, B. Nell, G. Ottoni: "BOLT: A Practical Binary Optimizer for Data
//! Centers and Beyond" (CGO 2019). There a CPU samples its last branches; here the emulator counts
//! every one of them.
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`rewrite`] | [`BoltRewrite`]: the kernel's `vmlinux` with other code, from a recording with edges |
//! | 2 | [`repack`](kerntune_kernel::repack) | the image to boot |
//! | 3 | [`prove`] | [`BoltProof`]: executed functions that changed, and the reasons for those that did not |
//!
//! Nothing is compiled. Functions stay at their addresses, each within its own bytes: BOLT's code
//! is dropped if it is longer. Many tables refer to single instructions of a kernel (exception
//! table, alternatives, jump labels, unwind tables, …). BOLT 19 knows those of LLVM's
//! `LinuxKernelRewriter.cpp`. The module [`guard`] finds other references, and functions that they
//! point into are withheld from BOLT.

mod fate;
mod guard;
mod image;
mod log;
mod prepare;
mod program;
mod proof;
mod tables;
#[cfg(test)]
mod tests;

pub use fate::FunctionFate;
pub use guard::WithholdingReason;
pub use prepare::{
    check, prepare_input, rewrite, BoltFunction, BoltInput, BoltPass, BoltRewrite, RewriteSummary,
};
pub use program::Bolt;
pub use proof::{prove, BoltProof, FateShare, MIN_SHARE};

use crate::Requirement;

/// Name of the recipe.
pub const NAME: &str = "bolt";

/// Requirements of the recipe.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "LLVM's BOLT 19 or later",
        why: "rewrites the linked kernel",
        fix: "apt-get install bolt-19, or the compiler's version",
    },
    Requirement {
        what: "objcopy",
        why: "gives the kernel sections that BOLT wants to see",
        fix: "apt-get install binutils",
    },
];

pub(crate) fn read_log(text: &str) {
    let _ = log::BoltLog::parse(text);
}
