//! Checks a workload file against this machine.

use crate::limits::{too_large, too_large_for};
use crate::reader::{is_made, read_host_needs, HostNeed, HostNeedKind};
use crate::resolve::{leads_nowhere, unknown_in_shell};
use crate::{host, programs, shell, Problem};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Finds every problem of a workload's text: syntax, keys, types, values, and packages, programs
/// and files that this machine lacks. An empty list means that an image can be built. `path` gives
/// the workload its default name.
///
/// ```
/// let problems = kerntune_guest::check("[training]\nstep = 3\n", "x.toml".as_ref());
/// assert_eq!((problems[0].line, problems[0].key.as_str()), (1, "measured"));
/// ```
pub fn check(text: &str, path: &Path) -> Vec<Problem> {
    let (read, mut problems) = read_host_needs(text, path);
    let workload = &read.workload;
    let mut packed: HashSet<PathBuf> = workload.texts.keys().chain(workload.copies.keys()).cloned().collect();
    for need in &read.host_needs {
        if let HostNeedKind::Package(package) = &need.kind {
            let paths = match host::is_installed(package) {
                Ok(true) => host::package_paths(package),
                Ok(false) => {
                    let message = format!("package \"{package}\" is not installed");
                    problems.push(problem(text, need, message).help(format!("apt-get install {package}")));
                    continue;
                }
                Err(error) => Err(error),
            };
            match paths {
                Ok(paths) => packed.extend(paths),
                Err(error) => problems.push(
                    problem(text, need, format!("cannot ask for packages: {error}"))
                        .help("on machines without dpkg use `binaries` and `files`"),
                ),
            }
        }
    }
    let mut sum = FileSum::default();
    for need in &read.host_needs {
        let missing = match &need.kind {
            HostNeedKind::Package(_) => continue,
            HostNeedKind::File(file) if file.symlink_metadata().is_ok() => {
                let unpackable = unpackable(file, read.workload.memory_mb, &mut sum);
                for path in sum.left_out.drain(..) {
                    let message =
                        format!("{} is not packed: it is neither a file nor a directory", path.display());
                    problems.push(problem(text, need, message).warning());
                }
                match unpackable {
                    Some(what) => problem(text, need, format!("{} cannot be packed: {what}", file.display())),
                    None => continue,
                }
            }
            HostNeedKind::File(file) => {
                let message = format!("{} is not there", file.display());
                problem(text, need, message).help(host::missing_file_help(file))
            }
            HostNeedKind::Command(word) if programs::named(word).is_some() => continue,
            HostNeedKind::Maker(filesystem) => {
                let Some(maker) = filesystem.maker().filter(|maker| host::find_program(maker).is_none())
                else {
                    continue;
                };
                let message = format!("{maker}, which makes the file system, is not on this machine");
                problem(text, need, message).help(format!("apt-get install {}", filesystem.package()))
            }
            HostNeedKind::Shell(word) if is_in_shell(word) => continue,
            HostNeedKind::Shell(word) if packed.contains(Path::new(word)) => continue,
            HostNeedKind::Shell(word) => problem(text, need, unknown_in_shell(word, &need.key)).warning(),
            HostNeedKind::Unrunnable(line) => {
                let message = format!("no guest runs what begins with \"{line}\"");
                problem(text, need, message).help("after #! write a path from / on").warning()
            }
            HostNeedKind::Command(word) | HostNeedKind::Program(word) => {
                if host::find_program(word).is_some() || packed.contains(Path::new(word)) {
                    continue;
                }
                problem(text, need, format!("the program \"{word}\" is not on this machine"))
                    .help(host::missing_help(word))
            }
        };
        problems.push(missing);
    }
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}

/// Files seen so far, and their total size.
#[derive(Default)]
struct FileSum {
    seen: HashSet<PathBuf>,
    /// Directory entries that are neither files nor directories.
    left_out: Vec<PathBuf>,
    bytes: u64,
}

/// Returns the reason why a host file, or a directory with its contents, cannot be packed; `None`
/// if it can.
fn unpackable(path: &Path, memory_mb: u32, sum: &mut FileSum) -> Option<String> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) => return Some(error.to_string()),
    };
    if !sum.seen.insert(path.clone()) {
        return None;
    }
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) => return Some(error.to_string()),
    };
    if meta.is_dir() {
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => return Some(error.to_string()),
        };
        let entries = entries.flatten().map(|entry| entry.path());
        return entries.filter(|entry| !leads_nowhere(entry)).find_map(|entry| {
            if entry.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
                sum.left_out.push(entry);
                return None;
            }
            unpackable(&entry, memory_mb, sum)
        });
    }
    let place = path.display();
    if !meta.is_file() {
        return Some(format!("{place} is neither a file nor a directory"));
    }
    if let Err(error) = std::fs::File::open(&path) {
        return Some(format!("{place}: {error}"));
    }
    if let Some(why) = too_large(meta.len()) {
        return Some(format!("{place}: {why}"));
    }
    let before = sum.bytes;
    sum.bytes = sum.bytes.saturating_add(meta.len());
    // Reported once, although nothing after it fits either.
    too_large_for(sum.bytes, memory_mb).filter(|_| too_large_for(before, memory_mb).is_none())
}

/// Checks whether the guest will have a program that a shell string names.
fn is_in_shell(word: &str) -> bool {
    let made = word.contains('/') && (!word.starts_with('/') || is_made(Path::new(word)));
    made || shell::is_builtin(word)
        || programs::named(word).is_some()
        || host::find_program(word).is_some()
        || host::busybox_applets().contains(word)
}

fn problem(text: &str, need: &HostNeed, message: String) -> Problem {
    Problem::at(text, need.span.clone(), &need.key, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_lacks_is_found_with_its_line() {
        let text = "packages = [\"libc6\", \"no-such-package\"]\nfiles = [\"/no/such\"]\n\
                    [[training.step]]\ncommand = [\"no-such-program\"]\n[[measured.step]]\ncommand = [\"rr\"]\n";
        let problems = check(text, Path::new("x.toml"));
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            lines,
            [
                "1:22: packages: package \"no-such-package\" is not installed (apt-get install no-such-package)",
                "2:10: files: /no/such is not there (correct the path)",
                "4:12: training.step[0].command: the program \"no-such-program\" is not on this machine \
                 (install the package that has it (apt-file search bin/no-such-program) or correct the name)",
            ]
        );
    }

    #[test]
    fn what_setup_makes_is_said_to_be_made_by_it() {
        let text = "files = [\"/var/lib/kerntune/none\"]\n[[training.step]]\ncommand = [\"/var/lib/kerntune/none/x\"]\n\
                    [[measured.step]]\ncommand = [\"rr\"]\n";
        let problems = check(text, Path::new("x.toml"));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems
            .iter()
            .all(|problem| problem.help.as_deref() == Some("make it: scripts/setup servers")));
    }

    #[test]
    fn what_does_not_fit_into_the_guest_is_found() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let big = dir.path().join("big");
        let check_size = |bytes: u64| {
            std::fs::File::create(&big).unwrap().set_len(bytes).unwrap();
            let text =
                format!("files = [\"{}\"]\n[[measured.step]]\ncommand = [\"rr\"]\n", dir.path().display());
            check(&text, Path::new("x.toml")).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(check_size(400 << 20), "");
        let of_memory = check_size(600 << 20);
        assert!(
            of_memory.starts_with("1:10: files: ") && of_memory.contains("600 MiB are to be packed"),
            "{of_memory}"
        );
        assert!(check_size(3 << 30).contains("no initial RAM disk has 2 GiB or more"));
        assert!(check_size(5 << 30).contains("an initramfs holds no file of 4 GiB or more"));
    }

    #[test]
    fn a_fifo_in_a_directory_is_a_warning_and_a_loop_of_links_nothing() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for (link, target) in [("loop", "."), ("again", "sub")] {
            std::os::unix::fs::symlink(target, dir.path().join(link)).unwrap();
        }
        let of = |path: &Path| {
            let text = format!("files = [\"{}\"]\n[[measured.step]]\ncommand = [\"rr\"]\n", path.display());
            check(&text, Path::new("x.toml"))
        };
        assert_eq!(of(dir.path()), []);
        let fifo = dir.path().join("sub/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let problems = of(dir.path());
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].warning && problems[0].message.ends_with("is neither a file nor a directory"));
        assert!(!of(&fifo)[0].warning);
    }

    #[test]
    fn what_a_shell_string_names_and_is_nowhere_is_a_warning() {
        let text = "[[measured.step]]\ncommand = [\"sh\", \"-c\", \"cd /tmp; ls | no-such-tool --x; ./made && rr\"]\n";
        let problems = check(text, Path::new("x.toml"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].warning && problems[0].message.contains("names `no-such-tool`"), "{problems:?}");
    }

    #[test]
    fn a_text_whose_first_line_names_no_interpreter_is_a_warning() {
        let one = |line: &str| {
            let text =
                format!("[texts]\n\"/srv/x\" = \"{line}\\n\"\n[[measured.step]]\ncommand = [\"rr\"]\n");
            let problems = check(&text, Path::new("x.toml"));
            problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!((one("#!/bin/sh"), one("# !bash"), one("")), Default::default());
        let said = "2:12: warning: texts.\"/srv/x\": no guest runs what begins with \"#!bash\" (after #! write a path from / on)";
        assert_eq!(one("#!bash"), said);
        assert!(one("#!").contains("begins with \"#!\""), "{}", one("#!"));
    }
}
