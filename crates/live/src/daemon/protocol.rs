//! What is asked and answered: a line of JSON each.

use crate::TopView;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request {
    /// How is it going?
    Status,
    /// Keep what was seen until now as a profile, and go on.
    Dump {
        /// What the machine was busy with.
        workload: String,
    },
    /// Forget what was seen.
    Reset,
    /// End.
    Stop,
    /// What was seen until now, the heaviest of it.
    Top {
        /// At most so many functions, and paths.
        most: usize,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Answer {
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// The profile's directory.
    Dumped {
        /// Where it is.
        path: PathBuf,
    },
    /// It was done.
    Done,
    /// To [`Request::Top`].
    Top(Box<TopView>),
    /// It was not done.
    Failed {
        /// Why.
        message: String,
        /// Whether there was simply nothing to make a profile of.
        nothing: bool,
    },
}

/// How a collector does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// Since the beginning or the last reset, ns.
    pub wall_ns: u64,
    /// Its sources.
    pub sources: Vec<String>,
    /// What is watched, if not everything.
    pub filter: Option<String>,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Call paths, and how many there may be.
    pub paths: [u64; 2],
    /// Memory that it takes at most by its tables and buffers, bytes.
    pub bound_bytes: u64,
    /// Memory that the process has, bytes.
    pub resident_bytes: u64,
    /// What a reader has to know, by name.
    pub health: Vec<(String, u64)>,
    /// What the sources and the symbols lack, in words.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for request in [Request::Status, Request::Dump { workload: "a b".into() }, Request::Top { most: 3 }] {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        }
        assert_eq!(serde_json::to_string(&Request::Stop).unwrap(), r#"{"do":"stop"}"#);
        let answer = Answer::Status(Box::new(Status { process: 7, ..Status::default() }));
        let line = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer);
    }
}
