//! Files of a check for CI systems.

use clap::Args;
use kerntune_command::{Failure, OutputFile};
use kerntune_guard::{CheckFormat, CheckSuite};
use std::path::{Path, PathBuf};

/// Options that name files for CI systems.
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
        let given =
            all.into_iter().filter_map(|(format, option, path)| Some((format, option, path.as_deref()?)));
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
