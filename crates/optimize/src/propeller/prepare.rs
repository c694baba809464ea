//! From a recording to the list of blocks.

use crate::clang_autofdo::PreparedProfile;
use crate::quality::Quality;
use crate::stored::{check_schema, read_json, read_quality};
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;
use kerntune_work::{IoContext, WorkDir};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "blocks.json";
const TREE: &str = "tree";
const SCHEMA: &str = "kerntune-blocks/1";

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    id: String,
    kernel: String,
    recording: String,
    profile: PathBuf,
}

/// Blocks in order.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedBlocks {
    pub dir: PathBuf,
    pub id: String,
    pub kernel: String,
    pub recording: String,
    profile: PathBuf,
}

impl PreparedBlocks {
    pub fn load(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().at("open order of blocks", dir)?;
        let path = dir.join(MANIFEST);
        let manifest: Manifest = read_json(&path)?;
        check_schema(&path, &manifest.schema, SCHEMA)?;
        let Manifest { id, kernel, recording, profile, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, profile })
    }

    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    pub fn profile(&self) -> Result<PreparedProfile> {
        PreparedProfile::load(&self.profile)
    }

    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }
}

pub fn prepare_blocks(_: &WorkDir, recording: &Profile, kernel: &Kernel, _: &PreparedProfile) -> Result<PreparedBlocks> {
    Err(Error::PoorSamples { profile: recording.manifest.id.clone(), reason: format!("not yet {}", kernel.manifest.id) })
}
