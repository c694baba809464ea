//! The command `kerntune anatomy`.

use crate::percent::percent;
use clap::Args;
use kerntune_analyze::anatomy::{self, anatomy};
use kerntune_analyze::TraceFile;
use kerntune_command::{
    command, CliOutput, CommandEntry, Exit, Failure, FormOptions, GlobalOptions, ProfileSubject,
    RunSubcommand,
};
use kerntune_profile::Profile;
use kerntune_report::anatomy::{document, AnatomyQuestion, AnatomyView};
use kerntune_report::{profile_line, render, ReportForm};
use kerntune_trace::Recording;
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;

/// Default of `--min-percent` for text, in percent.
const MIN_PERCENT: f64 = 1.0;

/// The analysis of one profile.
struct ProfileAnatomy {
    profile: Profile,
    recording: Recording,
    question: AnatomyQuestion,
    anatomy: anatomy::Anatomy,
}

pub const COMMAND: CommandEntry = command::<AnatomyOptions>("anatomy", 155, "Look");

/// Show what a system call, an interrupt or any function does: the tree of its calls, and its
/// work before a boundary
#[derive(Debug, Args)]
pub struct AnatomyOptions {
    /// A function (`vfs_read`, or `name@file` if several have the name), a system call (`read`), or
    /// the first function of an interrupt (`asm_common_interrupt:0x22`)
    pub operation: String,
    /// The profile, with its trace: beginning of an id, directory, or `latest`
    #[arg(long, default_value = "latest", value_name = "PROFILE")]
    pub profile: String,
    /// Count only calls that end in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also show what each call does before it enters this boundary: a function (submit_bio), a pattern (`blk_*`), or a file or
    /// directory of the source (net/core/)
    #[arg(long, value_name = "FUNCTION|PATTERN|DIR")]
    pub until: Option<String>,
    /// Compare with this profile (B), usually of another kernel: show the figures of both and the
    /// functions that explain the difference
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Show at most N levels of calls below the operation
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Show at most N rows of each table except the tree [default: a number that suits each table
    /// in text, all rows in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Fold calls whose share of the operation's time is below this, both on average and in the
    /// typical and the worst call [default: 1 in text, 0 in JSON]
    #[arg(long, alias = "min", value_name = "PERCENT", value_parser = percent)]
    pub min_percent: Option<f64>,
    #[command(flatten)]
    pub format: FormOptions,
}

impl RunSubcommand<GlobalOptions> for AnatomyOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let one = ProfileSubject::open(global, &self.profile)?;
        let other = self.against.as_deref().map(|name| ProfileSubject::open(global, name)).transpose()?;
        let one = look(one, self, output)?;
        let other = other.map(|other| look(other, self, output)).transpose()?;
        let (one, other) = (shown(&one, self), other.as_ref().map(|other| shown(other, self)));
        let document = document(&one, other.as_ref())?;
        output.print(&render(&document, self.format.form(), &profile_line(one.profile), output.style()));
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        true
    }
}

/// Analyzes the calls of the operation in a profile's trace.
fn look(of: ProfileSubject, options: &AnatomyOptions, output: &CliOutput) -> Result<ProfileAnatomy, Failure> {
    let ProfileSubject { directory, profile, .. } = of;
    if profile.manifest.sampled.is_some() {
        return Err(Failure::usage(format!(
            "{} was sampled, so it has no single calls to look at: record the workload with `kerntune record`, or see \
             `kerntune report {} graph`",
            directory.display(),
            profile.manifest.id
        )));
    }
    let files = RunFiles::open(&directory)?;
    let (region, until) = (options.region.as_deref(), options.until.as_deref());
    let question = AnatomyQuestion::new(&profile, &options.operation, region, until)?;
    let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
    output.progress().begin("reading the trace", Some(files.recording.events));
    let read = anatomy(&trace, &question.request(), &mut |events| watch::report(output.progress(), events));
    output.progress().end();
    interrupt::check()?;
    let anatomy = read.map_err(Failure::recording)?;
    Ok(ProfileAnatomy { profile, recording: files.recording, question, anatomy })
}

fn shown<'a>(found: &'a ProfileAnatomy, options: &'a AnatomyOptions) -> AnatomyView<'a> {
    let min = match options.format.form() {
        ReportForm::Json | ReportForm::Csv => 0.0,
        ReportForm::Text | ReportForm::Markdown | ReportForm::Html => MIN_PERCENT,
    };
    AnatomyView {
        profile: &found.profile,
        recording: &found.recording,
        anatomy: &found.anatomy,
        function: found.question.function,
        region: options.region.as_deref(),
        until: options.until.as_deref(),
        depth: options.depth,
        top: options.top,
        min_percent: options.min_percent.unwrap_or(min),
    }
}
