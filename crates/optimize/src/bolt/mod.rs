//! Recipe `bolt`: the blocks inside of each function in the order in which they run, in the linked kernel itself.
//!
//! After M. Panchenko, R. Auler, B. Nell, G. Ottoni: "BOLT: A Practical Binary Optimizer for Data Centers and Beyond"
//! (CGO 2019). There a CPU samples its last branches; here the emulator has counted every one of them.
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`rewrite`] | [`Rewrite`]: from a recording with edges of a kernel to its `vmlinux` with other code |
//! | 2 | [`repack`](kerntune_kernel::repack) | the image to boot |
//! | 3 | [`prove`] | [`Proof`]: what of the code that ran is another now, and why the rest is not |
//!
//! Nothing is compiled. A kernel's functions stay where they are, each within its own bytes: what BOLT makes longer
//! than its place does not get in. Much refers to single instructions of a kernel (exception table, alternatives, jump
//! labels, unwind tables, …); what BOLT 19 knows of it is in LLVM's `LinuxKernelRewriter.cpp`. The rest is looked for
//! here ([`guard`]), and a function that it refers into is not given to BOLT.

mod fate;
mod guard;
mod image;
mod log;
mod prepare;
mod program;
mod proof;
#[cfg(test)]
mod tests;

pub use fate::Fate;
pub use guard::Withheld;
pub use prepare::{rewrite, Pass, RanFunction, Rewrite, RewriteSummary};
pub use program::{Bolt, PROGRAM};
pub use proof::{prove, Part, Proof, MIN_SHARE};

use crate::Requirement;

/// The recipe's name.
pub const NAME: &str = "bolt";

/// What the recipe cannot do without.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "LLVM's BOLT 19",
        why: "rewrites the linked kernel",
        mend: "apt-get install bolt-19",
    },
    Requirement {
        what: "objcopy",
        why: "gives the kernel sections that BOLT wants to see",
        mend: "apt-get install binutils",
    },
];

pub(crate) fn read_log(text: &str) {
    let _ = log::Log::parse(text);
}
