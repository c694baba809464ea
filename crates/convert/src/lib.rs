//! Readers and writers of foreign formats, from bytes to a value and back. Nothing here opens a
//! file.
//!
//! | module | format |
//! |---|---|
//! | [`gcda`] | GCC's `.gcda`, the counters of an instrumented program or kernel |
//! | [`gmon`] | `gmon.out` of `gcc -pg`, BSD kernels and GNU gprof (in and out) |
//! | [`perf`] | branch stacks as `perf script` prints them (in) |
//! | [`perf_data`] | `perf.data`, what `perf record` writes (in) |
//! | [`autofdo`] | LLVM's AutoFDO: `llvm-profgen`'s unsymbolized profile (out), sample profiles as text (in) |
//! | [`bolt`] | LLVM BOLT: pre-aggregated branches and straight runs (out) |
//! | [`propeller`] | LLVM's basic-block sections: address maps (in), lists of blocks in order (out) |
//! | [`link_order`] | orders of functions for lld and for linker scripts (out) |
//! | [`own_build`] | names of sources in builds other than kerntune's |
//! | [`trace_dat`] | `trace.dat` of trace-cmd (in) |
//! | [`timed`] | tables of a profile from another tool's entries and exits of functions |
//! | [`uftrace`] | traces in uftrace's format (in and out) |
//! | [`sampled`] | tables of a sampled profile from another tool's stacks |
//! | [`stacks`] | call paths with their figures; most formats of viewers below are made from them |
//! | [`folded`] | folded stacks (in and out) |
//! | [`flamegraph`] | flame graphs as SVG, also of a difference (out) |
//! | [`speedscope`] | speedscope's JSON (out) |
//! | [`pprof`] | pprof's protocol buffer (in and out) |
//! | [`callgrind`] | callgrind's text (out) |
//! | [`csv`] | tables as comma-separated values (out) |
//! | [`firefox`] | the Firefox Profiler's processed profile, of a trace or of call paths (out) |
//! | [`perfetto`] | Perfetto's trace, of a trace or of call paths (out) |
//!
//! ```
//! use kerntune_convert::gcda::{summarize, Gcda};
//! # let exported: Vec<u8> = [0x67636461u32, 0x42323272, 7, 0, 0x0100_0000, 12, 1, 2, 3, 0x01a1_0000, 8, 40, 0]
//! #     .iter().flat_map(|word| word.to_le_bytes()).collect();
//! // A kernel exports no program summary, and GCC ignores a profile without one.
//! let mut object = Gcda::parse(&exported)?;
//! assert_eq!(object.to_bytes(), exported);
//! assert!(object.summary.is_none());
//! let program = summarize([&object]);
//! object.set_summary(1, program.sum_max);
//! std::hint::black_box(object.to_bytes()); // this GCC takes
//! # Ok::<(), kerntune_convert::Error>(())
//! ```

pub mod autofdo;
pub mod bolt;
pub mod callgrind;
pub mod csv;
pub mod firefox;
pub mod flamegraph;
pub mod folded;
pub mod gcda;
pub mod gmon;
pub mod link_order;
pub mod own_build;
pub mod perf;
pub mod perf_data;
pub mod perf_script;
pub mod perfetto;
pub mod pprof;
pub mod propeller;
pub mod sampled;
pub mod speedscope;
pub mod stacks;
mod system_calls;
pub mod timed;
pub mod trace_dat;
pub mod uftrace;

pub use system_calls::system_call_name;

/// Defect of a `.gcda` file. The caller knows the file and adds its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("not a .gcda file: it begins with {found:02x?}, not with \"gcda\" in either byte order")]
    NotGcda { found: Vec<u8> },
    #[error("written by {0}, a format that is not read here; build the instrumented program with GCC {first} to {last}",
        first = gcda::GcovVersion::FIRST_MAJOR, last = gcda::GcovVersion::LAST_MAJOR)]
    Version(gcda::GcovVersion),
    #[error(
        "truncated at byte {at}: {what} needs {needed} more bytes; bring the file out of the program again"
    )]
    Truncated { at: usize, what: &'static str, needed: u64 },
    #[error("damaged at byte {at}: {what}; bring the file out of the program again")]
    Damaged { at: usize, what: String },
    #[error("the profiles are of different builds: {what}; merge profiles of one build only")]
    Mismatch { what: String },
    #[error(
        "function {function}: its {kind:?} counters are no lists of values and counts and cannot be merged; \
         build the instrumented program with -fno-profile-values"
    )]
    ValueLists { function: u32, kind: gcda::CounterKind },
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
