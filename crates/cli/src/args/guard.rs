//! `kerntune guard`.

use super::Json;
use clap::{Args, Subcommand};
use kerntune_guard::FILE;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Guard {
    /// Write the figures of a kernel or commit into a file to be committed
    Record(GuardRecord),
    /// Fail if an operation's path grew by more than its tolerance, and show what made it longer
    Check(GuardCheck),
    /// Find the commit that made a path longer
    Bisect(GuardBisect),
    /// Draw every row over versions and commits, and say where it stepped
    History(GuardHistory),
    /// Check each new commit of a branch
    Watch(GuardWatch),
    /// Explain what is wrong with a guard.toml
    Validate {
        #[command(flatten)]
        of: GuardOf,
        #[command(flatten)]
        format: Json,
    },
}

/// The file that says what is guarded.
#[derive(Debug, Args)]
pub struct GuardOf {
    /// The file that lists what is guarded (docs/guard.md)
    #[arg(long, default_value = FILE, value_name = "FILE")]
    pub file: PathBuf,
}

/// What is measured.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct GuardSubject {
    /// A kernel that is built: label, beginning of an id, or directory
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// A commit of the git tree
    #[arg(long, value_name = "REV")]
    pub commit: Option<String>,
    /// A source as `kernel build` takes it [default: the `source` of the file]
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<kerntune_kernel::Source>,
}

#[derive(Debug, Args)]
pub struct GuardRecord {
    #[command(flatten)]
    pub of: GuardOf,
    #[command(flatten)]
    pub subject: GuardSubject,
    /// The git tree of --commit [default: the `git` of the file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Where to write it [default: the `baseline` of the file, or guard-baseline.json beside it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct GuardCheck {
    #[command(flatten)]
    pub of: GuardOf,
    #[command(flatten)]
    pub subject: GuardSubject,
    /// The git tree of --commit [default: the `git` of the file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Compare with these figures [default: the `baseline` of the file, or guard-baseline.json beside it]
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub baseline: Option<PathBuf>,
    /// Compare with this kernel instead of a file of figures
    #[arg(long, value_name = "KERNEL")]
    pub against: Option<String>,
    /// Also explain rows that got shorter
    #[arg(long)]
    pub all: bool,
    /// Fail with status 7 if the file's figures cannot be used and its kernel was measured again
    #[arg(long, conflicts_with = "against")]
    pub strict: bool,
    /// Also write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

/// One of several variants of a kernel.
#[derive(Debug, Args)]
pub struct GuardVariant {
    /// Which configuration of the file, if it has several
    #[arg(long, value_name = "NAME")]
    pub configuration: Option<String>,
    /// Which compiler of the file, if it has several
    #[arg(long, value_name = "NAME")]
    pub compiler: Option<String>,
}

#[derive(Debug, Args)]
pub struct GuardBisect {
    /// A commit before the path got longer
    pub good: String,
    /// A commit after the path got longer
    pub bad: String,
    #[command(flatten)]
    pub of: GuardOf,
    /// The git tree [default: the `git` of the file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Only in this workload of the file
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Only in this row [default: the one that grew most]
    #[arg(long, value_name = "ROW")]
    pub row: Option<String>,
    #[command(flatten)]
    pub variant: GuardVariant,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct GuardHistory {
    #[command(flatten)]
    pub of: GuardOf,
    /// A kernel that is built; may be repeated, oldest first
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// Commits of the git tree, from A to B, along first parents
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub commits: Option<(String, String)>,
    /// The git tree [default: the `git` of the file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Measure commits that have no figures yet; without this option only commits with figures are shown
    #[arg(long, requires = "commits")]
    pub measure: bool,
    #[command(flatten)]
    pub variant: GuardVariant,
    /// Also write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct GuardWatch {
    /// The branch
    pub branch: String,
    #[command(flatten)]
    pub of: GuardOf,
    /// The git tree [default: the `git` of the file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Begin after this commit, if the branch was never watched [default: its tip]
    #[arg(long, value_name = "REV")]
    pub since: Option<String>,
    /// Check once and exit, with status 1 if a path grew
    #[arg(long)]
    pub once: bool,
    /// Seconds between two checks
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "once")]
    pub every: u64,
    /// Run `git fetch` before each check
    #[arg(long)]
    pub fetch: bool,
    /// Write a JUnit file COMMIT.xml for each commit into this directory
    #[arg(long, value_name = "DIR")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

/// `A..B`.
fn range(text: &str) -> Result<(String, String), String> {
    match text.split_once("..") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() && !to.starts_with('.') => {
            Ok((from.to_owned(), to.to_owned()))
        }
        _ => Err("write A..B, two commits".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends() {
        assert_eq!(range("v6.1..v6.12"), Ok(("v6.1".into(), "v6.12".into())));
        for bad in ["", "a", "..", "a..", "..b", "a...b"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
