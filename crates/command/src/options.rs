//! Options that several commands have, and the values that they stand for.

use crate::exit::Failure;
use crate::files::{check_config, check_input};
use crate::kernel_words::config_line;
use crate::output::CliOutput;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_guest::{read_text, Workload};
use kerntune_kernel::{BaseConfig, BuildRequest, Compiler, Kernel, KernelSource};
use kerntune_optimize::gcc_pgo::{Exclusions, UntrainedCode};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::{model, RecipeOptions};
use kerntune_work::WorkDir;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Largest value of options in minutes (`--budget`).
pub const MAX_MINUTES: u64 = 100_000;

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
    /// Compiler: gcc, gcc-13, clang, clang-19 [default: gcc; the newest Clang for the recipe clang-autofdo]
    #[arg(long, value_name = "PROGRAM")]
    pub compiler: Option<String>,
    /// Add this flag to the kernel's compiler flags; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub kcflags: Vec<String>,
    /// Build the modules of the configuration too, and keep them with the kernel: for guests (`modules`
    /// of a workload, drivers of its disk), recipes and packages
    #[arg(long)]
    pub modules: bool,
    /// Number of parallel jobs of make and of parallel runs in the emulator [default: number of
    /// CPUs]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

impl BuildOptions {
    /// Returns true if no option changes the kernel that is built; `jobs` does not count.
    pub fn is_default(&self) -> bool {
        // Names every field, so that a new field cannot be forgotten.
        let Self { source, patch, config, fragment, set, compiler, kcflags, modules, jobs: _ } = self;
        source.to_string() == SOURCE
            && patch.is_empty()
            && config.is_none()
            && fragment.is_empty()
            && set.is_empty()
            && compiler.is_none()
            && kcflags.is_empty()
            && !modules
    }
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
    pub fn apply_to(&self, workload: &mut Workload) {
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

/// Options that apply to some recipes only.
#[derive(Debug, Args)]
pub struct RecipeFlags {
    /// With gcc-pgo: profile not only arcs, but also the targets of indirect calls, and common
    /// values and sizes (docs/values.md)
    #[arg(long)]
    pub values: bool,
    /// With gcc-pgo: compile code that the training did not run as in the base kernel, or for size
    /// (docs/recipes.md)
    #[arg(long, value_name = "HOW", default_value = "base", value_parser = untrained_code())]
    pub cold: UntrainedCode,
}

fn untrained_code() -> impl TypedValueParser<Value = UntrainedCode> {
    let all = [UntrainedCode::AsBase, UntrainedCode::Size];
    PossibleValuesParser::new(all.map(UntrainedCode::name))
        .map(move |name| all.into_iter().find(|one| one.name() == name).unwrap_or_default())
}

impl RecipeFlags {
    /// Converts the options to those of the recipe library.
    pub fn options(&self) -> RecipeOptions {
        RecipeOptions { values: self.values, untrained: self.cold }
    }
}

/// Finds a workload by name or file: in the directory `workloads/` of the current directory, or
/// among the built-in ones. Applies the options for CPUs.
pub fn workload(name: &str, cpus: &CpuOptions) -> Result<Workload, Failure> {
    let mut workload = Workload::find(name, &[PathBuf::from("workloads")])?;
    cpus.apply_to(&mut workload);
    Ok(workload)
}

/// Makes the build request; `compiler` is the default.
pub fn build_request(build: &BuildOptions, label: &str, compiler: Compiler) -> Result<BuildRequest, Failure> {
    build.patch.iter().try_for_each(|path| check_input("--patch", path))?;
    build.fragment.iter().try_for_each(|path| check_config("--fragment", path))?;
    build.config.iter().try_for_each(|path| check_config("--config", path))?;
    let mut request = BuildRequest::new(build.source.clone(), label);
    if let Some(config) = &build.config {
        request.base = BaseConfig::File(config.clone());
    }
    request.patches.clone_from(&build.patch);
    request.fragments.clone_from(&build.fragment);
    request.extra.clone_from(&build.set);
    request.compiler = match &build.compiler {
        Some(named) => named.parse().map_err(Failure::usage)?,
        None => compiler,
    };
    request.kcflags.clone_from(&build.kcflags);
    if build.modules {
        request.modules = true;
        request.extra.insert(0, "CONFIG_MODULES=y".into());
    }
    request.jobs = build.jobs;
    Ok(request)
}

/// Finds the kernel `named`, or builds the base kernel of the workloads if it is `None`.
pub fn kernel_for<'a>(
    work: &WorkDir,
    named: Option<&str>,
    workloads: impl IntoIterator<Item = &'a Workload>,
    output: &CliOutput,
) -> Result<Kernel, Failure> {
    if let Some(kernel) = named {
        return Ok(kerntune_kernel::find(work, kernel)?);
    }
    let request = base_request(workloads)?;
    let kernel = kerntune_kernel::build(work, &request, output.progress())?;
    output.note(&format!("kernel {} ({})", kernel.manifest.label, kernel.manifest.id));
    Ok(kernel)
}

/// Returns the request of the base kernel of the workloads.
pub fn base_request<'a>(workloads: impl IntoIterator<Item = &'a Workload>) -> Result<BuildRequest, Failure> {
    let source = SOURCE.parse().map_err(Failure::usage)?;
    Ok(with_needs(BuildRequest::new(source, LABEL), workloads))
}

/// Reads the arguments of `--exclude`.
pub fn exclusions(asked: &ExcludeOptions) -> Result<Exclusions, Failure> {
    let mut list = Exclusions::default();
    for what in &asked.exclude {
        if what.ends_with(".toml") {
            list = list.and(&Exclusions::parse(&read_text("read", Path::new(what))?)?);
        } else {
            list.add(what, "asked for with --exclude")?;
        }
    }
    Ok(list)
}

/// Returns the command line as typed, to be shown on pages.
pub fn command_line() -> String {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(name) = words.first_mut() {
        *name = Path::new(name).file_name().unwrap_or_default().to_owned();
    }
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}
