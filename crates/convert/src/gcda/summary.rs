//! The program summary over all files of a program.

use super::{CounterKind, Gcda};

/// What the files of one program hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramSummary {
    /// Files, one per instrumented object.
    pub files: u64,
    /// Functions present.
    pub functions: u64,
    /// Functions of which any arc was taken. 0 says that the profile is empty.
    pub executed_functions: u64,
    /// Arc counters.
    pub counters: u64,
    /// The largest arc count: what GCC measures hotness against.
    pub sum_max: u64,
    /// The sum of all arc counts, saturating.
    pub total: u64,
}

impl ProgramSummary {
    /// Takes one more file in.
    pub fn add(&mut self, gcda: &Gcda) {
        self.files += 1;
        self.sum_max = self.sum_max.max(gcda.sum_max());
        self.total = self.total.saturating_add(gcda.total());
        for function in gcda.functions.iter().filter(|f| !f.is_absent()) {
            self.functions += 1;
            self.executed_functions += u64::from(function.is_executed());
            self.counters += function.counters_of(CounterKind::Arcs).map_or(0, |c| c.values.len() as u64);
        }
    }
}

/// The summary of a program's files: what libgcov computes when a program ends, and what nobody
/// computes for a kernel. Write `sum_max` into each with [`Gcda::set_summary`].
pub fn summarise<'a>(files: impl IntoIterator<Item = &'a Gcda>) -> ProgramSummary {
    files.into_iter().fold(ProgramSummary::default(), |mut summary, gcda| {
        summary.add(gcda);
        summary
    })
}
