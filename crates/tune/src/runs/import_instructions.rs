//! Import of samples of instructions, without branches, as counts for AutoFDO.
//!
//! Each sampled instruction becomes a block of one instruction with the number of events that its
//! samples stand for. This is how llvm-profgen takes the addresses of samples (`--leading-ip-only`):
//! each is a range of one instruction, and a line of the source gets the greatest count of its
//! instructions. Nothing is inferred for code beside it.

use crate::runs::import_perf::MACHINE;
use crate::runs::record::RecordedProfile;
use crate::{Error, Result};
use kerntune_convert::perf_data::{
    CpuMode, EventKind, PerfData, PerfDataError, PerfEvent, PerfFile, PerfRecord,
};
use kerntune_kernel::Kernel;
use kerntune_optimize::quality::LinkedCode;
use kerntune_profile::{
    load_manifest, rfc3339, Address, Anomaly, Block, CaptureSummary, Instructions, KernelId, Manifest,
    Profile, RunPurpose, Tables, KIND,
};
use kerntune_work::{open_file, ContentHash, IoContext, Key, WorkDir};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Granularity at which the kernel's image is moved in memory (`CONFIG_PHYSICAL_ALIGN`).
const ALIGNMENT: u64 = 1 << 21;

/// Minimum share of the samples in the image's functions that are at instructions of the image.
const MIN_FITTING: f64 = 0.8;

/// Samples to import, and their kernel.
#[derive(Debug, Clone, Copy)]
pub struct InstructionImportRequest<'a> {
    /// A `perf.data` file.
    pub file: &'a Path,
    /// Kernel that ran.
    pub kernel: &'a Kernel,
    /// Event to import; `None` for the first of instructions or of a clock.
    pub event: Option<&'a str>,
    /// Name of the load, for the profile.
    pub workload: &'a str,
}

/// Imported profile and statistics of its samples.
#[derive(Debug)]
pub struct InstructionImport {
    /// The profile.
    pub recorded: RecordedProfile,
    /// Samples at instructions of the image.
    pub samples: u64,
    /// Different instructions among them.
    pub instructions: u64,
    /// Samples of kernel code outside of the image: of modules and generated code.
    pub outside: u64,
    /// Samples that are at no instruction of the image.
    pub strange: u64,
}

/// Samples at the addresses where the image was linked.
#[derive(Debug, Default)]
struct SampledInstructions {
    /// Samples and events of each address.
    placed: BTreeMap<u64, (u64, u64)>,
    outside: u64,
    /// Samples of user code and of virtual machines.
    others: u64,
}

/// Imports samples as a profile named by its content, or returns the existing one.
///
/// # Errors
/// [`Error::PerfData`]: no samples of kernel code, or those of another kernel.
pub fn import_instructions(work: &WorkDir, request: &InstructionImportRequest) -> Result<InstructionImport> {
    let refuse = |reason: String| Error::PerfData { file: request.file.to_owned(), reason };
    let unreadable = |error: PerfDataError| refuse(error.to_string());
    let of = &request.kernel.manifest;
    let mut data = PerfData::open(open_file(request.file).at("open", request.file)?).map_err(unreadable)?;
    let image = LinkedCode::load(request.kernel)?;
    if let (Some(recorded), Some(own)) = (&data.file.kernel_build_id, request.kernel.build_id()?) {
        if *recorded != own {
            return Err(refuse(format!(
                "it was recorded on a kernel with build id {recorded}, and kernel {} has {own}: name the kernel that ran",
                of.label
            )));
        }
    }
    let event = choose(&data.file, request.event).map_err(refuse)?;
    let sampled = read(&mut data, event, &image).map_err(unreadable)?;
    let mut tables = Tables { symbols: image.rows(), ..Tables::default() };
    let (mut samples, mut strange) = (0_u64, 0_u64);
    for (&at, &(found, count)) in &sampled.placed {
        let Some((instructions, bytes)) = image.straight(at, at) else {
            strange = strange.saturating_add(found);
            continue;
        };
        samples = samples.saturating_add(found);
        let (start, instructions) = (Address(at), Instructions(instructions));
        tables.blocks.push(Block { start, last: start, count, instructions, bytes });
    }
    let fitting = samples as f64 / samples.saturating_add(strange).max(1) as f64;
    if samples == 0 || fitting < MIN_FITTING {
        return Err(refuse(match samples.saturating_add(strange) {
            0 => format!(
                "none of its samples of `{}` is in the code of kernel {}: {} are in modules or generated code, {} in programs or \
                 virtual machines",
                data.file.events[event].name, of.label, sampled.outside, sampled.others
            ),
            all => format!(
                "{:.1} % of its {all} samples in kernel code are at instructions of kernel {}, {:.0} % are needed: it is of another \
                 image",
                fitting * 100.0,
                of.label,
                MIN_FITTING * 100.0
            ),
        }));
    }
    let key = Key::new("perf-instructions/1", crate::CODE)
        .file("samples", request.file)?
        .field("kernel", &of.id)
        .field("event", data.file.events[event].name.as_bytes())
        .field("workload", request.workload);
    let import = |recorded| InstructionImport {
        recorded,
        samples,
        instructions: tables.blocks.len() as u64,
        outside: sampled.outside,
        strange,
    };
    let staged = work.stage(KIND, &key)?;
    if let Some(done) = staged.already() {
        let manifest = load_manifest(&done)?;
        return Ok(import(RecordedProfile { path: done, manifest }));
    }
    staged.clear()?;
    let kernel = KernelId { id: of.id.clone(), label: of.label.clone(), version: of.version.clone() };
    let mut manifest = Manifest::new(key.id(), kernel, request.workload, MACHINE);
    manifest.run = RunPurpose::Training;
    let modified = fs::metadata(request.file).and_then(|file| file.modified());
    manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
    manifest.capture = CaptureSummary { instructions: true, ..CaptureSummary::default() };
    manifest.events = samples;
    manifest.set_anomaly(Anomaly::UnplacedRuns, strange);
    let hash = ContentHash::new("file/1").file("content", request.file)?.finish();
    manifest.sources.push(format!(
        "samples of `{}` in {} ({hash})",
        data.file.events[event].name,
        request.file.display()
    ));
    let manifest = Profile { manifest, tables: tables.clone() }.save(staged.path())?;
    Ok(import(RecordedProfile { path: staged.publish()?, manifest }))
}

/// Returns the number of the event: the named one, or the first of instructions or of a clock.
fn choose(file: &PerfFile, name: Option<&str>) -> Result<usize, String> {
    let is_wanted = |event: &PerfEvent| match name {
        Some(name) => event.name == name,
        None => {
            !matches!(event.kind, EventKind::Dummy | EventKind::Other)
                || event.name.starts_with("instructions")
        }
    };
    file.events.iter().position(is_wanted).ok_or_else(|| {
        let names: Vec<String> = file.events.iter().map(|event| format!("`{}`", event.name)).collect();
        match name {
            Some(name) => format!("it has no event `{name}`; it has {}", names.join(", ")),
            None => format!("its events are {}: choose one with --event", names.join(", ")),
        }
    })
}

fn read<R: std::io::Read + std::io::Seek>(
    data: &mut PerfData<R>,
    event: usize,
    image: &LinkedCode,
) -> Result<SampledInstructions, PerfDataError> {
    let linked =
        image.symbols().functions().iter().map(|function| function.address).min().unwrap_or_default();
    let aligned = |address: u64| address & !(ALIGNMENT - 1);
    let moved = data
        .file
        .kernel_place
        .as_ref()
        .map_or(0, |place| aligned(place.address).wrapping_sub(aligned(linked)));
    let fixed = match &data.file.events[event] {
        PerfEvent { is_frequency: false, period, .. } => *period,
        _ => 1,
    };
    let mut sampled = SampledInstructions::default();
    data.read(|_, record| {
        let PerfRecord::Sample(sample) = record else { return Ok(()) };
        if sample.event != event {
            return Ok(());
        }
        if sample.mode != CpuMode::Kernel {
            sampled.others = sampled.others.saturating_add(1);
            return Ok(());
        }
        let at = sample.ip.wrapping_sub(moved);
        if image.symbols().lookup(at).is_none() {
            sampled.outside = sampled.outside.saturating_add(1);
            return Ok(());
        }
        let events = sample.period.unwrap_or(fixed).max(1);
        let (samples, sum) = sampled.placed.entry(at).or_default();
        *samples += 1;
        *sum = sum
            .checked_add(events)
            .ok_or_else(|| PerfDataError::Unusable("the sum of its counts overflows 64 bits".into()))?;
        Ok(())
    })?;
    Ok(sampled)
}
