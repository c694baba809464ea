//! What the services of a workload said last, for errors of whoever needed them.

use crate::{results, Error};
use kerntune_guest::last_lines;
use std::fmt;
use std::fs;
use std::path::Path;

/// The last lines of each service that said anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastWords {
    /// Names and lines, sorted by name.
    services: Vec<(String, String)>,
}

impl LastWords {
    /// Reads the services' logs among the files that the guest sent. A log that cannot be read is
    /// none: this is for a message about something else that went wrong.
    pub fn of(guest_files: &Path) -> Self {
        let mut services = Vec::new();
        for entry in fs::read_dir(guest_files).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let service = name.strip_prefix("service-").and_then(|name| name.strip_suffix(".log"));
            if let (Some(service), Ok(log)) = (service, fs::read(entry.path())) {
                let lines = last_lines(&String::from_utf8_lossy(&log));
                if !lines.is_empty() {
                    services.push((service.to_owned(), lines));
                }
            }
        }
        services.sort();
        Self { services }
    }

    /// Without what `reason` says already.
    pub fn beside(mut self, reason: &str) -> Self {
        self.services.retain(|(_, lines)| !reason.contains(lines.as_str()));
        self
    }
}

impl Error {
    /// Init sends what there is after a failure too: the logs of the services say more than its reason, where a
    /// program failed for want of them. `archive` is what it sent, `guest_files` where that is unpacked.
    pub(crate) fn with_last_words(self, archive: &Path, guest_files: &Path) -> Self {
        match self {
            Error::Guest { reason, tail, .. } => {
                // As far as it came; the failure is what is reported, not that its results are incomplete.
                let _ = results::unpack(archive, guest_files);
                Error::Guest { services: LastWords::of(guest_files).beside(&reason), reason, tail }
            }
            other => other,
        }
    }
}

/// A line for each, each after a line end.
impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.services
            .iter()
            .try_for_each(|(name, lines)| write!(f, "\nthe last words of service {name}: {lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_that_spoke_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("service-nginx.log", "one\ntwo\nthree\n[emerg] bind() failed\n"),
            ("service-mute.log", "\n"),
            ("measured-1-ab.log", "apr_socket_recv: Connection refused\n"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let words = LastWords::of(dir.path());
        let right = "\nthe last words of service nginx: two | three | [emerg] bind() failed";
        assert_eq!(words.to_string(), right);
        assert_eq!(words.beside("ended: two | three | [emerg] bind() failed").to_string(), "");
        assert_eq!(LastWords::of(&dir.path().join("none")), LastWords::default());
    }
}
