//! Two kernels on the exact machine, the base kernel twice.

use crate::model::Model;
use crate::moment::later;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat};
use crate::{Result, Session};
use kerntune_compare::{Comparison, KernelRef, Labels, Measurement};
use kerntune_guest::Workload;
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;

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
    let repeat = Repeat::Number(repeat);
    let request =
        RecordRequest { kernel, workload, run: "measured", capture: CAPTURE, model: Some(model), repeat };
    record(session, &request)
}

/// Compares recordings of the base kernel, the base kernel again, and the tuned kernel.
pub fn from_recordings(
    kernels: [&Kernel; 2],
    recordings: [&Recorded; 3],
    workload: &Workload,
    model: &Model,
) -> Result<Comparison> {
    let [base, again, tuned] = recordings.map(|recorded| measurement(&recorded.path));
    Ok(Comparison::new(&base?, &again?, &tuned?, labels(kernels, workload, model))?)
}

fn labels([base, tuned]: [&Kernel; 2], workload: &Workload, model: &Model) -> Labels {
    Labels {
        workload: workload.name.clone(),
        machine: crate::record::MACHINE.into(),
        model: model.name.clone(),
        costs: model.costs,
        base: kernel_ref(base),
        tuned: kernel_ref(tuned),
    }
}

/// All of it, with `runs` runs of each kernel that begin at as many moments: what was recorded before is used again. The
/// recordings of [`Compared`] are those of the first.
pub fn compare(
    session: &Session,
    base: &Kernel,
    tuned: &Kernel,
    workload: &Workload,
    model: &Model,
    runs: u32,
) -> Result<Compared> {
    let first = measure(session, base, workload, model, 0)?;
    let again = measure(session, base, workload, model, 1)?;
    let other = measure(session, tuned, workload, model, 0)?;
    let (mut of_base, mut of_tuned) = (vec![measurement(&first.path)?], vec![measurement(&other.path)?]);
    for moment in 1..runs {
        let workload = later(workload, moment);
        // In turn, so that an interrupted comparison has as many of both.
        for (kernel, of) in [(base, &mut of_base), (tuned, &mut of_tuned)] {
            of.push(measurement(&measure(session, kernel, &workload, model, 0)?.path)?);
        }
    }
    let labels = labels([base, tuned], workload, model);
    let comparison = Comparison::of_runs(&of_base, &measurement(&again.path)?, &of_tuned, labels)?;
    Ok(Compared { comparison, base: first, tuned: other })
}

/// The exact counters of a recording.
pub(crate) fn measurement(profile: &std::path::Path) -> Result<Measurement> {
    Ok(Measurement::from_profile(&Profile::load(profile)?)?)
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
