//! Repeated analysis of the trace of a recording.

use crate::runs::run_files::{RunFiles, POINTS, RUN};
use crate::runs::watch;
use crate::Result;
use kerntune_analyze::{analyze, AnalysisInput, MissingChunk};
use kerntune_profile::{Anomaly, FunctionIndex, Manifest, Profile, Tables, KIND};
use kerntune_trace::files;
use kerntune_work::{interrupt, IoContext, Key, Progress, WorkDir};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A profile that was made again from its trace.
pub struct RebuiltProfile {
    /// Directory of the new profile.
    pub path: PathBuf,
    /// Manifest of the new profile.
    pub manifest: Manifest,
    /// Damaged chunks of the trace that are missing in the profile.
    pub missing: Vec<MissingChunk>,
}

/// Analyzes the trace of the profile in `directory` again and keeps the result as a new profile.
/// With `partial`, damaged chunks are left out and listed in the manifest; without it they are an
/// error. Tables of executed edges and blocks are copied.
pub fn rebuild(
    work: &WorkDir,
    directory: &Path,
    partial: bool,
    progress: &dyn Progress,
) -> Result<RebuiltProfile> {
    let old = Profile::load(directory)?;
    let run = RunFiles::open(directory)?;
    let key = Key::new("rebuilt/2", crate::CODE)
        .field("profile", &old.manifest.id)
        .field("partial", partial.to_string())
        .file("trace", &directory.join(RUN).join(files::TRACE))?;
    let id = key.id();
    let staged = work.stage(KIND, &key)?;
    staged.clear()?;
    let points = points(directory, &old)?;
    let objects = locks(&old);
    let input = AnalysisInput {
        partial,
        points: &points,
        objects: &objects,
        ..AnalysisInput::new(&run.trace, &run.recording, &old.tables.symbols)
    };
    progress.begin("analyzing the trace", Some(run.recording.events));
    let analysis = analyze(&input, &mut |done| watch::report(progress, done));
    progress.end();
    interrupt::check()?;
    let analysis = analysis?;
    let missing = analysis.missing.clone();
    let mut manifest = Manifest { id, health: Default::default(), ..old.manifest.clone() };
    manifest.sources.push(format!("the trace of profile {}, analyzed again", old.manifest.id));
    for chunk in &missing {
        let MissingChunk { chunk, begin_ns, end_ns, events, reason } = chunk;
        let line = format!("missing: chunk {chunk}, {begin_ns} to {end_ns} ns, {events} events: {reason}");
        manifest.sources.push(line);
    }
    let mut tables = analysis.describe(&mut manifest);
    take_over(&mut tables, old.tables);
    // The trace does not show these.
    for kept in [Anomaly::UnreadIo, Anomaly::HostDisks] {
        let count = old.manifest.anomaly(kept);
        if count > 0 {
            manifest.set_anomaly(kept, count);
        }
    }
    let manifest = Profile { manifest, tables }.save(staged.path())?;
    let (from, to) = (directory.join(RUN), staged.path().join(RUN));
    fs::create_dir(&to).at("create", &to)?;
    for name in [files::TRACE, files::RECORDING, POINTS] {
        // Hard links: traces are large and never modified.
        match fs::hard_link(from.join(name), to.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.at("link", to.join(name))?,
        }
    }
    Ok(RebuiltProfile { path: staged.publish()?, manifest, missing })
}

/// Copies the tables that do not come from the trace: the recorder's own counts.
fn take_over(tables: &mut Tables, old: Tables) {
    tables.edges = old.edges;
    tables.blocks = old.blocks;
    tables.data_accesses = old.data_accesses;
    tables.data_paths = old.data_paths;
    tables.data_places = old.data_places;
    tables.shared_lines = old.shared_lines;
    tables.page_accesses = old.page_accesses;
    tables.footprints = old.footprints;
    tables.data_tlbs = old.data_tlbs;
    tables.io_requests = old.io_requests;
    tables.packets = old.packets;
    tables.distributions = old.distributions;
}

/// Returns the names of locks that the old profile has.
fn locks(old: &Profile) -> Vec<(u64, u64, String)> {
    let named = old.tables.locks.iter().filter(|row| !row.name.is_empty());
    let mut locks: Vec<_> = named.map(|row| (row.address.0, 1, row.name.clone())).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Returns the inline points of the recording, in the order of their numbers.
fn points(directory: &Path, old: &Profile) -> Result<Vec<(String, FunctionIndex)>> {
    let path = directory.join(RUN).join(POINTS);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.at("read", &path)?,
    };
    let names: Vec<String> =
        serde_json::from_slice(&bytes).map_err(|source| kerntune_work::Error::Json { path, source })?;
    let function = |name: &String| {
        let row = old.tables.points.iter().find(|row| row.point == *name);
        row.map_or(FunctionIndex::NONE, |row| row.function)
    };
    Ok(names.into_iter().map(|name| (name.clone(), function(&name))).collect())
}
