//! Two kernels on the exact machine, the base kernel twice.

use crate::layouts::layouts;
use crate::model::Model;
use crate::moment::later;
use crate::record::{counted, record, record_all, Capture, RecordRequest, Recorded, Repeat};
use crate::{Result, Session};
use kerntune_compare::{Comparison, KernelRef, Labels, Measurement, Models};
use kerntune_guest::{Workload, SEED};
use kerntune_kernel::Kernel;
use std::ops::Range;

/// A comparison and the recordings that it was made from.
#[derive(Debug)]
pub struct Compared {
    /// The figures.
    pub comparison: Comparison,
    /// The base kernel's first run.
    pub base: Recorded,
    /// The tuned kernel's run.
    pub tuned: Recorded,
}

/// What [`measure`] records: everything, so that the same recording is the profile to look into.
pub(crate) const CAPTURE: Capture = Capture { functions: true, edges: true };

/// One recording of the measured run. `repeat` 0 is the run that counts, 1 the A/A run.
pub fn measure(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    model: &Model,
    repeat: u32,
) -> Result<Recorded> {
    record(session, &measured(kernel, workload, model, repeat))
}

/// One kernel's [`measure`] of several workloads, in their order.
///
/// # Errors
/// Those of the recordings.
pub fn measure_all(
    session: &Session,
    kernel: &Kernel,
    workloads: &[Workload],
    model: &Model,
) -> Result<Vec<Recorded>> {
    let requests: Vec<RecordRequest> =
        workloads.iter().map(|workload| measured(kernel, workload, model, 0)).collect();
    record_all(session, &requests)
}

/// What [`measure`] records.
pub(crate) fn measured<'a>(
    kernel: &'a Kernel,
    workload: &'a Workload,
    model: &'a Model,
    repeat: u32,
) -> RecordRequest<'a> {
    let (model, repeat) = (Some(model), Repeat::Number(repeat));
    RecordRequest { kernel, workload, run: "measured", capture: CAPTURE, model, repeat }
}

/// The measured run, begun at each of these moments.
pub(crate) fn at_moments(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    model: &Model,
    moments: Range<u32>,
) -> Result<Vec<Recorded>> {
    let workloads: Vec<Workload> = moments.map(|moment| later(workload, moment)).collect();
    measure_all(session, kernel, &workloads, model)
}

/// Compares recordings of the base kernel, the base kernel again, and the tuned kernel.
pub fn from_recordings(
    kernels: [&Kernel; 2],
    recordings: [&Recorded; 3],
    workload: &Workload,
    model: &Model,
) -> Result<Comparison> {
    let [base, again, tuned] = recordings.map(Recorded::measurement);
    Ok(Comparison::new(&base?, &again?, &tuned?, labels(kernels, workload, model))?)
}

pub(crate) fn labels([base, tuned]: [&Kernel; 2], workload: &Workload, model: &Model) -> Labels {
    Labels {
        workload: workload.name.clone(),
        machine: crate::record::MACHINE.into(),
        model: model.name.clone(),
        costs: model.costs,
        base: kernel_ref(base),
        tuned: kernel_ref(tuned),
    }
}

/// The models that [`across_models`] takes if nobody names others. Each CPU's twice: a front end that waits for one line after
/// the other in a core that waits for nothing else, and one that runs ahead in a core that waits for data, too.
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

/// The same comparison under several front-end models, with a run of each kernel under each.
pub fn across_models(
    session: &Session,
    [base, tuned]: [&Kernel; 2],
    workload: &Workload,
    models: &[Model],
) -> Result<Models> {
    let requests: Vec<RecordRequest> = models
        .iter()
        .flat_map(|model| [base, tuned].map(|kernel| counted(kernel, workload, model)))
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

/// How much is run for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Runs of each kernel and seed, begun at as many moments ([`MOST_RUNS`](crate::moment::MOST_RUNS) at most).
    pub runs: u32,
    /// Seeds of the workload, from 1 on.
    pub seeds: u32,
    /// Random layouts of the base kernel; 0 for none.
    pub layouts: u32,
    /// One run of each, and [`MOMENTS`] if user code ran differently: how far it differs by itself decides what it says.
    pub moments_as_needed: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { runs: 1, seeds: 1, layouts: 0, moments_as_needed: false }
    }
}

/// Moments at which runs begin where user code ran differently on the two kernels.
pub const MOMENTS: u32 = 4;

/// Three recordings compared, and more runs of both kernels begun at other moments if their user code ran differently.
pub(crate) fn settled(
    session: &Session,
    kernels: [&Kernel; 2],
    recordings: [&Recorded; 3],
    workload: &Workload,
    model: &Model,
) -> Result<Comparison> {
    let comparison = from_recordings(kernels, recordings, workload, model)?;
    if !comparison.needs_moments() {
        return Ok(comparison);
    }
    session.progress.note(&format!(
        "user code ran differently on the two kernels: {} more runs of each, begun at other moments",
        MOMENTS - 1
    ));
    let workloads: Vec<Workload> = (1..MOMENTS).map(|moment| later(workload, moment)).collect();
    let requests: Vec<RecordRequest> = workloads
        .iter()
        .flat_map(|workload| kernels.map(|kernel| counted(kernel, workload, model)))
        .collect();
    let recorded = record_all(session, &requests)?;
    let [base, again, tuned] = recordings;
    let runs_of = |first: &Recorded, place| -> Result<Vec<Measurement>> {
        let others = recorded.iter().skip(place).step_by(kernels.len());
        std::iter::once(first).chain(others).map(Recorded::measurement).collect()
    };
    let runs = [runs_of(base, 0)?, runs_of(tuned, 1)?];
    let labels = labels(kernels, workload, model);
    let [of_base, of_tuned] = runs;
    Ok(Comparison::of_runs(&[of_base], &again.measurement()?, &[of_tuned], labels)?)
}

/// All of it: what was recorded before is used again. The recordings of [`Compared`] are those of the first run.
pub fn compare(
    session: &Session,
    base: &Kernel,
    tuned: &Kernel,
    workload: &Workload,
    model: &Model,
    effort: Effort,
) -> Result<Compared> {
    let (runs, seeds) = (effort.runs.max(1), effort.seeds.max(1));
    let workloads: Vec<Workload> = (0..seeds)
        .map(|seed| workload.with_seed(SEED + seed))
        .flat_map(|workload| (0..runs).map(move |moment| later(&workload, moment)))
        .collect();
    let runs = runs as usize;
    let mut requests = vec![measured(base, workload, model, 1)];
    for (at, workload) in workloads.iter().enumerate() {
        // In turn, so that an interrupted comparison has as many of both. Nobody looks into those of other seeds.
        requests.extend([base, tuned].map(|kernel| match at < runs {
            true => measured(kernel, workload, model, 0),
            false => counted(kernel, workload, model),
        }));
    }
    let recorded = record_all(session, &requests)?;
    let (again, recorded) = (&recorded[0], &recorded[1..]);
    let (mut of_base, mut of_tuned) = (Vec::new(), Vec::new());
    for of_seed in recorded.chunks(2 * runs) {
        let each = |first| of_seed.iter().skip(first).step_by(2).map(Recorded::measurement);
        of_base.push(each(0).collect::<Result<_>>()?);
        of_tuned.push(each(1).collect::<Result<_>>()?);
    }
    let labels = labels([base, tuned], workload, model);
    let mut comparison = match (effort.moments_as_needed, recorded) {
        (true, [base_run, tuned_run]) => {
            settled(session, [base, tuned], [base_run, again, tuned_run], workload, model)?
        }
        _ => Comparison::of_runs(&of_base, &again.measurement()?, &of_tuned, labels)?,
    };
    if effort.layouts > 0 {
        comparison.layouts = Some(layouts(session, base, workload, model, &comparison, effort.layouts)?);
    }
    Ok(Compared { comparison, base: recorded[0].clone(), tuned: recorded[1].clone() })
}

pub(crate) fn kernel_ref(kernel: &Kernel) -> KernelRef {
    let manifest = &kernel.manifest;
    KernelRef {
        id: manifest.id.clone(),
        label: manifest.label.clone(),
        version: manifest.version.clone(),
        compiler: manifest.compiler.version.clone(),
        recipe: manifest.recipe.clone(),
    }
}
