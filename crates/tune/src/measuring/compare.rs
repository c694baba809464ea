//! Comparison of two kernels on the exact machine; the base kernel runs twice (A/A).

use crate::dry_run::DryRun;
use crate::measuring::layouts::{layouts, movable_request};
use crate::measuring::start_offset::with_start_offset;
use crate::runs::model::Model;
use crate::runs::record::{
    counters_request, record, record_all, CaptureOptions, RecordRequest, RecordedProfile, Repetition,
};
use crate::{Result, Session};
use kerntune_compare::{Comparison, ComparisonLabels, KernelRef, Measurement, ModelChanges};
use kerntune_guest::{Workload, SEED};
use kerntune_kernel::Kernel;
use std::ops::Range;

/// A comparison and the recordings that it was made from.
#[derive(Debug)]
pub struct CompareResult {
    /// Figures of both kernels.
    pub comparison: Comparison,
    /// Recording of the base kernel's first run.
    pub base: RecordedProfile,
    /// Recording of the tuned kernel's run.
    pub tuned: RecordedProfile,
}

/// Capture of [`measure`]: everything, so that the recording can also be explored as a profile.
pub const CAPTURE: CaptureOptions = CaptureOptions { functions: true, edges: true };

/// Records the measured run. `repeat` is 0 for the run that counts, 1 for the A/A run.
pub fn measure(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    model: &Model,
    repeat: u32,
) -> Result<RecordedProfile> {
    record(session, &measured_request(kernel, workload, model, repeat))
}

/// Records the measured runs of several workloads on one kernel, in the order of `workloads`.
///
/// # Errors
/// Those of the recordings.
pub fn measure_all(
    session: &Session,
    kernel: &Kernel,
    workloads: &[Workload],
    model: &Model,
) -> Result<Vec<RecordedProfile>> {
    let requests: Vec<RecordRequest> =
        workloads.iter().map(|workload| measured_request(kernel, workload, model, 0)).collect();
    record_all(session, &requests)
}

/// Records the measured run without events: exact counters and blocks alone.
///
/// # Errors
/// As of [`record`].
pub fn counters_of(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    model: &Model,
) -> Result<RecordedProfile> {
    record(session, &counters_request(kernel, workload, model))
}

/// Returns the request of [`measure`].
pub fn measured_request<'a>(
    kernel: &'a Kernel,
    workload: &'a Workload,
    model: &'a Model,
    repeat: u32,
) -> RecordRequest<'a> {
    let (model, repeat) = (Some(model), Repetition::Number(repeat));
    RecordRequest { kernel, workload, run: "measured", capture: CAPTURE, model, repeat }
}

/// Records the measured run once with each start offset.
pub fn measure_at_offsets(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    model: &Model,
    offsets: Range<u32>,
) -> Result<Vec<RecordedProfile>> {
    let workloads: Vec<Workload> = offsets.map(|offset| with_start_offset(workload, offset)).collect();
    measure_all(session, kernel, &workloads, model)
}

/// Compares recordings of the base kernel, the base kernel again, and the tuned kernel.
pub fn from_recordings(
    kernels: [&Kernel; 2],
    recordings: [&RecordedProfile; 3],
    workload: &Workload,
    model: &Model,
) -> Result<Comparison> {
    let [base, again, tuned] = recordings.map(RecordedProfile::measurement);
    Ok(Comparison::new(&base?, &again?, &tuned?, labels(kernels, workload, model))?)
}

/// Returns the labels of a comparison of two kernels under a workload.
pub fn labels([base, tuned]: [&Kernel; 2], workload: &Workload, model: &Model) -> ComparisonLabels {
    ComparisonLabels {
        workload: workload.name.clone(),
        machine: crate::runs::record::MACHINE.into(),
        model: model.name.clone(),
        costs: model.costs,
        base: kernel_ref(base),
        tuned: kernel_ref(tuned),
    }
}

/// Default models of [`across_models`]. Each CPU appears twice: with a front end that waits for
/// every line in turn and a core that waits for nothing else, and with one that runs ahead and a
/// core that also waits for data.
pub const MODELS: [&str; 10] = [
    "generic",
    "generic+run-ahead+back-end",
    "skylake",
    "skylake+run-ahead+back-end",
    "icelake",
    "icelake+run-ahead+back-end",
    "zen2",
    "zen2+run-ahead+back-end",
    "zen4",
    "zen4+run-ahead+back-end",
];

/// Compares the kernels under several front-end models, with one run of each kernel for each model.
pub fn across_models(
    session: &Session,
    [base, tuned]: [&Kernel; 2],
    workload: &Workload,
    models: &[Model],
) -> Result<ModelChanges> {
    let requests: Vec<RecordRequest> = models
        .iter()
        .flat_map(|model| [base, tuned].map(|kernel| counters_request(kernel, workload, model)))
        .collect();
    let runs = record_all(session, &requests)?;
    let mut all = Vec::new();
    for (model, pair) in models.iter().zip(runs.chunks(2)) {
        let [of_base, of_tuned] = pair else { continue };
        let (of_base, of_tuned) = (of_base.measurement()?, of_tuned.measurement()?);
        all.push(Comparison::new(&of_base, &of_base, &of_tuned, labels([base, tuned], workload, model))?);
    }
    Ok(Comparison::across_models(&all))
}

/// Numbers of runs, seeds and layouts of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompareEffort {
    /// Runs of each kernel and seed, each with another start offset; at most
    /// [`MAX_RUNS`](crate::measuring::start_offset::MAX_RUNS).
    pub runs: u32,
    /// Number of seeds of the workload, counted from 1.
    pub seeds: u32,
    /// Number of random layouts of the base kernel; 0 for none.
    pub layouts: u32,
    /// True to run each kernel once, and with [`START_OFFSETS`] only if user code ran differently
    /// on the two kernels.
    pub offsets_as_needed: bool,
}

impl Default for CompareEffort {
    fn default() -> Self {
        Self { runs: 1, seeds: 1, layouts: 0, offsets_as_needed: false }
    }
}

/// Number of start offsets if user code ran differently on the two kernels.
pub const START_OFFSETS: u32 = 4;

/// Compares three recordings. If user code ran differently on the two kernels, both run again with
/// other start offsets.
pub(crate) fn compare_adding_offsets(
    session: &Session,
    kernels: [&Kernel; 2],
    recordings: [&RecordedProfile; 3],
    workload: &Workload,
    model: &Model,
) -> Result<Comparison> {
    let comparison = from_recordings(kernels, recordings, workload, model)?;
    if !comparison.needs_start_offsets() {
        return Ok(comparison);
    }
    session.progress.note(&format!(
        "user code ran differently on the two kernels: {} more runs of each, begun at other moments",
        START_OFFSETS - 1
    ));
    let workloads: Vec<Workload> =
        (1..START_OFFSETS).map(|offset| with_start_offset(workload, offset)).collect();
    let requests: Vec<RecordRequest> = workloads
        .iter()
        .flat_map(|workload| kernels.map(|kernel| counters_request(kernel, workload, model)))
        .collect();
    let recorded = record_all(session, &requests)?;
    let [base, again, tuned] = recordings;
    let runs_of = |first: &RecordedProfile, place| -> Result<Vec<Measurement>> {
        let others = recorded.iter().skip(place).step_by(kernels.len());
        std::iter::once(first).chain(others).map(RecordedProfile::measurement).collect()
    };
    let runs = [runs_of(base, 0)?, runs_of(tuned, 1)?];
    let labels = labels(kernels, workload, model);
    let [of_base, of_tuned] = runs;
    Ok(Comparison::from_runs(&[of_base], &again.measurement()?, &[of_tuned], labels)?)
}

/// Compares two kernels. Earlier recordings are used again. The recordings in the result are those
/// of the first run.
pub fn compare(
    session: &Session,
    base: &Kernel,
    tuned: &Kernel,
    workload: &Workload,
    model: &Model,
    effort: CompareEffort,
) -> Result<CompareResult> {
    let runs = effort.runs.max(1) as usize;
    let workloads = workloads(workload, effort);
    let recorded = record_all(session, &requests([base, tuned], (workload, &workloads), model, runs))?;
    let (again, recorded) = (&recorded[0], &recorded[1..]);
    let (mut of_base, mut of_tuned) = (Vec::new(), Vec::new());
    for of_seed in recorded.chunks(2 * runs) {
        let each = |first| of_seed.iter().skip(first).step_by(2).map(RecordedProfile::measurement);
        of_base.push(each(0).collect::<Result<_>>()?);
        of_tuned.push(each(1).collect::<Result<_>>()?);
    }
    let labels = labels([base, tuned], workload, model);
    let mut comparison = match (effort.offsets_as_needed, recorded) {
        (true, [base_run, tuned_run]) => {
            compare_adding_offsets(session, [base, tuned], [base_run, again, tuned_run], workload, model)?
        }
        _ => Comparison::from_runs(&of_base, &again.measurement()?, &of_tuned, labels)?,
    };
    if effort.layouts > 0 {
        comparison.layouts = Some(layouts(session, base, workload, model, &comparison, effort.layouts)?);
    }
    Ok(CompareResult { comparison, base: recorded[0].clone(), tuned: recorded[1].clone() })
}

/// Returns the workload with each seed and each start offset.
fn workloads(workload: &Workload, effort: CompareEffort) -> Vec<Workload> {
    (0..effort.seeds.max(1))
        .map(|seed| workload.with_seed(SEED + seed))
        .flat_map(|workload| (0..effort.runs.max(1)).map(move |offset| with_start_offset(&workload, offset)))
        .collect()
}

/// Returns the recordings of a comparison: the A/A run of the base kernel, and one of each kernel
/// for each of `workloads`, of which the first `runs` have the first seed.
fn requests<'a>(
    [base, tuned]: [&'a Kernel; 2],
    (workload, workloads): (&'a Workload, &'a [Workload]),
    model: &'a Model,
    runs: usize,
) -> Vec<RecordRequest<'a>> {
    let mut requests = vec![measured_request(base, workload, model, 1)];
    for (at, workload) in workloads.iter().enumerate() {
        // Kernels alternate, so that an interrupted comparison has as many runs of both. Only the
        // first seed's recordings are explored as profiles.
        requests.extend([base, tuned].map(|kernel| match at < runs {
            true => measured_request(kernel, workload, model, 0),
            false => counters_request(kernel, workload, model),
        }));
    }
    requests
}

/// Adds the steps of [`compare`] to a dry run.
///
/// # Errors
/// Those of [`compare`] before it boots a kernel.
pub fn dry_run(
    dry: &mut DryRun,
    kernels: [&Kernel; 2],
    workload: &Workload,
    model: &Model,
    effort: CompareEffort,
) -> Result<()> {
    let what = match effort.offsets_as_needed {
        true => format!(
            "run {} on both kernels; {} more runs if user code runs differently on them",
            workload.name,
            2 * (START_OFFSETS - 1)
        ),
        false => format!("run {} on both kernels", workload.name),
    };
    let all = workloads(workload, effort);
    dry.recordings(what, &requests(kernels, (workload, &all), model, effort.runs.max(1) as usize))?;
    if effort.layouts > 0 {
        let [base, _] = kernels;
        if !base.manifest.movable {
            dry.kernel(
                "build the base kernel with functions that can be moved",
                &movable_request(dry.session(), base)?,
            )?;
        }
        let what = format!("link the base kernel in {} random orders, and run it in each", effort.layouts);
        dry.runs(what, workload, "measured", effort.layouts);
    }
    Ok(())
}

/// Adds the recordings of [`across_models`] to a dry run.
///
/// # Errors
/// Those of a recording before it boots the kernel.
pub fn dry_run_across_models(
    dry: &mut DryRun,
    kernels: [&Kernel; 2],
    workload: &Workload,
    models: &[Model],
) -> Result<()> {
    let requests: Vec<RecordRequest> = models
        .iter()
        .flat_map(|model| kernels.map(|kernel| counters_request(kernel, workload, model)))
        .collect();
    dry.recordings(format!("run {} on both kernels under {} models", workload.name, models.len()), &requests)
}

/// Adds measured runs of a workload to a dry run: of a kernel, or of one that is to be built.
///
/// # Errors
/// Those of a recording before it boots the kernel.
pub fn dry_run_measured(
    dry: &mut DryRun,
    what: String,
    kernel: Option<&Kernel>,
    (workload, model): (&Workload, &Model),
    repeats: u32,
) -> Result<()> {
    let Some(kernel) = kernel else {
        dry.runs(what, workload, "measured", repeats);
        return Ok(());
    };
    let requests: Vec<RecordRequest> =
        (0..repeats).map(|repeat| measured_request(kernel, workload, model, repeat)).collect();
    dry.recordings(what, &requests)
}

/// Describes a kernel for a comparison or an outcome.
pub fn kernel_ref(kernel: &Kernel) -> KernelRef {
    let manifest = &kernel.manifest;
    KernelRef {
        id: manifest.id.clone(),
        label: manifest.label.clone(),
        version: manifest.version.clone(),
        compiler: manifest.compiler.version.clone(),
        recipe: manifest.recipe.clone(),
    }
}
