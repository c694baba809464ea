//! Specification of a recipe: a base recipe, or a base recipe and the modifiers that follow it.

use crate::engine::{Engine, StepName};
use crate::recipe_parts::base::with_needs;
use crate::recipe_parts::exclude::{BuildVariants, ExcludedObjects};
use crate::recipe_parts::steps::{
    BuildExcludingBroken, BuildKernel, RecordRun, RelinkKernel, RepackKernel, RECORD_TRAINING,
    TRAINING_KERNEL, TUNED_KERNEL,
};
use crate::recipe_parts::surrogate_kernel;
use crate::runs::merge::{merge, MergeResult};
use crate::runs::model::Model;
use crate::runs::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition};
use crate::{Error, Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{BuildRequest, Compiler, Kernel, ObjectFlags};
use kerntune_optimize::bolt::BoltRewrite;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{self, PreparedOrder};
use kerntune_optimize::quality::RecipeGate;
use kerntune_optimize::{BoxedProof, Requirement};
use kerntune_profile::load_manifest;
use kerntune_work::Key;
use std::path::{Path, PathBuf};

/// A recipe, or a modifier that follows one: one value in one file of `recipes/`.
pub struct RecipeSpec {
    /// Name on the command line and in manifests. Names of modifiers stand after a `+`.
    pub name: &'static str,
    /// Description of a recipe that stands alone, in one sentence.
    pub about: &'static str,
    /// Description of a modifier: the rest of a sentence that begins with the name of the recipe
    /// before it.
    pub about_after: &'static str,
    /// Rank in lists; smaller ranks come first.
    pub place: u8,
    /// Returns whether this part can follow the parts `before`. A base recipe follows an empty
    /// list.
    pub follows: fn(before: &[&RecipeSpec]) -> bool,
    /// Modifier that always comes after this one without being named.
    pub then: Option<&'static str>,
    /// True if this is an upstream baseline, which exists only to compare with.
    pub is_upstream: bool,
    /// True if the tuned kernel is compiled, so that flags and exclusions of single objects apply.
    pub compiles: bool,
    /// True if the recipe can profile values besides arcs (`--values`).
    pub counts_values: bool,
    /// True if the result depends on the front-end model.
    pub uses_model: bool,
    /// Kind of profile that can replace the recipe's own training.
    pub trained_by: TrainingKind,
    /// Tools and versions without which the recipe cannot run.
    pub requirements: &'static [Requirement],
    /// Compiler to use if none is named.
    pub default_compiler: fn() -> Compiler,
    /// Checks whether the installed compiler can carry out the recipe.
    pub check_compiler: fn(&Compiler) -> kerntune_optimize::Result<()>,
    /// Reason for which the recipe would refuse a recording of a kernel, for the quality gate.
    pub asks: RecipeGate,
    /// Request that builds the base kernel, made from the user's request.
    pub base: fn(&Session, &BuildRequest) -> Result<BuildRequest>,
    /// Steps between base kernel and tuned kernel, in order.
    pub steps: &'static [StepName],
    /// Steps for a kernel that no machine records (`--arch um`), or the reason why there are none.
    pub elsewhere: std::result::Result<&'static [StepName], &'static str>,
    /// Carries out the steps, after the result of the part before.
    pub make: for<'a> fn(&RecipeContext<'a>, Option<PreparedBuild<'a>>) -> Result<PreparedBuild<'a>>,
}

impl RecipeSpec {
    /// Defaults: base kernel as requested, any compiler, trained by a recording.
    pub const DEFAULT: RecipeSpec = RecipeSpec {
        name: "",
        about: "",
        about_after: "",
        place: u8::MAX,
        follows: |before| before.is_empty(),
        then: None,
        is_upstream: false,
        compiles: true,
        counts_values: false,
        uses_model: false,
        trained_by: TrainingKind::Recording,
        requirements: &[],
        default_compiler: Compiler::default,
        check_compiler: |compiler| Ok(compiler.identify().map(drop)?),
        asks: |_, _| None,
        base: |_, request| Ok(request.clone()),
        steps: &[],
        elsewhere: Err(
            "it needs a recording of that kernel's own code, and no machine records a kernel that is a process",
        ),
        make: |_, before| before.ok_or(Error::NothingToModify),
    };
}

/// Kind of training data that a recipe takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingKind {
    /// Counters of an instrumented kernel.
    Counters,
    /// A recording with edges.
    Recording,
}

/// Existing training data that replaces a training run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuppliedProfile {
    /// Counters of an instrumented kernel: a directory copied from debugfs.
    Counters(PathBuf),
    /// A recording with edges: the directory of a profile.
    Recording(PathBuf),
}

impl SuppliedProfile {
    /// Adds the kind and the path to a key.
    pub(crate) fn add_to_key(&self, key: Key) -> Key {
        let (kind, path) = match self {
            Self::Counters(path) => ("supplied counters", path),
            Self::Recording(path) => ("supplied recording", path),
        };
        key.field(kind, path.as_os_str().as_encoded_bytes())
    }
}

/// Options that only some recipes know. A recipe refuses the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecipeOptions {
    /// `gcc-pgo`: profile values besides arcs, if there are patches for this kernel.
    pub values: bool,
}

impl RecipeOptions {
    /// Adds every field to a key.
    pub(crate) fn add_to_key(self, key: Key) -> Key {
        let Self { values } = self;
        key.field("values", values.to_string())
    }
}

/// Everything that a recipe reads: base kernel and its request, workload, model, options.
#[derive(Clone, Copy)]
pub struct RecipeContext<'a> {
    /// Engine that carries out the steps.
    pub engine: &'a Engine<'a>,
    /// Name of the whole recipe, such as `gcc-pgo+layout`.
    pub recipe: &'static str,
    /// Parts of the recipe, in order.
    pub parts: &'static [&'static RecipeSpec],
    pub workload: &'a Workload,
    /// Guest image of `workload`.
    pub image: &'a GuestImage,
    /// Request of the base kernel, as [`RecipeSpec::base`] made it.
    pub request: &'a BuildRequest,
    pub base: &'a Kernel,
    /// Front-end model that the tuned kernel is optimized for.
    pub model: &'a Model,
    pub options: RecipeOptions,
    /// Training data to use instead of a training run.
    pub supplied: Option<&'a SuppliedProfile>,
    /// Further training workloads, each with its weight.
    pub also_trained_on: &'a [(Workload, u32)],
    /// Objects that the recipe leaves out.
    pub excluded: &'a ExcludedObjects,
    /// Extra compiler flags of single objects of the tuned kernel.
    pub object_flags: &'a [ObjectFlags],
}

/// Capture of training recordings. Without a trace of functions a run is faster and leaves no
/// megabytes.
const TRAINING: CaptureOptions = CaptureOptions { functions: false, edges: true };

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
    /// Make the base kernel's image again with rewritten code.
    Repack(Box<BoltRewrite>),
}

impl<'a> RecipeContext<'a> {
    /// Returns the session: work directory, machine and progress.
    pub fn session(&self) -> &'a Session<'a> {
        self.engine.session()
    }

    /// Returns whether `part` is one of the recipe's parts.
    pub fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|there| there.name == part)
    }

    /// Returns the recipe's name without `+layout`: the order of functions does not affect
    /// compilation.
    pub fn compiled(&self) -> &'static str {
        self.recipe.strip_suffix("+layout").unwrap_or(self.recipe)
    }

    /// Returns the recording that was supplied instead of the training run.
    ///
    /// # Errors
    /// [`Error::NotOfRecipe`] for counters.
    pub fn supplied_recording(&self) -> Result<Option<RecordedProfile>> {
        match self.supplied {
            Some(SuppliedProfile::Recording(path)) => {
                Ok(Some(RecordedProfile { manifest: load_manifest(path)?, path: path.clone() }))
            }
            Some(supplied @ SuppliedProfile::Counters(_)) => Err(wrong_profile_kind(self.recipe, supplied)),
            None => Ok(None),
        }
    }

    /// Records the training run of the base kernel, or returns the supplied recording.
    pub fn record_base(&self) -> Result<RecordedProfile> {
        match self.supplied_recording()? {
            Some(supplied) => Ok(supplied),
            None => self.record(RECORD_TRAINING, self.base, TRAINING, None),
        }
    }

    /// Returns the recorded kernel and its recording: of the base kernel, or of its surrogate.
    ///
    /// # Errors
    /// [`Error::AnotherSource`] for a supplied recording of another source.
    pub fn trained(&self) -> Result<TrainingRecording> {
        if self.base.manifest.arch.can_be_recorded() {
            return Ok(TrainingRecording { kernel: self.base.clone(), recording: self.record_base()? });
        }
        let (session, Self { workload, image, .. }) = (self.session(), *self);
        // Supplied counters belong to the part before; this one needs a recording.
        if let Some(SuppliedProfile::Recording(path)) = self.supplied {
            let recording = RecordedProfile { manifest: load_manifest(path)?, path: path.clone() };
            let kernel = kerntune_kernel::find(session.work, &recording.manifest.kernel.id)?;
            surrogate_kernel::check(self.base, &kernel)?;
            return Ok(TrainingRecording { kernel, recording });
        }
        let asked = with_needs(surrogate_kernel::request(self.request), [workload]);
        let first = self.parts.first().map_or(RecipeSpec::DEFAULT.base, |part| part.base);
        let request = first(session, &asked)?;
        let kernel = self.engine.run(&BuildKernel { name: TRAINING_KERNEL, request: &request })?;
        let (name, run, model, repeat) = (RECORD_TRAINING, "training", None, 0);
        let of = RecordRun {
            name,
            kernel: &kernel,
            workload,
            image,
            run,
            capture: TRAINING,
            model,
            repeat,
            elsewhere: true,
        };
        let recording = self.engine.run(&of)?;
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
        let (Self { workload, image, .. }, run) = (*self, "training");
        let (repeat, elsewhere) = (0, false);
        let of = self.engine.run(&RecordRun {
            name,
            kernel,
            workload,
            image,
            run,
            capture,
            model,
            repeat,
            elsewhere,
        })?;
        if self.also_trained_on.is_empty() {
            return Ok(of);
        }
        let session = self.session();
        let mut all = vec![(of, 1)];
        for (workload, weight) in self.also_trained_on {
            let request =
                RecordRequest { kernel, workload, run, capture, model, repeat: Repetition::Number(0) };
            all.push((record(session, &request)?, u64::from(*weight)));
        }
        let parts: Vec<(&str, u64)> =
            all.iter().map(|(recorded, weight)| (recorded.manifest.id.as_str(), *weight)).collect();
        let MergeResult { path, manifest, .. } = merge(session.work, &parts)?;
        Ok(RecordedProfile { path, manifest })
    }

    /// Names the training workloads and weights: `redis`, `redis+nginx`, `redis+nginx-3`.
    pub fn trained_on(&self) -> String {
        let more = self.also_trained_on.iter().map(|(workload, weight)| match weight {
            1 => workload.name.clone(),
            weight => format!("{}-{weight}", workload.name),
        });
        std::iter::once(self.workload.name.clone()).chain(more).collect::<Vec<_>>().join("+")
    }

    /// Adds the flags of single objects to the recipe's request and leaves out `exclusions`.
    pub fn for_objects(&self, mut request: BuildRequest, exclusions: &Exclusions) -> BuildRequest {
        request.object_flags.extend(self.object_flags.iter().cloned());
        exclusions.leave_out(&mut request, self.request, &self.base.manifest.version);
        request
    }

    /// Builds a kernel by the recipe that passes the same checks as the base kernel.
    pub fn build_excluding_broken(&self, name: StepName, variants: &BuildVariants) -> Result<Kernel> {
        let Self { base, excluded, .. } = *self;
        self.engine.run(&BuildExcludingBroken { name, base, excluded, variants })
    }

    /// Makes the tuned kernel, listed under `label`.
    pub fn build_tuned(&self, final_step: &FinalStep, label: &str) -> Result<Kernel> {
        let (base, recipe) = (self.base, self.recipe);
        match final_step {
            FinalStep::Compile(whole) => {
                let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
                    let request = BuildRequest { label: label.into(), ..(**whole).clone() };
                    Ok(self.for_objects(request, exclusions))
                };
                let plain = || Ok(self.request.clone());
                self.build_excluding_broken(
                    TUNED_KERNEL,
                    &BuildVariants { request: &request, plain: &plain, tuned_only: true },
                )
            }
            FinalStep::Relink(of) => {
                let (movable, order) = &**of;
                self.engine.run(&RelinkKernel { movable, order, label, recipe })
            }
            FinalStep::Repack(rewrite) => self.engine.run(&RepackKernel { base, rewrite, label, recipe }),
        }
    }
}

impl<'a> PreparedBuild<'a> {
    /// Returns the state of a recipe whose tuned kernel is compiled from `request`.
    pub fn to_compile(
        profile: &Path,
        request: BuildRequest,
        prove: impl Fn(&Kernel) -> Result<BoxedProof> + 'a,
    ) -> Self {
        Self {
            profile: profile.to_owned(),
            final_step: FinalStep::Compile(Box::new(request)),
            prove: Box::new(prove),
            // Relinking does not change functions, and these were proved before.
            prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
        }
    }
}

/// Returns the error for training data of the wrong kind.
pub fn wrong_profile_kind(recipe: &'static str, supplied: &SuppliedProfile) -> Error {
    let (option, instead) = match supplied {
        SuppliedProfile::Counters(_) => ("--gcda", "--profile"),
        SuppliedProfile::Recording(_) => ("--profile", "--gcda"),
    };
    Error::NotOfRecipe { option, recipe, instead }
}
