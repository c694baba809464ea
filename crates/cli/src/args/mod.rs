//! The command line.

mod advise;
mod anatomy;
mod bench;
mod characterise;
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

pub use crate::global::{Global, Json};
pub use advise::Advise;
pub use anatomy::Anatomy;
use bench::positive_percent;
pub use bench::{Bench, BenchCompare, BenchCorrelate, BenchRun, Machine, RowCorrection};
pub use characterise::Characterise;
pub use compare::Compare;
pub use counters::Counters;
pub use fleet::Fleet;
pub use guard::{
    Guard, GuardBisect, GuardCheck, GuardHistory, GuardOf, GuardRecord, GuardSubject, GuardWatch,
};
pub use interval::Interval;
pub use kernel::Kernel;
pub use live::{Dump, Live, Watch};
pub use matrix::{Engine, Matrix, MatrixRun, StoreAt, TrustOptions, Worker};
pub use package::Package;
pub use paper::Paper;
pub use prove::{On, Prove};
pub use record::{RecordDetail, TagPlace};
pub use store::{Check, Gc};
pub use tags::Tags;
pub use time::Time;
pub use trial::Try;
pub use trim::Trim;
pub use view::View;

use crate::kernel_words::config_line;
use crate::{export, import, report};
use clap::{Args, Parser, Subcommand};
use kerntune_kernel::{ObjectFlags, Source};
use kerntune_tune::{model, Recipe, RecipeOptions};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Make a Linux kernel fast for the work it does, and prove it.
#[derive(Debug, Parser)]
#[command(name = "kerntune", version, max_term_width = 100, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build, train, rebuild, measure, compare; resumes where it stopped
    Tune(Tune),
    /// Show what this machine has and lacks, with the command that installs what is missing
    Doctor(Doctor),
    /// Check by hash that every file of every result is unchanged
    Check(Check),
    /// Show what is in the work directory, with size, age and what keeps it; delete what can go
    Gc(Gc),
    /// Build, order, list, test and remove kernels
    #[command(subcommand)]
    Kernel(Kernel),
    /// List workloads, and write and check workload files
    #[command(subcommand)]
    Workload(Workload),
    /// Run a workload on a kernel in the emulator and record what the kernel does
    Record(Record),
    /// Profile the kernel of this machine while it works (docs/live.md)
    #[command(subcommand)]
    Live(Live),
    /// List, show and remove profiles
    #[command(subcommand)]
    Profile(Profile),
    /// Keep profiles of many machines below one prefix, merge thousands of them, and query them (docs/fleet.md)
    #[command(subcommand)]
    Fleet(Fleet),
    /// Compute a matrix of kernels, configurations, compilers, recipes and workloads, here or on a cluster (docs/matrix.md)
    #[command(subcommand)]
    Matrix(Matrix),
    /// Compute tasks of a matrix plan, beside any number of other machines (docs/matrix.md)
    Worker(Worker),
    /// Print reports of a profile: functions, call graph, code path, and many more
    Report(report::Options),
    /// Show a profile of any size in a browser on this machine, or in the terminal (docs/html.md)
    View(View),
    /// Describe a workload on one page: what dominates it, what it does per operation and second, and how it compares with others
    /// (docs/characterise.md)
    Characterise(Characterise),
    /// Suggest what may help a workload: the rules that apply to its profile, each with evidence, risk and source, and the
    /// changes as a file for `try` (docs/advise.md)
    Advise(Advise),
    /// Write a profile in another tool's format
    #[command(subcommand)]
    Export(export::Format),
    /// Make a profile from another tool's file
    #[command(subcommand)]
    Import(import::Format),
    /// Extend a names file of event tags for McRae's profiler, or write it as a C header
    Tags(Tags),
    /// Rebuild a kernel for a workload
    Optimize(Optimize),
    /// Run a workload on two kernels and compare them exactly
    Compare(Compare),
    /// Run rows of benchmark suites on a machine, and compare timed results of two kernels
    #[command(subcommand)]
    Bench(Bench),
    /// Time kernels against each other, booted in turn
    Time(Time),
    /// Prove what a kernel gains, on the best machine available: a paragraph, a table, and a bundle that repeats the proof
    /// elsewhere (docs/prove.md)
    Prove(Prove),
    /// Make a Debian package of a kernel: the image that was measured, its modules, and its profile
    Package(Package),
    /// Repeat a paper's experiment on today's kernel, and print the paper's tables with ours beside them
    Paper(Paper),
    /// Try changes alone, together and all but one: configuration, patches, command line, sysctl, recipes (docs/try.md)
    Try(Try),
    /// Switch off kernel options whose code the workloads do not run; build, check and measure the smaller kernel (docs/trim.md)
    Trim(Trim),
    /// Guard against slower kernels: compare the figures of kernels and commits, and find the commit that made a path longer
    /// (docs/guard.md)
    #[command(subcommand)]
    Guard(Guard),
    /// Explain, function by function, why one kernel needs fewer instructions for a workload than another
    Explain(Explain),
    /// Show what a system call, an interrupt or any function does: the tree of its calls, and what it does before a boundary
    Anatomy(Anatomy),
    /// Write manual pages and completions below a directory
    #[command(name = "command-line", hide = true)]
    Manuals { directory: PathBuf },
}

#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    pub format: Json,
}

/// The longest time that work may take, minutes.
pub(crate) const MOST_MINUTES: u64 = 100_000;

/// The kernel source, if none is named.
pub const SOURCE: &str = "debian:6.12";

/// What a kernel is built from.
// The variant of the same name has a group of its own.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Build {
    /// debian:VERSION, a source directory, or a source tarball
    #[arg(long, default_value = SOURCE, value_name = "SOURCE")]
    pub source: Source,
    /// A patch for the source (-p1); may be repeated, applied in order to a copy
    #[arg(long, value_name = "FILE")]
    pub patch: Vec<PathBuf>,
    /// A whole .config to build instead of the small virtual-machine one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A config fragment to merge; may be repeated, the last one wins
    #[arg(long, value_name = "FILE")]
    pub fragment: Vec<PathBuf>,
    /// One config line to merge; may be repeated
    #[arg(long, value_name = "CONFIG_X=y", value_parser = config_line)]
    pub set: Vec<String>,
    /// Compiler: gcc, gcc-13, clang, clang-19 [default: gcc; clang-19 for the recipe clang-autofdo]
    #[arg(long, value_name = "PROGRAM")]
    pub compiler: Option<String>,
    /// A compiler flag to add to the kernel's; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub kcflags: Vec<String>,
    /// Parallel jobs of make, and runs in the emulator; all CPUs if not given
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

impl Build {
    /// Whether nothing was asked for that makes another kernel.
    pub fn is_default(&self) -> bool {
        // Every field is named here, so that a new one is not forgotten.
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
pub enum Workload {
    /// List the workloads that --workload takes by name
    List {
        #[command(flatten)]
        format: Json,
    },
    /// Write a workload file for a command, for you to complete
    New {
        /// The file to write
        #[arg(long, short, default_value = "workload.toml", value_name = "FILE")]
        output: PathBuf,
        /// The command to measure: a program of this machine with its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Explain what is wrong with a workload file
    Check {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        format: Json,
    },
}

/// A front-end model by name or file.
#[derive(Debug, Clone, Args)]
pub struct Model {
    /// Front-end model for cache and TLB misses: a name (generic, skylake, zen4 …) or a .toml file, with parts to add
    /// (zen4+tage+next-line, docs/models.md) [default: generic]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl Model {
    /// The model, with its caches of data or without.
    pub fn find(&self, data: bool) -> Result<model::Model, kerntune_tune::Error> {
        let name = self.model.as_deref().unwrap_or(model::DEFAULT);
        if data {
            model::find_with_data(name)
        } else {
            model::find(name)
        }
    }

    /// As it was typed, after a blank; nothing if it was not.
    pub fn words(&self) -> String {
        self.model.as_ref().map_or(String::new(), |name| format!(" --model '{name}'"))
    }

    /// Whether it is somebody's own file.
    pub fn is_file(&self) -> bool {
        self.model.as_ref().is_some_and(|name| name.contains('/') || name.contains(".toml"))
    }

    /// Whether somebody named one.
    pub fn is_asked(&self) -> bool {
        self.model.is_some()
    }
}

/// The guest's CPUs: how many, and of which kind.
#[derive(Debug, Clone, Default, Args)]
pub struct Cpus {
    /// Number of CPUs of the guest [default: the workload's `cpus`, or 1] (docs/cpus.md)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(kerntune_guest::MAX_CPUS)))]
    cpus: Option<u32>,
    /// Let the guest's CPU identify itself as one that needs mitigations, which the kernel then uses: zen2 or skylake
    /// (docs/measuring.md)
    #[arg(long, value_name = "CPU", value_parser = mitigations)]
    mitigations: Option<String>,
    /// Show the kernel a CPU that copies memory fast with one instruction, which the kernel then uses (docs/measuring.md)
    #[arg(long)]
    fast_strings: bool,
}

fn mitigations(name: &str) -> Result<String, String> {
    kerntune_guest::vulnerable(name).map(|()| name.to_owned())
}

impl Cpus {
    /// Gives a workload's guest what was asked for.
    pub fn give(&self, workload: &mut kerntune_guest::Workload) {
        workload.cpus = self.cpus.unwrap_or(workload.cpus);
        if self.mitigations.is_some() {
            workload.mitigations.clone_from(&self.mitigations);
        }
        workload.fast_strings |= self.fast_strings;
    }
}

/// What a recipe leaves out.
#[derive(Debug, Clone, Args)]
pub struct Exclude {
    /// Compile this as in the base kernel: an object (net/ipv4/tcp.o), a directory (net/), or a .toml file with a
    /// list of them (docs/bisect.md); may be repeated
    #[arg(long, value_name = "WHAT")]
    pub exclude: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Record {
    /// The kernel: label, beginning of an id, or directory [default: the workload's base kernel, built if it is missing]
    #[arg(long)]
    pub kernel: Option<String>,
    /// The workload: a name or a .toml file; not needed with a COMMAND
    #[arg(long)]
    pub workload: Option<String>,
    /// Which run of the workload to record
    #[arg(long, default_value = "measured", value_parser = ["measured", "training"])]
    pub run: String,
    /// Do not record function entries and exits
    #[arg(long)]
    pub no_functions: bool,
    /// Do not record executed edges, nor misses of the front-end model
    #[arg(long)]
    pub no_edges: bool,
    /// Record executed edges with --only and --skip, too, which otherwise leave edges out: edges are of the whole kernel, and
    /// cost more than a few functions
    #[arg(long, conflicts_with = "no_edges")]
    pub edges: bool,
    /// What exactly is recorded
    #[command(flatten)]
    pub detail: RecordDetail,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub format: Json,
    /// Run this in the guest: a program of this machine, packed with all that it needs and with the files that its arguments name
    /// by absolute path. With --workload it replaces the workload's run, and the workload's services are started first
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "run")]
    pub command: Vec<String>,
    /// Run COMMAND on this machine, and profile this machine's kernel meanwhile (docs/live.md)
    #[arg(long, requires = "command", conflicts_with_all = ["kernel", "workload", "no_functions", "no_edges", "edges",
          "only", "skip", "point", "user", "weights", "data", "instructions", "tags", "model", "cpus", "mitigations", "fast_strings"])]
    pub live: bool,
    #[command(flatten)]
    pub watch: Watch,
    /// With --live: profile only COMMAND and what it starts, not the whole machine
    #[arg(long, requires = "live", conflicts_with_all = ["pid", "cgroup"])]
    pub command_only: bool,
}

#[derive(Debug, Subcommand)]
pub enum Profile {
    /// List profiles, oldest first
    List {
        #[command(flatten)]
        format: Json,
    },
    /// Show where a profile comes from
    Show {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
        profile: String,
        #[command(flatten)]
        format: Json,
    },
    /// Analyse a profile's trace again; keeps the result as another profile
    Rebuild {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
        profile: String,
        /// Leave out damaged chunks of the trace, and list what is missing
        #[arg(long)]
        partial: bool,
        #[command(flatten)]
        format: Json,
    },
    /// Add up profiles of one kernel, each times its weight: one profile for several workloads
    Merge {
        /// PROFILE or PROFILE:WEIGHT; a weight is a whole number up to 1,000,000, and 1 if it is left out
        #[arg(required = true, value_name = "PROFILE[:WEIGHT]")]
        parts: Vec<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Check how well a profile fits a kernel, and say what to do where it does not (docs/quality.md)
    Check {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`; or a directory of .gcda files as collected from debugfs
        profile: String,
        /// The kernel that the profile is for: label, beginning of an id, or directory [default: the recorded one]
        #[arg(long)]
        kernel: Option<String>,
        /// The recipe that the profile is for
        #[arg(long)]
        recipe: Option<Recipe>,
        /// A second recording of the training, best with another seed: compare the hot functions of both
        #[arg(long, value_name = "PROFILE")]
        against: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Transfer a profile to another kernel, as far as the functions of both are the same
    #[command(alias = "carry")]
    Transfer {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
        profile: String,
        /// The other kernel: label, beginning of an id, or directory
        #[arg(long, value_name = "KERNEL")]
        to: String,
        /// Least share of the executed instructions, in percent, that must be the same in the other kernel
        #[arg(long, value_name = "PERCENT", default_value_t = kerntune_optimize::quality::MIN_CARRIED_PERCENT, value_parser = clap::value_parser!(u64).range(1..=100))]
        at_least: u64,
        #[command(flatten)]
        format: Json,
    },
    /// Delete profiles
    Remove {
        /// Beginnings of ids, or directories
        #[arg(required = true)]
        profiles: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct Optimize {
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
    /// Tune for this workload as well, and run every workload on every kernel; may be repeated
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["gcda", "profile"])]
    pub cross: Vec<String>,
    /// With --cross: also build one kernel that is trained on all workloads
    #[arg(long, requires = "cross")]
    pub together: bool,
    /// Also train on this workload, and count that training TIMES times; may be repeated
    #[arg(long, value_name = "WORKLOAD[:TIMES]", value_parser = times, conflicts_with_all = ["gcda", "profile", "cross"])]
    pub also: Vec<(String, u32)>,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub exclude: Exclude,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub of_recipe: OfRecipe,
    /// Parallel jobs of make, and runs in the emulator; all CPUs if not given
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub format: Json,
}

/// A training counts so many times at most: trainings are added up one by one.
const MOST_TIMES: u32 = 100;

/// `redis` or `redis:3`.
fn times(text: &str) -> Result<(String, u32), String> {
    let Some((name, times)) = text.rsplit_once(':') else { return Ok((text.into(), 1)) };
    match times.parse() {
        Ok(times @ 1..=MOST_TIMES) if !name.is_empty() => Ok((name.into(), times)),
        _ => Err(format!("give WORKLOAD or WORKLOAD:TIMES, 1 to {MOST_TIMES} times")),
    }
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub cpus: Cpus,
    /// Show every function, not only those that make up most of the difference
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub format: Json,
}

/// What only some recipes know.
#[derive(Debug, Args)]
pub struct OfRecipe {
    /// gcc-pgo: besides arcs, profile the targets of indirect calls, and common values and sizes (docs/values.md)
    #[arg(long)]
    pub values: bool,
}

impl OfRecipe {
    pub fn options(&self) -> RecipeOptions {
        RecipeOptions { values: self.values }
    }
}

#[derive(Debug, Args)]
pub struct Tune {
    /// The workload to tune for: a name or a .toml file; with auto it may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: Build,
    /// The recipe: gcc-pgo, clang-autofdo, clang-autofdo+thinlto, layout, one of these with +layout, one of Clang's with
    /// +propeller, bolt, or auto, which tries all of them and keeps the best [default: of the recipes that this machine's tools
    /// can build, the best by measured times (docs/recipes.md)]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// With auto: a workload on which to check that the best kernel does no harm; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub held_out: Vec<String>,
    /// With auto: try only the recipes that are named by this option; may be repeated
    #[arg(long = "try", value_name = "RECIPE")]
    pub only: Vec<Recipe>,
    /// With auto: also make the upstream baselines, and compare the best kernel with them
    #[arg(long)]
    pub stock: bool,
    /// With auto: start no further recipe after this many minutes, for each workload
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MOST_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub of_recipe: OfRecipe,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub exclude: Exclude,
    /// A flag for one object of the tuned kernel (net/ipv4/tcp.o=-O3) or all below a directory (net/=-O3); the base kernel does
    /// not get it; may be repeated
    #[arg(long, value_name = "PATH=FLAG")]
    pub object_flags: Vec<ObjectFlags>,
    /// Show the steps and which of them are done, without running any
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: Json,
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
            &["profile", "carry", "latest", "--to", "base"],
            &["bench", "predict", "--timed", "a", "b", "--exact", "c", "d"],
        ] {
            let parsed = Arguments::try_parse_from([&["kerntune"], old].concat());
            assert!(parsed.is_ok(), "{old:?}: {}", parsed.unwrap_err());
        }
    }
}
