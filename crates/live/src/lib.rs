//! Profiles the running kernel by sampling.
//!
//! [`import_perf_data`] makes the same kind of profile of a file of perf.
//!
//! Start with [`Collector::start`] and [`CollectorOptions`], call [`Collector::run_until`] to
//! collect, and [`Collector::snapshot`] for a profile. [`daemon`] is a collector that outlives the
//! terminal. Samples come from a [`Source`] (one file each in `sources/`) and go into an
//! [`Aggregate`] of bounded size. The counters in `counts/` are read beside samples. `docs/live.md`
//! explains each figure.
//!
//! The kernel is not modified: when the collector ends, in whatever way, the kernel closes its
//! events.

/// Hash of the code of this crate and of the crates below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod aggregate;
mod collector;
mod command;
mod counted_calls;
mod counts;
pub mod daemon;
mod error;
mod gcov;
mod host_state;
mod options;
mod profile;
mod random;
mod recorded;
mod source;
mod sources;
mod top;
mod tracefs;
mod wait_rows;

pub use aggregate::{
    parse_mapping, Aggregate, CallKey, CallTable, ChainRole, RecordedFiles, SampleFrame, SampleNode,
    SampleTree, SampledSwitch, SampledThread, StackSample, SwitchSample, TableBounds, UserCode,
    USER_FUNCTIONS, WAIT_ROWS,
};
pub use collector::Collector;
pub use command::StoppedCommand;
pub use counts::{parse_interrupts, parse_softirqs, parse_stat, parse_vmstat};
pub use error::{Error, Result};
pub use gcov::{
    collect_gcov, read_archive, reset_gcov, CountingKernel, GcovMachine, GcovManifest, ModuleFiles,
    GCOV_MANIFEST,
};
pub use host_state::MachineState;
pub use options::{cpu_list, CallCountOptions, CollectorOptions, SamplingFilter, TraceOptions};
pub use profile::ProfileLabels;
pub use recorded::{import_perf_data, PerfDataRequest, RecordedNames, RecordedProfile};
pub use source::{Coverage, Source, SourceDescription};
pub use sources::function_profiler::parse_hits;
pub use sources::perf::record::{parse as parse_record, CallChain, PerfRecord, SampleLayout};
pub use sources::perf::task_cgroups::{parse_cgroup, parse_cgroup_record};
pub use sources::perf::tracepoints::{read_trace_event, TraceEvent};
pub use top::{TopFunction, TopPath, TopView};
