//! Program summary over all files of a program.

use super::{CounterKind, Gcda};

/// Sums over the files of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramSummary {
    /// Number of files, one per instrumented object.
    pub files: u64,
    /// Number of functions present.
    pub functions: u64,
    /// Number of functions with a taken arc. 0 means that the profile is empty.
    pub executed_functions: u64,
    /// Number of arc counters.
    pub counters: u64,
    /// Largest arc count; GCC's measure of hotness is relative to it.
    pub sum_max: u64,
    /// Sum of all arc counts, saturating.
    pub total: u64,
}

impl ProgramSummary {
    /// Adds a file.
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

/// Computes the summary of a program's files. libgcov does this when a program ends; a kernel does
/// not. Write `sum_max` into each file with [`Gcda::set_summary`].
pub fn summarize<'a>(files: impl IntoIterator<Item = &'a Gcda>) -> ProgramSummary {
    files.into_iter().fold(ProgramSummary::default(), |mut summary, gcda| {
        summary.add(gcda);
        summary
    })
}
