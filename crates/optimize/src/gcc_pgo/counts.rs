//! Which function ran how much, by name: the counters joined with the notes of the gcov build.

use super::gcno::Notes;
use kerntune_convert::gcda::{CounterKind, Gcda};
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
    /// Joins; the error names the first function that the notes do not have.
    pub(super) fn join(object: String, gcda: &Gcda, notes: &Notes) -> Result<Self, String> {
        let mut functions = Vec::with_capacity(gcda.functions.len());
        for function in gcda.functions.iter().filter(|f| !f.is_absent()) {
            let Some(note) = notes.functions.get(&function.ident) else {
                return Err(format!("the build has no function with ident {:#x}", function.ident));
            };
            if note.cfg_checksum != function.cfg_checksum {
                return Err(format!("function {} has another control flow in the build", note.name));
            }
            let arcs = function.counters_of(CounterKind::Arcs);
            let counts = arcs.into_iter().flat_map(|c| c.values.iter());
            functions.push(FunctionCounts {
                ident: function.ident,
                name: note.name.clone(),
                file: note.file.clone(),
                line: note.line,
                total: counts.fold(0u64, |sum, c| sum.saturating_add(u64::try_from(c).unwrap_or(0))),
            });
        }
        Ok(Self { object, functions })
    }

    /// The sum over its functions, saturating.
    pub fn total(&self) -> u64 {
        self.functions.iter().fold(0, |sum, f| sum.saturating_add(f.total))
    }
}
