//! Packages and programs of the host.

use crate::{Error, Result};
use kerntune_work::{Job, JobEnd};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Search path for programs in the guest, after `/kt/bin`; init sets the same.
pub(crate) const GUEST_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Checks whether a Debian package is installed; an error if dpkg is missing or fails. Status 1
/// means an unknown package.
pub(crate) fn is_installed(package: &str) -> Result<bool> {
    let mut command = Command::new("dpkg-query");
    command.args(["-W", "-f", "${db:Status-Status}\n", "--", package]);
    let (end, output) = Job::new(command).output()?;
    match end {
        JobEnd::Exited(status) if matches!(status.code(), Some(0 | 1)) => {
            Ok(status.success() && output.lines().any(|line| line == "installed"))
        }
        end => Err(unanswered(package, &end, &output)),
    }
}

/// Returns the paths that an installed package owns, directories included.
pub(crate) fn package_paths(package: &str) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("dpkg-query");
    command.args(["-L", "--", package]);
    let (end, output) = Job::new(command).output()?;
    if !end.success() {
        return Err(unanswered(package, &end, &output));
    }
    // Lines about diversions do not begin with a slash.
    Ok(output.lines().filter(|line| line.starts_with('/') && *line != "/.").map(PathBuf::from).collect())
}

/// Returns the Debian package that installed a file; `None` if there is none, or no dpkg.
pub fn package_of(file: &Path) -> Option<String> {
    let mut command = Command::new("dpkg-query");
    command.arg("-S").arg("--").arg(file);
    let (end, output) = Job::new(command).output().ok()?;
    // `git: /usr/bin/git`, or `libc6:amd64: /lib/…`.
    let package = output.lines().next()?.split(':').next()?.to_owned();
    (end.success() && !package.is_empty() && !package.contains(' ')).then_some(package)
}

fn unanswered(package: &str, end: &JobEnd, output: &str) -> Error {
    let how = match end {
        JobEnd::Exited(status) => status.to_string(),
        JobEnd::TimedOut | JobEnd::Stopped => "no answer".into(),
    };
    Error::PackageQuery { package: package.to_owned(), how, said: crate::last_lines(output) }
}

/// Finds the program that a command's first word means on the host: an absolute path, or a name in
/// PATH or in the guest's own directories (a user's PATH often lacks `sbin`).
pub(crate) fn find_program(word: &str) -> Option<PathBuf> {
    let relative = word.contains('/') && !word.starts_with('/');
    kerntune_work::find_program(word, &GUEST_PATH).filter(|_| !relative)
}

/// Returns the applets of the host's busybox; empty without a busybox.
pub(crate) fn busybox_applets() -> &'static BTreeSet<String> {
    static APPLETS: OnceLock<BTreeSet<String>> = OnceLock::new();
    APPLETS.get_or_init(|| {
        let Some(busybox) = find_program("busybox") else { return BTreeSet::new() };
        let mut command = Command::new(busybox);
        command.arg("--list");
        match Job::new(command).output() {
            Ok((end, output)) if end.success() => output.lines().map(str::to_owned).collect(),
            _ => BTreeSet::new(),
        }
    })
}

/// Directory of what `scripts/setup servers` prepares: load generators, filled databases.
pub(crate) const PREPARED: &str = "/var/lib/kerntune";

/// The error for a missing program.
pub(crate) fn missing(program: &str, needed_by: &str) -> Error {
    Error::Program {
        program: program.to_owned(),
        needed_by: needed_by.to_owned(),
        help: missing_help(program),
    }
}

/// Returns advice for a missing program.
pub(crate) fn missing_help(program: &str) -> String {
    if Path::new(program).starts_with(PREPARED) {
        return PREPARED_HELP.into();
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    // A path below the current directory is of no package.
    if program.starts_with('.') {
        return "correct the path".into();
    }
    format!("install the package that has it (apt-file search bin/{name}) or correct the name")
}

const PREPARED_HELP: &str = "make it: scripts/setup servers";

/// Returns advice for a missing file.
pub(crate) fn missing_file_help(file: &Path) -> &'static str {
    match file.starts_with(PREPARED) {
        true => PREPARED_HELP,
        false => "correct the path",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_programs_of_this_machine() {
        assert!(is_installed("libc6").unwrap());
        assert!(!is_installed("no-such-package-ever").unwrap());
        assert!(!is_installed("--help").unwrap());
        assert!(package_paths("dpkg").unwrap().contains(&PathBuf::from("/usr/bin/dpkg")));
        let error = package_paths("no-such-package-ever").unwrap_err().to_string();
        assert!(
            error.contains("dpkg-query failed on package no-such-package-ever (exit status: 1)"),
            "{error}"
        );
        assert!(error.contains("is not installed"), "{error}");
        assert!(find_program("sh").unwrap().is_absolute());
        assert_eq!(find_program("/etc/passwd"), None);
        assert_eq!(find_program("./sh"), None);
    }
}
