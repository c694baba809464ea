//! The whole loop from source to comparison, on a stand-in kernel and a stand-in machine
//! (`crates/rehearsal`), with real GCC, gcov, proofs and recorder. Figures are compared with each
//! other and never with constants, since they depend on the compiler.

mod auto;
mod bisect;
mod compare;
mod exclude;
mod own_build;
mod rebuild;
mod replay;
mod several;
mod support;
mod surrogate_kernel;
mod trial;
mod trim;
mod tune;
