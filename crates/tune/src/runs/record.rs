//! Recording: one run on the exact machine → a profile.

use crate::parallel::run_parallel;
use crate::runs::detail::{self, DetailRequest, ResolvedDetail, UNKNOWN};
use crate::runs::model::Model;
use crate::runs::outputs;
use crate::runs::run_files::{keep_wall_seconds, POINTS, RUN};
use crate::runs::watch;
use crate::{Error, Result, Session};
use kerntune_analyze::{AnalysisInput, DataInput, ReadAt};
use kerntune_compare::Measurement;
use kerntune_guest::{CollectOptions, Disk, GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_layout::FrontEndConfig;
use kerntune_machine::{read_recording, CaptureRequest, RunOutcome, RunRequest};
use kerntune_profile::{
    load_manifest, rfc3339, Address, Anomaly, FunctionIndex, KernelId, Manifest, Profile, RunPurpose, Symbol,
    KIND,
};
use kerntune_trace::data::DataLocation;
use kerntune_trace::loaded::LoadedFunction;
use kerntune_trace::Recording;
use kerntune_work::{interrupt, write_json, ContentHash, IoContext, Key, Progress};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Name of this machine in manifests and tables.
pub const MACHINE: &str = "emulator";

/// Events to capture. Instructions are always counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Entry and exit of every function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
}

impl CaptureOptions {
    /// Adds every field to a key.
    pub(crate) fn add_to_key(self, key: Key) -> Key {
        let Self { functions, edges } = self;
        key.field("capture", format!("{functions} {edges}"))
    }
}

/// Selection among repeated runs of the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// Run with this number, which is found if it was recorded before.
    Number(u32),
    /// A new run.
    Another,
}

/// Kernel, workload and capture of a recording.
#[derive(Debug, Clone, Copy)]
pub struct RecordRequest<'a> {
    /// Kernel to boot.
    pub kernel: &'a Kernel,
    /// Workload to run.
    pub workload: &'a Workload,
    /// Name of the workload's run, such as `measured`.
    pub run: &'a str,
    /// Events to capture.
    pub capture: CaptureOptions,
    /// Front-end model to simulate during the run.
    pub model: Option<&'a Model>,
    /// Selection among repeated runs.
    pub repeat: Repetition,
}

/// A profile in the work directory.
#[derive(Debug, Clone)]
pub struct RecordedProfile {
    /// Directory of the profile.
    pub path: PathBuf,
    /// Manifest of the profile.
    pub manifest: Manifest,
}

impl RecordedProfile {
    /// Loads the profile's exact counters.
    pub fn measurement(&self) -> Result<Measurement> {
        Ok(Measurement::from_profile(&Profile::load(&self.path)?)?)
    }
}

/// Returns the request for exact counters of the measured run without events. It takes half the
/// time; its profile has no calls to explore.
pub(crate) fn counters_request<'a>(
    kernel: &'a Kernel,
    workload: &'a Workload,
    model: &'a Model,
) -> RecordRequest<'a> {
    let capture = CaptureOptions { functions: false, edges: true };
    let (run, repeat) = ("measured", Repetition::Number(0));
    RecordRequest { kernel, workload, run, capture, model: Some(model), repeat }
}

/// Makes independent recordings, in the order of the requests. As many run at a time as processors
/// and memory for guests allow.
///
/// # Errors
/// As [`record`]. Recordings before a failure are kept.
pub fn record_all(session: &Session, requests: &[RecordRequest]) -> Result<Vec<RecordedProfile>> {
    let memory_mb = requests.iter().map(|request| request.workload.memory_mb).max().unwrap_or_default();
    run_parallel(session, memory_mb, requests, record)
}

/// Records a run, or returns the existing recording. The trace and the guest's output are kept
/// beside the profile's tables, in `run/`.
pub fn record(session: &Session, request: &RecordRequest) -> Result<RecordedProfile> {
    record_in_detail(session, request, &DetailRequest::default())
}

/// Records a run as [`record`] does, with more or fewer events than those of every kernel function.
pub fn record_in_detail(
    session: &Session,
    request: &RecordRequest,
    asked: &DetailRequest,
) -> Result<RecordedProfile> {
    request.workload.require_run(request.run)?;
    if request.workload.disk.as_ref().is_some_and(|disk| !disk.repeats()) {
        session.progress.note(&format!(
            "warning: the disk of workload {} is a file of the host (virtio): none of its figures repeats (docs/disk.md)",
            request.workload.name
        ));
    }
    let image = match asked.proc {
        true => session.image_on(request.kernel, &Workload { proc: true, ..request.workload.clone() })?,
        false => session.image_on(request.kernel, request.workload)?,
    };
    let (functions, model) = (request.capture.functions, request.model.is_some());
    let mut detail = asked.resolve(session, request.kernel, (request.workload, &image), functions, model)?;
    if functions {
        detail.find_io_structures(session, request.kernel)?;
    }
    let (first, may_find) = match request.repeat {
        Repetition::Number(number) => (number, true),
        Repetition::Another => (0, false),
    };
    let mut number = first;
    let (id, staged) = loop {
        let key = name(session, request, &detail, &image, number)?;
        let id = key.id();
        if may_find || session.work.find(KIND, &id).is_none() {
            let staged = session.work.stage(KIND, &key)?;
            match staged.already() {
                Some(done) if may_find => {
                    // The workload's checks of the output may be newer than the recording.
                    outputs::of_recording(request.workload, request.run, &done)?;
                    return Ok(RecordedProfile { manifest: load_manifest(&done)?, path: done });
                }
                Some(_) => {} // another process was faster
                None => break (id, staged),
            }
        }
        number += 1;
    };
    staged.clear()?;
    let run = staged.path().join(RUN);
    fs::create_dir(&run).at("create", &run)?;
    let began = Instant::now();
    let expected_ns = earlier_end(session, request, &detail, &image, number);
    let outcome = boot(session, request, &detail, asked.proc, &image, &run, expected_ns)?;
    outputs::judge(request.workload, request.run, &outcome.guest_files)?;
    let mut profile = analyze(&id, request, &detail, &outcome, session.progress)?;
    profile.manifest.emulator = session.machine.emulator()?;
    if !detail.points().is_empty() {
        let names: Vec<String> = detail.points().into_iter().map(|(name, _)| name).collect();
        write_json(&run.join(POINTS), &names)?;
    }
    detail::tell_unseen(&detail, &profile.tables, session.progress);
    keep_wall_seconds(&run, began)?;
    let manifest = profile.save(staged.path())?;
    let files = [
        kerntune_trace::files::SPEC,
        kerntune_trace::files::COUNTS,
        kerntune_trace::files::DATA,
        kerntune_trace::files::IO,
        kerntune_trace::files::LOADED,
    ];
    for bulky in files {
        // These files are derived from the kernel, or contained in the tables.
        let _ = fs::remove_file(run.join(bulky));
    }
    Ok(RecordedProfile { path: staged.publish()?, manifest })
}

/// Returns the recording's key: everything that affects its content.
fn name(
    session: &Session,
    request: &RecordRequest,
    detail: &ResolvedDetail,
    image: &GuestImage,
    number: u32,
) -> Result<Key> {
    let RecordRequest { kernel, workload, run, capture, model, .. } = request;
    let key = Key::new("recording/3", &code())
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = RunRequest::of_workload(kernel, &image.initramfs, workload, run).add_to_key(key)?;
    let key = capture
        .add_to_key(key)
        .field("model", model.map_or("", |model| &model.text))
        .field("number", number.to_string());
    detail.name(key)
}

/// Returns the virtual time at which the previous recording of the same request ended, in ns; `None`
/// if there is none.
fn earlier_end(
    session: &Session,
    request: &RecordRequest,
    detail: &ResolvedDetail,
    image: &GuestImage,
    number: u32,
) -> Option<u64> {
    let key = name(session, request, detail, image, number.checked_sub(1)?).ok()?;
    let earlier = session.work.find(KIND, &key.id())?;
    read_recording(&earlier.join(RUN)).ok()?.end_ns()
}

/// Returns the hash of the code that makes a recording: of the machine, of the analysis, and of
/// this crate.
fn code() -> String {
    ContentHash::new("recording-code/1")
        .field("machine", kerntune_machine::CODE)
        .field("analyze", kerntune_analyze::CODE)
        .field("tune", crate::OWN_CODE)
        .finish()
}

fn boot(
    session: &Session,
    request: &RecordRequest,
    detail: &ResolvedDetail,
    proc: bool,
    image: &GuestImage,
    run: &Path,
    expected_ns: Option<u64>,
) -> Result<RunOutcome> {
    let RecordRequest { kernel, workload, capture, model, .. } = request;
    let mut capture = CaptureRequest {
        functions: capture.functions,
        edges: capture.edges,
        model: model.map(|model| model.text.clone()),
        ..CaptureRequest::default()
    };
    detail.apply_to(&mut capture);
    let request = RunRequest {
        capture: Some(capture),
        expected_ns,
        collect: CollectOptions { proc, ..CollectOptions::default() },
        ..RunRequest::of_workload(kernel, &image.initramfs, workload, request.run)
    };
    Ok(session.machine.run(&request, run, session.progress)?)
}

fn analyze(
    id: &str,
    request: &RecordRequest,
    detail: &ResolvedDetail,
    outcome: &RunOutcome,
    progress: &dyn Progress,
) -> Result<Profile> {
    let RecordRequest { kernel, workload, run, capture, model, .. } = request;
    let nothing = || Error::NothingRecorded { workload: workload.name.clone(), run: (*run).to_string() };
    let recording: &Recording = outcome.recording.as_ref().ok_or_else(nothing)?;
    if recording.regions.is_empty() {
        return Err(nothing());
    }
    if recording.health.lost_events != 0 {
        let path = outcome.directory.clone();
        return Err(Error::LostEvents { lost: recording.health.lost_events, path });
    }
    let mut symbols = symbols(kernel)?;
    detail.complete_symbols(&mut symbols);
    let (loaded, paths) = (outcome.loaded()?, kernel.modules()?.object_paths());
    detail.check_selection(kernel, &loaded, &paths, progress)?;
    add_loaded(&loaded, &paths, &mut symbols);
    let points = detail.points();
    let counts = if capture.edges { Some(outcome.counts()?) } else { None };
    let path = outcome.trace();
    progress.begin("analyzing the trace", Some(recording.events));
    let trace: Box<dyn ReadAt> = match capture.functions {
        true => Box::new(File::open(&path).at("open", &path)?),
        false => Box::new(&[][..]),
    };
    // Locks are waited for only on several CPUs.
    let objects = if recording.cpus > 1 { kernel.variables()? } else { Vec::new() };
    let data = detail.data().then(|| outcome.data()).transpose()?;
    let names = data.as_ref().map(|data| kerntune_machine::data_names(kernel, data)).transpose()?;
    let name = |place: &DataLocation| {
        let name = names.as_ref().and_then(|names| names.get(place)).cloned().unwrap_or_default();
        [name.object, name.type_name, name.field]
    };
    let io = outcome.io()?;
    let config = model.filter(|_| data.is_some()).and_then(|model| FrontEndConfig::parse(&model.text).ok());
    let line_bytes = config.as_ref().map_or(0, |config| config.l1i.line_bytes);
    let tlbs = config.and_then(|config| config.data).map(|data| data.tlbs()).unwrap_or_default();
    let input = AnalysisInput {
        counts: counts.as_ref(),
        points: &points,
        objects: &objects,
        data: data.as_ref().map(|file| DataInput { file, name: &name, line_bytes, tlbs: &tlbs }),
        io: io.as_ref(),
        ..AnalysisInput::new(&*trace, recording, &symbols)
    };
    let analysis = kerntune_analyze::analyze(&input, &mut |done| watch::report(progress, done));
    progress.end();
    interrupt::check()?;
    let analysis = analysis?;
    let id_of_kernel = KernelId {
        id: kernel.manifest.id.clone(),
        label: kernel.manifest.label.clone(),
        version: kernel.manifest.version.clone(),
    };
    let mut manifest = Manifest::new(id, id_of_kernel, &workload.name, MACHINE);
    manifest.run = RunPurpose::from_name(run).unwrap_or(RunPurpose::Measured);
    manifest.model = model.map(|model| model.name.clone());
    manifest.recorded = rfc3339(SystemTime::now());
    manifest.exact = workload.disk.as_ref().is_none_or(Disk::repeats);
    manifest.capture = kerntune_profile::CaptureSummary {
        functions: capture.functions,
        edges: capture.edges,
        instructions: false,
        model: model.is_some(),
        weights: recording.capture.weights,
        data: detail.data(),
        requests: io.as_ref().is_some_and(|io| io.sees_requests),
        packets: io.as_ref().is_some_and(|io| io.sees_packets),
    };
    manifest.exit_status = outputs::exit_status(&outcome.guest_files);
    manifest.sources = vec![format!("run/: QEMU TCG with -icount, kernel {}", kernel.manifest.id)];
    manifest.sources.extend_from_slice(detail.option_lines());
    let tables = analysis.describe(&mut manifest);
    if let Some(unread) = io.as_ref().map(|io| io.unread).filter(|unread| *unread > 0) {
        manifest.set_anomaly(Anomaly::UnreadIo, unread);
    }
    let unknown = FunctionIndex(recording.kernel_functions);
    let rows = tables.functions.iter().filter(|row| row.function == unknown);
    let unnamed = rows.fold(0, |sum: u64, row| sum.saturating_add(row.self_ticks.get()));
    if unnamed > 0 && tables.name(unknown) == UNKNOWN {
        manifest.set_anomaly(Anomaly::UnnamedNs, unnamed);
    }
    if !manifest.exact {
        manifest.set_anomaly(Anomaly::HostDisks, 1);
    }
    Ok(Profile { manifest, tables })
}

/// Returns the kernel's functions as symbols. One more symbol at the end stands for code in no
/// known function, as in the recorder.
pub fn symbols(kernel: &Kernel) -> Result<Vec<Symbol>> {
    let table = kernel.symbols()?;
    let mut symbols: Vec<Symbol> = table
        .functions()
        .iter()
        .zip(0..)
        .map(|(function, at)| Symbol {
            function: FunctionIndex(at),
            name: function.name.clone(),
            address: Address(function.address),
            size: function.size,
            file: function.file.clone(),
            module: None,
        })
        .collect();
    symbols.push(Symbol {
        function: FunctionIndex(symbols.len() as u32),
        name: UNKNOWN.into(),
        ..Symbol::default()
    });
    Ok(symbols)
}

/// Appends the functions of code that the kernel loaded, with the source paths of its modules.
fn add_loaded(loaded: &[LoadedFunction], paths: &BTreeMap<String, String>, symbols: &mut Vec<Symbol>) {
    for function in loaded {
        symbols.push(Symbol {
            function: FunctionIndex(symbols.len() as u32),
            name: function.name.clone(),
            address: Address(function.address),
            size: function.size,
            file: paths.get(&function.module).cloned(),
            module: Some(function.module.clone()),
        });
    }
}
