//! GCC's `.gcda`: execution counts of one object file.
//!
//! Start from [`Gcda`]; [`summarize`] computes over all files of a program what
//! [`Gcda::set_summary`] then writes into each.
//!
//! The format is a stream of 32-bit words: a header, then records of tag, length and data. It is
//! defined by GCC's `gcc/gcov-io.h`, `gcc/gcov-io.cc`, `gcc/gcov-counter.def` and, as far as files
//! are concerned, by `libgcc/libgcov-driver.c` (programs) and the kernel's `kernel/gcov/gcc_4_7.c`.
//! The version word decides two things: from GCC 12 on lengths count bytes instead of words and the
//! header has a checksum word.
//!
//! Kernel and libgcov differ: the kernel writes no summary, no end marker and 0 for the checksum.
//! It writes counters that are all zero one by one, where libgcov writes a negative length.

mod counters;
mod ident;
mod merge;
mod read;
mod summary;
mod version;
mod write;

pub use counters::{CounterKind, CounterRecord, CounterValues, TopN};
pub use ident::{FunctionSite, RenamedCounters};
pub use merge::MergeWeights;
pub use summary::{summarize, ProgramSummary};
pub use version::GcovVersion;

const MAGIC: u32 = 0x6763_6461;
const TAG_FUNCTION: u32 = 0x0100_0000;
const TAG_COUNTER_BASE: u32 = 0x01a1_0000;
const TAG_OBJECT_SUMMARY: u32 = 0xa100_0000;
/// Words of a function record.
const FUNCTION_WORDS: u32 = 3;
/// Words of an object summary.
const SUMMARY_WORDS: u32 = 2;

/// Byte order of a word: that of the machine that ran the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// x86, Arm, RISC-V.
    #[default]
    Little,
    /// s390x, for example.
    Big,
}

/// A `.gcda` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gcda {
    /// Byte order of the file.
    pub byte_order: ByteOrder,
    /// Compiler that instrumented the object.
    pub version: GcovVersion,
    /// Stamp of the compilation, which its `.gcno` has too.
    pub stamp: u32,
    /// Checksum of the compilation unit; 0 from a kernel and from GCC before 12, which has none.
    pub checksum: u32,
    /// Program summary. GCC 10 and later silently ignores a file without it.
    pub summary: Option<ObjectSummary>,
    /// Instrumented functions, in file order.
    pub functions: Vec<GcdaFunction>,
    /// A zero word ends the file: from libgcov yes, from the kernel no.
    pub end_marker: bool,
}

/// Summary of the whole program, which GCC requires in each of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectSummary {
    /// Number of runs merged into the counters.
    pub runs: u32,
    /// Largest arc count of the program, summed over the runs.
    pub sum_max: u32,
}

/// Counters of one function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcdaFunction {
    /// GCC's profile id of the function, unique in the object; 0 marks a place without a function,
    /// see [`GcdaFunction::is_absent`].
    pub ident: u32,
    /// Checksum of its name and source position.
    pub lineno_checksum: u32,
    /// Checksum of its control-flow graph: if it differs, GCC does not use the counters.
    pub cfg_checksum: u32,
    /// Counter records, at most one of each kind, kinds ascending.
    pub counters: Vec<CounterRecord>,
}

impl GcdaFunction {
    /// Checks whether the entry only marks the place of a function that another object brought into
    /// the program (a COMDAT copy that the linker dropped).
    pub fn is_absent(&self) -> bool {
        self.ident == 0
    }

    /// Returns the counters of a kind, if the function has any.
    pub fn counters_of(&self, kind: CounterKind) -> Option<&CounterRecord> {
        self.counters.iter().find(|c| c.kind == kind)
    }

    /// Returns the arc counts; a negative count, which no run produces, becomes 0.
    fn arcs(&self) -> impl Iterator<Item = u64> + '_ {
        let arcs = self.counters_of(CounterKind::Arcs);
        arcs.into_iter().flat_map(|c| c.values.nonzero()).map(|count| u64::try_from(count).unwrap_or(0))
    }

    /// Checks whether any arc was taken.
    pub fn is_executed(&self) -> bool {
        self.arcs().any(|count| count > 0)
    }
}

impl Gcda {
    /// Parses a whole file.
    ///
    /// # Errors
    /// [`Error::NotGcda`](crate::Error::NotGcda), [`Error::Version`](crate::Error::Version),
    /// [`Error::Truncated`](crate::Error::Truncated) or [`Error::Damaged`](crate::Error::Damaged).
    pub fn parse(bytes: &[u8]) -> crate::Result<Self> {
        read::parse(bytes)
    }

    /// Writes the file: byte for byte what [`Gcda::parse`] read, if nothing was changed.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::to_bytes(self)
    }

    /// Returns the largest arc count, 0 if nothing ran.
    pub fn sum_max(&self) -> u64 {
        self.functions.iter().flat_map(GcdaFunction::arcs).max().unwrap_or(0)
    }

    /// Returns the sum of all arc counts, saturating.
    pub fn total(&self) -> u64 {
        self.functions.iter().flat_map(GcdaFunction::arcs).fold(0, u64::saturating_add)
    }

    /// Sets the program summary. `sum_max` is that of the *whole program* (see [`summarize`]). The
    /// format has 32 bits for it; a larger value becomes `u32::MAX` (libgcov would wrap it around).
    pub fn set_summary(&mut self, runs: u32, sum_max: u64) {
        self.summary = Some(ObjectSummary { runs, sum_max: u32::try_from(sum_max).unwrap_or(u32::MAX) });
    }

    /// Adds two profiles of the same object, each counter `a·wa + b·wb`, saturating.
    ///
    /// Counters that are no sums are merged like in libgcov: bit sets are united, first-run times
    /// take the earliest, top-N lists are added by value and keep the 32 most frequent. A weight of
    /// 0 leaves that profile out. If both profiles have a summary, `runs` are added, and `sum_max`
    /// is weighted and added; otherwise the result has none. Compute a new one with [`summarize`].
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) if they are not of one build,
    /// [`Error::ValueLists`](crate::Error::ValueLists) if a top-N list makes no sense.
    pub fn merge(a: &Self, b: &Self, weights: MergeWeights) -> crate::Result<Self> {
        merge::merge(a, b, weights)
    }
}
