//! The steps that recipes have in common. What only one recipe does is in its own file in `recipes/`.

use crate::engine::{Artifact, Directory, Step, StepName};
use crate::model::Model;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat};
use crate::selftest::{agree, selftest};
use crate::sound::{sound, Excluded, Varied};
use crate::train::train;
use crate::{Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{
    build, relink, repack, BaseConfig, BuildRequest, ImportedSource, Kernel, Rewritten, Source,
};
use kerntune_optimize::bolt::Rewrite;
use kerntune_optimize::layout::PreparedOrder;
use kerntune_optimize::quality::Quality;
use kerntune_profile::load_manifest;
use kerntune_work::Key;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The first step of every recipe.
pub const IMAGE: StepName = StepName::new("image", "pack the workload into a guest image");
/// The kernel that is to be tuned.
pub const BASE_KERNEL: StepName = StepName::new("base-kernel", "build the base kernel").compiling();
/// What is recorded in its place where no machine records it.
pub const TRAINING_KERNEL: StepName =
    StepName::new("training-kernel", "build a kernel for a PC of the same source, to be recorded")
        .compiling();
/// A recording of the base kernel, or of what stands for it.
pub const RECORD_TRAINING: StepName =
    StepName::new("record-training", "record the training on the base kernel");
/// What was counted, as the compiler or optimizer reads it.
pub const PROFILE: StepName = StepName::new("profile", "turn what was counted into a profile");
/// What the tuning is for.
pub const TUNED_KERNEL: StepName =
    StepName::new("tuned-kernel", "build the tuned kernel with the profile").compiling();
/// Functional checks.
pub const CHECK: StepName =
    StepName::new("check", "check that the tuned kernel does what the base kernel does");
/// The first measurement.
pub const MEASURE_BASE: StepName = StepName::new("measure-base", "measure the base kernel");
/// The second.
pub const MEASURE_BASE_AGAIN: StepName =
    StepName::new("measure-base-again", "measure the base kernel again (A/A)");
/// The third.
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
        // What is packed is known when it was looked at: the image is named by every byte.
        Ok(key.field("image", session.image(self.workload)?.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<GuestImage> {
        session.image(self.workload)
    }
}

/// Builds a kernel that nothing is varied in.
pub struct BaseKernel<'a> {
    pub name: StepName,
    pub request: &'a BuildRequest,
}

impl Step for BaseKernel<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        of_request(key, "request", self.request, session)
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        Ok(build(session.work, self.request, session.progress)?)
    }
}

/// Builds a kernel of a recipe that does what the base kernel does, without objects that keep it from that.
pub struct SoundKernel<'a> {
    pub name: StepName,
    /// What it is held against.
    pub base: &'a Kernel,
    /// What is left out, and what is found to be.
    pub excluded: &'a Excluded,
    /// What it is built from, and what the same kernel is with no object compiled in the recipe's way.
    pub varied: &'a Varied<'a>,
}

impl Step for SoundKernel<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        let Self { name: _, base, excluded, varied } = self;
        let key = of_kernel(key, "base", base)?;
        let key = of_request(key, "request", &(varied.request)(&excluded.list())?, session)?;
        let key = of_request(key, "plain", &(varied.plain)()?, session)?;
        Ok(key.field("tuned only", varied.tuned_only.to_string()))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        sound(session, self.base, self.excluded, self.varied)
    }
}

/// Runs the training on an instrumented kernel. The result is the directory with its counters.
pub struct Train<'a> {
    pub name: StepName,
    pub kernel: &'a Kernel,
    pub workload: &'a Workload,
    /// The workload's.
    pub image: &'a GuestImage,
}

impl Step for Train<'_> {
    type Output = Directory;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { name: _, kernel, workload, image } = self;
        let key = of_kernel(key, "kernel", kernel)?.field("image", &image.manifest.id);
        Ok(key.field("workload", format!("{workload:?}")))
    }

    fn make(&self, session: &Session) -> Result<Directory> {
        Ok(Directory(train(session, self.kernel, self.workload, self.image)?))
    }
}

/// Records a run of the workload.
pub struct Record<'a> {
    pub name: StepName,
    pub kernel: &'a Kernel,
    pub workload: &'a Workload,
    /// The workload's.
    pub image: &'a GuestImage,
    /// `training` or `measured`.
    pub run: &'a str,
    pub capture: Capture,
    pub model: Option<&'a Model>,
    /// 1 for the A/A run, otherwise 0.
    pub repeat: u32,
    /// Whether the machine is that of [`Session::recording`]: the kernel stands for one that runs on the session's.
    pub elsewhere: bool,
}

impl Step for Record<'_> {
    type Output = Recorded;

    fn name(&self) -> StepName {
        self.name
    }

    fn inputs(&self, key: Key, session: &Session) -> Result<Key> {
        let Self { name: _, kernel, workload, image, run, capture, model, repeat, elsewhere } = self;
        let key = match elsewhere {
            true => key.field("recorded on", session.recording()?.machine_id),
            false => key,
        };
        Ok(of_kernel(key, "kernel", kernel)?
            .field("image", &image.manifest.id)
            .field("workload", format!("{workload:?}"))
            .field("run", run)
            .field("capture", format!("{capture:?}"))
            .field("model", model.map_or("", |model| &model.text))
            .field("repeat", repeat.to_string()))
    }

    fn make(&self, session: &Session) -> Result<Recorded> {
        let Self { kernel, workload, run, capture, model, repeat, .. } = *self;
        let request = RecordRequest { kernel, workload, run, capture, model, repeat: Repeat::Number(repeat) };
        match self.elsewhere {
            true => record(&session.recording()?, &request),
            false => record(session, &request),
        }
    }
}

/// Links the objects of a movable kernel in an order.
pub struct Relink<'a> {
    pub movable: &'a Kernel,
    pub order: &'a PreparedOrder,
    pub label: &'a str,
    pub recipe: &'a str,
}

impl Step for Relink<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        TUNED_KERNEL
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { movable, order, label, recipe } = self;
        let key = of_kernel(key, "movable", movable)?;
        Ok(key.field("order", &order.id).field("label", label).field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        let Self { movable, order, label, recipe } = self;
        Ok(relink(session.work, movable, &order.order, (label, recipe), session.progress)?)
    }
}

/// Makes an image to boot of a kernel whose code was rewritten.
pub struct Repack<'a> {
    pub base: &'a Kernel,
    pub rewrite: &'a Rewrite,
    pub label: &'a str,
    pub recipe: &'a str,
}

impl Step for Repack<'_> {
    type Output = Kernel;

    fn name(&self) -> StepName {
        TUNED_KERNEL
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { base, rewrite, label, recipe } = self;
        let key = of_kernel(key, "base", base)?;
        Ok(key.field("rewrite", &rewrite.id).field("label", label).field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<Kernel> {
        let rewritten = Rewritten { vmlinux: &self.rewrite.vmlinux(), id: &self.rewrite.id };
        let listed = (self.label, self.recipe);
        Ok(repack(session.work, self.base, rewritten, listed, session.progress)?)
    }
}

/// Compares what two kernels answer to the functional checks; the answers of the tuned one.
pub struct Agree<'a> {
    pub base: &'a Kernel,
    pub tuned: &'a Kernel,
}

impl Step for Agree<'_> {
    type Output = Directory;

    fn name(&self) -> StepName {
        CHECK
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        of_kernel(of_kernel(key, "base", self.base)?, "tuned", self.tuned)
    }

    fn make(&self, session: &Session) -> Result<Directory> {
        let (before, after) = (selftest(session, self.base)?, selftest(session, self.tuned)?);
        agree(&before, &after, &self.tuned.manifest.label)?;
        Ok(Directory(after.dir))
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

impl Artifact for Recorded {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self { manifest: load_manifest(directory)?, path: directory.to_owned() })
    }

    fn directory(&self) -> &Path {
        &self.path
    }
}

/// Implements [`Artifact`] for results of `kerntune_optimize`, which all are loaded alike.
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
    kerntune_optimize::gcc_pgo::PreparedProfile,
    kerntune_optimize::clang_autofdo::PreparedProfile,
    kerntune_optimize::propeller::PreparedBlocks,
    PreparedOrder,
    Rewrite,
);

/// Adds a kernel: its id, which says what it was built from, and its images.
pub fn of_kernel(key: Key, name: &str, kernel: &Kernel) -> Result<Key> {
    let images = format!("{name} images");
    Ok(key.field(name, &kernel.manifest.id).field(&images, kernel.content()?))
}

/// Adds all that a kernel is built from. Of a tarball its place, size and time, since building it looks at the content.
pub fn of_request(key: Key, name: &str, request: &BuildRequest, session: &Session) -> Result<Key> {
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
        // Decides how long it takes.
        jobs: _,
        pool: _,
    } = request;
    let mut key = key
        .field(name, format!("{arch} {movable} {keep_objects} {modules}"))
        .field("source", source_state(source, session)?)
        .field("compiler", format!("{:?}", compiler.identify()?))
        .field("extra", extra.join("\n"))
        .field("kcflags", kcflags.join("\n"))
        .field("object flags", format!("{object_flags:?}"))
        .field("make", format!("{make_vars:?}"))
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

/// What a source is now, cheaply: a tarball by its place, size and time, a directory by content.
pub fn source_state(source: &Source, session: &Session) -> Result<String> {
    let Some(tarball) = source.tarball() else {
        return Ok(ImportedSource::import(session.work, source, session.progress)?.hash().to_string());
    };
    let state = fs::metadata(&tarball).map(|m| format!("{} {}", m.len(), m.mtime())).unwrap_or_default();
    Ok(format!("{source} {} {state}", tarball.display()))
}

/// Tells what the gate said of a profile.
pub fn tell(session: &Session, quality: Option<Quality>) {
    if let Some(quality) = quality {
        session.progress.note(&quality.line());
        for finding in &quality.findings {
            session.progress.note(&format!("warning: {finding}"));
        }
    }
}
