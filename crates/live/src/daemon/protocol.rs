//! Protocol of the daemon: one line of JSON per request and answer.

use crate::TopView;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum DaemonRequest {
    /// Report the status.
    Status,
    /// Save everything so far as a profile, and continue.
    Dump {
        /// Description of the machine's work.
        workload: String,
    },
    /// Discard everything so far.
    Reset,
    /// End the daemon.
    Stop,
    /// Report the functions and paths with the most samples.
    Top {
        /// Maximum number of functions and of paths.
        max: usize,
    },
}

/// Answer of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum DaemonResponse {
    /// Answer to [`DaemonRequest::Status`].
    Status(Box<DaemonStatus>),
    /// Answer to [`DaemonRequest::Dump`].
    Dumped {
        /// Directory of the profile.
        path: PathBuf,
    },
    /// Success of another request.
    Done,
    /// Answer to [`DaemonRequest::Top`].
    Top(Box<TopView>),
    /// Failure of a request.
    Failed {
        /// Reason of the failure.
        message: String,
        /// True if there was no data for a profile.
        nothing: bool,
    },
}

/// Status of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Process id.
    pub process: u32,
    /// Start time in RFC 3339, UTC.
    pub started: String,
    /// Wall time since the start or the last reset, in ns.
    pub wall_ns: u64,
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Sampled part of the machine; `None` if everything is sampled.
    pub filter: Option<String>,
    /// Number of samples taken.
    pub samples: u64,
    /// Number of samples lost.
    pub lost: u64,
    /// Number of call paths and their limit.
    pub paths: [u64; 2],
    /// Upper bound for the memory of tables and buffers, in bytes.
    pub bound_bytes: u64,
    /// Resident memory of the process, in bytes.
    pub resident_bytes: u64,
    /// Counts of anomalies, by name.
    pub health: Vec<(String, u64)>,
    /// Limitations of the sources and the symbols, in words.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for request in [
            DaemonRequest::Status,
            DaemonRequest::Dump { workload: "a b".into() },
            DaemonRequest::Top { max: 3 },
        ] {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<DaemonRequest>(&line).unwrap(), request);
        }
        assert_eq!(serde_json::to_string(&DaemonRequest::Stop).unwrap(), r#"{"do":"stop"}"#);
        let answer = DaemonResponse::Status(Box::new(DaemonStatus { process: 7, ..DaemonStatus::default() }));
        let line = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<DaemonResponse>(&line).unwrap(), answer);
    }
}
