//! The commands `kerntune guard …`: a file for each subcommand.

mod bisect;
mod check;
mod history;
mod program;
mod reports;
mod text;
mod watch;

use bisect::GuardBisectOptions;
use check::GuardCheckOptions;
use clap::{Args, Subcommand};
use history::GuardHistoryOptions;
use kerntune_command::{
    command_group, show_steps, CliOutput, CommandEntry, DryRunOptions, Exit, Failure, FormatOptions,
    GlobalOptions, OutputFile, RunSubcommand,
};
use kerntune_compare::number::{figure, grouped};
use kerntune_guard::cell::MeasuredCell;
use kerntune_guard::{
    cell, measure_commit, subject_of, Baseline, BuildVariant, Commit, CommitLedger, GitTree, GuardProject,
    MeasuredSubject, FILE,
};
use kerntune_kernel::{preview, Kernel, KernelSource};
use kerntune_tune::compare::dry_run_measured;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::PathBuf;
use watch::GuardWatchOptions;

pub const COMMAND: CommandEntry = command_group::<GuardCommand>("guard", 145, "Guard");

/// Guard against slower kernels: compare the figures of kernels and commits, and find the commit that made a path longer
/// (docs/guard.md)
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
#[derive(Debug, Clone, Default, Args)]
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
    pub source: Option<KernelSource>,
}

/// The option `--program`: the kernel stays, and the program changes.
#[derive(Debug, Clone, Copy, Args)]
pub struct GuardProgramOptions {
    /// Guard the workloads' programs instead of kernels: user code, system calls and page faults
    /// (docs/guard-programs.md)
    #[arg(long, conflicts_with_all = ["commit", "git"])]
    pub program: bool,
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
    pub program: GuardProgramOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
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

impl RunSubcommand<GlobalOptions> for GuardCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::Record(options) if options.program.program => program::record(global, options, output),
            Self::Record(options) => record(global, options, output),
            Self::Check(options) if options.program.program => program::check(global, options, output),
            Self::Check(options) => check::run(global, options, output),
            Self::Bisect(options) => bisect::run(global, options, output),
            Self::History(options) => history::run(global, options, output),
            Self::Watch(options) => watch::run(global, options, output),
            Self::Validate { of, format } => validate(of, format.json, output),
        }
    }
}

/// Loads the guard file and everything that it names.
fn project(of: &GuardFileOptions) -> Result<GuardProject, Failure> {
    Ok(GuardProject::load(&of.file, &[PathBuf::from("workloads")])?)
}

fn validate(of: &GuardFileOptions, json: bool, output: &CliOutput) -> Result<Exit, Failure> {
    let problems = match GuardProject::load(&of.file, &[PathBuf::from("workloads")]) {
        Ok(_) => Vec::new(),
        Err(kerntune_guard::Error::File { problems, .. }) => problems,
        Err(other) => return Err(other.into()),
    };
    match (json, &problems[..]) {
        (true, _) => output.json(&problems),
        (false, []) => output.print(&format!("{}: good", of.file.display())),
        (false, _) => {
            problems.iter().for_each(|problem| output.print(&format!("{}:{problem}", of.file.display())))
        }
    }
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// Measures the given kernel, commit or source under every workload of the guard file; kernels that
/// must be built are built in every variant.
fn measure(
    session: &Session,
    project: &GuardProject,
    asked: &GuardSubjectOptions,
    output: &CliOutput,
) -> Result<(MeasuredSubject, Vec<MeasuredCell>), Failure> {
    let GuardSubjectOptions { kernel, commit, source } = asked;
    if let Some(name) = kernel {
        return of_kernel(session, project, name);
    }
    if let Some(name) = commit {
        let tree = GitTree::open(session.work, &project.tree()?)?;
        let commit = tree.commit(name)?;
        output.note(&format!("commit {} ({})", commit.short(), commit.subject));
        let found = measure_commit(session, project, &tree, &commit)?;
        let all = found.map_err(|why| Failure {
            exit: Exit::Guest,
            message: format!("commit {} has no figures: {why}", commit.short()),
        })?;
        return Ok((subject_of(&commit), all));
    }
    let (named, source) = source_of(project, source.as_ref())?;
    let mut all = Vec::new();
    for variant in project.variants() {
        let label = label(&variant);
        let kernel = cell::build_kernel(session, project, (source.clone(), &label), &variant, None)?;
        all.extend(cell::measure_workloads(session, project, &kernel, Some(&variant))?);
    }
    Ok((MeasuredSubject { what: format!("source {named}"), commit: None }, all))
}

/// Returns the label of a source's kernel in a variant.
fn label(variant: &BuildVariant) -> String {
    format!("guard-{}-{}", variant.configuration.name, variant.compiler)
}

/// Returns the source that was named, or that of the guard file, with its name.
fn source_of(
    project: &GuardProject,
    source: Option<&KernelSource>,
) -> Result<(String, KernelSource), Failure> {
    let named = source.map_or_else(|| project.file.source.clone(), ToString::to_string);
    let source = match (source, project.dir.join(&named)) {
        (Some(source), _) => source.clone(),
        (None, beside) if beside.exists() && !named.starts_with("debian:") => {
            beside.display().to_string().parse().map_err(Failure::usage)?
        }
        (None, _) => named.parse().map_err(Failure::usage)?,
    };
    Ok((named, source))
}

/// Adds the steps of [`measure`] to a dry run.
fn dry_measure(dry: &mut DryRun, project: &GuardProject, asked: &GuardSubjectOptions) -> Result<(), Failure> {
    let GuardSubjectOptions { kernel, commit, source } = asked;
    if let Some(name) = kernel {
        return dry_workloads(dry, project, Some(&kerntune_kernel::find(dry.session().work, name)?));
    }
    if let Some(name) = commit {
        let tree = GitTree::open(dry.session().work, &project.tree()?)?;
        let commit = tree.commit(name)?;
        for variant in project.variants() {
            dry_commits(dry, project, &tree, &variant, std::slice::from_ref(&commit))?;
        }
        return Ok(());
    }
    let (_, source) = source_of(project, source.as_ref())?;
    for variant in project.variants() {
        let label = label(&variant);
        let request = cell::build_request(project, (source.clone(), &label), &variant, None)?;
        let kernel = dry.kernel(format!("build the kernel {label}"), &request)?;
        dry_workloads(dry, project, kernel.as_ref())?;
    }
    Ok(())
}

/// Adds the guarded workloads on a kernel, or on one that is to be built, to a dry run.
fn dry_workloads(dry: &mut DryRun, project: &GuardProject, kernel: Option<&Kernel>) -> Result<(), Failure> {
    for work in &project.works {
        let what = format!("run {}", work.name);
        dry_run_measured(dry, what, kernel, (&work.workload, &project.model), 1)?;
    }
    Ok(())
}

/// Adds the builds and runs of commits that have no figures yet to a dry run.
fn dry_commits(
    dry: &mut DryRun,
    project: &GuardProject,
    tree: &GitTree,
    variant: &BuildVariant,
    commits: &[Commit],
) -> Result<(), Failure> {
    for commit in commits {
        let mut missing = Vec::new();
        for work in &project.works {
            let ledger = dry.find(|session| {
                let ledger = CommitLedger::open(session, project, tree, variant, work)?;
                Ok::<_, kerntune_guard::Error>(ledger.lookup(&commit.id).is_some())
            })?;
            if ledger != Some(true) {
                missing.push(work);
            }
        }
        let name = format!("commit {} ({})", commit.short(), variant.configuration.name);
        if missing.is_empty() {
            dry.add("figures", format!("measure {name}"), Some(tree.directory()), |_| None);
            continue;
        }
        // The checkout of another commit is much the same source.
        let source = KernelSource::Directory(tree.origin().to_owned());
        let request = cell::build_request(project, (source, "commit"), variant, None)?;
        dry.add(
            "kernel",
            format!("check out and build {name}; only what differs from the last one"),
            None,
            |dry| Some(preview(dry.session().work, &request).ok()?.into()),
        );
        for work in missing {
            dry.runs(format!("run {} on {name}", work.name), &work.workload, "measured", 1);
        }
    }
    Ok(())
}

fn of_kernel(
    session: &Session,
    project: &GuardProject,
    name: &str,
) -> Result<(MeasuredSubject, Vec<MeasuredCell>), Failure> {
    let kernel = kerntune_kernel::find(session.work, name)?;
    let cells = cell::measure_workloads(session, project, &kernel, None)?;
    let what = format!(
        "kernel {} ({}, Linux {})",
        kernel.manifest.label, kernel.manifest.id, kernel.manifest.version
    );
    Ok((MeasuredSubject { what, commit: None }, cells))
}

fn record(global: &GlobalOptions, options: &GuardRecordOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let path = project.baseline(options.output.as_deref());
    let file = OutputFile::new("--output", &path)?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_measure(&mut dry, &project, &options.subject)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let (subject, all) = measure(&session, &project, &options.subject, output)?;
    let baseline = Baseline::of(subject, &all);
    file.write_json(&baseline)?;
    if options.format.json {
        output.json(&baseline);
        return Ok(Exit::Ok);
    }
    output.print(&format!("{}\n", baseline.subject.what));
    output.table(
        &["WORKLOAD", "ROW", "#OPERATIONS", "#PATH", "#PUT OFF"],
        baseline.cells.iter().flat_map(|cell| {
            cell.rows.iter().map(|row| {
                let deferred: u64 = row.deferred.values().sum();
                let each = deferred as f64 / row.operations.max(1) as f64;
                vec![
                    cell.display_name(),
                    row.row.clone(),
                    grouped(row.operations),
                    figure(row.path()),
                    figure(each),
                ]
            })
        }),
    );
    output.print(&format!("\npath: an operation's own kernel instructions; put off: kernel work per operation that is not the operation's,\nsuch as timers and kernel threads (docs/guard.md). Both are exact.\n\nwritten to {}", path.display()));
    Ok(Exit::Ok)
}
