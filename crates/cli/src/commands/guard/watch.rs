//! The command `kerntune guard watch`.

use super::{dry_commits, project, text, GuardFileOptions};
use clap::Args;
use kerntune_command::{
    output_directory, show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions,
};
use kerntune_guard::{CheckFormat, GitTree, GuardProject, WatchedBranch, WatchedCommit};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use kerntune_work::{interrupt, write_atomic};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

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
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// A commit in JSON; the output has one line for each.
#[derive(Serialize)]
struct WatchedLine<'a> {
    schema: &'static str,
    #[serde(flatten)]
    watched: &'a WatchedCommit,
}

pub fn run(global: &GlobalOptions, options: &GuardWatchOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    if let Some(directory) = &options.junit {
        output_directory("--junit", directory)?;
    }
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    let tree = GitTree::open(&work, &project.tree()?)?;
    let branch = WatchedBranch { tree: &tree, name: &options.branch, since: options.since.as_deref() };
    if options.dry.dry_run {
        let commits = branch.commits_to_measure()?;
        let mut dry = DryRun::new(&session);
        for variant in project.variants() {
            dry_commits(&mut dry, &project, &tree, &variant, &commits)?;
        }
        return Ok(show_steps(dry, options.format.json, output));
    }
    let mut findings = 0;
    loop {
        let looked = check_branch(&session, &project, &branch, options, output);
        match looked {
            Ok(found) => findings += found,
            // A tree or remote may be unavailable for some time; the next round tries again.
            Err(failure) if !options.once && failure.exit == Exit::Usage => output.failure(&failure),
            Err(failure) => return Err(failure),
        }
        if options.once {
            return Ok(if findings == 0 { Exit::Ok } else { Exit::Findings });
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(options.every) {
            interrupt::check()?;
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn check_branch(
    session: &Session,
    project: &GuardProject,
    branch: &WatchedBranch,
    options: &GuardWatchOptions,
    output: &CliOutput,
) -> Result<usize, Failure> {
    if options.fetch {
        branch.tree.fetch()?;
    }
    let mut findings = 0;
    branch.check_new_commits(session, project, &mut |watched| {
        findings += usize::from(watched.is_finding());
        if let (Some(directory), Some(check)) = (&options.junit, &watched.check) {
            let path = directory.join(format!("{}.xml", watched.commit.id));
            let text = CheckFormat::Junit.render(&check.suites(), &options.of.file);
            write_atomic(&path, text.as_bytes())?;
        }
        match options.format.json {
            true => output.json(&WatchedLine { schema: "kerntune-guard-watch/1", watched }),
            false => print(watched, output),
        }
        Ok(())
    })?;
    Ok(findings)
}

fn print(watched: &WatchedCommit, output: &CliOutput) {
    let commit = &watched.commit;
    let said = match (&watched.failure, &watched.check) {
        (Some(why), _) => format!("has no figures: {}", why.lines().next().unwrap_or_default()),
        (None, None) => "is the first with figures".into(),
        (None, Some(check)) if check.findings == 0 => "no path grew by more than its tolerance".into(),
        (None, Some(check)) => format!("{} findings", check.findings),
    };
    output.print(&format!("{} {}: {said}", commit.short(), commit.subject));
    if let Some(check) = watched.check.as_ref().filter(|check| check.findings > 0) {
        text::check(check, output);
    }
}
