//! Studies of papers: kernels that differ by patches run the same workload.

use super::{Result, RunError};
use crate::{AbstractionCost, Paper, Study, StudyOutcome, StudyVariant};
use kerntune_guest::Workload;
use kerntune_kernel::{build, preview, BuildRequest, ImportedSource, Kernel, PatchSet};
use kerntune_profile::Profile;
use kerntune_tune::base::with_needs;
use kerntune_tune::compare::kernel_ref;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition, MACHINE};
use kerntune_tune::Session;
use kerntune_work::interrupt;
use std::path::PathBuf;

/// Run of the workload that is recorded.
const RUN: &str = "measured";

/// Paper, study and kernel request of a study.
#[derive(Debug)]
pub struct StudyRequest<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// Study of the paper to carry out.
    pub study: &'a Study,
    /// Directories to search for workloads before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// Request of the kernels; the study's patches are applied after its own.
    pub build: &'a BuildRequest,
}

/// Builds the kernels, records the workload on each, and computes the costs. Earlier results are
/// used again.
///
/// # Errors
/// A kernel or a recording that could not be made; [`RunError::NoPatches`] for a kernel of another
/// series; [`RunError::Study`] for a recording from which the cost of the abstraction does not follow.
pub fn study(
    session: &Session,
    request: &StudyRequest,
    on_progress: &dyn Fn(&str, &str),
) -> Result<StudyOutcome> {
    let StudyRequest { paper, study, workloads, build: request, .. } = *request;
    let workload = Workload::find(&study.workload, workloads)?;
    let request = &with_needs(request.clone(), [&workload]);
    let stock = build(session.work, request, session.progress)?;
    let mut made: Vec<(&StudyVariant, Kernel, RecordedProfile)> = Vec::new();
    for variant in &study.kernels {
        interrupt::check()?;
        on_progress(&variant.name, "building");
        let kernel = match &variant.patches {
            None => stock.clone(),
            Some(set) => build(session.work, &patched(session, request, set, &stock)?, session.progress)?,
        };
        on_progress(&variant.name, "recording");
        let recorded = record(session, &recording(&kernel, &workload))?;
        made.push((variant, kernel, recorded));
    }
    let mut costs = vec![Vec::new(); study.tables.len()];
    for (variant, kernel, recorded) in &made {
        let profile = Profile::load(&recorded.path)?;
        for (table, costs) in study.tables.iter().zip(&mut costs) {
            let cost = AbstractionCost::of(&profile, &table.region, &study.abstraction, &variant.caches);
            let label = kernel.manifest.label.clone();
            costs.push(cost.map_err(|source| RunError::Study { kernel: label, source })?);
        }
    }
    let kernels = made
        .iter()
        .map(|(variant, kernel, recorded)| (*variant, kernel_ref(kernel), recorded.manifest.id.clone()))
        .collect();
    Ok(StudyOutcome::new(paper, study, MACHINE, kernels, &costs))
}

fn recording<'a>(kernel: &'a Kernel, workload: &'a Workload) -> RecordRequest<'a> {
    RecordRequest {
        kernel,
        workload,
        run: RUN,
        capture: CaptureOptions { functions: true, edges: false },
        model: None,
        repeat: Repetition::Number(0),
    }
}

/// Adds the steps of a study.
///
/// # Errors
/// Those of the real run before it makes anything.
pub fn dry_run(dry: &mut DryRun, request: &StudyRequest) -> Result<()> {
    let StudyRequest { study, workloads, build: request, .. } = *request;
    let workload = Workload::find(&study.workload, workloads)?;
    let request = &with_needs(request.clone(), [&workload]);
    let stock = dry.kernel("build the base kernel", request)?;
    for variant in &study.kernels {
        let kernel = match &variant.patches {
            None => stock.clone(),
            Some(set) => dry_patched(dry, request, set, stock.as_ref())?,
        };
        let what = format!("record {} on {}", workload.name, variant.name);
        match &kernel {
            Some(kernel) => dry.recordings(what, &[recording(kernel, &workload)])?,
            None => dry.runs(what, &workload, RUN, 1),
        }
    }
    Ok(())
}

/// Adds the build of a kernel with a set of our patches, and returns the kernel if it is there.
pub(crate) fn dry_patched(
    dry: &mut DryRun,
    of: &BuildRequest,
    set: &str,
    stock: Option<&Kernel>,
) -> Result<Option<Kernel>> {
    let what = format!("build the kernel with the patches {set}");
    let asked = match stock {
        Some(stock) => dry.find(|session| patched(session, of, set, stock))?,
        None => None,
    };
    match asked {
        Some(asked) => Ok(dry.kernel(what, &asked)?),
        None => {
            let estimate = preview(dry.session().work, of)?;
            dry.add("kernel", what, None, |_| Some(estimate.into()));
            Ok(None)
        }
    }
}

/// Returns the request of a kernel with a set of our patches.
pub(crate) fn patched(
    session: &Session,
    of: &BuildRequest,
    set: &str,
    stock: &Kernel,
) -> Result<BuildRequest> {
    let version = &stock.manifest.version;
    let no_patches = || RunError::NoPatches { set: set.into(), version: version.clone() };
    let ours = match PatchSet::named(set, version) {
        Some(own) => Some(own),
        None => {
            let source = ImportedSource::import(session.work, &of.source, session.progress)?;
            PatchSet::fitting(set, &source)?
        }
    };
    let ours = ours.ok_or_else(no_patches)?;
    ours.borrowed(version).iter().for_each(|sentence| session.progress.note(sentence));
    let ours = ours.write(session.work)?;
    let patches = of.patches.iter().cloned().chain(ours).collect();
    Ok(BuildRequest { patches, label: set.into(), base_id: Some(stock.manifest.id.clone()), ..of.clone() })
}
