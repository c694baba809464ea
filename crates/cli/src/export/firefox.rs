//! The format `firefox` of `kerntune export`.

use super::{Entry, StackExport, CREATOR};
use crate::part::{self, TracePartOptions};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::firefox::{of_paths, FirefoxMetadata, FirefoxTimeline};
use kerntune_convert::stacks::{title, FigureUnit};
use kerntune_profile::Manifest;
use kerntune_tune::run_files::RunFiles;
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

pub const ENTRY: Entry = entry::<_, ExportFirefoxOptions>("firefox", 26);

/// The trace for the Firefox Profiler (profiler.firefox.com): threads, interrupts, CPUs, regions over time
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export firefox latest --region tcp_rr\n  kerntune export firefox latest --from 5.12s --to 5.13s"
)]
pub struct ExportFirefoxOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "profile.firefox.json", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    part: TracePartOptions,
    /// Export at most N events of the trace; the viewer keeps all of them in memory
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    events: u64,
}

impl RunSubcommand<GlobalOptions> for ExportFirefoxOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let written = match self.part.paths {
            true => self.paths(global, &file)?,
            false => self.trace(global, &file, output)?,
        };
        output.note(&format!("wrote {}: {written}", self.output.display()));
        output.note("https://profiler.firefox.com, or an offline copy of it, loads it from a file");
        Ok(Exit::Ok)
    }
}

impl ExportFirefoxOptions {
    fn paths(&self, global: &GlobalOptions, file: &OutputFile) -> Result<String, Failure> {
        let of = StackExport::open(global, &self.profile, self.part.region.as_deref())?;
        let about = about(&of.title, of.stacks.unit, &of.subject.profile.manifest, None);
        let value = of_paths(&of.stacks, &about);
        file.write_with(|out| serde_json::to_writer(out, &value?).map_err(io::Error::from))?;
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
        let (title, unit) = (title(profile), FigureUnit::of(profile));
        // Bound of the samples: a thread that stops has one more, and a long interval needs several
        // samples.
        let max = self.events.saturating_mul(2);
        let first = about(&title, unit, &profile.manifest, None);
        let mut timeline = FirefoxTimeline::new(&first, &profile.tables, &files.recording, max);
        let told = part::stream_events(&files, &part, &mut timeline, output)?;
        let left_out = part::left_out(&told, &files);
        let (samples, total) = (timeline.samples, timeline.total);
        if total != told.busy {
            let what = "the trace has an interval of hours without an event, which no sample holds";
            return Err(Failure { exit: Exit::Recording, message: what.into() });
        }
        let title = part::cut_title(&title, &told, &part, profile);
        let value = timeline.finish(&about(&title, unit, &profile.manifest, left_out.as_deref()));
        file.write_with(|out| serde_json::to_writer(out, &value?).map_err(io::Error::from))?;
        if let Some(left_out) = left_out {
            output.print(&left_out);
        }
        Ok(format!("{} samples of {}", grouped(samples), part::summary(&told, unit.name())))
    }
}

fn about<'a>(
    title: &'a str,
    unit: FigureUnit,
    manifest: &Manifest,
    left_out: Option<&'a str>,
) -> FirefoxMetadata<'a> {
    let recorded = humantime::parse_rfc3339_weak(&manifest.recorded).ok();
    let since = recorded.and_then(|recorded| recorded.duration_since(UNIX_EPOCH).ok());
    let recorded_ms = since.map_or(0.0, |since| since.as_secs_f64() * 1000.0);
    FirefoxMetadata { title, creator: CREATOR, unit, recorded_ms, left_out }
}
