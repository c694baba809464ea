//! What a run brought back.

use crate::{Error, Result, Spent};
use kerntune_trace::counts::Counts;
use kerntune_trace::data::DataFile;
use kerntune_trace::io::IoFile;
use kerntune_trace::{files, Recording};
use kerntune_work::IoContext;
use std::fs;
use std::path::{Path, PathBuf};

/// What a run brought back.
#[derive(Debug)]
pub struct Outcome {
    /// Where everything is.
    pub directory: PathBuf,
    /// The files that the guest sent.
    pub guest_files: PathBuf,
    /// What the recorder said, if one was there.
    pub recording: Option<Recording>,
    /// Wall time of the whole run in seconds.
    pub wall_seconds: f64,
    /// The phases that init announced, each with the wall seconds at which it was seen to begin,
    /// to a fifth of a second.
    pub phases: Vec<(String, f64)>,
    /// What the guest had taken of the host's CPUs at each of the phases, where it is a process whose kernel and programs the
    /// host tells apart; empty elsewhere.
    pub spent: Vec<Spent>,
}

impl Outcome {
    /// The trace's path.
    pub fn trace(&self) -> PathBuf {
        self.directory.join(files::TRACE)
    }

    /// Executed blocks and edges.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn counts(&self) -> Result<Counts> {
        let path = self.directory.join(files::COUNTS);
        let bytes = fs::read(&path).at("read", &path)?;
        Counts::parse(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }

    /// What accesses to data missed.
    ///
    /// # Errors
    /// A file that is not there or damaged.
    pub fn data(&self) -> Result<DataFile> {
        let path = self.directory.join(files::DATA);
        let bytes = fs::read(&path).at("read", &path)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }

    /// Requests to block devices and network packets, if they were to be seen.
    ///
    /// # Errors
    /// A file that is damaged.
    pub fn io(&self) -> Result<Option<IoFile>> {
        let path = self.directory.join(files::IO);
        if !path.try_exists().at("look at", &path)? {
            return Ok(None);
        }
        let bytes = fs::read(&path).at("read", &path)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }
}

/// What the recorder said of the run in `directory`.
pub(crate) fn read_recording(directory: &Path) -> Result<Recording> {
    let path = directory.join(files::RECORDING);
    let bytes = fs::read(&path).at("read", &path)?;
    serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
}
