//! Counters of an instrumented kernel by function.

use serde::{Deserialize, Serialize};

/// Instrumented functions of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCounts {
    /// Object, `kernel/fork.o`.
    pub object: String,
    /// Instrumented functions, in the order of the notes file.
    pub functions: Vec<FunctionCounts>,
}

/// Executions of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// GCC's ident of the function in its object.
    pub ident: u32,
    /// Assembler name.
    pub name: String,
    /// Source file, as passed to the compiler.
    pub file: String,
    /// Line of the declaration, from 1.
    pub line: u32,
    /// Sum of its arc counters, over all training runs.
    pub total: u64,
}

impl ObjectCounts {
    /// Returns the sum over the functions, saturating.
    pub fn total(&self) -> u64 {
        self.functions.iter().fold(0, |sum, f| sum.saturating_add(f.total))
    }
}
