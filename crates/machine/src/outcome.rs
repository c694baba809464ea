//! Results of a run.

use crate::{Error, PhaseCpuTimes, Result};
use kerntune_trace::counts::ExecutionCounts;
use kerntune_trace::data::DataFile;
use kerntune_trace::io::IoFile;
use kerntune_trace::loaded::{LoadedCode, LoadedFunction};
use kerntune_trace::{files, Recording};
use kerntune_work::IoContext;
use std::fs;
use std::path::{Path, PathBuf};

/// Results of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Directory of all files.
    pub directory: PathBuf,
    /// Directory of the files that the guest sent.
    pub guest_files: PathBuf,
    /// The recorder's summary; `None` if the run was not recorded.
    pub recording: Option<Recording>,
    /// Wall-clock seconds of the whole run.
    pub wall_seconds: f64,
    /// Phases that init announced, each with the wall-clock seconds at which it was seen to begin,
    /// to a fifth of a second.
    pub phases: Vec<(String, f64)>,
    /// CPU time at the beginning of each phase; empty unless the guest is a process of the host
    /// ([`Uml`](crate::Uml)).
    pub spent: Vec<PhaseCpuTimes>,
}

impl RunOutcome {
    /// Returns the path of the trace.
    pub fn trace(&self) -> PathBuf {
        self.directory.join(files::TRACE)
    }

    /// Reads executed blocks and edges.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn counts(&self) -> Result<ExecutionCounts> {
        let path = self.directory.join(files::COUNTS);
        let bytes = fs::read(&path).at("read", &path)?;
        ExecutionCounts::parse(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }

    /// Reads the misses of data accesses.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn data(&self) -> Result<DataFile> {
        let path = self.directory.join(files::DATA);
        let bytes = fs::read(&path).at("read", &path)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }

    /// Reads block requests and network packets; `None` if they were not recorded.
    ///
    /// # Errors
    /// A damaged file.
    pub fn io(&self) -> Result<Option<IoFile>> {
        let path = self.directory.join(files::IO);
        if !path.try_exists().at("look at", &path)? {
            return Ok(None);
        }
        let bytes = fs::read(&path).at("read", &path)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }

    /// Reads the functions of code that the kernel loaded; empty if it loaded none.
    ///
    /// # Errors
    /// A damaged file.
    pub fn loaded(&self) -> Result<Vec<LoadedFunction>> {
        if self.recording.as_ref().is_none_or(|recording| recording.first_loaded.is_none()) {
            return Ok(Vec::new());
        }
        let path = self.directory.join(files::LOADED);
        let bytes = fs::read(&path).at("read", &path)?;
        let code: LoadedCode =
            serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })?;
        Ok(code.functions)
    }
}

/// Reads the recorder's summary of the run in `directory`.
///
/// # Errors
/// A file that is missing or damaged.
pub fn read_recording(directory: &Path) -> Result<Recording> {
    let path = directory.join(files::RECORDING);
    let bytes = fs::read(&path).at("read", &path)?;
    serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
}
