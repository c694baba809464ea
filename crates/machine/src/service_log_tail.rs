//! The last lines of services' logs, for errors of programs that depend on them.

use crate::{results, Error};
use kerntune_guest::last_lines;
use std::fmt;
use std::fs;
use std::path::Path;

/// The last lines of each service that printed anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServiceLogTail {
    /// Names and lines, sorted by name.
    services: Vec<(String, String)>,
}

impl ServiceLogTail {
    /// Reads the services' logs among the guest's files. Unreadable logs are ignored, since this is
    /// for the message of another error.
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

    /// Drops services whose lines `reason` already contains.
    pub fn without_repeats(mut self, reason: &str) -> Self {
        self.services.retain(|(_, lines)| !reason.contains(lines.as_str()));
        self
    }
}

impl Error {
    /// Adds the services' logs to a failure of the guest, because they often explain it; init sends
    /// them even then. `archive` is the result stream, `guest_files` the directory to unpack it
    /// into.
    pub(crate) fn with_service_logs(self, archive: &Path, guest_files: &Path) -> Self {
        match self {
            Error::Guest { reason, tail, .. } => {
                // Unpacks what is there; an incomplete stream does not matter beside the failure.
                let _ = results::unpack(archive, guest_files);
                Error::Guest {
                    services: ServiceLogTail::of(guest_files).without_repeats(&reason),
                    reason,
                    tail,
                }
            }
            other => other,
        }
    }
}

/// One line for each service, after a line end.
impl fmt::Display for ServiceLogTail {
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
        let words = ServiceLogTail::of(dir.path());
        let right = "\nthe last words of service nginx: two | three | [emerg] bind() failed";
        assert_eq!(words.to_string(), right);
        assert_eq!(words.without_repeats("ended: two | three | [emerg] bind() failed").to_string(), "");
        assert_eq!(ServiceLogTail::of(&dir.path().join("none")), ServiceLogTail::default());
    }
}
