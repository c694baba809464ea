//! What a recipe is made of: one part, or one part and modifiers of it.

use crate::base::with_needs;
use crate::engine::{Engine, StepName};
use crate::merge::{merge, Merged};
use crate::model::Model;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat};
use crate::sound::{Excluded, Varied};
use crate::steps::{
    BaseKernel, Record, Relink, Repack, SoundKernel, RECORD_TRAINING, TRAINING_KERNEL, TUNED_KERNEL,
};
use crate::{stand_in, Error, Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{BuildRequest, Compiler, Kernel, ObjectFlags};
use kerntune_optimize::bolt::Rewrite;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{self, PreparedOrder};
use kerntune_optimize::quality::Asks;
use kerntune_optimize::{Proof, Requirement};
use kerntune_profile::load_manifest;
use std::path::{Path, PathBuf};

/// A recipe, or a modifier that follows one: one value in one file of `recipes/`.
pub struct Part {
    /// The name on the command line and in manifests; those of modifiers stand after a `+`.
    pub name: &'static str,
    /// What it does by itself, in one sentence.
    pub about: &'static str,
    /// What it does as a modifier: the rest of a sentence that begins with the name of what it follows.
    pub about_after: &'static str,
    /// Its place in lists: a smaller one is further in front.
    pub place: u8,
    /// Whether it can follow these parts; a recipe by itself follows none.
    pub follows: fn(before: &[&Part]) -> bool,
    /// The modifier that always comes after it, without being named.
    pub then: Option<&'static str>,
    /// Whether it is an upstream baseline: what others do, to compare with.
    pub is_upstream: bool,
    /// Whether the tuned kernel is compiled, so that wishes for single objects mean something.
    pub compiles: bool,
    /// Whether it counts values besides arcs (`--values`).
    pub counts_values: bool,
    /// Whether what it makes depends on the front-end model.
    pub uses_model: bool,
    /// What may stand in the place of its own training.
    pub trained_by: Training,
    /// What it cannot do without.
    pub requirements: &'static [Requirement],
    /// The compiler to take where none is named.
    pub default_compiler: fn() -> Compiler,
    /// Whether a compiler, as it is installed, can carry the recipe out.
    pub check_compiler: fn(&Compiler) -> kerntune_optimize::Result<()>,
    /// Why it would not take a recording of a kernel.
    pub asks: Asks,
    /// What the base kernel is built from, where this was asked for.
    pub base: fn(&Session, &BuildRequest) -> Result<BuildRequest>,
    /// Its steps, in order.
    pub steps: &'static [StepName],
    /// Its steps for a kernel that no machine records (`--arch um`), or why it can do nothing for one.
    pub elsewhere: std::result::Result<&'static [StepName], &'static str>,
    /// Carries these steps out, after what the part before it made.
    pub make: for<'a> fn(&Job<'a>, Option<Made<'a>>) -> Result<Made<'a>>,
}

impl Part {
    /// What is usual: the base kernel as it was asked for, any compiler, trained by a recording.
    pub const USUAL: Part = Part {
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
        trained_by: Training::Recording,
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

/// What a recipe is trained by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Training {
    /// Counters of an instrumented kernel.
    Counters,
    /// A recording with edges.
    Recording,
}

/// What is there already in place of a training run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Counters of an instrumented kernel: a directory as collected from debugfs.
    Counters(PathBuf),
    /// A recording with edges: a profile's directory.
    Recording(PathBuf),
}

/// What only some recipes know. A recipe refuses what is not its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecipeOptions {
    /// `gcc-pgo`: count values besides arcs, where there are patches for it.
    pub values: bool,
}

/// The base kernel with what it was built from, and what it is tuned for.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What carries out the steps.
    pub engine: &'a Engine<'a>,
    /// The whole recipe's name.
    pub recipe: &'static str,
    /// Its parts.
    pub parts: &'static [&'static Part],
    /// What it is tuned for.
    pub workload: &'a Workload,
    /// The workload's.
    pub image: &'a GuestImage,
    /// As [`Part::base`] made it.
    pub request: &'a BuildRequest,
    /// What it came to.
    pub base: &'a Kernel,
    /// The front-end model that the result is to be good for.
    pub model: &'a Model,
    /// What the recipe is told beside that.
    pub options: RecipeOptions,
    /// What the profile is made of instead of a training run.
    pub given: Option<&'a Given>,
    /// What it is trained on as well, each so many times.
    pub also: &'a [(Workload, u32)],
    /// What the recipe leaves out.
    pub excluded: &'a Excluded,
    /// What is different for single objects of the tuned kernel.
    pub object_flags: &'a [ObjectFlags],
}

/// What a training recording is made with. Without a trace of functions it is faster and leaves no megabytes.
const TRAINING: Capture = Capture { functions: false, edges: true };

/// A recording of the training run.
pub struct Trained {
    /// The kernel that ran: the base kernel, or one for a PC of the same source that stands for it.
    pub kernel: Kernel,
    /// What it did.
    pub recording: Recorded,
}

/// What a recipe has come to when all its steps but the last are done.
pub struct Made<'a> {
    /// What the training showed: a result's directory.
    pub profile: PathBuf,
    /// What is to be done yet.
    pub last: Last,
    /// Whether a kernel that came of it carries the profile.
    pub prove: Prove<'a>,
    /// The same of a kernel whose functions were put in order after it, and what the order says.
    pub prove_ordered: ProveOrdered<'a>,
}

/// Proves a kernel.
pub type Prove<'a> = Box<dyn Fn(&Kernel) -> Result<Proof> + 'a>;

/// Proves a kernel whose functions are in order, given what the order says.
pub type ProveOrdered<'a> = Box<dyn Fn(&Kernel, layout::Proof) -> Result<Proof> + 'a>;

/// The last step.
pub enum Last {
    /// A kernel is compiled.
    Compile(Box<BuildRequest>),
    /// The objects of a movable kernel are linked in an order.
    Relink(Box<(Kernel, PreparedOrder)>),
    /// The base kernel's image is made again with other code in it.
    Repack(Box<Rewrite>),
}

impl<'a> Job<'a> {
    /// Where it works, and who is told.
    pub fn session(&self) -> &'a Session<'a> {
        self.engine.session()
    }

    /// Whether the recipe has this part.
    pub fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|there| there.name == part)
    }

    /// The recipe without the order of functions, which decides nothing that is compiled.
    pub fn compiled(&self) -> &'static str {
        self.recipe.strip_suffix("+layout").unwrap_or(self.recipe)
    }

    /// The directory of a recording that was given in place of the training run.
    ///
    /// # Errors
    /// [`Error::NotOfRecipe`] for counters.
    pub fn given_recording(&self) -> Result<Option<Recorded>> {
        match self.given {
            Some(Given::Recording(path)) => {
                Ok(Some(Recorded { manifest: load_manifest(path)?, path: path.clone() }))
            }
            Some(given @ Given::Counters(_)) => Err(not_of(self.recipe, given)),
            None => Ok(None),
        }
    }

    /// A recording of the training run of the base kernel, or what was given in its place.
    pub fn record_base(&self) -> Result<Recorded> {
        match self.given_recording()? {
            Some(given) => Ok(given),
            None => self.record(RECORD_TRAINING, self.base, TRAINING, None),
        }
    }

    /// The kernel that is recorded, and the recording: the base kernel, or what stands for it.
    ///
    /// # Errors
    /// [`Error::AnotherSource`] for a recording that was given.
    pub fn trained(&self) -> Result<Trained> {
        if self.base.manifest.arch.is_default() {
            return Ok(Trained { kernel: self.base.clone(), recording: self.record_base()? });
        }
        let (session, Self { workload, image, .. }) = (self.session(), *self);
        // Counters are of another training, that of the part before.
        if let Some(Given::Recording(path)) = self.given {
            let recording = Recorded { manifest: load_manifest(path)?, path: path.clone() };
            let kernel = kerntune_kernel::find(session.work, &recording.manifest.kernel.id)?;
            stand_in::check(self.base, &kernel)?;
            return Ok(Trained { kernel, recording });
        }
        let asked = with_needs(stand_in::request(self.request), [workload]);
        let first = self.parts.first().map_or(Part::USUAL.base, |part| part.base);
        let request = first(session, &asked)?;
        let kernel = self.engine.run(&BaseKernel { name: TRAINING_KERNEL, request: &request })?;
        let (name, run, model, repeat) = (RECORD_TRAINING, "training", None, 0);
        let of = Record {
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
        Ok(Trained { kernel, recording })
    }

    /// A recording of the training run; of several trainings the sum.
    pub fn record(
        &self,
        name: StepName,
        kernel: &Kernel,
        capture: Capture,
        model: Option<&Model>,
    ) -> Result<Recorded> {
        let (Self { workload, image, .. }, run) = (*self, "training");
        let (repeat, elsewhere) = (0, false);
        let of = self.engine.run(&Record {
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
        if self.also.is_empty() {
            return Ok(of);
        }
        let session = self.session();
        let mut all = vec![(of, 1)];
        for (workload, weight) in self.also {
            let request = RecordRequest { kernel, workload, run, capture, model, repeat: Repeat::Number(0) };
            all.push((record(session, &request)?, u64::from(*weight)));
        }
        let parts: Vec<(&str, u64)> =
            all.iter().map(|(recorded, weight)| (recorded.manifest.id.as_str(), *weight)).collect();
        let Merged { path, manifest, .. } = merge(session.work, &parts)?;
        Ok(Recorded { path, manifest })
    }

    /// What it is trained on: `redis`, `redis+nginx`, `redis+nginx-3`.
    pub fn trained_on(&self) -> String {
        let more = self.also.iter().map(|(workload, weight)| match weight {
            1 => workload.name.clone(),
            weight => format!("{}-{weight}", workload.name),
        });
        std::iter::once(self.workload.name.clone()).chain(more).collect::<Vec<_>>().join("+")
    }

    /// A request as the recipe made it, with what is asked for single objects.
    pub fn for_objects(&self, mut request: BuildRequest, exclusions: &Exclusions) -> BuildRequest {
        request.object_flags.extend(self.object_flags.iter().cloned());
        exclusions.leave_out(&mut request, self.request, &self.base.manifest.version);
        request
    }

    /// Builds a kernel of the recipe that does what the base kernel does.
    pub fn sound(&self, name: StepName, varied: &Varied) -> Result<Kernel> {
        let Self { base, excluded, .. } = *self;
        self.engine.run(&SoundKernel { name, base, excluded, varied })
    }

    /// The tuned kernel.
    pub fn finish(&self, last: &Last, label: &str) -> Result<Kernel> {
        let (base, recipe) = (self.base, self.recipe);
        match last {
            Last::Compile(whole) => {
                let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
                    let request = BuildRequest { label: label.into(), ..(**whole).clone() };
                    Ok(self.for_objects(request, exclusions))
                };
                let plain = || Ok(self.request.clone());
                self.sound(TUNED_KERNEL, &Varied { request: &request, plain: &plain, tuned_only: true })
            }
            Last::Relink(of) => {
                let (movable, order) = &**of;
                self.engine.run(&Relink { movable, order, label, recipe })
            }
            Last::Repack(rewrite) => self.engine.run(&Repack { base, rewrite, label, recipe }),
        }
    }
}

impl<'a> Made<'a> {
    /// What a recipe made whose kernel is compiled from `request`.
    pub fn to_compile(
        profile: &Path,
        request: BuildRequest,
        prove: impl Fn(&Kernel) -> Result<Proof> + 'a,
    ) -> Self {
        Self {
            profile: profile.to_owned(),
            last: Last::Compile(Box::new(request)),
            prove: Box::new(prove),
            // Linking again leaves functions as they are, and what they are was proved before.
            prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
        }
    }
}

/// Refuses what stands for another training than the recipe's.
pub fn not_of(recipe: &'static str, given: &Given) -> Error {
    let (option, instead) = match given {
        Given::Counters(_) => ("--gcda", "--profile"),
        Given::Recording(_) => ("--profile", "--gcda"),
    };
    Error::NotOfRecipe { option, recipe, instead }
}
