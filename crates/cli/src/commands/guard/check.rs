//! The command `kerntune guard check`.

use super::{
    dry_measure, dry_workloads, measure, of_kernel, program, project, text, GuardFileOptions, GuardProgramOptions,
    GuardSubjectOptions,
};
use clap::Args;
use kerntune_command::{
    show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, OutputFile,
};
use kerntune_guard::{check, Baseline, CheckBase, CheckFormat, CheckSuite};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::{Path, PathBuf};

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

/// Files for CI systems.
#[derive(Debug, Args)]
pub struct GuardReportOptions {
    /// Also write the result to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the findings to this file as SARIF
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Also write the findings to this file as GitLab's Code Quality report
    #[arg(long, value_name = "FILE")]
    pub code_quality: Option<PathBuf>,
    /// Also write a summary to this file in Markdown, for $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Also print the findings as GitHub's annotations of source lines, to the standard error
    #[arg(long)]
    pub annotations: bool,
}

/// Files to write, and their formats.
#[derive(Debug, Default)]
pub struct ReportFiles {
    files: Vec<(CheckFormat, OutputFile)>,
    annotations: bool,
}

impl GuardReportOptions {
    /// Checks that the files can be written, before anything runs.
    pub fn files(&self) -> Result<ReportFiles, Failure> {
        let all = [
            (CheckFormat::Junit, "--junit", &self.junit),
            (CheckFormat::Sarif, "--sarif", &self.sarif),
            (CheckFormat::CodeQuality, "--code-quality", &self.code_quality),
            (CheckFormat::Summary, "--summary", &self.summary),
        ];
        let given = all.into_iter().filter_map(|(format, option, path)| Some((format, option, path.as_deref()?)));
        let files = given.map(|(format, option, path)| Ok((format, OutputFile::new(option, path)?)));
        Ok(ReportFiles { files: files.collect::<Result<_, Failure>>()?, annotations: self.annotations })
    }
}

/// Writes the result of a check in the formats of CI systems.
pub fn write_reports(files: ReportFiles, suites: &[CheckSuite], guard_file: &Path) -> Result<(), Failure> {
    for (format, file) in files.files {
        file.write(format.render(suites, guard_file).as_bytes())?;
    }
    if files.annotations {
        eprint!("{}", CheckFormat::Annotations.render(suites, guard_file));
    }
    Ok(())
}

pub fn run(global: &GlobalOptions, options: &GuardCheckOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    if options.program.program {
        return program::check(global, options, &project, output);
    }
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
