//! The command `kerntune guard check`.

use super::reports::{write_reports, GuardReportOptions};
use super::{
    dry_measure, dry_workloads, measure, of_kernel, project, text, GuardFileOptions, GuardProgramOptions,
    GuardSubjectOptions,
};
use clap::Args;
use kerntune_command::{show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions};
use kerntune_guard::{check, Baseline, CheckBase};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::PathBuf;

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
    #[arg(long, value_name = "KERNEL", conflicts_with = "program")]
    pub against: Option<String>,
    /// Also explain rows that got shorter
    #[arg(long)]
    pub all: bool,
    /// Fail with status 7 if the recorded figures cannot be used and their kernel had to be
    /// measured again
    #[arg(long, conflicts_with_all = ["against", "program"])]
    pub strict: bool,
    #[command(flatten)]
    pub program: GuardProgramOptions,
    #[command(flatten)]
    pub reports: GuardReportOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

pub fn run(global: &GlobalOptions, options: &GuardCheckOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let reports = options.reports.files()?;
    // Missing figures are reported before anything runs.
    let path = project.baseline(options.baseline.as_deref());
    let baseline = match options.against {
        None => Some(Baseline::read(&path)?),
        Some(_) => None,
    };
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        if let Some(name) = &options.against {
            dry_workloads(&mut dry, &project, Some(&kerntune_kernel::find(&work, name)?))?;
        }
        dry_measure(&mut dry, &project, &options.subject)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let base = options.against.as_deref().map(|name| of_kernel(&session, &project, name)).transpose()?;
    let (subject, measured) = measure(&session, &project, &options.subject, output)?;
    let against = match (&baseline, &base) {
        (_, Some((subject, measured))) => CheckBase::Measured(subject, measured),
        (Some(baseline), None) => CheckBase::File(baseline, &path),
        (None, None) => return Err(Failure::usage("name what to compare it with: --baseline or --against")),
    };
    let found = check(&session, &project, &against, (&subject, &measured), options.all)?;
    write_reports(reports, &found.suites(), &options.of.file)?;
    match options.format.json {
        true => output.json(&found),
        false => text::check(&found, output),
    }
    match &found.remeasured()[..] {
        [] => {}
        why if options.strict => {
            let message = format!(
                "{}; --strict wants the file's own figures: make them again with `kerntune guard record`",
                why.join("; ")
            );
            return Err(Failure { exit: Exit::Profile, message });
        }
        // The JSON output has the reasons too; the note is for the log.
        why if options.format.json => why.iter().for_each(|why| output.note(&format!("note: {why}"))),
        _ => {}
    }
    Ok(if found.findings == 0 { Exit::Ok } else { Exit::Findings })
}
