//! The report `path` of `kerntune report`.

use super::{print, Entry};
use crate::part::time;
use clap::Args;
use kerntune_analyze::path::{collect, CallStart, PathSelection, PathSpan, SelectedOperation};
use kerntune_analyze::TraceFile;
use kerntune_command::{
    entry, points, CliOutput, Exit, Failure, FormatOptions, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use kerntune_report::names;
use kerntune_report::path::{json, text, typical, worst, PathView, PickedCall};
use kerntune_trace::Recording;
use kerntune_tune::run_files::RunFiles;

pub const ENTRY: Entry = entry::<_, ReportPathOptions>("path", 4);

/// Trace call by call: one call, one operation or a time window (McRae's code path trace)
#[derive(Debug, Clone, Args)]
pub struct ReportPathOptions {
    /// Show the slowest call of this function: `name`, or `name@file` if several have the name
    #[arg(long, value_name = "FUNCTION", group = "call")]
    worst: Option<String>,
    /// Show a call of this function with the median time
    #[arg(long, value_name = "FUNCTION", group = "call")]
    typical: Option<String>,
    /// Show a call of this function: the first, or the one chosen by --nth or --at
    #[arg(long, value_name = "FUNCTION", group = "call")]
    function: Option<String>,
    /// Number of the call of --function, or of the operation in the region
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["worst", "typical", "from", "at"])]
    nth: u64,
    /// Show only this thread, or threads of this name
    #[arg(long, value_name = "PID|COMM", conflicts_with_all = ["worst", "typical"])]
    thread: Option<String>,
    /// Use only the regions of this name; if no call is chosen, show one of their operations
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "at"])]
    region: Option<String>,
    /// Show everything from this time on (virtual: `5123456789`, `5.12s`, `5120ms`, `5120000us`)
    #[arg(long, value_name = "TIME", requires = "to", value_parser = time, conflicts_with = "call")]
    from: Option<u64>,
    /// Show everything before this time
    #[arg(long, value_name = "TIME", requires = "from", value_parser = time)]
    to: Option<u64>,
    /// Show the call (of --function) that began at this time; without --function, the first call
    /// from this time on
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["from", "worst", "typical"])]
    at: Option<u64>,
    /// Show at most N levels of calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Show at most N entries, counted before folding
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    top: usize,
    /// Show also the other threads while the call was off the CPU
    #[arg(long)]
    all: bool,
    /// Show every repetition on its own line
    #[arg(long)]
    no_fold: bool,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<ProfileSubject> for ReportPathOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let ProfileSubject { directory, profile, .. } = of;
        let files = RunFiles::open(directory)?;
        let (span, title) = selected(profile, self)?;
        let selection = PathSelection {
            span,
            thread: self.thread.clone(),
            all: self.all,
            depth: self.depth,
            limit: self.top,
        };
        let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
        let path = collect(&trace, profile.tables.symbols.len(), &selection)?;
        let title = match path.operation {
            Some(operation) => of_operation(operation, &files.recording, self.nth),
            None => title,
        };
        let points = points(directory, &profile.tables);
        let shown = PathView {
            profile,
            recording: &files.recording,
            path: &path,
            points: &points,
            title: &title,
            fold: !self.no_fold,
        };
        print(of, output, self.format, || json(&shown), || Ok(text(&shown, output.style())))?;
        Ok(Exit::Ok)
    }
}

/// Returns the span to show and its title; the title is empty if it depends on the trace.
fn selected(profile: &Profile, options: &ReportPathOptions) -> Result<(PathSpan, String), Failure> {
    let function = |name: &str| names::function(&profile.tables, name).map_err(Failure::usage);
    let region = options.region.as_deref();
    let within = region.map_or(String::new(), |name| format!(" in region {name}"));
    let picked = |name: &str, picked: PickedCall| {
        (PathSpan::Call(picked.start), format!("{name}: {}{within}", picked.why))
    };
    if let Some(name) = &options.worst {
        return Ok(picked(name, worst(profile, function(name)?, region)?));
    }
    if let Some(name) = &options.typical {
        return Ok(picked(name, typical(profile, function(name)?, region)?));
    }
    if let Some(name) = &options.function {
        let function = function(name)?;
        return Ok(match options.at {
            Some(begin_ns) => {
                let start = CallStart::At { function, begin_ns, elapsed_ns: None };
                (PathSpan::Call(start), format!("{name}: the call that begins at {} ns", grouped(begin_ns)))
            }
            None => {
                let start = CallStart::Nth { function, nth: options.nth, region: options.region.clone() };
                (PathSpan::Call(start), format!("{name}: call {}{within}", grouped(options.nth)))
            }
        });
    }
    if let Some(begin_ns) = options.at {
        let start = CallStart::From { begin_ns };
        return Ok((PathSpan::Call(start), format!("the first call from {} ns on", grouped(begin_ns))));
    }
    if let (Some(begin_ns), Some(end_ns)) = (options.from, options.to) {
        let title = format!("everything from {} to {} ns", grouped(begin_ns), grouped(end_ns));
        return Ok((PathSpan::Window { begin_ns, end_ns }, title));
    }
    // The title needs the operation that is found while reading.
    Ok((PathSpan::Operation { region: options.region.clone(), nth: options.nth }, String::new()))
}

/// Returns the title of an operation, such as `operation 2 in region tcp_rr`, or notes that the
/// region marks no operations.
fn of_operation(operation: SelectedOperation, recording: &Recording, nth: u64) -> String {
    let region = recording.regions.get(operation.region as usize).map_or("?", |region| &region.name);
    let same = recording.regions.iter().filter(|other| other.name == region).count();
    match (operation.marked, same) {
        (true, _) => format!("operation {} in region {region}", grouped(nth)),
        (false, _) if nth > 1 => {
            format!("region {region}: all of it, the one after {} marked operations", grouped(nth - 1))
        }
        (false, 1) => format!("region {region}: all of it, as it marks no operations"),
        (false, same) => {
            format!(
                "region {region}: all of the first of {}, as they mark no operations",
                grouped(same as u64)
            )
        }
    }
}
