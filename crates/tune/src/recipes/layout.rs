//! Recipe `layout`, alone or after one that compiles: the objects are linked in the order that a recording of
//! themselves asks for.

use super::{check_recording, not_of, record_run, tell, Compiles, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::record::Capture;
use crate::{Error, Result, Session};
use kerntune_kernel::{relink, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{prepare_order, prepare_sets, prove, PreparedOrder, DEFAULT_ALGORITHM};
use kerntune_optimize::{Proof, Recipe};
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub(super) struct Layout {
    /// What the whole is called.
    pub recipe: Recipe,
    /// The recipe that makes the objects; None for those of the base kernel.
    pub after: Option<&'static (dyn Compiles + Sync)>,
}

impl Layout {
    /// The kernel to be ordered, before it is.
    fn movable(&self, order: &PreparedOrder, session: &Session) -> Result<Kernel> {
        Ok(kerntune_kernel::find(session.work, &order.kernel)?)
    }
}

impl Way for Layout {
    fn steps(&self) -> Vec<StepName> {
        let mut steps = self.after.map(|after| after.steps()).unwrap_or_default();
        steps.extend([StepName::MovableKernel, StepName::RecordMovable, StepName::Order]);
        steps
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        match self.after {
            Some(after) => after.check(options),
            None if options.values => Err(Error::NoValues(self.recipe.name())),
            None => Ok(()),
        }
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        match (self.after, given) {
            (Some(after), given) => after.check_given(given),
            (None, Given::Recording(directory)) => check_recording(directory),
            (None, Given::Counters(_)) => Err(not_of(Recipe::Layout, "--gcda", "--profile")),
        }
    }

    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        self.after.map_or_else(|| Ok(request.clone()), |after| after.base(session, request))
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let Job { session, workload, request, model, .. } = *job;
        let (given, before) = match self.after {
            Some(after) => (None, Some((after, after.profile(job, given, make)?))),
            None => (given, None),
        };
        let recording = match given {
            None => None,
            Some(Given::Recording(directory)) => Some(directory.clone()),
            Some(Given::Counters(_)) => return Err(not_of(Recipe::Layout, "--gcda", "--profile")),
        };
        let movable = make(StepName::MovableKernel, &mut || {
            let whole = match &before {
                Some((after, profile)) => after.request(job, profile)?,
                None => request.clone(),
            };
            let movable = |request: &BuildRequest| {
                let label = format!("{}-movable", request.label);
                BuildRequest { movable: true, label, ..request.clone() }
            };
            let asked = |exclusions: &Exclusions| -> Result<BuildRequest> {
                Ok(job.for_objects(movable(&whole), exclusions))
            };
            Ok(job.sound(&asked, &|| Ok(movable(request)), true)?.dir)
        })?;
        let movable = Kernel::load(&movable)?;
        if let Some((after, profile)) = &before {
            after.prove(job, profile, &movable)?.verdict()?;
        }
        let recording = match recording {
            Some(given) => given,
            // With functions: which of them run in the same region, and so are in each other's way. With the model:
            // how much of the cache the programs take.
            None => make(StepName::RecordMovable, &mut || {
                let capture = Capture { functions: true, edges: true };
                record_run(session, &movable, workload, capture, Some(model))
            })?,
        };
        make(StepName::Order, &mut || {
            let recording = Profile::load(&recording).map_err(Error::from)?;
            let order = prepare_order(session.work, &recording, &movable, DEFAULT_ALGORITHM)?;
            tell(session, order.quality()?);
            let label = format!("{}-{}", movable.manifest.label, DEFAULT_ALGORITHM.name());
            let listed = (label.as_str(), self.recipe.name());
            let linked = relink(session.work, &movable, &order.order, listed, session.progress)?;
            Ok(prepare_sets(
                session.work,
                &recording,
                (&movable, &linked),
                &order,
                &model.l1i,
                session.progress,
            )?
            .dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        let order = PreparedOrder::load(profile)?;
        let movable = self.movable(&order, job.session)?;
        let listed = (label, self.recipe.name());
        Ok(relink(job.session.work, &movable, &order.order, listed, job.session.progress)?)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        let order = PreparedOrder::load(profile)?;
        let proof = prove(&self.movable(&order, job.session)?, &order, tuned)?;
        match self.after {
            Some(after) => after.with_order(job, tuned, proof),
            None => Ok(proof.into()),
        }
    }
}
