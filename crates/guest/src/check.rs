//! Everything that is wrong with a workload file, on this machine.

use crate::host;
use crate::programs;
use crate::reader::{read_claims, Claim, Claimed};
use crate::Problem;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Finds every problem of a workload text: syntax, keys, types, values, and packages, programs and
/// files that this machine lacks. An empty list means that an image can be built. `path` gives the
/// workload its default name.
///
/// ```
/// let problems = kerntune_guest::check("[training]\nstep = 3\n", "x.toml".as_ref());
/// assert_eq!((problems[0].line, problems[0].key.as_str()), (1, "measured"));
/// ```
pub fn check(text: &str, path: &Path) -> Vec<Problem> {
    let (read, mut problems) = read_claims(text, path);
    let mut packed: HashSet<PathBuf> = HashSet::new();
    for claim in &read.claims {
        if let Claimed::Package(package) = &claim.what {
            let paths = match host::is_installed(package) {
                Ok(true) => host::package_paths(package),
                Ok(false) => {
                    let message = format!("package \"{package}\" is not installed");
                    problems.push(problem(text, claim, message).help(format!("apt-get install {package}")));
                    continue;
                }
                Err(error) => Err(error),
            };
            match paths {
                Ok(paths) => packed.extend(paths),
                Err(error) => problems.push(
                    problem(text, claim, format!("cannot ask for packages: {error}"))
                        .help("on machines without dpkg use `binaries` and `files`"),
                ),
            }
        }
    }
    for claim in &read.claims {
        let missing = match &claim.what {
            Claimed::Package(_) => continue,
            Claimed::File(file) if file.symlink_metadata().is_ok() => continue,
            Claimed::File(file) => {
                let message = format!("{} is not there", file.display());
                problem(text, claim, message).help(host::missing_file_help(file))
            }
            Claimed::Command(word) if programs::named(word).is_some() => continue,
            Claimed::Command(word) | Claimed::Program(word) => {
                if host::find_program(word).is_some() || packed.contains(Path::new(word)) {
                    continue;
                }
                problem(text, claim, format!("the program \"{word}\" is not on this machine"))
                    .help(host::missing_help(word))
            }
        };
        problems.push(missing);
    }
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}

fn problem(text: &str, claim: &Claim, message: String) -> Problem {
    Problem::at(text, claim.span.clone(), &claim.key, message)
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
}
