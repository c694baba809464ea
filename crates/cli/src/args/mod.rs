//! Command-line arguments. [`Command`] lists the commands; each has a file with its options. Doc
//! comments here are the help texts.

mod advise;
mod anatomy;
mod bench;
mod characterize;
mod compare;
mod counters;
mod fleet;
mod guard;
mod interval;
mod kernel;
mod live;
mod matrix;
mod package;
mod paper;
mod prove;
mod record;
mod store;
mod tags;
mod time;
mod trial;
mod trim;
mod view;

pub use crate::global::{FormatOptions, GlobalOptions};
pub use advise::AdviseOptions;
pub use anatomy::AnatomyOptions;
use bench::positive_percent;
pub use bench::{
    BenchCommand, BenchCompareOptions, BenchCorrelateOptions, BenchMachine, BenchRunOptions, RowCorrection,
};
pub use characterize::CharacterizeOptions;
pub use compare::CompareOptions;
pub use counters::CounterOptions;
pub use fleet::FleetCommand;
pub use guard::{
    GuardBisectOptions, GuardCheckOptions, GuardCommand, GuardFileOptions, GuardHistoryOptions,
    GuardRecordOptions, GuardSubjectOptions, GuardWatchOptions,
};
pub use interval::IntervalOptions;
pub use kernel::KernelCommand;
pub use live::{LiveCommand, LiveDumpOptions, LiveOptions};
pub use matrix::{MatrixCommand, MatrixEngine, MatrixRunOptions, StoreOptions, TrustOptions, WorkerOptions};
pub use package::PackageOptions;
pub use paper::PaperOptions;
pub use prove::{ProveMachine, ProveOptions};
pub use record::{RecordDetail, TagSource};
pub use store::{CheckOptions, GcOptions};
pub use tags::TagsOptions;
pub use time::TimeOptions;
pub use trial::AblateOptions;
pub use trim::TrimOptions;
pub use view::ViewOptions;

use crate::kernel_words::config_line;
use crate::{export, import, report};
use clap::{Args, Parser, Subcommand};
use kerntune_kernel::{KernelSource, ObjectFlags};
use kerntune_tune::{model, Recipe, RecipeOptions};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Make a Linux kernel fast for the work it does, and prove it.
#[derive(Debug, Parser)]
#[command(name = "kerntune", version, max_term_width = 100, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build, train, rebuild, measure and compare; resumes where it stopped
    Tune(TuneOptions),
    /// Show what this machine has and lacks, and the commands that install missing tools
    Doctor(DoctorOptions),
    /// Check by hash that the files of all results are unchanged
    Check(CheckOptions),
    /// Show the contents of the work directory, with size, age and what keeps each result; delete
    /// what is not needed
    Gc(GcOptions),
    /// Build, order, list, test and remove kernels
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// List workloads, and write and check workload files
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// Run a workload on a kernel in the emulator and record what the kernel does
    Record(RecordOptions),
    /// Profile the kernel of this machine while it works (docs/live.md)
    #[command(subcommand)]
    Live(LiveCommand),
    /// List, show and remove profiles
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Keep profiles of many machines below one prefix, merge thousands of them, and query them (docs/fleet.md)
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Compute a matrix of kernels, configurations, compilers, recipes and workloads, on this
    /// machine or on a cluster (docs/matrix.md)
    #[command(subcommand)]
    Matrix(MatrixCommand),
    /// Compute tasks of a matrix plan, together with any number of other machines (docs/matrix.md)
    Worker(WorkerOptions),
    /// Print reports of a profile: functions, call graph, code path, and more
    Report(report::ReportOptions),
    /// Show a profile of any size in a browser on this machine, or in the terminal (docs/html.md)
    View(ViewOptions),
    /// Describe a workload on one page: what dominates it, what it does per operation and per
    /// second, and how similar it is to others (docs/characterize.md)
    #[command(alias = "characterise")]
    Characterize(CharacterizeOptions),
    /// Suggest changes that may help a workload: rules that apply to its profile, with evidence,
    /// risk and source; writes the changes to a file for `ablate` (docs/advise.md)
    Advise(AdviseOptions),
    /// Write a profile in another tool's format
    #[command(subcommand)]
    Export(export::ExportFormat),
    /// Make a profile from another tool's file
    #[command(subcommand)]
    Import(import::ImportFormat),
    /// Extend a names file of event tags for McRae's profiler, or write it as a C header
    Tags(TagsOptions),
    /// Rebuild a kernel for a workload
    Optimize(OptimizeOptions),
    /// Run a workload on two kernels and compare them exactly; explain the difference by function
    Compare(CompareOptions),
    /// Run rows of benchmark suites on a machine, and compare timed results of two kernels
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Time kernels against each other; boots them in turn
    Time(TimeOptions),
    /// Prove the gain of a kernel on the best machine available: a paragraph, a table, and a bundle
    /// that repeats the proof elsewhere (docs/prove.md)
    Prove(ProveOptions),
    /// Make a Debian package of a kernel: the measured image, its modules, and its profile
    Package(PackageOptions),
    /// Repeat a paper's experiment on today's kernel, and print the paper's tables beside ours
    Paper(PaperOptions),
    /// Measure changes alone, together, and all but one: configuration, patches, command line,
    /// sysctl, recipes (docs/ablate.md)
    #[command(alias = "try")]
    Ablate(AblateOptions),
    /// Switch off kernel options whose code the workloads do not run; build, check and measure the
    /// smaller kernel (docs/trim.md)
    Trim(TrimOptions),
    /// Guard against slower kernels: compare the figures of kernels and commits, and find the commit that made a path longer
    /// (docs/guard.md)
    #[command(subcommand)]
    Guard(GuardCommand),
    /// Show what a system call, an interrupt or any function does: the tree of its calls, and its
    /// work before a boundary
    Anatomy(AnatomyOptions),
    /// Write manual pages and shell completions below a directory
    #[command(name = "command-line", hide = true)]
    Manuals { directory: PathBuf },
}

#[derive(Debug, Args)]
pub struct DoctorOptions {
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Largest value of options in minutes (`--budget`).
pub(crate) const MAX_MINUTES: u64 = 100_000;

/// Default of `--source`.
pub const SOURCE: &str = "debian:6.12";

/// Options that define a kernel build: source, patches, configuration, compiler, flags.
// `skip` avoids a clash: the variant `KernelCommand::Build` has a group of its own.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct BuildOptions {
    /// Kernel source: debian:VERSION, a directory, or a tarball
    #[arg(long, default_value = SOURCE, value_name = "SOURCE")]
    pub source: KernelSource,
    /// Apply this patch (-p1) to a copy of the source; may be repeated, applied in order
    #[arg(long, value_name = "FILE")]
    pub patch: Vec<PathBuf>,
    /// Use this complete .config instead of the small one for virtual machines
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Merge this config fragment; may be repeated, the last one wins
    #[arg(long, value_name = "FILE")]
    pub fragment: Vec<PathBuf>,
    /// Merge this config line; may be repeated
    #[arg(long, value_name = "CONFIG_X=y", value_parser = config_line)]
    pub set: Vec<String>,
    /// Compiler: gcc, gcc-13, clang, clang-19 [default: gcc; clang-19 for the recipe clang-autofdo]
    #[arg(long, value_name = "PROGRAM")]
    pub compiler: Option<String>,
    /// Add this flag to the kernel's compiler flags; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub kcflags: Vec<String>,
    /// Number of parallel jobs of make and of parallel runs in the emulator [default: number of
    /// CPUs]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

impl BuildOptions {
    /// Returns true if no option changes the kernel that is built; `jobs` does not count.
    pub fn is_default(&self) -> bool {
        // Names every field, so that a new field cannot be forgotten.
        let Self { source, patch, config, fragment, set, compiler, kcflags, jobs: _ } = self;
        source.to_string() == SOURCE
            && patch.is_empty()
            && config.is_none()
            && fragment.is_empty()
            && set.is_empty()
            && compiler.is_none()
            && kcflags.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the workloads that --workload accepts by name
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Write a draft of a workload file for a command; complete it yourself
    New {
        /// Write the workload to this file
        #[arg(long, short, default_value = "workload.toml", value_name = "FILE")]
        output: PathBuf,
        /// The command to measure: a program of this machine with its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Explain the errors in a workload file
    Check {
        /// The workload file
        file: PathBuf,
        #[command(flatten)]
        format: FormatOptions,
    },
}

/// The option `--model`: a front-end model by name or file.
#[derive(Debug, Clone, Args)]
pub struct ModelOptions {
    /// Front-end model for cache and TLB misses: a name (generic, skylake, zen4 …) or a .toml file,
    /// optionally with parts to add (zen4+tage+next-line, docs/models.md) [default: generic]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl ModelOptions {
    /// Loads the model; with `data`, including its data caches and TLBs.
    pub fn find(&self, data: bool) -> Result<model::Model, kerntune_tune::Error> {
        let name = self.model.as_deref().unwrap_or(model::DEFAULT);
        if data {
            model::find_with_data(name)
        } else {
            model::find(name)
        }
    }

    /// Formats the option for a command line, with a leading space; empty if it was not given.
    pub fn to_argument(&self) -> String {
        self.model.as_ref().map_or(String::new(), |name| format!(" --model '{name}'"))
    }

    /// Returns true if the model is a file, not a built-in name.
    pub fn is_file(&self) -> bool {
        self.model.as_ref().is_some_and(|name| name.contains('/') || name.contains(".toml"))
    }

    /// Returns true if `--model` was given.
    pub fn is_asked(&self) -> bool {
        self.model.is_some()
    }
}

/// Options for the guest's CPUs: number and kind.
#[derive(Debug, Clone, Default, Args)]
pub struct CpuOptions {
    /// Number of CPUs of the guest [default: the workload's `cpus`, or 1] (docs/cpus.md)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(kerntune_guest::MAX_CPUS)))]
    cpus: Option<u32>,
    /// Give the guest a CPU that needs mitigations, so that the kernel enables them: zen2 or
    /// skylake (docs/measuring.md)
    #[arg(long, value_name = "CPU", value_parser = mitigations)]
    mitigations: Option<String>,
    /// Give the guest a CPU with fast string instructions, so that the kernel copies memory with
    /// one instruction (docs/measuring.md)
    #[arg(long)]
    fast_strings: bool,
}

fn mitigations(name: &str) -> Result<String, String> {
    kerntune_guest::vulnerable(name).map(|()| name.to_owned())
}

impl CpuOptions {
    /// Overrides the CPU settings of a workload's guest with the given options.
    pub fn apply_to(&self, workload: &mut kerntune_guest::Workload) {
        workload.cpus = self.cpus.unwrap_or(workload.cpus);
        if self.mitigations.is_some() {
            workload.mitigations.clone_from(&self.mitigations);
        }
        workload.fast_strings |= self.fast_strings;
    }
}

/// The option `--exclude`: code that a recipe leaves unchanged.
#[derive(Debug, Clone, Args)]
pub struct ExcludeOptions {
    /// Compile this as in the base kernel: an object (net/ipv4/tcp.o), a directory (net/), or a
    /// .toml file with a list of them (docs/bisect.md); may be repeated
    #[arg(long, value_name = "WHAT")]
    pub exclude: Vec<String>,
}

#[derive(Debug, Args)]
pub struct RecordOptions {
    /// The kernel: label, beginning of an id, or directory [default: the workload's base kernel, built if it is missing]
    #[arg(long)]
    pub kernel: Option<String>,
    /// The workload: a name or a .toml file; not needed with a COMMAND
    #[arg(long)]
    pub workload: Option<String>,
    /// The run of the workload to record
    #[arg(long, default_value = "measured", value_parser = ["measured", "training"])]
    pub run: String,
    /// Do not record function entries and exits
    #[arg(long)]
    pub no_functions: bool,
    /// Do not record executed edges and misses of the front-end model
    #[arg(long)]
    pub no_edges: bool,
    /// Record executed edges also with --only and --skip, which leave them out by default: edges
    /// cover the whole kernel, and cost more than a few functions
    #[arg(long, conflicts_with = "no_edges")]
    pub edges: bool,
    /// Options that select the events to record
    #[command(flatten)]
    pub detail: RecordDetail,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub format: FormatOptions,
    /// Print also what the recorded programs printed, before the summary
    #[arg(long, conflicts_with_all = ["json", "live"])]
    pub show_output: bool,
    /// Run this command in the guest: a program of this machine, packed with its libraries and with
    /// the files that its arguments name by absolute path. With --workload it replaces the
    /// workload's run; the workload's services are started first
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "run")]
    pub command: Vec<String>,
    /// Run COMMAND on this machine, and profile what this machine's kernel does for it and for the
    /// processes that it starts (docs/live.md)
    #[arg(long, requires = "command", conflicts_with_all = ["kernel", "workload", "no_functions", "no_edges", "edges",
          "only", "skip", "point", "user", "weights", "data", "instructions", "tags", "model", "cpus", "mitigations", "fast_strings"])]
    pub live: bool,
    #[command(flatten)]
    pub watch: LiveOptions,
    /// With --live: profile the whole machine while COMMAND runs; --calls implies it
    #[arg(short, long, requires = "live", conflicts_with_all = ["pid", "cgroup"])]
    pub all: bool,
    /// The default; scripts may still name it.
    #[arg(long, requires = "live", conflicts_with_all = ["pid", "cgroup", "all", "calls"], hide = true)]
    pub command_only: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// List profiles, oldest first
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the provenance of a profile
    Show {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Analyze the trace of a profile again, and keep the result as another profile
    Rebuild {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        /// Leave out damaged chunks of the trace, and list them
        #[arg(long)]
        partial: bool,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Add up profiles of one kernel, each times its weight, into one profile for several workloads
    Merge {
        /// PROFILE or PROFILE:WEIGHT; the weight is a whole number up to 1,000,000 [default: 1]
        #[arg(required = true, value_name = "PROFILE[:WEIGHT]")]
        parts: Vec<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Check how well a profile fits a kernel, and suggest what to do if it does not
    /// (docs/quality.md)
    Check {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md); or a
        /// directory of .gcda files as collected from debugfs
        profile: String,
        /// The kernel to check against: label, beginning of an id, or directory [default: the
        /// recorded kernel]
        #[arg(long)]
        kernel: Option<String>,
        /// The recipe that will use the profile
        #[arg(long)]
        recipe: Option<Recipe>,
        /// A second recording of the training run, preferably with another seed: compare the hot
        /// functions of both
        #[arg(long, value_name = "PROFILE")]
        against: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Transfer a profile to another kernel, as far as the functions of both are the same
    #[command(alias = "carry")]
    Transfer {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        /// The other kernel: label, beginning of an id, or directory
        #[arg(long, value_name = "KERNEL")]
        to: String,
        /// Smallest share of the executed instructions, in percent, that must be the same in the
        /// other kernel
        #[arg(long, alias = "at-least", value_name = "PERCENT", default_value_t = kerntune_optimize::quality::MIN_TRANSFERRED_PERCENT, value_parser = clap::value_parser!(u64).range(1..=100))]
        min_percent: u64,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Delete profiles
    Remove {
        /// Beginnings of ids, or directories
        #[arg(required = true)]
        profiles: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct OptimizeOptions {
    /// The recipe: gcc-pgo, clang-autofdo, layout … (docs/recipes.md)
    #[arg(long, default_value = "gcc-pgo", value_name = "RECIPE")]
    pub recipe: String,
    /// The kernel to start from: label, beginning of an id, or directory
    #[arg(long)]
    pub kernel: String,
    /// The workload to tune for: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    /// Use these .gcda files instead of a training run (a directory as collected from debugfs)
    #[arg(long, value_name = "DIR", conflicts_with = "profile")]
    pub gcda: Option<PathBuf>,
    /// Use this recording with edges instead of a training run: beginning of an id, directory, or `latest`
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Tune also for this workload, and run every workload on every kernel; may be repeated
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["gcda", "profile"])]
    pub cross: Vec<String>,
    /// With --cross: also build one kernel that is trained on all workloads
    #[arg(long, requires = "cross")]
    pub together: bool,
    /// Train also on this workload, and count this training TIMES times; may be repeated
    #[arg(long, value_name = "WORKLOAD[:TIMES]", value_parser = times, conflicts_with_all = ["gcda", "profile", "cross"])]
    pub also: Vec<(String, u32)>,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    /// Number of parallel jobs of make and of parallel runs in the emulator [default: number of
    /// CPUs]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Largest TIMES of `--also`; low, because training runs are added up one by one.
const MAX_TIMES: u32 = 100;

/// Parses `redis` or `redis:3` into a workload and its number of times.
fn times(text: &str) -> Result<(String, u32), String> {
    let Some((name, times)) = text.rsplit_once(':') else { return Ok((text.into(), 1)) };
    match times.parse() {
        Ok(times @ 1..=MAX_TIMES) if !name.is_empty() => Ok((name.into(), times)),
        _ => Err(format!("give WORKLOAD or WORKLOAD:TIMES, 1 to {MAX_TIMES} times")),
    }
}

/// Options that apply to some recipes only.
#[derive(Debug, Args)]
pub struct RecipeFlags {
    /// With gcc-pgo: profile not only arcs, but also the targets of indirect calls, and common
    /// values and sizes (docs/values.md)
    #[arg(long)]
    pub values: bool,
}

impl RecipeFlags {
    pub fn options(&self) -> RecipeOptions {
        RecipeOptions { values: self.values }
    }
}

#[derive(Debug, Args)]
pub struct TuneOptions {
    /// The workload to tune for: a name or a .toml file; with auto it may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// The recipe: gcc-pgo, clang-autofdo, clang-autofdo+thinlto, layout, one of these with +layout, one of Clang's with
    /// +propeller, bolt, or auto, which tries all of them and keeps the best [default: of the recipes that this machine's tools
    /// can build, the best by measured times (docs/recipes.md)]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// With auto: check on this workload that the best kernel does no harm; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub held_out: Vec<String>,
    /// With auto: try only this recipe; may be repeated
    #[arg(long = "try", value_name = "RECIPE")]
    pub tried: Vec<Recipe>,
    /// With auto: also build the upstream baselines, and compare the best kernel with them
    #[arg(long)]
    pub stock: bool,
    /// With auto: start no further recipe after this many minutes, counted for each workload
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    /// Compiler flag for one object of the tuned kernel (net/ipv4/tcp.o=-O3) or for a directory
    /// (net/=-O3); the base kernel does not get it; may be repeated
    #[arg(long, value_name = "PATH=FLAG")]
    pub object_flags: Vec<ObjectFlags>,
    /// Show the steps and which of them are done; run none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_says_what_it_does() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            command.get_subcommands().for_each(check);
        }
        Arguments::command().debug_assert();
        check(&Arguments::command());
    }

    #[test]
    fn trainings_have_times() {
        assert_eq!(times("redis"), Ok(("redis".into(), 1)));
        assert_eq!(times("dir/my.toml:3"), Ok(("dir/my.toml".into(), 3)));
        for wrong in ["redis:0", "redis:101", ":3", "redis:", "redis:x"] {
            assert!(times(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_keep_their_old_names() {
        for old in [
            &["kernel", "check", "base"][..],
            &["kernel", "verify", "base"],
            &["kernel", "order", "base", "--file", "names", "--label", "x"],
            &["try", "changes.toml", "--workload", "rr"],
            &["bench", "compare", "a.json", "b.json", "--base", "c.json", "--tuned", "d.json"],
            &["profile", "carry", "latest", "--to", "base"],
            &["bench", "predict", "--timed", "a", "b", "--exact", "c", "d"],
        ] {
            let parsed = Arguments::try_parse_from([&["kerntune"], old].concat());
            assert!(parsed.is_ok(), "{old:?}: {}", parsed.unwrap_err());
        }
    }
}
