//! `kerntune export perfetto`.

use super::{Entry, Stacked};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::part::{self, PartOptions};
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_compare::number::grouped;
use kerntune_convert::perfetto::{of_paths, Timeline};
use kerntune_convert::stacks::{title, Unit};
use kerntune_tune::run_files::RunFiles;
use std::io;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("perfetto", 27);

/// The trace for Perfetto (ui.perfetto.dev, trace_processor): every call, CPUs, interrupts, idling, regions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export perfetto latest --region tcp_rr\n  kerntune export perfetto latest --events 100000000"
)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "profile.perfetto-trace", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    part: PartOptions,
    /// Export at most N events of the trace, about 20 bytes each
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    events: u64,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
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

impl Options {
    fn paths(&self, global: &Global, file: &OutputFile) -> Result<String, Failure> {
        let of = Stacked::open(global, &self.profile, self.part.region.as_deref())?;
        let title = group(&of.title, of.stacks.unit);
        file.write_with(|out| of_paths(&of.stacks, &title, out))?;
        Ok(format!("{} {} in all", grouped(of.stacks.total()), of.stacks.unit.name()))
    }

    fn trace(&self, global: &Global, file: &OutputFile, output: &Output) -> Result<String, Failure> {
        let subject = Subject::open(global, &self.profile)?;
        let profile = &subject.profile;
        let part = self.part.part(profile, self.events)?;
        let files = RunFiles::open(&subject.directory).map_err(super::without_trace)?;
        let unit = Unit::of(profile);
        let mut told = None;
        let calls = file.write_with(|out| {
            let mut timeline =
                Timeline::new(out, &group(&title(profile), unit), &profile.tables, &files.recording);
            told = Some(part::tell(&files, &part, &mut timeline, output));
            if let Some(Ok(told)) = told.as_ref().filter(|told| told.as_ref().is_ok_and(|told| !told.whole)) {
                timeline.cut(told.end, &part::cut_title(&title(profile), told, &part, profile));
            }
            let calls = timeline.calls;
            let is_told = matches!(told, Some(Ok(_)));
            let finished = timeline.finish();
            match is_told {
                true => finished.map(|_| calls),
                // The file is of no use.
                false => Err(io::Error::other("the trace was not read")),
            }
        });
        // Why the trace was not read comes first.
        let Some(told) = told else { return calls.map(|_| String::new()) };
        let (told, calls) = (told?, calls?);
        if let Some(left_out) = part::left_out(&told, &files) {
            output.print(&left_out);
        }
        Ok(format!("{} calls, {}", grouped(calls), part::summary(&told, unit.name())))
    }
}

/// The name of the group of tracks: Perfetto has no other place for a unit.
fn group(title: &str, unit: Unit) -> String {
    let unit = match unit {
        Unit::Instructions => "1 ns = 1 instruction",
        Unit::Nanoseconds => "time",
        Unit::Sampled(_) => "sampled time",
    };
    format!("{title} ({unit})")
}
