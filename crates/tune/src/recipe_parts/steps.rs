//! Steps that several recipes share. Steps of one recipe are in its own file in `recipes/`.

use crate::engine::{Artifact, ResultDirectory, Step, StepName};
use crate::recipe_parts::exclude::{build_excluding_broken, BuildVariants, ExcludedObjects};
use crate::runs::model::Model;
use crate::runs::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition};
use crate::runs::selftest::{require_same_answers, selftest};
use crate::runs::train::train;
use crate::{Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{
    build, relink, repack, BaseConfig, BuildRequest, ImportedSource, Kernel, KernelSource, RewrittenImage,
};
use kerntune_optimize::bolt::BoltRewrite;
use kerntune_optimize::layout::PreparedOrder;
use kerntune_optimize::quality::ProfileQuality;
use kerntune_profile::load_manifest;
use kerntune_work::Key;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// First step of every recipe.
pub const IMAGE: StepName = StepName::new("image", "pack the workload into a guest image");
pub const BASE_KERNEL: StepName = StepName::new("base-kernel", "build the base kernel").compiling();
/// Step that builds the surrogate kernel, which is recorded if no machine records the base kernel.
pub const TRAINING_KERNEL: StepName =
    StepName::new("training-kernel", "build a kernel for a PC of the same source, to be recorded")
        .compiling();
/// Step that records the base kernel, or its surrogate.
pub const RECORD_TRAINING: StepName =
    StepName::new("record-training", "record the training on the base kernel");
/// Step that converts recorded counts to the format of the compiler or optimizer.
pub const PROFILE: StepName = StepName::new("profile", "turn what was counted into a profile");
/// Final step of every recipe.
pub const TUNED_KERNEL: StepName =
    StepName::new("tuned-kernel", "build the tuned kernel with the profile").compiling();
/// Step that compares the functional checks of both kernels.
pub const CHECK: StepName =
    StepName::new("check", "check that the tuned kernel does what the base kernel does");
pub const MEASURE_BASE: StepName = StepName::new("measure-base", "measure the base kernel");
pub const MEASURE_BASE_AGAIN: StepName =
    StepName::new("measure-base-again", "measure the base kernel again (A/A)");
pub const MEASURE_TUNED: StepName = StepName::new("measure-tuned", "measure the tuned kernel");

/// Packs a workload into a guest image.
pub struct PackImage<'a> {
    pub workload: &'a Workload,
}

impl Step for PackImage<'_> {
    type Output = GuestImage;

    fn name(&self) -> StepName {
        IMAGE
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        // The image's id is a hash of every byte in it.
        Ok(key.field("image", session.image(self.workload)?.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<GuestImage> {
        session.image(self.workload)
    }
}

/// Builds a kernel from a request as it is.
pub struct BuildKernel<'a> {
    pub name: StepName,
    pub request: &'a BuildRequest,
}

impl Step for BuildKernel<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        add_request(key, "request", self.request, session)
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        Ok(build(session.work, self.request, session.progress)?)
    }
}

/// Builds a kernel by a recipe and leaves out the objects that make it fail checks that the base
/// kernel passes.
pub struct BuildExcludingBroken<'a> {
    pub name: StepName,
    /// Kernel whose checks are the reference.
    pub base: &'a Kernel,
    /// Exclusions so far; those that are found are added.
    pub excluded: &'a ExcludedObjects,
    /// Requests of the kernel with and without the recipe.
    pub variants: &'a BuildVariants<'a>,
}

impl Step for BuildExcludingBroken<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        let Self { name: _, base, excluded, variants } = self;
        let key = add_kernel(key, "base", base)?;
        let key = add_request(key, "request", &(variants.request)(&excluded.list())?, session)?;
        let key = add_request(key, "plain", &(variants.plain)()?, session)?;
        Ok(key.field("tuned only", variants.tuned_only.to_string()))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        build_excluding_broken(session, self.base, self.excluded, self.variants)
    }
}

/// Runs the training on an instrumented kernel. The result is the directory with its counters.
pub struct TrainKernel<'a> {
    pub name: StepName,
    pub kernel: &'a Kernel,
    pub workload: &'a Workload,
    /// Guest image of `workload`.
    pub image: &'a GuestImage,
}

impl Step for TrainKernel<'_> {
    type Output = ResultDirectory;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { name: _, kernel, workload, image } = self;
        let key = add_kernel(key, "kernel", kernel)?.field("image", &image.manifest.id);
        Ok(key.field("workload", workload.content_hash()?))
    }

    fn make(&self, session: &Session) -> Result<ResultDirectory> {
        Ok(ResultDirectory(train(session, self.kernel, self.workload, self.image)?))
    }
}

/// Records a run of the workload.
pub struct RecordRun<'a> {
    pub name: StepName,
    pub kernel: &'a Kernel,
    pub workload: &'a Workload,
    /// Guest image of `workload`.
    pub image: &'a GuestImage,
    /// `training` or `measured`.
    pub run: &'a str,
    pub capture: CaptureOptions,
    pub model: Option<&'a Model>,
    /// 1 for the A/A run, otherwise 0.
    pub repeat: u32,
    /// True to record on the machine of [`Session::recording`], for a surrogate kernel.
    pub elsewhere: bool,
}

impl Step for RecordRun<'_> {
    type Output = RecordedProfile;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        let Self { name: _, kernel, workload, image, run, capture, model, repeat, elsewhere } = self;
        let key = match elsewhere {
            true => key.field("recorded on", session.recording()?.machine_id),
            false => key,
        };
        Ok(capture
            .add_to_key(add_kernel(key, "kernel", kernel)?)
            .field("image", &image.manifest.id)
            .field("workload", workload.content_hash()?)
            .field("run", run)
            .field("model", model.map_or("", |model| &model.text))
            .field("repeat", repeat.to_string()))
    }

    fn make(&self, session: &Session) -> Result<RecordedProfile> {
        let Self { kernel, workload, run, capture, model, repeat, .. } = *self;
        let request =
            RecordRequest { kernel, workload, run, capture, model, repeat: Repetition::Number(repeat) };
        match self.elsewhere {
            true => record(&session.recording()?, &request),
            false => record(session, &request),
        }
    }
}

/// Links the objects of a movable kernel in an order.
pub struct RelinkKernel<'a> {
    pub movable: &'a Kernel,
    pub order: &'a PreparedOrder,
    pub label: &'a str,
    pub recipe: &'a str,
}

impl Step for RelinkKernel<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        TUNED_KERNEL
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { movable, order, label, recipe } = self;
        let key = add_kernel(key, "movable", movable)?;
        Ok(key.field("order", &order.id).field("label", label).field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        let Self { movable, order, label, recipe } = self;
        Ok(relink(session.work, movable, &order.order, (label, recipe), session.progress)?)
    }
}

/// Makes a bootable image of a kernel whose code was rewritten.
pub struct RepackKernel<'a> {
    pub base: &'a Kernel,
    pub rewrite: &'a BoltRewrite,
    pub label: &'a str,
    pub recipe: &'a str,
}

impl Step for RepackKernel<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        TUNED_KERNEL
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { base, rewrite, label, recipe } = self;
        let key = add_kernel(key, "base", base)?;
        Ok(key.field("rewrite", &rewrite.id).field("label", label).field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        let rewritten = RewrittenImage { vmlinux: &self.rewrite.vmlinux(), id: &self.rewrite.id };
        let listed = (self.label, self.recipe);
        Ok(repack(session.work, self.base, rewritten, listed, session.progress)?)
    }
}

/// Compares the functional checks of two kernels. The result is the directory with the tuned
/// kernel's checks.
pub struct CompareSelfTests<'a> {
    pub base: &'a Kernel,
    pub tuned: &'a Kernel,
}

impl Step for CompareSelfTests<'_> {
    type Output = ResultDirectory;

    fn name(&self) -> StepName {
        CHECK
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        add_kernel(add_kernel(key, "base", self.base)?, "tuned", self.tuned)
    }

    fn make(&self, session: &Session) -> Result<ResultDirectory> {
        let (before, after) = (selftest(session, self.base)?, selftest(session, self.tuned)?);
        require_same_answers(&before, &after, &self.tuned.manifest.label)?;
        Ok(ResultDirectory(after.dir))
    }
}

impl Artifact for GuestImage {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self::open(directory)?)
    }

    fn directory(&self) -> &Path {
        &self.dir
    }
}

impl Artifact for Kernel {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self::load(directory)?)
    }

    fn directory(&self) -> &Path {
        &self.dir
    }
}

impl Artifact for RecordedProfile {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self { manifest: load_manifest(directory)?, path: directory.to_owned() })
    }

    fn directory(&self) -> &Path {
        &self.path
    }
}

/// Implements [`Artifact`] for results of `kerntune_optimize`, which all have the same `load` and
/// `dir`.
macro_rules! artifacts {
    ($($result:ty),+ $(,)?) => {
        $(impl Artifact for $result {
            fn load(directory: &Path) -> Result<Self> {
                Ok(<$result>::load(directory)?)
            }

            fn directory(&self) -> &Path {
                &self.dir
            }
        })+
    };
}

artifacts!(
    kerntune_optimize::gcc_pgo::GccPgoProfile,
    kerntune_optimize::clang_autofdo::AutofdoProfile,
    kerntune_optimize::propeller::PreparedBlocks,
    PreparedOrder,
    BoltRewrite,
);

/// Adds a kernel to a key: its id, which names what it was built from, and its images.
pub fn add_kernel(key: Key, name: &str, kernel: &Kernel) -> Result<Key> {
    let images = format!("{name} images");
    Ok(key.field(name, &kernel.manifest.id).field(&images, kernel.content()?))
}

/// Adds everything that a kernel is built from to a key. A tarball counts by path, size and time;
/// the build checks its content.
pub fn add_request(key: Key, name: &str, request: &BuildRequest, session: &Session) -> Result<Key> {
    // Every field is named here, so that a new one is not forgotten.
    let BuildRequest {
        arch,
        source,
        patches,
        base,
        fragments,
        extra,
        compiler,
        kcflags,
        object_flags,
        make_vars,
        movable,
        // Named by its id, and checked when it is copied.
        profile_dir: _,
        profile_id,
        label,
        recipe,
        base_id,
        keep_objects,
        modules,
        // Affect the time of the build only.
        jobs: _,
        pool: _,
    } = request;
    let mut key = key
        .field(name, format!("{arch} {movable} {keep_objects} {modules}"))
        .field("source", source_state(source, session)?)
        .value("compiler", &compiler.identify()?)?
        .field("extra", extra.join("\n"))
        .field("kcflags", kcflags.join("\n"))
        .value("object flags", object_flags)?
        .value("make", make_vars)?
        .field("profile", profile_id.as_deref().unwrap_or_default())
        .field("label", label)
        .field("recipe", recipe.as_deref().unwrap_or_default())
        .field("base id", base_id.as_deref().unwrap_or_default());
    let whole = match base {
        BaseConfig::Ours => None,
        BaseConfig::File(path) => Some(("config", path)),
    };
    let fragments = fragments.iter().map(|path| ("fragment", path));
    for (name, path) in whole.into_iter().chain(fragments).chain(patches.iter().map(|path| ("patch", path))) {
        key = key.file(name, path)?;
    }
    Ok(key)
}

/// Identifies the state of a source cheaply: a tarball by path, size and time, a directory by
/// content.
pub fn source_state(source: &KernelSource, session: &Session) -> Result<String> {
    let Some(tarball) = source.tarball() else {
        return Ok(ImportedSource::import(session.work, source, session.progress)?.hash().to_string());
    };
    let state = fs::metadata(&tarball).map(|m| format!("{} {}", m.len(), m.mtime())).unwrap_or_default();
    Ok(format!("{source} {} {state}", tarball.display()))
}

/// Reports the gate's judgment of a profile.
pub fn report_quality(session: &Session, quality: Option<ProfileQuality>) {
    if let Some(quality) = quality {
        session.progress.note(&quality.line());
        for finding in &quality.findings {
            session.progress.note(&format!("warning: {finding}"));
        }
    }
}
