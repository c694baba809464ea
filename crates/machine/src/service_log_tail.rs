//! The last lines of services' logs, for errors of programs that depend on them.

use crate::{results, ConsoleTail, Error};
use kerntune_guest::last_lines;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Adds the services' logs to a failure of the guest, because they often explain it, and shows
    /// the log of the program that failed instead of the console; init sends logs even then.
    /// `archive` is the result stream, `guest_files` the directory to unpack it into.
    pub(crate) fn with_guest_logs(self, archive: &Path, guest_files: &Path) -> Self {
        match self {
            Error::Guest { reason, tail, .. } => {
                // Unpacks what is there; an incomplete stream does not matter beside the failure.
                let _ = results::unpack(archive, guest_files);
                Error::Guest {
                    services: ServiceLogTail::of(guest_files).without_repeats(&reason),
                    tail: program_log(&reason, guest_files).map_or(tail, ConsoleTail::of_program),
                    reason,
                }
            }
            other => other,
        }
    }
}

/// Finds the log of the step with which a run failed: `measured step 1 (ls) ended with status 2`
/// names `measured-1-ls.log`.
fn program_log(reason: &str, guest_files: &Path) -> Option<PathBuf> {
    let mut words = reason.split(' ');
    let (run, "step", number) = (words.next()?, words.next()?, words.next()?) else { return None };
    let prefix = format!("{run}-{number}-");
    let logs = fs::read_dir(guest_files).ok()?.flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(".log")
    };
    logs.into_iter().find(is_log)
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
    fn a_failed_program_is_quoted_with_its_log_and_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("none.tar");
        let log = dir.path().join("measured-1-ls.log");
        let text: String = (0..30).map(|line| format!("line {line}\n")).collect();
        let failure = |step: &str| {
            let tail = ConsoleTail { lines: vec!["[ 1.0] sched_clock".into()], ..ConsoleTail::default() };
            let reason = format!("{step} ended with status 2: x");
            let error = Error::Guest { reason, services: ServiceLogTail::default(), tail };
            error.with_guest_logs(&archive, dir.path()).to_string()
        };
        fs::write(&log, text + "ls: /x: No such file or directory\n\n").unwrap();
        let said = failure("measured step 1 (ls)");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "the guest failed: measured step 1 (ls) ended with status 2: x");
        assert_eq!(lines[1], format!("last lines of its output ({}):", log.display()));
        assert_eq!((lines[2], lines[21]), ("    line 11", "    ls: /x: No such file or directory"));
        assert!(lines[22].starts_with("the guest lacks ") && lines.len() == 23, "{said}");
        fs::write(&log, "").unwrap();
        assert!(failure("measured step 1 (ls)")
            .ends_with(&format!("the program printed nothing ({})", log.display())));
        // Without a log of the step the console is shown.
        for other in ["measured step 11 (ls)", "boot: no"] {
            assert!(failure(other).contains("last lines of the console"), "{}", failure(other));
        }
    }

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
