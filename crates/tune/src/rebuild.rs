//! A recording's trace, analysed again.

use crate::record::UNREAD_IO;
use crate::run_files::{RunFiles, POINTS, RUN};
use crate::{watch, Result};
use kerntune_analyze::{analyze, Input, Missing};
use kerntune_profile::{FunctionIndex, Manifest, Profile, Tables, ROOM};
use kerntune_trace::files;
use kerntune_work::{interrupt, IoContext, Key, Progress, WorkDir};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A profile made again from its trace.
pub struct Rebuilt {
    /// Its directory.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Chunks of the trace that are not in it.
    pub missing: Vec<Missing>,
}

/// Analyses the trace of the profile in `directory` again and keeps the result as a profile of its
/// own beside it. With `partial`, damaged chunks are left out, and the result says so; without, they
/// are an error. Executed edges and blocks are taken over.
pub fn rebuild(work: &WorkDir, directory: &Path, partial: bool, progress: &dyn Progress) -> Result<Rebuilt> {
    let old = Profile::load(directory)?;
    let run = RunFiles::open(directory)?;
    let key = Key::new("rebuilt/2", crate::CODE)
        .field("profile", &old.manifest.id)
        .field("partial", partial.to_string())
        .file("trace", &directory.join(RUN).join(files::TRACE))?;
    let id = key.id();
    let staged = work.stage(ROOM, &key)?;
    staged.clear()?;
    let points = points(directory, &old)?;
    let objects = locks(&old);
    let input = Input {
        partial,
        points: &points,
        objects: &objects,
        ..Input::new(&run.trace, &run.recording, &old.tables.symbols)
    };
    progress.begin("analysing the trace", Some(run.recording.events));
    let analysis = analyze(&input, &mut |done| watch::at(progress, done));
    progress.end();
    interrupt::check()?;
    let analysis = analysis?;
    let missing = analysis.missing.clone();
    let mut manifest = Manifest { id, health: Default::default(), ..old.manifest.clone() };
    manifest.sources.push(format!("the trace of profile {}, analysed again", old.manifest.id));
    for chunk in &missing {
        let Missing { chunk, begin_ns, end_ns, events, reason } = chunk;
        let line = format!("missing: chunk {chunk}, {begin_ns} to {end_ns} ns, {events} events: {reason}");
        manifest.sources.push(line);
    }
    let mut tables = analysis.describe(&mut manifest);
    take_over(&mut tables, old.tables);
    if let Some(unread) = old.manifest.health.get(UNREAD_IO) {
        manifest.health.insert(UNREAD_IO.into(), *unread);
    }
    let manifest = Profile { manifest, tables }.save(staged.path())?;
    let (from, to) = (directory.join(RUN), staged.path().join(RUN));
    fs::create_dir(&to).at("create", &to)?;
    for name in [files::TRACE, files::RECORDING, POINTS] {
        // The same bytes under a second name: traces are large and never written again.
        match fs::hard_link(from.join(name), to.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.at("link", to.join(name))?,
        }
    }
    Ok(Rebuilt { path: staged.publish()?, manifest, missing })
}

/// What is not in a trace: the recorder's own counts.
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

/// The names of locks, which the kernel had told.
fn locks(old: &Profile) -> Vec<(u64, u64, String)> {
    let named = old.tables.locks.iter().filter(|row| !row.name.is_empty());
    let mut locks: Vec<_> = named.map(|row| (row.address.0, 1, row.name.clone())).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// The inline points of the recording, in the order of their numbers.
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
