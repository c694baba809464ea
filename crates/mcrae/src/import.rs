//! Import of a dump of McRae's profiler as a profile with a trace, like a recording.

use crate::{
    guess_format, replay_records, DumpByteOrder, DumpError, DumpRecord, Error, ImportedDump, RecordReader,
    ReplayAnomalies, ReplayError, Result, StreamFormat, TagKind, TagNames, CODE, FULL,
};
use kerntune_analyze::AnalysisInput;
use kerntune_guest::read_text;
use kerntune_kernel::{Kernel, TriggerKind, Triggers};
use kerntune_profile::{
    load_manifest, rfc3339, Address, FunctionIndex, KernelId, Manifest, Profile, RunPurpose, Symbol, KIND,
};
use kerntune_trace::{files, TagLayout};
use kerntune_tune::record::RecordedProfile;
use kerntune_tune::run_files::{POINTS, RUN};
use kerntune_tune::watch;
use kerntune_work::{interrupt, write_json, ContentHash, IoContext, Key, Progress, WorkDir};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of this machine in manifests and tables.
pub const MACHINE: &str = "mcrae";

/// Dump to import, with its names and format.
#[derive(Debug, Clone, Copy)]
pub struct McraeImportRequest<'a> {
    /// Names files. If empty, the names are those of the kernel's own triggers.
    pub names: &'a [PathBuf],
    /// Path of the dump.
    pub dump: &'a Path,
    /// Format of the dump; guessed if `None`.
    pub form: Option<StreamFormat>,
    /// Byte order, if the dump turns out to be binary records.
    pub order: DumpByteOrder,
    /// Widths of tags and times, and the length of a tick.
    pub layout: TagLayout,
    /// Maximum number of records to read: a buffer that was not full ends with old records.
    pub records: Option<usize>,
    /// Kernel that ran, if available: gives the source files of functions.
    pub kernel: Option<&'a Kernel>,
}

/// Imported profile and anomalies of the dump.
#[derive(Debug)]
pub struct McraeImport {
    /// The profile.
    pub recorded: RecordedProfile,
    /// Number of records in the dump.
    pub records: u64,
    /// Anomalies in the dump.
    pub troubles: ReplayAnomalies,
    /// Layout of the records.
    pub layout: TagLayout,
}

impl McraeImport {
    /// Describes the anomalies for readers of the profile.
    pub fn notes(&self) -> Vec<String> {
        let troubles = &self.troubles;
        let mut notes = Vec::new();
        if self.records == FULL as u64 && self.layout == TagLayout::MCRAE {
            notes.push(format!(
                "{FULL} records fill the profiler's memory: what came after them is not there"
            ));
        }
        if !troubles.unknown_tags.is_empty() {
            let mut tags: Vec<_> = troubles.unknown_tags.iter().collect();
            tags.sort_by_key(|&(tag, count)| (std::cmp::Reverse(*count), *tag));
            let total: u64 = troubles.unknown_tags.values().sum();
            let shown: Vec<String> =
                tags.iter().take(5).map(|(tag, count)| format!("{tag} ({count} times)")).collect();
            let more = if tags.len() > 5 { format!(" and {} more", tags.len() - 5) } else { String::new() };
            notes.push(format!(
                "{total} records have a tag that no names file has: {}{more}",
                shown.join(", ")
            ));
        }
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        say(troubles.unmatched_exits, "exits of functions that were not open were passed over");
        say(troubles.unwound_calls, "calls have no exit and end with the function that made them");
        say(troubles.repeated_switches, "context switches within another one were passed over");
        say(
            troubles.uncertain_switches,
            "context switches do not tell for sure which process goes on: the one that waited longest was taken",
        );
        if let Some(round) = self.layout.round_ns().filter(|round| troubles.longest_gap_ns > round / 2) {
            notes.push(format!(
                "{} pass between two records: the timer begins again after {}, and whole rounds are not seen",
                seconds(troubles.longest_gap_ns),
                seconds(round)
            ));
        }
        notes
    }
}

/// Formats a time: seconds, or of a fast clock microseconds.
fn seconds(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Writes the names of a kernel's triggers as a names file.
pub fn triggers_as_names(triggers: &Triggers) -> String {
    let mut text =
        String::from("# Written by kerntune: the tags that the linker gave to the functions of one kernel\n");
    for trigger in &triggers.all {
        let kind = match trigger.kind {
            TriggerKind::Function => TagKind::Function,
            TriggerKind::ContextSwitch => TagKind::ContextSwitch,
            TriggerKind::Idle => TagKind::Idle,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}/{}{}", trigger.name, trigger.tag, kind.modifier());
    }
    text
}

/// Loads the triggers that the compiler placed in an image.
///
/// # Errors
/// An image that cannot be read or has none.
pub fn load_triggers(image: &Path) -> Result<Triggers> {
    let missing = || kerntune_tune::Error::NoTriggers { image: image.to_owned() };
    Ok(Triggers::load(image)?.ok_or_else(missing)?)
}

/// Opens the dump at its first record.
fn open(
    request: &McraeImportRequest,
    form: StreamFormat,
) -> io::Result<impl Iterator<Item = io::Result<DumpRecord>>> {
    let records = RecordReader::new(BufReader::new(File::open(request.dump)?), form, request.layout);
    Ok(records.take(request.records.unwrap_or(usize::MAX)))
}

/// Converts the dump to a trace, written to `out`.
fn replayed<W: Write>(
    names: &TagNames,
    request: &McraeImportRequest,
    form: StreamFormat,
    out: W,
) -> Result<ImportedDump<W>> {
    replay_records(names, request.layout, || open(request, form), out)
        .map_err(|error| dump_error(request, error))
}

/// Converts the error of a replay; a malformed record is reported as an error of the dump.
fn dump_error(request: &McraeImportRequest, error: ReplayError) -> Error {
    let dump = request.dump.to_owned();
    match error {
        ReplayError::Empty => Error::Dump { dump, source: DumpError::Empty },
        ReplayError::Write(error) if error.get_ref().is_some_and(|inner| inner.is::<DumpError>()) => {
            let inner = error.into_inner().and_then(|inner| inner.downcast().ok());
            Error::Dump { dump, source: inner.map_or(DumpError::Empty, |inner| *inner) }
        }
        source => Error::Replay { dump, source },
    }
}

/// Imports a dump, or returns the existing profile of the same files. Memory does not grow with the
/// dump, except for the lookahead of a context switch.
///
/// # Errors
/// Unusable names or dumps, or names and dumps that do not belong together.
pub fn import(work: &WorkDir, request: &McraeImportRequest, progress: &dyn Progress) -> Result<McraeImport> {
    let texts = texts(request.names, request.kernel)?;
    let names = parsed(&texts, request.layout)?;
    if !request.dump.metadata().at("read dump", request.dump)?.is_file() {
        let source =
            io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file (--follow reads others)");
        return Err(
            kerntune_work::Error::Io { action: "read dump", path: request.dump.to_owned(), source }.into()
        );
    }
    let form = match request.form {
        Some(form) => form,
        None => File::open(request.dump)
            .and_then(|file| guess_format(file, request.order))
            .at("read", request.dump)?,
    };
    let key = name(request, form, &texts)?;
    let id = key.id();

    let staged = work.stage(KIND, &key)?;
    if let Some(done) = staged.already() {
        let imported = replayed(&names, request, form, io::sink())?;
        let recorded = RecordedProfile { manifest: load_manifest(&done)?, path: done };
        let ImportedDump { records, troubles, .. } = imported;
        return Ok(McraeImport { recorded, records, troubles, layout: request.layout });
    }
    staged.clear()?;
    let run = staged.path().join(RUN);
    fs::create_dir(&run).at("create", &run)?;
    let path = run.join(files::TRACE);
    let out = BufWriter::new(File::create(&path).at("create", &path)?);
    let mut imported = replayed(&names, request, form, out)?;
    imported.trace.flush().at("write", &path)?;
    write_json(&run.join(files::RECORDING), &imported.recording)?;
    write_json(&run.join(POINTS), &imported.points)?;
    let profile = analyze(&id, request, &names, &imported, &path, progress)?;
    let manifest = profile.save(staged.path())?;
    Ok(McraeImport {
        recorded: RecordedProfile { path: staged.publish()?, manifest },
        records: imported.records,
        troubles: imported.troubles,
        layout: request.layout,
    })
}

/// Reads the names files, or generates them from the kernel's triggers.
fn texts(names: &[PathBuf], kernel: Option<&Kernel>) -> Result<Vec<(String, String)>> {
    if let ([], Some(kernel)) = (names, kernel) {
        let image = kernel.vmlinux();
        let triggers = load_triggers(&image)?;
        return Ok(vec![(format!("triggers of {}", kernel.manifest.label), triggers_as_names(&triggers))]);
    }
    let text = |path: &PathBuf| Ok((path.display().to_string(), read_text("read names file", path)?));
    names.iter().map(text).collect()
}

fn parsed(texts: &[(String, String)], layout: TagLayout) -> Result<TagNames> {
    let names = TagNames::parse(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))?;
    names.check_width(layout)?;
    Ok(names)
}

/// Loads names files, or the names of a kernel's own triggers if there are none.
///
/// # Errors
/// Unusable names, or tags that records of this layout cannot hold.
pub fn load_names(names: &[PathBuf], kernel: Option<&Kernel>, layout: TagLayout) -> Result<TagNames> {
    parsed(&texts(names, kernel)?, layout)
}

/// Returns the profile's key: everything that affects its content.
fn name(request: &McraeImportRequest, form: StreamFormat, texts: &[(String, String)]) -> Result<Key> {
    let mut hash = Key::new("mcrae/4", CODE);
    for (_, text) in texts {
        hash = hash.field("names", text);
    }
    Ok(hash
        .file("dump", request.dump)?
        .field("form", form.name())
        .value("layout", &request.layout)?
        .value("records", &request.records)?
        .field("workload", workload(request.dump))
        .field("kernel", request.kernel.map_or("", |kernel| &kernel.manifest.id)))
}

/// Returns the dump's file name.
fn workload(dump: &Path) -> String {
    dump.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn analyze<W>(
    id: &str,
    request: &McraeImportRequest,
    names: &TagNames,
    imported: &ImportedDump<W>,
    trace: &Path,
    progress: &dyn Progress,
) -> Result<Profile> {
    let symbols = symbols(imported, request.kernel)?;
    let within = |function: Option<u32>| function.map_or(FunctionIndex::NONE, FunctionIndex);
    let points: Vec<(String, FunctionIndex)> = imported
        .points
        .iter()
        .zip(&imported.functions_of_points)
        .map(|(name, function)| (name.clone(), within(*function)))
        .collect();
    let file = File::open(trace).at("open", trace)?;
    progress.begin("analyzing the dump", Some(imported.recording.events));
    let input = AnalysisInput { points: &points, ..AnalysisInput::new(&file, &imported.recording, &symbols) };
    let analysis = kerntune_analyze::analyze(&input, &mut |done| watch::report(progress, done));
    progress.end();
    interrupt::check()?;
    let kernel = match request.kernel.map(|kernel| &kernel.manifest) {
        Some(m) => KernelId { id: m.id.clone(), label: m.label.clone(), version: m.version.clone() },
        None => KernelId {
            id: hash_of(request.names)?,
            label: workload(&request.names[0]),
            version: String::new(),
        },
    };
    let mut manifest = Manifest::new(id, kernel, workload(request.dump), MACHINE);
    manifest.run = RunPurpose::Measured;
    manifest.recorded = rfc3339(SystemTime::now());
    manifest.capture = kerntune_profile::CaptureSummary { functions: true, ..Default::default() };
    manifest.health.extend(imported.troubles.health());
    if request.names.is_empty() {
        manifest.sources.push("names: the kernel's own triggers".into());
    }
    for path in request.names.iter().map(PathBuf::as_path).chain([request.dump]) {
        let hash = ContentHash::new("file/1").file("content", path)?.finish();
        let what = if path == request.dump { "dump" } else { "names" };
        manifest.sources.push(format!("{what} {} ({hash})", path.display()));
    }
    let switches = names.all().iter().filter(|name| name.kind == TagKind::ContextSwitch);
    let switches: Vec<&str> = switches.map(|name| name.name.as_str()).collect();
    if !switches.is_empty() {
        manifest.sources.push(format!("context switch: {}", switches.join(", ")));
    }
    let tables = analysis?.describe(&mut manifest);
    Ok(Profile { manifest, tables })
}

fn hash_of(files: &[PathBuf]) -> Result<String> {
    let mut hash = ContentHash::new("names/1");
    for path in files {
        hash = hash.file("names", path)?;
    }
    Ok(hash.finish())
}

/// Returns the functions as symbols. The address of a function is its tag.
fn symbols<W>(imported: &ImportedDump<W>, kernel: Option<&Kernel>) -> Result<Vec<Symbol>> {
    let mut sources = HashMap::new();
    if let Some(kernel) = kernel {
        for function in kernel.symbols()?.functions() {
            sources.entry(function.name.clone()).or_insert_with(|| function.file.clone());
        }
    }
    let known = imported.functions.iter().map(|(name, tag)| (name.clone(), *tag, 2));
    let unknown = ("[unknown code]".to_owned(), 0, 0);
    Ok((0..)
        .zip(known.chain([unknown]))
        .map(|(at, (name, address, size))| Symbol {
            function: FunctionIndex(at),
            file: sources.get(&name).cloned().flatten(),
            name,
            address: Address(address),
            size,
            module: None,
        })
        .collect())
}
