//! What a build would come to, before anything of it is made: that its inputs can be used, and what it may cost.

use crate::build::{OBJECTS_PER_OPTION, TOOLS};
use crate::config::{self, Setting};
use crate::{packed, release, source, store, tools, BaseConfig, BuildRequest, Kernel, Result};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;

/// Options of a kernel of ours that its configuration does not name: those of `make tinyconfig`, and what others select.
const OF_TINY: u64 = 540;
/// Seconds of a processor that an object takes where none was built here: the lean kernel takes four minutes on two.
const SECONDS_PER_OBJECT: f64 = 0.45;
/// Bytes of a build directory for each object: half a GB for a thousand.
const BYTES_PER_OBJECT: u64 = 500_000;
/// Fewer objects than a kernel has: what was relinked, or compiled in part, says nothing of a whole build.
const LEAST_OBJECTS: u64 = 100;

/// What a kernel's build may cost. An estimate: other work on the machine, and objects that a cache has, change it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Objects to compile.
    pub objects: u64,
    /// Minutes by the clock.
    pub minutes: f64,
    /// Bytes of the build directory, which goes at the end unless objects are kept.
    pub disk_bytes: u64,
    /// What it rests on, in words.
    pub rests_on: String,
}

/// Checks what a request names, and unpacks, configures and compiles nothing. A source's archive is not looked into.
///
/// # Errors
/// Those of [`build`](crate::build), as far as they can be known: tools and a source that are not there, what is no kernel source,
/// configurations and patches that cannot be read.
pub fn preview(work: &WorkDir, request: &BuildRequest) -> Result<Estimate> {
    request.check()?;
    tools::require(TOOLS)?;
    let compiler = request.compiler.identify()?;
    if let Some(version) = source::look(&request.source)? {
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
    crate::patch::check(&request.patches)?;
    let built = built_before(work, request, &compiler.version);
    let processors = request.jobs.or_else(|| std::thread::available_parallelism().ok());
    Ok(of(request, &settings, &built, processors.map_or(1, NonZeroUsize::get)))
}

/// Kernels of this work directory that were compiled as a whole, those of the same source and compiler last.
fn built_before(work: &WorkDir, request: &BuildRequest, compiler: &str) -> Vec<Kernel> {
    let is_whole =
        |kernel: &Kernel| kernel.manifest.objects >= LEAST_OBJECTS && kernel.manifest.build_seconds > 0.0;
    let is_alike = |kernel: &Kernel| {
        let of = &kernel.manifest;
        of.source.origin == request.source.to_string() && of.compiler.version == compiler
    };
    let mut kernels: Vec<Kernel> = store::list(work).unwrap_or_default();
    kernels.retain(|kernel| is_whole(kernel) && kernel.manifest.arch == request.arch);
    kernels.sort_by_key(is_alike);
    kernels
}

fn of(request: &BuildRequest, settings: &[Setting], built: &[Kernel], processors: usize) -> Estimate {
    // The last one that asks for the same, as far as a configuration that is not made yet says.
    let wanted = |text: &str| -> usize {
        let has = |setting: &&Setting| text.lines().any(|line| line == setting.to_string());
        settings.iter().filter(has).count()
    };
    let is_same = |kernel: &&Kernel| {
        let text = fs::read_to_string(kernel.config()).unwrap_or_default();
        kernel.manifest.kcflags == request.kcflags && wanted(&text) * 100 >= settings.len() * MOSTLY
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
    Estimate { objects, minutes, disk_bytes: objects * BYTES_PER_OBJECT, rests_on }
}

/// Per cent of the lines that a kernel of nearly the same configuration has: a distribution's file has lines that a source drops.
const MOSTLY: usize = 90;

/// Options that are built in.
fn counted(request: &BuildRequest, settings: &[Setting]) -> u64 {
    let built_in = settings.iter().filter(|setting| setting.value == "y").count() as u64;
    match request.base {
        BaseConfig::Ours => built_in + OF_TINY,
        BaseConfig::File(_) => built_in,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_plan_is_checked_and_estimated_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let top = dir.path().join("src");
        fs::create_dir(&top).unwrap();
        let request = |source: Source| BuildRequest::new(source, "t");
        let said = |request: &BuildRequest| preview(&work, request).unwrap_err().to_string();
        let missing = said(&request(Source::Debian("0.99".into())));
        assert!(missing.contains("/usr/src/linux-source-0.99.tar.xz is not there"), "{missing}");
        let mine = Source::Directory(top.clone());
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
