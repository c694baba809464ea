//! The whole loop from source to comparison, on a stand-in kernel and a stand-in machine (`crates/rehearsal`), with GCC, gcov,
//! proofs and the recorder as they are. Figures are held against each other and never against constants: they depend on the
//! compiler.

mod auto;
mod bisect;
mod compare;
mod paper;
mod replay;
mod several;
mod sound;
mod stand_in;
mod support;
mod trial;
mod trim;
mod tune;
