//! What the page of a profile is made of beside its tables: the trace, in a file as far as it fits, or in a server.

use crate::exit::Failure;
use crate::output::Output;
use kerntune_analyze::timeline::{detail, overview};
use kerntune_analyze::TraceFile;
use kerntune_profile::Profile;
use kerntune_report::html::profile::{windows, Embedded, Place, Timeline, BINS};
use kerntune_trace::{Recording, Region};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;
use std::path::Path;

/// Who wrote a page.
pub const WRITTEN: &str = concat!("kerntune ", env!("CARGO_PKG_VERSION"));

/// The trace beside a profile; a profile without one has a page without a timeline.
pub fn run_files(directory: &Path) -> Result<Option<RunFiles>, Failure> {
    match RunFiles::open(directory) {
        Ok(files) => Ok(Some(files)),
        Err(kerntune_tune::Error::NoTrace { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the timeline. `room` is how many bytes of the trace may go on the page; none if a server has it.
pub fn timeline<'a>(
    files: &'a RunFiles,
    profile: &Profile,
    region: Option<&str>,
    room: Option<u64>,
    output: &Output,
) -> Result<Timeline<'a>, Failure> {
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
    output: &Output,
) -> Result<Timeline<'a>, kerntune_analyze::Error> {
    let trace = TraceFile::open(&files.trace, &files.recording)?;
    let overview = overview(&trace, BINS, &mut |events| watch::at(output.progress(), events))?;
    let places = places(&trace, profile, region)?;
    let chunks = match room {
        Some(room) => embedded(&trace, region, &places, room)?,
        None => vec![Embedded::Served; trace.chunks()],
    };
    Ok(Timeline { recording: &files.recording, wide: trace.wide, overview, places, chunks })
}

/// Where to go to, and how far each goes.
pub fn places(
    trace: &TraceFile<'_>,
    profile: &Profile,
    region: Option<&str>,
) -> Result<Vec<Place>, kerntune_analyze::Error> {
    let mut places = Vec::new();
    for choice in windows(profile, region) {
        let found = detail(trace, &choice.window)?;
        if found.end > found.begin {
            let (label, function) = (choice.label, choice.function);
            places.push(Place { label, function, begin: found.begin, end: found.end });
        }
    }
    Ok(places)
}

/// The chunks of the regions that are shown: all of them if there is room, else those of the places, as long as there is.
fn embedded(
    trace: &TraceFile<'_>,
    region: Option<&str>,
    places: &[Place],
    room: u64,
) -> Result<Vec<Embedded>, kerntune_analyze::Error> {
    let Recording { chunks, regions, .. } = trace.recording;
    let is_wanted = |begin: u64, end: u64| {
        let touches = |of: &Region| of.begin_ns <= end && begin <= of.begin_ns.saturating_add(of.elapsed_ns);
        region.is_none_or(|name| regions.iter().any(|of| of.name == name && touches(of)))
    };
    let mut out = Vec::with_capacity(chunks.len());
    let mut size = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        out.push(match is_wanted(chunk.begin_ns, chunk.end_ns) {
            true => Embedded::Here(trace.chunk_bytes(at)?),
            false => Embedded::Elsewhere,
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
        if !kept && matches!(chunk, Embedded::Here(_)) {
            *chunk = Embedded::LeftOut;
        }
    }
    Ok(out)
}

fn bytes(chunk: Option<&Embedded>) -> u64 {
    match chunk {
        Some(Embedded::Here(bytes)) => bytes.len() as u64,
        _ => 0,
    }
}
