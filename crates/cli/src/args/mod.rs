//! The command line.

mod advise;
mod anatomy;
mod bench;
mod characterise;
mod compare;
mod counters;
mod fleet;
mod guard;
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
pub use bench::{Bench, BenchCompare, BenchCorrelate, BenchRun, IntervalMethod, Machine, RowCorrection};
pub use characterise::Characterise;
pub use compare::Compare;
pub use counters::Counters;
pub use fleet::Fleet;
pub use guard::{
    Guard, GuardBisect, GuardCheck, GuardHistory, GuardOf, GuardRecord, GuardSubject, GuardWatch,
};
pub use kernel::Kernel;
pub use live::{Dump, Live, Watch};
pub use matrix::{Engine, Matrix, MatrixRun, StoreAt, Worker};
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
    /// Say what this machine has and lacks, with the command that fixes it
    Doctor(Doctor),
    /// Hash every file of every result: is each as it was written?
    Check(Check),
    /// Show what is in the work directory, how large, how old, what keeps it; delete what can go
    Gc(Gc),
    /// Build kernels and look at those that are there
    #[command(subcommand)]
    Kernel(Kernel),
    /// Look at workloads and check workload files
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
    /// Work on the plan of a matrix, beside any number of other machines (docs/matrix.md)
    Worker(Worker),
    /// Show what a profile says
    Report(report::Options),
    /// Show a profile in a browser on this machine, of any size, or in the terminal (docs/html.md)
    View(View),
    /// Say what a workload is like, on one page: what dominates it, what it does per operation and second, beside others
    /// (docs/characterise.md)
    Characterise(Characterise),
    /// Say what may help a workload: rules that apply to its profile, each with evidence, risk and source, and the changes as a
    /// file for `try` (docs/advise.md)
    Advise(Advise),
    /// Write a profile in another tool's format
    #[command(subcommand)]
    Export(export::Format),
    /// Make a profile from another tool's file
    #[command(subcommand)]
    Import(import::Format),
    /// Keep a names file of event tags for McRae's profiler: extend it, write it as a C header
    Tags(Tags),
    /// Rebuild a kernel for a workload
    Optimize(Optimize),
    /// Run a workload on two kernels and compare them exactly
    Compare(Compare),
    /// Run rows of benchmark suites on a machine, and hold timed results of two kernels against each other
    #[command(subcommand)]
    Bench(Bench),
    /// Time kernels against each other, boot by boot in turn
    Time(Time),
    /// Prove what a kernel gains, on the best machine that is here: a paragraph, a table, and a bundle that repeats it elsewhere
    /// (docs/prove.md)
    Prove(Prove),
    /// Make a Debian package of a kernel: the image that was measured, its modules, and its profile
    Package(Package),
    /// Repeat a paper's experiment on today's kernel and print its tables with ours beside them
    Paper(Paper),
    /// Try changes alone, together and all but one: configuration, patches, command line, sysctl, recipes (docs/try.md)
    Try(Try),
    /// Switch off options of a kernel of which some workloads run nothing, build it without, check and measure it (docs/trim.md)
    Trim(Trim),
    /// No kernel gets slower unnoticed: figures of kernels and commits held against each other, and the commit found (docs/guard.md)
    #[command(subcommand)]
    Guard(Guard),
    /// Why one kernel does a workload in fewer instructions than another, function by function
    Explain(Explain),
    /// What a system call, an interrupt or any function does: the tree of its calls, and what it does before a boundary
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
    /// Flags added to the kernel's; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub kcflags: Vec<String>,
    /// Parallel jobs; all CPUs if not given
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
    /// List the workloads that can be named
    List {
        #[command(flatten)]
        format: Json,
    },
    /// Write a workload file for a command, to be filled in
    New {
        /// The file to write
        #[arg(long, short, default_value = "workload.toml", value_name = "FILE")]
        output: PathBuf,
        /// What is measured: a program of this machine with its arguments
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
    /// Front-end model for cache and TLB misses: a name (generic, skylake, zen4 …) or a .toml file, and parts to put in
    /// (zen4+tage+next-line, docs/models.md)
    /// [default: generic]
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
    /// The guest has so many CPUs [default: the workload's `cpus`, or 1] (docs/cpus.md)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(kerntune_guest::MAX_CPUS)))]
    cpus: Option<u32>,
    /// The guest's CPU passes for one that needs mitigations, and the kernel has them: zen2 or skylake
    /// (docs/measuring.md)
    #[arg(long, value_name = "CPU", value_parser = mitigations)]
    mitigations: Option<String>,
    /// The CPU copies memory fast with one instruction, and the kernel uses it (docs/measuring.md)
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
    /// The kernel: label, beginning of an id, or directory [default: the workload's base kernel, built if need be]
    #[arg(long)]
    pub kernel: Option<String>,
    /// The workload: a name or a .toml file; a COMMAND alone needs none
    #[arg(long)]
    pub workload: Option<String>,
    /// Which of the workload's runs
    #[arg(long, default_value = "measured", value_parser = ["measured", "training"])]
    pub run: String,
    /// Do not record function entries and exits
    #[arg(long)]
    pub no_functions: bool,
    /// Do not record executed edges, nor misses of the front-end model
    #[arg(long)]
    pub no_edges: bool,
    /// Record them with --only and --skip, too, which leave them out otherwise: they are of the whole kernel, and
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
    /// Run this in the guest: the program of this machine with all that it needs, and the files that it is given by absolute
    /// paths; with --workload, instead of its run and with its services
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "run")]
    pub command: Vec<String>,
    /// Run COMMAND here and profile the kernel of this machine meanwhile (docs/live.md)
    #[arg(long, requires = "command", conflicts_with_all = ["kernel", "workload", "no_functions", "no_edges", "edges",
          "only", "skip", "point", "user", "weights", "data", "instructions", "tags", "model", "cpus", "mitigations", "fast_strings"])]
    pub live: bool,
    #[command(flatten)]
    pub watch: Watch,
    /// With --live: only COMMAND and what it starts, and not the whole machine
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
        /// Leave out chunks of the trace that are damaged, and say what is missing
        #[arg(long)]
        partial: bool,
        #[command(flatten)]
        format: Json,
    },
    /// Add profiles of one kernel up, each times its weight: one profile for several workloads
    Merge {
        /// PROFILE or PROFILE:WEIGHT; a weight is a whole number up to 1,000,000, and 1 if it is left out
        #[arg(required = true, value_name = "PROFILE[:WEIGHT]")]
        parts: Vec<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Say how fit a profile is for a kernel, and what to do where it is not (docs/quality.md)
    Check {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`; or a directory of .gcda files as collected from debugfs
        profile: String,
        /// The kernel that it is for: label, beginning of an id, or directory; the recorded one if left out
        #[arg(long)]
        kernel: Option<String>,
        /// The recipe that it is for
        #[arg(long)]
        recipe: Option<Recipe>,
        /// A second recording of the training, best with another seed: do both have the same hot functions?
        #[arg(long, value_name = "PROFILE")]
        against: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Make a profile of one kernel one of another, as far as their functions are the same
    #[command(alias = "carry")]
    Transfer {
        /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
        profile: String,
        /// The other kernel: label, beginning of an id, or directory
        #[arg(long, value_name = "KERNEL")]
        to: String,
        /// Least share of the executed instructions, in percent, that must be the same there
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
    /// How: gcc-pgo, clang-autofdo, layout … (docs/recipes.md)
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
    /// With --cross: one more kernel, trained on all of them
    #[arg(long, requires = "cross")]
    pub together: bool,
    /// Train it on this workload as well, and count that training so many times; may be repeated
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
    /// The kernel to hold against it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub cpus: Cpus,
    /// Every function, not only those that make up most of the difference
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
    /// gcc-pgo: besides arcs, profile whom indirect calls reach, and common values and sizes (docs/values.md)
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
    /// How: gcc-pgo, clang-autofdo, clang-autofdo+thinlto, layout, one of these with +layout, one of Clang's
    /// with +propeller, bolt, or auto,
    /// which tries all of them and keeps the best [default: the best by the clock of what this machine's tools can do
    /// (docs/recipes.md)]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// With auto: workloads that the best kernel is tried on, for harm; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub held_out: Vec<String>,
    /// With auto: try this recipe and none that is not named so; may be repeated
    #[arg(long = "try", value_name = "RECIPE")]
    pub only: Vec<Recipe>,
    /// With auto: also make the upstream baselines, and compare the best kernel with them
    #[arg(long)]
    pub stock: bool,
    /// With auto: begin no further recipe after so many minutes, for each workload
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
    /// A flag for one object of the tuned kernel (net/ipv4/tcp.o=-O3) or all below a directory (net/=-O3); the base
    /// kernel goes without; may be repeated
    #[arg(long, value_name = "PATH=FLAG")]
    pub object_flags: Vec<ObjectFlags>,
    /// Show the steps and which of them are done, and do nothing
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
