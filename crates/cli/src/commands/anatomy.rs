//! The command `kerntune anatomy`.

use crate::args::{AnatomyOptions, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use crate::subject::ProfileSubject;
use kerntune_analyze::anatomy::{self, anatomy};
use kerntune_analyze::TraceFile;
use kerntune_profile::Profile;
use kerntune_report::anatomy::{json, text, AnatomyQuestion, AnatomyView};
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

pub fn run(global: &GlobalOptions, options: &AnatomyOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let one = ProfileSubject::open(global, &options.profile)?;
    let other = options.against.as_deref().map(|name| ProfileSubject::open(global, name)).transpose()?;
    let one = look(one, options, output)?;
    let other = other.map(|other| look(other, options, output)).transpose()?;
    let (one, other) = (shown(&one, options), other.as_ref().map(|other| shown(other, options)));
    output.print(&match options.format.json {
        true => json(&one, other.as_ref())?,
        false => text(&one, other.as_ref(), output.style())?,
    });
    Ok(Exit::Ok)
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
    let least = if options.format.json { 0.0 } else { MIN_PERCENT };
    AnatomyView {
        profile: &found.profile,
        recording: &found.recording,
        anatomy: &found.anatomy,
        function: found.question.function,
        region: options.region.as_deref(),
        until: options.until.as_deref(),
        depth: options.depth,
        top: options.top,
        min_percent: options.min_percent.unwrap_or(least),
    }
}
