//! Inputs and results of steps: what of each is in the key of a step, and how a result is read.

use crate::engine::{Artifact, StepInput};
use crate::runs::record::{RecordRequest, RecordedProfile, Repetition};
use crate::{Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{BaseConfig, BuildRequest, ImportedSource, Kernel, KernelSource};
use kerntune_layout::CacheConfig;
use kerntune_optimize::bolt::BoltRewrite;
use kerntune_optimize::clang_autofdo::AutofdoProfile;
use kerntune_optimize::gcc_pgo::GccPgoProfile;
use kerntune_optimize::layout::PreparedOrder;
use kerntune_optimize::propeller::PreparedBlocks;
use kerntune_optimize::PreparedResult;
use kerntune_profile::load_manifest;
use kerntune_work::Key;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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

/// Implements [`Artifact`] and [`StepInput`] for results of `kerntune_optimize`.
macro_rules! results {
    ($($result:ty),+ $(,)?) => {
        $(impl Artifact for $result {
            fn load(directory: &Path) -> Result<Self> {
                Ok(PreparedResult::load(directory)?)
            }

            fn directory(&self) -> &Path {
                &self.dir
            }
        }

        impl StepInput for $result {
            fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
                Ok(key.field("result", &self.id))
            }
        })+
    };
}

results!(GccPgoProfile, AutofdoProfile, PreparedBlocks, PreparedOrder, BoltRewrite);

impl StepInput for Kernel {
    /// Adds the id, which names what the kernel was built from, and its images.
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.field("kernel", &self.manifest.id).field("images", self.content()?))
    }
}

impl StepInput for RecordedProfile {
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.field("recording", &self.manifest.id))
    }
}

impl StepInput for Workload {
    /// Adds the workload and its guest image, whose id is a hash of every byte in it.
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
        Ok(key.field("workload", self.content_hash()?).field("image", session.image(self)?.manifest.id))
    }
}

impl StepInput for CacheConfig {
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.value("cache", self)?)
    }
}

impl StepInput for RecordRequest<'_> {
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
        // Every field is named here, so that a new one is not forgotten.
        let Self { kernel, workload, run, capture, model, repeat } = self;
        let repeat = match repeat {
            Repetition::Number(number) => number.to_string(),
            Repetition::Another => "another".into(),
        };
        Ok(capture
            .add_to_key((kernel, workload).add_to(key, session)?)
            .field("run", run)
            .field("model", model.map_or("", |model| &model.text))
            .field("repeat", repeat))
    }
}

impl StepInput for BuildRequest {
    /// Adds everything that the kernel is built from. A tarball counts by path, size and time; the
    /// build checks its content.
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
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
            object_groups,
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
            begin_with: _,
        } = self;
        let mut key = key
            .field("request", format!("{arch} {movable} {keep_objects} {modules}"))
            .field("source", source_state(source, session)?)
            .value("compiler", &compiler.identify()?)?
            .field("extra", extra.join("\n"))
            .field("kcflags", kcflags.join("\n"))
            .value("object flags", object_flags)?
            .value("object groups", object_groups)?
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
        for (name, path) in
            whole.into_iter().chain(fragments).chain(patches.iter().map(|path| ("patch", path)))
        {
            key = key.file(name, path)?;
        }
        Ok(key)
    }
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
