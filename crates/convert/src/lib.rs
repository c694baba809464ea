//! Foreign formats in and out: bytes to a value, a value to bytes. Nothing here opens a file.
//!
//! | module | format |
//! |---|---|
//! | [`gcda`] | GCC's `.gcda`, the counters of an instrumented program or kernel |
//! | [`mcrae`] | McRae's hardware profiler: names files and dumps (in) |
//! | [`gmon`] | `gmon.out` of `gcc -pg`, BSD kernels and GNU gprof (in and out) |
//! | [`perf`] | branch stacks as `perf script` prints them (in) |
//! | [`autofdo`] | LLVM's AutoFDO: `llvm-profgen`'s unsymbolized profile (out), sample profiles as text (in) |
//! | [`bolt`] | LLVM BOLT: pre-aggregated branches and straight runs (out) |
//! | [`propeller`] | LLVM's basic-block sections: address maps (in), lists of blocks in order (out) |
//! | [`uftrace`] | traces in uftrace's format (out) |
//! | [`stacks`] | call paths with what each took, of which the next six and parts of the last two are made |
//! | [`folded`] | folded stacks (out) |
//! | [`flamegraph`] | flame graphs as SVG, also of a difference (out) |
//! | [`speedscope`] | speedscope's JSON (out) |
//! | [`pprof`] | pprof's protocol buffer (out) |
//! | [`callgrind`] | callgrind's text (out) |
//! | [`champsim`] | instruction traces of the simulator ChampSim (out) |
//! | [`csv`] | tables as comma-separated values (out) |
//! | [`firefox`] | the Firefox Profiler's processed profile, of a trace or of call paths (out) |
//! | [`perfetto`] | Perfetto's trace, likewise (out) |
//!
//! ```
//! use kerntune_convert::gcda::{summarise, Gcda};
//! # let exported: Vec<u8> = [0x67636461u32, 0x42323272, 7, 0, 0x0100_0000, 12, 1, 2, 3, 0x01a1_0000, 8, 40, 0]
//! #     .iter().flat_map(|word| word.to_le_bytes()).collect();
//! // What the kernel exports has no program summary, and GCC ignores a profile without one.
//! let mut object = Gcda::parse(&exported)?;
//! assert_eq!(object.to_bytes(), exported);
//! assert!(object.summary.is_none());
//! let program = summarise([&object]);
//! object.set_summary(1, program.sum_max);
//! std::hint::black_box(object.to_bytes()); // this GCC takes
//! # Ok::<(), kerntune_convert::Error>(())
//! ```

pub mod autofdo;
pub mod bolt;
pub mod callgrind;
pub mod champsim;
pub mod csv;
pub mod firefox;
pub mod flamegraph;
pub mod folded;
pub mod gcda;
pub mod gmon;
pub mod mcrae;
pub mod perf;
pub mod perfetto;
pub mod pprof;
pub mod propeller;
pub mod speedscope;
pub mod stacks;
pub mod uftrace;

/// What can be wrong with foreign bytes. The caller knows the file and adds its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The first bytes belong to something else.
    #[error("not a .gcda file: it begins with {found:02x?}, not with \"gcda\" in either byte order")]
    NotGcda {
        /// Up to four bytes found at the start.
        found: Vec<u8>,
    },
    /// Written by a compiler whose format is not known here.
    #[error("written by {0}, a format that is not read here; build the instrumented program with GCC {first} to {last}",
        first = gcda::GcovVersion::FIRST_MAJOR, last = gcda::GcovVersion::LAST_MAJOR)]
    Version(gcda::GcovVersion),
    /// The file ends inside something.
    #[error(
        "truncated at byte {at}: {what} needs {needed} more bytes; bring the file out of the program again"
    )]
    Truncated {
        /// Length of the file.
        at: usize,
        /// What was being read.
        what: &'static str,
        /// How many bytes are missing.
        needed: u64,
    },
    /// A record that no GCC writes there.
    #[error("damaged at byte {at}: {what}; bring the file out of the program again")]
    Damaged {
        /// Where the record or value begins.
        at: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Two profiles that are not of the same object, so that their counters cannot be added.
    #[error("the profiles are of different builds: {what}; merge profiles of one build only")]
    Mismatch {
        /// The first difference.
        what: String,
    },
    /// Counters of values that are not stored as libgcov stores them.
    #[error(
        "function {function}: its {kind:?} counters are no lists of values and counts and cannot be merged; \
         build the instrumented program with -fno-profile-values"
    )]
    ValueLists {
        /// The function's ident.
        function: u32,
        /// The counters' kind.
        kind: gcda::CounterKind,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
