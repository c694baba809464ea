//! Files that a recording leaves in `run/`, beside its profile's tables.

use crate::{Error, Result};
use kerntune_trace::{files, Recording};
use kerntune_work::{checked, IoContext};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

/// Name of the directory within a profile's directory.
pub const RUN: &str = "run";

/// File with the names of inline points, a list of strings by number; absent if the points are
/// addresses.
pub const POINTS: &str = "points.json";

/// File with the wall time of a run and its analysis in seconds, for estimates.
const WALL_SECONDS: &str = "wall-seconds";

/// Keeps the wall time since `began` in the directory of a run.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn keep_wall_seconds(run: &Path, began: Instant) -> Result<()> {
    let path = run.join(WALL_SECONDS);
    Ok(fs::write(&path, format!("{:.1}\n", began.elapsed().as_secs_f64())).at("write", &path)?)
}

/// Returns the wall time of the run in a directory; `None` if it was not kept.
pub(crate) fn wall_seconds(run: &Path) -> Option<f64> {
    let seconds: f64 = fs::read_to_string(run.join(WALL_SECONDS)).ok()?.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

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
