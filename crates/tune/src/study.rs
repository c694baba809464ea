//! A paper's study, carried out: kernels that differ by patches, the same workload on each.

use crate::base::with_needs;
use crate::compare::kernel_ref;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat, MACHINE};
use crate::{Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel, PatchSet};
use kerntune_paper::{Cost, Paper, Study, StudyOutcome, Variant};
use kerntune_profile::Profile;
use kerntune_work::interrupt;
use std::path::PathBuf;

/// Which study, and of what.
#[derive(Debug)]
pub struct StudyRequest<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// Its study.
    pub study: &'a Study,
    /// Where workloads are looked for before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// What the kernels are built from; the study's patches come after its own.
    pub build: &'a BuildRequest,
}

/// Builds the kernels, records the workload on each, and sums up. What was made before is found again.
///
/// # Errors
/// A kernel or a recording that could not be made; [`Error::NoPatches`] for a kernel of another series;
/// [`Error::Study`] where a recording does not say what the abstraction cost.
pub fn study(session: &Session, request: &StudyRequest, told: &dyn Fn(&str, &str)) -> Result<StudyOutcome> {
    let StudyRequest { paper, study, workloads, build: request, .. } = *request;
    let workload = Workload::find(&study.workload, workloads)?;
    let request = &with_needs(request.clone(), [&workload]);
    let stock = build(session.work, request, session.progress)?;
    let mut made: Vec<(&Variant, Kernel, Recorded)> = Vec::new();
    for variant in &study.kernels {
        interrupt::check()?;
        told(&variant.name, "building");
        let kernel = match &variant.patches {
            None => stock.clone(),
            Some(set) => build(session.work, &patched(session, request, set, &stock)?, session.progress)?,
        };
        told(&variant.name, "recording");
        let recorded = record(
            session,
            &RecordRequest {
                kernel: &kernel,
                workload: &workload,
                run: "measured",
                capture: Capture { functions: true, edges: false },
                model: None,
                repeat: Repeat::Number(0),
            },
        )?;
        made.push((variant, kernel, recorded));
    }
    let mut costs = vec![Vec::new(); study.tables.len()];
    for (variant, kernel, recorded) in &made {
        let profile = Profile::load(&recorded.path)?;
        let cache = (!variant.looked.is_empty()).then_some((&variant.looked[..], &variant.missed[..]));
        for (table, costs) in study.tables.iter().zip(&mut costs) {
            let cost = Cost::of(&profile, &table.region, &study.abstraction, cache);
            let label = kernel.manifest.label.clone();
            costs.push(cost.map_err(|source| Error::Study { kernel: label, source })?);
        }
    }
    let kernels = made
        .iter()
        .map(|(variant, kernel, recorded)| (*variant, kernel_ref(kernel), recorded.manifest.id.clone()))
        .collect();
    Ok(StudyOutcome::new(paper, study, MACHINE, kernels, &costs))
}

/// The request for a kernel with a set of our patches.
pub(crate) fn patched(
    session: &Session,
    of: &BuildRequest,
    set: &str,
    stock: &Kernel,
) -> Result<BuildRequest> {
    let version = &stock.manifest.version;
    let no_patches = || Error::NoPatches { set: set.into(), version: version.clone() };
    let ours = PatchSet::named(set, version).ok_or_else(no_patches)?.write(session.work)?;
    let patches = of.patches.iter().cloned().chain(ours).collect();
    Ok(BuildRequest { patches, label: set.into(), base_id: Some(stock.manifest.id.clone()), ..of.clone() })
}
