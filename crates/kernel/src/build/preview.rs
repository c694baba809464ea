//! Preview of a build: checks that its inputs can be used, and estimates its cost.

use crate::build::attempt::{OBJECTS_PER_OPTION, TOOLS};
use crate::inputs::config::{self, ConfigSetting};
use crate::inputs::{packed, release, source};
use crate::kernels::store;
use crate::{tools, BaseConfig, BuildRequest, Kernel, Result};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;

/// Built-in options of our kernels that no fragment names: those of `make tinyconfig`, and those
/// that others select.
const TINYCONFIG_OPTIONS: u64 = 540;
/// CPU seconds per object if no kernel was built here yet. The lean kernel takes four minutes on
/// two CPUs.
const SECONDS_PER_OBJECT: f64 = 0.45;
/// Bytes of a build directory per object: half a GB for a thousand.
const BYTES_PER_OBJECT: u64 = 500_000;
/// Bytes of memory for each job of make: a compiler with one of the larger files of the kernel.
const MEMORY_PER_JOB: u64 = 256 << 20;
/// Least bytes of memory of a build: the link of `vmlinux`, and objtool's pass over it.
const MEMORY_OF_LINK: u64 = 1 << 30;
/// Kernels with fewer objects were relinked or compiled in part, and are no basis for an estimate.
const MIN_OBJECTS: u64 = 100;

/// Estimated cost of a build. Other work on the machine and cached objects change it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuildEstimate {
    /// Number of objects to compile.
    pub objects: u64,
    /// Wall time in minutes.
    pub minutes: f64,
    /// Bytes of the build directory, which is deleted at the end unless objects are kept.
    pub disk_bytes: u64,
    /// Bytes of memory at the most, by the number of jobs of make: 256 MiB each, 1 GiB at least.
    pub memory_bytes: u64,
    /// Basis of the estimate, in words.
    pub rests_on: String,
}

/// Checks the inputs of a request and estimates its cost. Nothing is unpacked, configured or
/// compiled, and a source's archive is not read.
///
/// # Errors
/// Those of [`build`](crate::build) that can be known: missing tools and sources, directories that
/// are no kernel source, configurations and patches that cannot be read.
pub fn preview(work: &WorkDir, request: &BuildRequest) -> Result<BuildEstimate> {
    request.check()?;
    tools::require(TOOLS)?;
    let compiler = request.compiler.identify()?;
    if let Some(version) = source::check_in_place(&request.source)? {
        release::check(&version, "")?;
    }
    let mut settings = match &request.base {
        BaseConfig::Ours => config::parse(request.arch.base_fragment(), "base.config")?,
        BaseConfig::File(path) => config::parse(&packed::read_text(path)?, &path.display().to_string())?,
    };
    for path in &request.fragments {
        settings.extend(config::parse(&packed::read_text(path)?, &path.display().to_string())?);
    }
    settings.extend(config::parse(&request.extra.join("\n"), "the recipe's options")?);
    let text: Vec<String> = settings.iter().map(ToString::to_string).collect();
    release::check("", &text.join("\n"))?;
    crate::inputs::patch::check(&request.patches)?;
    let built = built_before(work, request, &compiler.version);
    let processors = request.jobs.or_else(|| std::thread::available_parallelism().ok());
    Ok(of(request, &settings, &built, processors.map_or(1, NonZeroUsize::get)))
}

/// Returns the kernels of this work directory that were fully compiled. Those of the same source
/// and compiler come last.
fn built_before(work: &WorkDir, request: &BuildRequest, compiler: &str) -> Vec<Kernel> {
    let is_whole =
        |kernel: &Kernel| kernel.manifest.objects >= MIN_OBJECTS && kernel.manifest.build_seconds > 0.0;
    let is_alike = |kernel: &Kernel| {
        let of = &kernel.manifest;
        of.source.origin == request.source.to_string() && of.compiler.version == compiler
    };
    let mut kernels: Vec<Kernel> = store::list(work).unwrap_or_default();
    kernels.retain(|kernel| is_whole(kernel) && kernel.manifest.arch == request.arch);
    kernels.sort_by_key(is_alike);
    kernels
}

fn of(
    request: &BuildRequest,
    settings: &[ConfigSetting],
    built: &[Kernel],
    processors: usize,
) -> BuildEstimate {
    // The last kernel with nearly the same request, as far as the lines of the fragments say.
    let wanted = |text: &str| -> usize {
        let has = |setting: &&ConfigSetting| text.lines().any(|line| line == setting.to_string());
        settings.iter().filter(has).count()
    };
    let is_same = |kernel: &&Kernel| {
        let text = fs::read_to_string(kernel.config()).unwrap_or_default();
        let of = &kernel.manifest;
        let flags = (&of.kcflags, &of.object_groups);
        flags == (&request.kcflags, &request.object_groups)
            && wanted(&text) * 100 >= settings.len() * ALIKE_PERCENT
    };
    let same = built.iter().rev().find(is_same);
    let seconds = |objects: u64, kernel: Option<&Kernel>| match kernel {
        Some(kernel) => objects as f64 * kernel.manifest.build_seconds / kernel.manifest.objects as f64,
        None => objects as f64 * SECONDS_PER_OBJECT / processors as f64,
    };
    let named = |kernel: &Kernel| format!("kernel {} ({})", kernel.manifest.label, kernel.manifest.id);
    let (objects, time_of, rests_on) = match (same, built.last()) {
        (Some(kernel), _) => {
            (kernel.manifest.objects, Some(kernel), format!("objects and time of {}", named(kernel)))
        }
        (None, last) => {
            let counted = counted(request, settings);
            let time = match last {
                Some(kernel) => format!("the time per object of {}", named(kernel)),
                None => {
                    format!("{SECONDS_PER_OBJECT} s of a processor for each object, {processors} processors")
                }
            };
            let options = format!("{OBJECTS_PER_OPTION} objects for each built-in option, {time}");
            ((counted as f64 * OBJECTS_PER_OPTION).round() as u64, last, options)
        }
    };
    let minutes = (seconds(objects, time_of) / 6.0).round() / 10.0;
    let memory_bytes = MEMORY_OF_LINK.max(processors as u64 * MEMORY_PER_JOB);
    BuildEstimate { objects, minutes, disk_bytes: objects * BYTES_PER_OBJECT, memory_bytes, rests_on }
}

/// Percentage of the requested lines that a kernel of nearly the same configuration has. A source
/// drops some lines of a distribution's file.
const ALIKE_PERCENT: usize = 90;

/// Counts the built-in options.
fn counted(request: &BuildRequest, settings: &[ConfigSetting]) -> u64 {
    let built_in = settings.iter().filter(|setting| setting.value == "y").count() as u64;
    match request.base {
        BaseConfig::Ours => built_in + TINYCONFIG_OPTIONS,
        BaseConfig::File(_) => built_in,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelSource;

    #[test]
    fn a_plan_is_checked_and_estimated_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let top = dir.path().join("src");
        fs::create_dir(&top).unwrap();
        let request = |source: KernelSource| BuildRequest::new(source, "t");
        let said = |request: &BuildRequest| preview(&work, request).unwrap_err().to_string();
        let missing = said(&request(KernelSource::Debian("0.99".into())));
        assert!(missing.contains("/usr/src/linux-source-0.99.tar.xz is not there"), "{missing}");
        let mine = KernelSource::Directory(top.clone());
        let none = said(&request(mine.clone()));
        assert!(none.contains("is not a kernel source: no Makefile"), "{none}");
        fs::write(top.join("Makefile"), "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION = -a b\n")
            .unwrap();
        fs::write(top.join("Kconfig"), "").unwrap();
        assert!(said(&request(mine.clone())).contains("EXTRAVERSION has ' '"));
        fs::write(top.join("Makefile"), "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n")
            .unwrap();

        let plain = preview(&work, &request(mine.clone())).unwrap();
        assert!((900..1300).contains(&plain.objects) && plain.minutes > 0.0, "{plain:?}");
        assert!(plain.rests_on.contains("objects for each built-in option"), "{plain:?}");
        let mut other = request(mine.clone());
        let config = dir.path().join("big.config");
        let lines: String = (0..4000).map(|at| format!("CONFIG_A{at}=y\n")).collect();
        fs::write(&config, lines + "CONFIG_M=m\n").unwrap();
        other.base = BaseConfig::File(config.clone());
        let big = preview(&work, &other).unwrap();
        assert_eq!((big.objects, big.disk_bytes), (7000, 7000 * BYTES_PER_OBJECT));
        fs::write(&config, "CONFIG_A=yes\n").unwrap();
        assert!(said(&other).contains("big.config, line 1"));
        let mut patched = request(mine);
        patched.patches = vec![dir.path().join("none.patch")];
        fs::write(&patched.patches[0], "").unwrap();
        assert!(said(&patched).contains("it is empty"));
        assert!(work.list("sources").unwrap().is_empty() && work.list("configs").unwrap().is_empty());
    }
}
