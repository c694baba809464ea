//! Timeline of a profile's HTML page, read from the trace. A file embeds as much of the trace as
//! fits; a server serves all of it.

use kerntune_analyze::timeline::{detail, overview};
use kerntune_analyze::TraceFile;
use kerntune_command::{CliOutput, Failure};
use kerntune_profile::Profile;
use kerntune_report::html::profile::{windows, ChunkStorage, TimelinePlace, TraceTimeline, BINS};
use kerntune_trace::{RecordedRegion, Recording};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;
use std::path::Path;

/// Program and version, as a page names its creator.
pub const WRITTEN: &str = concat!("kerntune ", env!("CARGO_PKG_VERSION"));

/// Opens the trace of a profile; `None` if the profile has none, and its page then has no timeline.
pub fn run_files(directory: &Path) -> Result<Option<RunFiles>, Failure> {
    match RunFiles::open(directory) {
        Ok(files) => Ok(Some(files)),
        Err(kerntune_tune::Error::NoTrace { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the timeline. `room` is the number of bytes of trace to embed in the page; `None` for a
/// server.
pub fn timeline<'a>(
    files: &'a RunFiles,
    profile: &Profile,
    region: Option<&str>,
    room: Option<u64>,
    output: &CliOutput,
) -> Result<TraceTimeline<'a>, Failure> {
    output.progress().begin("reading the trace", Some(files.recording.events));
    let timeline = read(files, profile, region, room, output);
    output.progress().end();
    interrupt::check()?;
    Ok(timeline.map_err(kerntune_tune::Error::from)?)
}

fn read<'a>(
    files: &'a RunFiles,
    profile: &Profile,
    region: Option<&str>,
    room: Option<u64>,
    output: &CliOutput,
) -> Result<TraceTimeline<'a>, kerntune_analyze::Error> {
    let trace = TraceFile::open(&files.trace, &files.recording)?;
    let overview = overview(&trace, BINS, &mut |events| watch::report(output.progress(), events))?;
    let places = places(&trace, profile, region)?;
    let chunks = match room {
        Some(room) => embedded(&trace, region, &places, room)?,
        None => vec![ChunkStorage::Served; trace.chunks()],
    };
    Ok(TraceTimeline { recording: &files.recording, wide: trace.wide, overview, places, chunks })
}

/// Returns the places of interest that the page links to, each with its begin and end.
pub fn places(
    trace: &TraceFile<'_>,
    profile: &Profile,
    region: Option<&str>,
) -> Result<Vec<TimelinePlace>, kerntune_analyze::Error> {
    let mut places = Vec::new();
    for choice in windows(profile, region) {
        let found = detail(trace, &choice.window)?;
        if found.end > found.begin {
            let (label, function) = (choice.label, choice.function);
            places.push(TimelinePlace { label, function, begin: found.begin, end: found.end });
        }
    }
    Ok(places)
}

/// Chooses the chunks to embed: all chunks of the shown regions if they fit into `room`, otherwise
/// those of the places in order, while they fit.
fn embedded(
    trace: &TraceFile<'_>,
    region: Option<&str>,
    places: &[TimelinePlace],
    room: u64,
) -> Result<Vec<ChunkStorage>, kerntune_analyze::Error> {
    let Recording { chunks, regions, .. } = trace.recording;
    let is_wanted = |begin: u64, end: u64| {
        let touches =
            |of: &RecordedRegion| of.begin_ns <= end && begin <= of.begin_ns.saturating_add(of.elapsed_ns);
        region.is_none_or(|name| regions.iter().any(|of| of.name == name && touches(of)))
    };
    let mut out = Vec::with_capacity(chunks.len());
    let mut size = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        out.push(match is_wanted(chunk.begin_ns, chunk.end_ns) {
            true => ChunkStorage::Here(trace.chunk_bytes(at)?),
            false => ChunkStorage::Elsewhere,
        });
        size += bytes(out.last());
    }
    if size <= room {
        return Ok(out);
    }
    let mut kept = vec![false; out.len()];
    let mut size = 0;
    for place in places {
        for at in trace.covering(place.begin, place.end) {
            let more = bytes(out.get(at));
            if let Some(kept) = kept.get_mut(at).filter(|kept| !**kept && size + more <= room) {
                (*kept, size) = (true, size + more);
            }
        }
    }
    for (chunk, kept) in out.iter_mut().zip(kept) {
        if !kept && matches!(chunk, ChunkStorage::Here(_)) {
            *chunk = ChunkStorage::LeftOut;
        }
    }
    Ok(out)
}

fn bytes(chunk: Option<&ChunkStorage>) -> u64 {
    match chunk {
        Some(ChunkStorage::Here(bytes)) => bytes.len() as u64,
        _ => 0,
    }
}
