//! Runs of make: its directory, compiler, flags, compiler cache, and diagnosis of failures.
//!
//! Start from [`kbuild`] and [`build_tree`].

pub(crate) mod aside;
pub(crate) mod build_tree;
pub(crate) mod compiler;
pub(crate) mod copy;
pub(crate) mod diagnose;
pub(crate) mod kbuild;
pub(crate) mod llvm;
pub(crate) mod object_cache;
pub(crate) mod object_flags;
pub(crate) mod pool;
