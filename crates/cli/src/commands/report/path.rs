//! `kerntune report PROFILE path`.

use crate::args::CodePath;
use crate::exit::Failure;
use crate::output::Output;
use kerntune_analyze::path::{collect, CallStart, Operation, Selection, Span};
use kerntune_analyze::TraceFile;
use kerntune_compare::number::grouped;
use kerntune_profile::{Profile, Tables};
use kerntune_report::names;
use kerntune_report::path::{json, text, typical, worst, Picked, Shown};
use kerntune_trace::{files, RecorderSpec, Recording};
use kerntune_tune::run_files::{RunFiles, POINTS, RUN};
use std::path::Path;

/// `dir` is the profile's directory.
pub fn run(profile: &Profile, dir: &Path, options: &CodePath, output: &Output) -> Result<(), Failure> {
    let files = RunFiles::open(dir)?;
    let (span, title) = selected(profile, options)?;
    let selection = Selection {
        span,
        thread: options.thread.clone(),
        all: options.all,
        depth: options.depth,
        limit: options.top,
    };
    let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
    let path = collect(&trace, profile.tables.symbols.len(), &selection)?;
    let title = match path.operation {
        Some(operation) => of_operation(operation, &files.recording, options.nth),
        None => title,
    };
    let points = points(dir, &profile.tables);
    let shown = Shown {
        profile,
        recording: &files.recording,
        path: &path,
        points: &points,
        title: &title,
        fold: !options.no_fold,
    };
    output.print(&match options.format.json {
        true => json(&shown)?,
        false => text(&shown, output.style()),
    });
    Ok(())
}

/// What is to be shown, and how that is called.
fn selected(profile: &Profile, options: &CodePath) -> Result<(Span, String), Failure> {
    let function = |name: &str| names::function(&profile.tables, name).map_err(Failure::usage);
    let region = options.region.as_deref();
    let within = region.map_or(String::new(), |name| format!(" in region {name}"));
    let picked =
        |name: &str, picked: Picked| (Span::Call(picked.start), format!("{name}: {}{within}", picked.why));
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
                (Span::Call(start), format!("{name}: the call that begins at {} ns", grouped(begin_ns)))
            }
            None => {
                let start = CallStart::Nth { function, nth: options.nth, region: options.region.clone() };
                (Span::Call(start), format!("{name}: call {}{within}", grouped(options.nth)))
            }
        });
    }
    if let Some(begin_ns) = options.at {
        let start = CallStart::From { begin_ns };
        return Ok((Span::Call(start), format!("the first call from {} ns on", grouped(begin_ns))));
    }
    if let (Some(begin_ns), Some(end_ns)) = (options.from, options.to) {
        let title = format!("everything from {} to {} ns", grouped(begin_ns), grouped(end_ns));
        return Ok((Span::Window { begin_ns, end_ns }, title));
    }
    // What is found is only known when it is read.
    Ok((Span::Operation { region: options.region.clone(), nth: options.nth }, String::new()))
}

/// `operation 2 in region tcp_rr`, or that there is none to tell from the others.
fn of_operation(operation: Operation, recording: &Recording, nth: u64) -> String {
    let region = recording.regions.get(operation.region as usize).map_or("?", |region| &region.name);
    let same = recording.regions.iter().filter(|other| other.name == region).count();
    match (operation.marked, same) {
        (true, _) => format!("operation {} in region {region}", grouped(nth)),
        (false, _) if nth > 1 => {
            format!("region {region}: all of the one after {} marked operations", grouped(nth - 1))
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

/// Names of the inline points, from what the recorder was asked for: `function+offset`.
fn points(dir: &Path, tables: &Tables) -> Vec<String> {
    let named = std::fs::read(dir.join(RUN).join(POINTS)).ok();
    if let Some(names) = named.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return names;
    }
    let read = std::fs::read(dir.join(RUN).join(files::SPEC)).ok();
    let spec = read.and_then(|bytes| serde_json::from_slice::<RecorderSpec>(&bytes).ok());
    let name = |address: u64| {
        let within = |start: u64, size: u64| start <= address && address - start < size.max(1);
        let kernel = tables.symbols.iter().filter(|symbol| symbol.module.is_none());
        let found = kernel.into_iter().find(|symbol| within(symbol.address.get(), symbol.size));
        found.map_or_else(
            || format!("{address:#x}"),
            |symbol| format!("{}+{:#x}", symbol.name, address - symbol.address.get()),
        )
    };
    spec.map(|spec| spec.points.into_iter().map(name).collect()).unwrap_or_default()
}
