//! What a recording left beside its profile's tables, in `run/`.

use crate::{Error, Result};
use kerntune_trace::{files, Recording};
use kerntune_work::{checked, IoContext};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// The directory in a profile's.
pub const RUN: &str = "run";

/// Names of the inline points by number, a list of strings, where they are not those of addresses.
pub const POINTS: &str = "points.json";

/// A trace with what the recorder said of it.
pub struct RunFiles {
    /// `trace.kt`.
    pub trace: File,
    /// `recording.json`.
    pub recording: Recording,
}

impl RunFiles {
    /// Opens those of the profile in `profile`.
    ///
    /// # Errors
    /// [`Error::NoTrace`] if it was made without one: merged, imported without events, or recorded
    /// with `--no-functions`.
    pub fn open(profile: &Path) -> Result<Self> {
        let none = || Error::NoTrace { profile: profile.to_owned() };
        // The trace checks itself, chunk by chunk: what a damaged one costs is that chunk.
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

/// What the recorder said of the run of the profile in `profile`.
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
