//! The format `perfetto` of `kerntune export`.

use super::{Entry, StackExport};
use crate::part::{self, TracePartOptions};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::perfetto::{of_paths, PerfettoTimeline};
use kerntune_convert::stacks::{title, FigureUnit};
use kerntune_tune::run_files::RunFiles;
use std::io;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportPerfettoOptions>("perfetto", 27);

/// The trace for Perfetto (ui.perfetto.dev, trace_processor): every call, CPUs, interrupts, idling, regions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export perfetto latest --region tcp_rr\n  kerntune export perfetto latest --events 100000000"
)]
pub struct ExportPerfettoOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "profile.perfetto-trace", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    part: TracePartOptions,
    /// Export at most N events of the trace, about 20 bytes each
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    events: u64,
}

impl RunSubcommand<GlobalOptions> for ExportPerfettoOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let written = match self.part.paths {
            true => self.paths(global, &file)?,
            false => self.trace(global, &file, output)?,
        };
        output.note(&format!("wrote {}: {written}", self.output.display()));
        output.note(&format!("trace_processor_shell {}, or https://ui.perfetto.dev", self.output.display()));
        Ok(Exit::Ok)
    }
}

impl ExportPerfettoOptions {
    fn paths(&self, global: &GlobalOptions, file: &OutputFile) -> Result<String, Failure> {
        let of = StackExport::open(global, &self.profile, self.part.region.as_deref())?;
        let title = group(&of.title, of.stacks.unit);
        file.write_with(|out| of_paths(&of.stacks, &title, out))?;
        Ok(format!("{} {} in all", grouped(of.stacks.total()), of.stacks.unit.name()))
    }

    fn trace(
        &self,
        global: &GlobalOptions,
        file: &OutputFile,
        output: &CliOutput,
    ) -> Result<String, Failure> {
        let subject = ProfileSubject::open(global, &self.profile)?;
        let profile = &subject.profile;
        let part = self.part.part(profile, self.events)?;
        let files = RunFiles::open(&subject.directory).map_err(super::without_trace)?;
        let unit = FigureUnit::of(profile);
        let mut told = None;
        let calls = file.write_with(|out| {
            let mut timeline =
                PerfettoTimeline::new(out, &group(&title(profile), unit), &profile.tables, &files.recording);
            told = Some(part::stream_events(&files, &part, &mut timeline, output));
            if let Some(Ok(told)) = told.as_ref().filter(|told| told.as_ref().is_ok_and(|told| !told.whole)) {
                timeline.cut(told.end, &part::cut_title(&title(profile), told, &part, profile));
            }
            let calls = timeline.calls;
            let is_told = matches!(told, Some(Ok(_)));
            let finished = timeline.finish();
            match is_told {
                true => finished.map(|_| calls),
                // The file is incomplete; this error keeps it from being published.
                false => Err(io::Error::other("the trace was not read")),
            }
        });
        // The error of reading the trace takes precedence over the error of writing.
        let Some(told) = told else { return calls.map(|_| String::new()) };
        let (told, calls) = (told?, calls?);
        if let Some(left_out) = part::left_out(&told, &files) {
            output.print(&left_out);
        }
        Ok(format!("{} calls, {}", grouped(calls), part::summary(&told, unit.name())))
    }
}

/// Returns the name of the group of tracks, with the unit, for which Perfetto has no other place.
fn group(title: &str, unit: FigureUnit) -> String {
    let unit = match unit {
        FigureUnit::Instructions => "1 ns = 1 instruction",
        FigureUnit::Nanoseconds => "time",
        FigureUnit::Sampled(_) => "sampled time",
    };
    format!("{title} ({unit})")
}
