//! Executions of functions by name: counters joined with the notes of the gcov build.

use super::gcno::GcnoFile;
use crate::object_counts::{FunctionCounts, ObjectCounts};
use kerntune_convert::gcda::{CounterKind, Gcda};

impl ObjectCounts {
    /// Joins counters with notes; the error names the first function that the notes lack.
    pub(super) fn join(object: String, gcda: &Gcda, notes: &GcnoFile) -> Result<Self, String> {
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
}
