//! A module for each command. Each has a `run` function that takes the parsed options.

pub mod advise;
pub mod anatomy;
pub mod auto;
pub mod bench;
mod bisect;
pub mod characterize;
pub mod command_line;
pub mod compare;
mod counters;
pub mod doctor;
pub mod explain;
pub mod fleet;
pub mod guard;
pub mod kernel;
pub mod live;
pub mod matrix;
pub mod optimize;
pub mod package;
pub mod paper;
pub mod profile;
pub mod prove;
pub mod record;
pub mod store;
pub mod tags;
pub mod time;
pub mod trial;
pub mod trim;
pub mod tune;
pub mod view;
pub mod workload;

use crate::args::{BuildOptions, CpuOptions, ExcludeOptions, SOURCE};
use crate::exit::Failure;
use crate::files::{check_config, check_input};
use crate::global::{work, work_to_read};
use crate::output::CliOutput;
use kerntune_guest::{read_text, Workload};
use kerntune_kernel::{BaseConfig, BuildRequest, Compiler, Kernel, KernelManifest};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_report::html::ProvenanceLine;
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_work::WorkDir;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Finds a workload by name or file: in the directory `workloads/` of the current directory, or
/// among the built-in ones. Applies the options for CPUs.
fn workload(name: &str, cpus: &CpuOptions) -> Result<Workload, Failure> {
    let mut workload = Workload::find(name, &[PathBuf::from("workloads")])?;
    cpus.apply_to(&mut workload);
    Ok(workload)
}

/// Makes the build request; `compiler` is the default.
fn build_request(build: &BuildOptions, label: &str, compiler: Compiler) -> Result<BuildRequest, Failure> {
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
    request.jobs = build.jobs;
    Ok(request)
}

/// Finds the kernel `named`, or builds the base kernel of the workloads if it is `None`.
fn kernel_for<'a>(
    work: &WorkDir,
    named: Option<&str>,
    workloads: impl IntoIterator<Item = &'a Workload>,
    output: &CliOutput,
) -> Result<Kernel, Failure> {
    if let Some(kernel) = named {
        return Ok(kerntune_kernel::find(work, kernel)?);
    }
    let source = SOURCE.parse().map_err(Failure::usage)?;
    let request = with_needs(BuildRequest::new(source, LABEL), workloads);
    let kernel = kerntune_kernel::build(work, &request, output.progress())?;
    output.note(&format!("kernel {} ({})", kernel.manifest.label, kernel.manifest.id));
    Ok(kernel)
}

/// Reads the arguments of `--exclude`.
fn exclusions(asked: &ExcludeOptions) -> Result<Exclusions, Failure> {
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
fn command_line() -> String {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(name) = words.first_mut() {
        *name = Path::new(name).file_name().unwrap_or_default().to_owned();
    }
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

/// Formats a number of bytes with a binary unit.
fn bytes(count: u64) -> String {
    match count {
        0..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{:.1} KiB", count as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", count as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

/// Returns the provenance of two kernels, for a page.
fn provenance(base: &Kernel, tuned: &Kernel) -> Vec<ProvenanceLine> {
    let line = |what: &str, of: &dyn Fn(&KernelManifest) -> String| {
        let (base, tuned) = (of(&base.manifest), of(&tuned.manifest));
        ProvenanceLine { what: what.into(), tuned: (tuned != base).then_some(tuned), base }
    };
    vec![
        line("kernel", &|m| format!("{} ({})", m.label, m.id)),
        line("version", &|m| m.version.clone()),
        line("source", &|m| format!("{} ({})", m.source.origin, m.source.hash)),
        line("configuration", &|m| m.config_hash.clone()),
        line("compiler", &|m| m.compiler.version.clone()),
        line("flags", &|m| m.kcflags.join(" ")),
        line("profile", &|m| m.profile_id.clone().unwrap_or_default()),
        line("code", &|m| bytes(m.text_bytes)),
        line("image", &|m| bytes(m.image_bytes)),
        line("built", &|m| format!("{} in {:.0} s", m.built, m.build_seconds)),
    ]
}
