//! One run on the exact machine → a profile.

use crate::detail::{self, Detail, Resolved};
use crate::model::Model;
use crate::outputs;
use crate::run_files::{POINTS, RUN};
use crate::together::together;
use crate::{watch, Error, Result, Session};
use kerntune_analyze::{DataInput, Input, ReadAt};
use kerntune_compare::Measurement;
use kerntune_guest::{Collect, Disk, GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_layout::FrontEndConfig;
use kerntune_machine::{CaptureRequest, Outcome, RunRequest};
use kerntune_profile::{
    load_manifest, rfc3339, Address, FunctionIndex, KernelId, Manifest, Profile, Run, Symbol, ROOM,
};
use kerntune_trace::data::Place;
use kerntune_trace::Recording;
use kerntune_work::{interrupt, write_json, ContentHash, IoContext, Key, Progress};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Under this name the health of a profile counts requests and packets that could not be read.
pub(crate) const UNREAD_IO: &str = "unread_io";

/// What manifests and tables call this machine.
pub const MACHINE: &str = "emulator";

/// What to capture; instructions always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Entry and exit of every function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
}

/// Which of several runs of the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The n-th, which is found again if it was made before.
    Number(u32),
    /// One that was not made before.
    Another,
}

/// What to record.
#[derive(Debug, Clone, Copy)]
pub struct RecordRequest<'a> {
    /// What boots.
    pub kernel: &'a Kernel,
    /// What runs in it.
    pub workload: &'a Workload,
    /// Which of the workload's runs.
    pub run: &'a str,
    /// What to capture.
    pub capture: Capture,
    /// The front-end model to run along.
    pub model: Option<&'a Model>,
    /// Which of several.
    pub repeat: Repeat,
}

/// A profile in the work directory.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its directory.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
}

impl Recorded {
    /// Its exact counters.
    pub(crate) fn measurement(&self) -> Result<Measurement> {
        Ok(Measurement::from_profile(&Profile::load(&self.path)?)?)
    }
}

/// The exact counters of the measured run and no events, which takes half the time: what is recorded is no profile to look into.
pub(crate) fn counted<'a>(kernel: &'a Kernel, workload: &'a Workload, model: &'a Model) -> RecordRequest<'a> {
    let capture = Capture { functions: false, edges: true };
    let (run, repeat) = ("measured", Repeat::Number(0));
    RecordRequest { kernel, workload, run, capture, model: Some(model), repeat }
}

/// Several recordings that do not need each other, in the order of the requests: as many at once as this machine has processors, and
/// memory for guests.
///
/// # Errors
/// As [`record`]'s. What was recorded before one failed is kept.
pub fn record_all(session: &Session, requests: &[RecordRequest]) -> Result<Vec<Recorded>> {
    let memory_mb = requests.iter().map(|request| request.workload.memory_mb).max().unwrap_or_default();
    together(session, memory_mb, requests, record)
}

/// Records, or finds the recording. The trace and the guest's own output are kept beside the
/// profile's tables, in `run/`.
pub fn record(session: &Session, request: &RecordRequest) -> Result<Recorded> {
    record_in_detail(session, request, &Detail::default())
}

/// The same with more, or less, than every kernel function.
pub fn record_in_detail(session: &Session, request: &RecordRequest, asked: &Detail) -> Result<Recorded> {
    request.workload.require_run(request.run)?;
    if request.workload.disk.as_ref().is_some_and(|disk| !disk.repeats()) {
        session.progress.note(&format!(
            "warning: the disk of workload {} is a file of the host (virtio): none of its figures repeats (docs/disk.md)",
            request.workload.name
        ));
    }
    let image = match asked.proc {
        true => session.image(&Workload { proc: true, ..request.workload.clone() })?,
        false => session.image(request.workload)?,
    };
    let (functions, model) = (request.capture.functions, request.model.is_some());
    let mut detail = asked.resolve(session, request.kernel, &image, functions, model)?;
    if functions {
        detail.see_io(session, request.kernel)?;
    }
    let (first, may_find) = match request.repeat {
        Repeat::Number(number) => (number, true),
        Repeat::Another => (0, false),
    };
    let mut number = first;
    let (id, staged) = loop {
        let key = name(session, request, &detail, &image, number)?;
        let id = key.id();
        if may_find || session.work.find(ROOM, &id).is_none() {
            let staged = session.work.stage(ROOM, &key)?;
            match staged.already() {
                Some(done) if may_find => {
                    // The image does not say what its outputs must be: that may have been written since.
                    outputs::of_recording(request.workload, request.run, &done)?;
                    return Ok(Recorded { manifest: load_manifest(&done)?, path: done });
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
    let outcome = boot(session, request, &detail, asked.proc, &image, &run)?;
    outputs::judge(request.workload, request.run, &outcome.guest_files)?;
    let profile = analyse(&id, request, &detail, &outcome, session.progress)?;
    if !detail.points().is_empty() {
        let names: Vec<String> = detail.points().into_iter().map(|(name, _)| name).collect();
        write_json(&run.join(POINTS), &names)?;
    }
    detail::tell_unseen(&detail, &profile.tables, session.progress);
    let manifest = profile.save(staged.path())?;
    let files = [
        kerntune_trace::files::SPEC,
        kerntune_trace::files::COUNTS,
        kerntune_trace::files::DATA,
        kerntune_trace::files::IO,
    ];
    for bulky in files {
        // Rebuilt from the kernel, and contained in the tables.
        let _ = fs::remove_file(run.join(bulky));
    }
    Ok(Recorded { path: staged.publish()?, manifest })
}

/// The recording's name: everything that decides what it shows.
fn name(
    session: &Session,
    request: &RecordRequest,
    detail: &Resolved,
    image: &GuestImage,
    number: u32,
) -> Result<Key> {
    let RecordRequest { kernel, workload, run, capture, model, .. } = request;
    let key = Key::new("recording/3", &code())
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = RunRequest::of_workload(kernel, &image.initramfs, workload, run)
        .named(key)?
        .field("capture", format!("{} {}", capture.functions, capture.edges))
        .field("model", model.map_or("", |model| &model.text))
        .field("number", number.to_string());
    detail.name(key)
}

/// Names the code that makes a recording: what runs the guest, what reads the trace, and what is between them here.
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
    detail: &Resolved,
    proc: bool,
    image: &GuestImage,
    run: &Path,
) -> Result<Outcome> {
    let RecordRequest { kernel, workload, capture, model, .. } = request;
    let mut capture = CaptureRequest {
        functions: capture.functions,
        edges: capture.edges,
        model: model.map(|model| model.text.clone()),
        ..CaptureRequest::default()
    };
    detail.ask(&mut capture);
    let request = RunRequest {
        capture: Some(capture),
        collect: Collect { proc, ..Collect::default() },
        ..RunRequest::of_workload(kernel, &image.initramfs, workload, request.run)
    };
    Ok(session.machine.run(&request, run, session.progress)?)
}

fn analyse(
    id: &str,
    request: &RecordRequest,
    detail: &Resolved,
    outcome: &Outcome,
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
    detail.complete(&mut symbols);
    let points = detail.points();
    let counts = if capture.edges { Some(outcome.counts()?) } else { None };
    let path = outcome.trace();
    progress.begin("analysing the trace", Some(recording.events));
    let trace: Box<dyn ReadAt> = match capture.functions {
        true => Box::new(File::open(&path).at("open", &path)?),
        false => Box::new(&[][..]),
    };
    // Only where there are several CPUs are locks waited for.
    let objects = if recording.cpus > 1 { kernel.variables()? } else { Vec::new() };
    let data = detail.data().then(|| outcome.data()).transpose()?;
    let names = data.as_ref().map(|data| kerntune_machine::data_names(kernel, data)).transpose()?;
    let name = |place: &Place| {
        let name = names.as_ref().and_then(|names| names.get(place)).cloned().unwrap_or_default();
        [name.object, name.type_name, name.field]
    };
    let io = outcome.io()?;
    let config = model.filter(|_| data.is_some()).and_then(|model| FrontEndConfig::parse(&model.text).ok());
    let line_bytes = config.as_ref().map_or(0, |config| config.l1i.line_bytes);
    let tlbs = config.and_then(|config| config.data).map(|data| data.tlbs()).unwrap_or_default();
    let input = Input {
        counts: counts.as_ref(),
        points: &points,
        objects: &objects,
        data: data.as_ref().map(|file| DataInput { file, name: &name, line_bytes, tlbs: &tlbs }),
        io: io.as_ref(),
        ..Input::new(&*trace, recording, &symbols)
    };
    let analysis = kerntune_analyze::analyze(&input, &mut |done| watch::at(progress, done));
    progress.end();
    interrupt::check()?;
    let analysis = analysis?;
    let id_of_kernel = KernelId {
        id: kernel.manifest.id.clone(),
        label: kernel.manifest.label.clone(),
        version: kernel.manifest.version.clone(),
    };
    let mut manifest = Manifest::new(id, id_of_kernel, &workload.name, MACHINE);
    manifest.run = Run::from_word(run).unwrap_or(Run::Measured);
    manifest.model = model.map(|model| model.name.clone());
    manifest.recorded = rfc3339(SystemTime::now());
    manifest.exact = workload.disk.as_ref().is_none_or(Disk::repeats);
    manifest.capture = kerntune_profile::Capture {
        functions: capture.functions,
        edges: capture.edges,
        model: model.is_some(),
        weights: recording.capture.weights,
        data: detail.data(),
        requests: io.as_ref().is_some_and(|io| io.sees_requests),
        packets: io.as_ref().is_some_and(|io| io.sees_packets),
    };
    manifest.sources = vec![format!("run/: QEMU TCG with -icount, kernel {}", kernel.manifest.id)];
    manifest.sources.extend_from_slice(detail.said());
    let tables = analysis.describe(&mut manifest);
    if let Some(unread) = io.as_ref().map(|io| io.unread).filter(|unread| *unread > 0) {
        manifest.health.insert(UNREAD_IO.into(), unread);
    }
    if !manifest.exact {
        manifest.health.insert("host_disks".into(), 1);
    }
    Ok(Profile { manifest, tables })
}

/// The kernel's functions as the profile names them; the one past the last stands for code in no
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
        name: "[unknown code]".into(),
        address: Address(0),
        size: 0,
        file: None,
        module: None,
    });
    Ok(symbols)
}
