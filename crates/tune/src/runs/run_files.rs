//! Files that a recording leaves in `run/`, beside its profile's tables.

use crate::{Error, Result};
use kerntune_trace::{files, Recording};
use kerntune_work::{checked, IoContext};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// Name of the directory within a profile's directory.
pub const RUN: &str = "run";

/// File with the names of inline points, a list of strings by number; absent if the points are
/// addresses.
pub const POINTS: &str = "points.json";

/// A trace and the recorder's description of it.
pub struct RunFiles {
    /// The file `trace.kt`.
    pub trace: File,
    /// The contents of `recording.json`.
    pub recording: Recording,
}

impl RunFiles {
    /// Opens the files of the profile in `profile`.
    ///
    /// # Errors
    /// [`Error::NoTrace`] if it was made without a trace: merged, imported without events, or
    /// recorded with `--no-functions`.
    pub fn open(profile: &Path) -> Result<Self> {
        let none = || Error::NoTrace { profile: profile.to_owned() };
        // The trace has checksums for each chunk: damage costs single chunks.
        let recording = recording(profile)?;
        if !recording.capture.functions {
            return Err(none());
        }
        let path = profile.join(RUN).join(files::TRACE);
        let trace = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(none()),
            other => other.at("open", &path)?,
        };
        Ok(Self { trace, recording })
    }
}

/// Reads the recorder's description of the run of the profile in `profile`.
///
/// # Errors
/// [`Error::NoTrace`] if there was no recorder.
pub fn recording(profile: &Path) -> Result<Recording> {
    let path = profile.join(RUN).join(files::RECORDING);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::NoTrace { profile: profile.to_owned() })
        }
        other => other.at("read", &path)?,
    };
    checked(profile, &[&format!("{RUN}/{}", files::RECORDING)])?;
    Ok(serde_json::from_slice(&bytes).map_err(|source| kerntune_work::Error::Json { path, source })?)
}
