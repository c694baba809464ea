//! Calls and inline points of a recording.

use crate::exit::Failure;
use kerntune_analyze::path::{collect, PathSelection, PathSpan};
use kerntune_analyze::TraceFile;
use kerntune_profile::{Profile, Tables};
use kerntune_report::names;
use kerntune_report::path::{text, typical, PathView};
use kerntune_table::Style;
use kerntune_trace::{files, RecorderSpec};
use kerntune_tune::run_files::{RunFiles, POINTS, RUN};
use std::path::Path;

/// Formats a call of `function` with the median time, in the regions of one name, as text without
/// colors.
///
/// # Errors
/// A function or region that the profile does not have; a trace that is missing or damaged.
pub fn typical_path(
    directory: &Path,
    profile: &Profile,
    function: &str,
    region: Option<&str>,
) -> Result<String, Failure> {
    let files = RunFiles::open(directory)?;
    let picked =
        typical(profile, names::function(&profile.tables, function).map_err(Failure::usage)?, region)?;
    let selection = PathSelection {
        span: PathSpan::Call(picked.start),
        thread: None,
        all: false,
        depth: None,
        limit: 1_000_000,
    };
    let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
    let path = collect(&trace, profile.tables.symbols.len(), &selection)?;
    let points = points(directory, &profile.tables);
    let title = format!("{function}: {}", picked.why);
    let shown = PathView {
        profile,
        recording: &files.recording,
        path: &path,
        points: &points,
        title: &title,
        fold: true,
    };
    Ok(text(&shown, Style::PLAIN))
}

/// Returns the names of the inline points: from the file of names, or else as `function+offset`
/// from the addresses given to the recorder.
pub fn points(dir: &Path, tables: &Tables) -> Vec<String> {
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
