//! Arguments of `kerntune guard`.

use super::FormatOptions;
use clap::{Args, Subcommand};
use kerntune_guard::FILE;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Write the figures of a kernel or commit into a baseline file that you commit
    Record(GuardRecordOptions),
    /// Fail if the path of an operation grew by more than its tolerance, and show the cause
    Check(GuardCheckOptions),
    /// Find the commit that made a path longer
    Bisect(GuardBisectOptions),
    /// Draw every row over versions and commits, and mark the steps
    History(GuardHistoryOptions),
    /// Check each new commit of a branch
    Watch(GuardWatchOptions),
    /// Explain the errors in a guard.toml
    Validate {
        #[command(flatten)]
        of: GuardFileOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
}

/// The option `--file`: the guard file, which lists the guarded workloads and rows.
#[derive(Debug, Args)]
pub struct GuardFileOptions {
    /// The guard file (docs/guard.md)
    #[arg(long, default_value = FILE, value_name = "FILE")]
    pub file: PathBuf,
}

/// The kernel to measure: a built kernel, a commit, or a source. At most one is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct GuardSubjectOptions {
    /// Measure this built kernel: label, beginning of an id, or directory
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Build and measure this commit of the git tree
    #[arg(long, value_name = "REV")]
    pub commit: Option<String>,
    /// Build and measure this source, written as for `kernel build` [default: the `source` of the
    /// guard file]
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<kerntune_kernel::KernelSource>,
}

#[derive(Debug, Args)]
pub struct GuardRecordOptions {
    #[command(flatten)]
    pub of: GuardFileOptions,
    #[command(flatten)]
    pub subject: GuardSubjectOptions,
    /// The git tree of --commit [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Write the figures to this file [default: the `baseline` of the guard file, or
    /// guard-baseline.json beside it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Args)]
pub struct GuardCheckOptions {
    #[command(flatten)]
    pub of: GuardFileOptions,
    #[command(flatten)]
    pub subject: GuardSubjectOptions,
    /// The git tree of --commit [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Compare with these figures [default: the `baseline` of the guard file, or
    /// guard-baseline.json beside it]
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub baseline: Option<PathBuf>,
    /// Compare with this kernel instead of recorded figures
    #[arg(long, value_name = "KERNEL")]
    pub against: Option<String>,
    /// Also explain rows that got shorter
    #[arg(long)]
    pub all: bool,
    /// Fail with status 7 if the recorded figures cannot be used and their kernel had to be
    /// measured again
    #[arg(long, conflicts_with = "against")]
    pub strict: bool,
    /// Also write the result to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Options that select one variant of a kernel: configuration and compiler.
#[derive(Debug, Args)]
pub struct GuardVariantOptions {
    /// Use this configuration of the guard file, if the file has several
    #[arg(long, value_name = "NAME")]
    pub configuration: Option<String>,
    /// Use this compiler of the guard file, if the file has several
    #[arg(long, value_name = "NAME")]
    pub compiler: Option<String>,
}

#[derive(Debug, Args)]
pub struct GuardBisectOptions {
    /// A commit before the path got longer
    pub good: String,
    /// A commit after the path got longer
    pub bad: String,
    #[command(flatten)]
    pub of: GuardFileOptions,
    /// The git tree [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Test only this workload of the guard file
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Test only this row [default: the row that grew most]
    #[arg(long, value_name = "ROW")]
    pub row: Option<String>,
    #[command(flatten)]
    pub variant: GuardVariantOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Args)]
pub struct GuardHistoryOptions {
    #[command(flatten)]
    pub of: GuardFileOptions,
    /// A built kernel: label, beginning of an id, or directory; may be repeated, oldest first
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// Commits of the git tree, from A to B, along first parents
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub commits: Option<(String, String)>,
    /// The git tree [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Measure commits that have no figures yet; without this option, only commits with figures are
    /// shown
    #[arg(long, requires = "commits")]
    pub measure: bool,
    #[command(flatten)]
    pub variant: GuardVariantOptions,
    /// Also write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Args)]
pub struct GuardWatchOptions {
    /// The branch to watch
    pub branch: String,
    #[command(flatten)]
    pub of: GuardFileOptions,
    /// The git tree [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Start after this commit, if the branch was never watched [default: its tip]
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
    pub format: FormatOptions,
}

/// Parses `A..B` into its two commits.
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
