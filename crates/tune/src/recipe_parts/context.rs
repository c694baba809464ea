//! Context in which the parts of a recipe are carried out, and what a part hands to the next one.

use crate::engine::{Engine, StepName};
use crate::recipe_parts::base::with_needs;
use crate::recipe_parts::exclude::{build_excluding_broken, BuildVariants, ExcludedObjects};
use crate::recipe_parts::settings::{SuppliedProfile, TuningSettings};
use crate::recipe_parts::steps::{
    build_kernel, relink_kernel, repack_kernel, RECORD_TRAINING, TRAINING_KERNEL, TUNED_KERNEL,
};
use crate::recipe_parts::surrogate_kernel;
use crate::runs::merge::{merge, MergeResult};
use crate::runs::model::Model;
use crate::runs::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition};
use crate::{Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::bolt::BoltRewrite;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{self, PreparedOrder};
use kerntune_optimize::BoxedProof;
use kerntune_profile::load_manifest;
use std::path::PathBuf;

/// Everything that a recipe reads: base kernel and its request, workload, settings.
#[derive(Clone, Copy)]
pub struct RecipeContext<'a> {
    /// Engine that carries out the steps.
    pub engine: &'a Engine<'a>,
    /// Name of the whole recipe, such as `gcc-pgo+layout`.
    pub recipe: &'static str,
    /// Names of the recipe's parts, in order.
    pub parts: &'a [&'static str],
    pub workload: &'a Workload,
    /// Returns the request of the recipe's base kernel for a request of the user's.
    pub base_request: &'a dyn Fn(&BuildRequest) -> Result<BuildRequest>,
    /// Request of the base kernel.
    pub request: &'a BuildRequest,
    pub base: &'a Kernel,
    pub settings: TuningSettings<'a>,
    /// Objects that the recipe leaves out.
    pub excluded: &'a ExcludedObjects,
}

/// Capture of training recordings. Without a trace of functions a run is faster and leaves no
/// megabytes.
pub const TRAINING_CAPTURE: CaptureOptions = CaptureOptions { functions: false, edges: true };

/// A recording of the training run and the kernel that ran.
pub struct TrainingRecording {
    /// The base kernel, or its surrogate: a kernel for a PC built from the same source.
    pub kernel: Kernel,
    pub recording: RecordedProfile,
}

/// State of a recipe before its final step.
pub struct PreparedBuild<'a> {
    /// Directory of the profile that training gave.
    pub profile: PathBuf,
    /// Objects of the base kernel that the training runs, if they are known.
    pub executed: Option<Vec<String>>,
    pub final_step: FinalStep,
    /// Proves that a kernel carries the profile.
    pub prove: ProveKernel<'a>,
    /// Like `prove`, for a kernel whose functions were ordered afterwards; takes the proof of the
    /// order.
    pub prove_ordered: ProveOrderedKernel<'a>,
}

/// Returns the proof of a kernel.
pub type ProveKernel<'a> = Box<dyn Fn(&Kernel) -> Result<BoxedProof> + 'a>;

/// Returns the proof of a kernel with ordered functions, given the proof of the order.
pub type ProveOrderedKernel<'a> = Box<dyn Fn(&Kernel, layout::LayoutProof) -> Result<BoxedProof> + 'a>;

/// Step that makes the tuned kernel.
pub enum FinalStep {
    /// Compile a kernel.
    Compile(Box<BuildRequest>),
    /// Link the objects of a movable kernel in an order.
    Relink(Box<(Kernel, PreparedOrder)>),
    /// Make the image of a kernel again with rewritten code.
    Repack(Box<(Kernel, BoltRewrite)>),
}

impl<'a> RecipeContext<'a> {
    /// Returns the session: work directory, machine and progress.
    pub fn session(&self) -> &'a Session<'a> {
        self.engine.session()
    }

    /// Returns whether `part` is one of the recipe's parts.
    pub fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    /// Sets label and recipe name of the request of a kernel by this recipe. `what` is a suffix of
    /// the label. The order of functions does not affect compilation, so `+layout` is left out.
    pub fn named(&self, request: BuildRequest, what: &str) -> BuildRequest {
        let recipe = self.recipe.strip_suffix("+layout").unwrap_or(self.recipe);
        let label = format!("{}-{recipe}{what}", self.request.label);
        BuildRequest { label, recipe: Some(recipe.into()), ..request }
    }

    /// Returns the recording that was supplied instead of the training run.
    ///
    /// # Errors
    /// [`Error::NotOfRecipe`](crate::Error::NotOfRecipe) for counters.
    pub fn supplied_recording(&self) -> Result<Option<RecordedProfile>> {
        match self.settings.supplied {
            Some(SuppliedProfile::Recording(path)) => {
                Ok(Some(RecordedProfile { manifest: load_manifest(path)?, path: path.clone() }))
            }
            Some(supplied @ SuppliedProfile::Counters(_)) => Err(supplied.not_of(self.recipe)),
            None => Ok(None),
        }
    }

    /// Records the training run of the base kernel, or returns the supplied recording.
    pub fn record_base(&self) -> Result<RecordedProfile> {
        match self.supplied_recording()? {
            Some(supplied) => Ok(supplied),
            None => self.record(RECORD_TRAINING, self.base, TRAINING_CAPTURE, None),
        }
    }

    /// Returns the recorded kernel and its recording: of the base kernel, or of its surrogate.
    ///
    /// # Errors
    /// [`Error::AnotherSource`](crate::Error::AnotherSource) for a supplied recording of another
    /// source.
    pub fn trained(&self) -> Result<TrainingRecording> {
        if self.base.manifest.arch.can_be_recorded() {
            return Ok(TrainingRecording { kernel: self.base.clone(), recording: self.record_base()? });
        }
        let session = self.session();
        // Supplied counters belong to the part before; this one needs a recording.
        if let Some(SuppliedProfile::Recording(path)) = self.settings.supplied {
            let recording = RecordedProfile { manifest: load_manifest(path)?, path: path.clone() };
            let kernel = kerntune_kernel::find(session.work, &recording.manifest.kernel.id)?;
            surrogate_kernel::check(self.base, &kernel)?;
            return Ok(TrainingRecording { kernel, recording });
        }
        let asked = with_needs(surrogate_kernel::request(self.request), [self.workload]);
        let request = (self.base_request)(&asked)?;
        let kernel = self.engine.run(TRAINING_KERNEL, &request, build_kernel)?;
        let machine = session.recording()?.machine_id;
        let inputs = (machine.as_str(), &self.training(&kernel, TRAINING_CAPTURE, None));
        let recording = self.engine.run(RECORD_TRAINING, inputs, |session, (_machine, request)| {
            record(&session.recording()?, request)
        })?;
        Ok(TrainingRecording { kernel, recording })
    }

    /// Records the training run; with several training workloads, returns the merged recording.
    pub fn record(
        &self,
        name: StepName,
        kernel: &Kernel,
        capture: CaptureOptions,
        model: Option<&Model>,
    ) -> Result<RecordedProfile> {
        let mut all = self.record_each(name, kernel, capture, model)?;
        if all.len() == 1 {
            return Ok(all.remove(0).0);
        }
        let parts: Vec<(&str, u64)> =
            all.iter().map(|(of, weight)| (of.manifest.id.as_str(), u64::from(*weight))).collect();
        let MergeResult { path, manifest, .. } = merge(self.session().work, &parts)?;
        Ok(RecordedProfile { path, manifest })
    }

    /// Records the training run of each training workload; returns the recordings with their weights.
    pub fn record_each(
        &self,
        name: StepName,
        kernel: &Kernel,
        capture: CaptureOptions,
        model: Option<&Model>,
    ) -> Result<Vec<(RecordedProfile, u32)>> {
        let request = self.training(kernel, capture, model);
        let mut all = vec![(self.engine.run(name, &request, record)?, 1)];
        for (workload, weight) in self.settings.also_trained_on {
            let request = RecordRequest { workload, ..request };
            all.push((record(self.session(), &request)?, *weight));
        }
        Ok(all)
    }

    /// Returns the request that records the training run of `kernel`.
    fn training<'b>(
        &'b self,
        kernel: &'b Kernel,
        capture: CaptureOptions,
        model: Option<&'b Model>,
    ) -> RecordRequest<'b> {
        let (workload, run, repeat) = (self.workload, "training", Repetition::Number(0));
        RecordRequest { kernel, workload, run, capture, model, repeat }
    }

    /// Names the training workloads and weights: `redis`, `redis+nginx`, `redis+nginx-3`.
    fn trained_on(&self) -> String {
        let more = self.settings.also_trained_on.iter().map(|(workload, weight)| match weight {
            1 => workload.name.clone(),
            weight => format!("{}-{weight}", workload.name),
        });
        std::iter::once(self.workload.name.clone()).chain(more).collect::<Vec<_>>().join("+")
    }

    /// Builds a kernel that passes the same checks as the base kernel: by `request`, without the
    /// objects that break it. They are found by comparison with the kernel of `plain`, in which
    /// nothing is compiled by the recipe; `tuned_only` is true if they apply to the tuned kernel
    /// only.
    pub fn build_excluding_broken(
        &self,
        name: StepName,
        request: &dyn Fn(&Exclusions) -> Result<BuildRequest>,
        plain: &BuildRequest,
        tuned_only: bool,
    ) -> Result<Kernel> {
        let Self { base, excluded, .. } = *self;
        let variants = BuildVariants { base, excluded, request, plain, tuned_only };
        self.engine.run(name, &variants, build_excluding_broken)
    }

    /// Builds a kernel with the profile by `request`, with the flags of single objects and without
    /// those that break it.
    pub fn build_with_profile(
        &self,
        name: StepName,
        request: &BuildRequest,
        plain: &BuildRequest,
    ) -> Result<Kernel> {
        let request = |exclusions: &Exclusions| {
            let mut request = request.clone();
            request.object_flags.extend(self.settings.object_flags.iter().cloned());
            exclusions.leave_out(&mut request, self.request, &self.base.manifest.version);
            Ok(request)
        };
        self.build_excluding_broken(name, &request, plain, true)
    }

    /// Makes the tuned kernel. Its label begins with `label`.
    pub fn build_tuned(&self, final_step: &FinalStep, label: &str) -> Result<Kernel> {
        let recipe = self.recipe;
        let label = format!("{label}-{recipe}-{}", self.trained_on());
        match final_step {
            FinalStep::Compile(request) => {
                let request = BuildRequest { label, ..(**request).clone() };
                self.build_with_profile(TUNED_KERNEL, &request, self.request)
            }
            FinalStep::Relink(of) => {
                let (movable, order) = &**of;
                self.engine.run(TUNED_KERNEL, (movable, order, label.as_str(), recipe), relink_kernel)
            }
            FinalStep::Repack(of) => {
                let (kernel, rewrite) = &**of;
                self.engine.run(TUNED_KERNEL, (kernel, rewrite, label.as_str(), recipe), repack_kernel)
            }
        }
    }
}

impl<'a> PreparedBuild<'a> {
    /// Returns the state of a recipe whose tuned kernel is compiled from `request`, with the
    /// profile in directory `profile`.
    pub fn to_compile(
        context: &RecipeContext,
        profile: PathBuf,
        request: BuildRequest,
        prove: impl Fn(&Kernel) -> Result<BoxedProof> + 'a,
    ) -> Self {
        Self::of(profile, FinalStep::Compile(Box::new(context.named(request, ""))), prove)
    }

    /// Returns the state of a recipe before `final_step`, whose functions can be ordered
    /// afterwards.
    pub fn of(
        profile: PathBuf,
        final_step: FinalStep,
        prove: impl Fn(&Kernel) -> Result<BoxedProof> + 'a,
    ) -> Self {
        // Relinking does not change functions, and these were proved before.
        let prove_ordered = Box::new(|_: &Kernel, order| Ok(Box::new(order) as BoxedProof));
        Self { profile, executed: None, final_step, prove: Box::new(prove), prove_ordered }
    }
}
