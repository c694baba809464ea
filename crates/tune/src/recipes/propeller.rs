//! Recipes with `propeller`: after a profile is compiled in, the blocks of each function are put in order by a recording of
//! what came out. What functions then are is for `layout`, which comes after it.

use super::{record_run, tell, ClangAutofdo, Compiles, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::record::Capture;
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::clang_autofdo::PreparedProfile;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::propeller::{
    self, mapped_request, ordered_request, prepare_blocks, prove, PreparedBlocks,
};
use kerntune_optimize::{layout, Proof};
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub(super) struct Propeller {
    /// The recipe with the profile, by the name of the whole.
    pub after: ClangAutofdo,
}

impl Propeller {
    /// A request as it is listed.
    fn listed(&self, job: &Job, what: &str, request: BuildRequest) -> BuildRequest {
        let recipe = self.after.recipe;
        let label = format!("{}-{recipe}{what}", job.request.label);
        BuildRequest { label, recipe: Some(recipe.to_string()), ..request }
    }
}

impl Way for Propeller {
    fn steps(&self) -> Vec<StepName> {
        let mut steps = self.after.steps();
        steps.extend([StepName::MappedKernel, StepName::RecordMapped, StepName::Blocks]);
        steps
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        self.after.check(options)
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        self.after.check_given(given)
    }

    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        self.after.base(session, request)
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let session = job.session;
        let directory = self.after.profile(job, given, make)?;
        let profile = PreparedProfile::load(&directory)?;
        let mapped = make(StepName::MappedKernel, &mut || {
            let whole = mapped_request(job.request, job.base, &profile, self.after.link)?;
            let whole = self.listed(job, "-mapped", whole);
            let asked = |exclusions: &Exclusions| -> Result<BuildRequest> {
                Ok(job.for_objects(whole.clone(), exclusions))
            };
            let plain = || Ok(BuildRequest { movable: true, ..job.request.clone() });
            Ok(job.sound(&asked, &plain, true)?.dir)
        })?;
        let mapped = Kernel::load(&mapped)?;
        self.after.prove(job, &directory, &mapped)?.verdict()?;
        let recording = make(StepName::RecordMapped, &mut || {
            // With functions: how often a region goes round that runs one.
            let capture = Capture { functions: true, edges: true };
            record_run(session, &mapped, job.workload, capture, None)
        })?;
        make(StepName::Blocks, &mut || {
            let blocks = prepare_blocks(session.work, &Profile::load(&recording)?, &mapped, &profile)?;
            tell(session, blocks.quality()?);
            session.progress.note(&blocks.summary.to_string());
            Ok(blocks.dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        self.compile(job, profile, label)
    }

    fn prove(&self, _: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(prove(&PreparedBlocks::load(profile)?, tuned)?.into())
    }
}

impl Compiles for Propeller {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        let blocks = PreparedBlocks::load(profile)?;
        let request = ordered_request(job.request, job.base, &blocks, self.after.link)?;
        Ok(self.listed(job, "", request))
    }

    fn with_order(&self, job: &Job, tuned: &Kernel, order: layout::Proof) -> Result<Proof> {
        let of = tuned.manifest.profile_id.as_deref().unwrap_or_default();
        match PreparedBlocks::find(job.session.work, of)? {
            // Linking again leaves functions as they are: asked once more, of the kernel that it comes to.
            Some(blocks) => Ok(propeller::Proof { order: Some(order), ..prove(&blocks, tuned)? }.into()),
            None => Ok(order.into()),
        }
    }
}
