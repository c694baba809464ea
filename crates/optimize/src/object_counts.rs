//! Counters of an instrumented kernel by function.

use serde::{Deserialize, Serialize};

/// The functions of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCounts {
    /// `kernel/fork.o`.
    pub object: String,
    /// Its instrumented functions.
    pub functions: Vec<FunctionCounts>,
}

/// How much one function ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// GCC's ident in the object.
    pub ident: u32,
    /// The assembler's name.
    pub name: String,
    /// Source file as the compiler was given it.
    pub file: String,
    /// Line of the declaration, from 1.
    pub line: u32,
    /// The sum of its arc counters, over all training runs.
    pub total: u64,
}

impl ObjectCounts {
    /// The sum over its functions, saturating.
    pub fn total(&self) -> u64 {
        self.functions.iter().fold(0, |sum, f| sum.saturating_add(f.total))
    }
}
