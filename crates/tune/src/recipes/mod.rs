//! What the loop asks of a recipe: one file for each, and nothing of it elsewhere.

mod bolt;
mod clang_autofdo;
mod gcc_pgo;
mod layout;
mod propeller;
mod stock;

use crate::model::Model;
use crate::plan::StepName;
use crate::record::{record, Capture, RecordRequest, Repeat};
use crate::sound::{sound, Excluded, Request};
use crate::{Error, Result, Session};
use clang_autofdo::ClangAutofdo;
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel, ObjectFlags};
use kerntune_optimize::clang_autofdo::Link;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::quality::Quality;
use kerntune_optimize::{Proof, Recipe};
use kerntune_profile::load_manifest;
use std::path::{Path, PathBuf};

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

impl RecipeOptions {
    /// Those that `recipe` knows.
    pub(crate) fn known_to(self, recipe: Recipe) -> Self {
        if way(recipe).check(self).is_ok() {
            self
        } else {
            Self::default()
        }
    }
}

/// The base kernel with what it was built from, and what it is tuned for.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub session: &'a Session<'a>,
    pub workload: &'a Workload,
    /// As [`Way::base`] made it.
    pub request: &'a BuildRequest,
    pub base: &'a Kernel,
    /// The front-end model that the result is to be good for.
    pub model: &'a Model,
    pub options: RecipeOptions,
    /// What the recipe leaves out.
    pub excluded: &'a Excluded,
    /// What is different for single objects of the tuned kernel.
    pub object_flags: &'a [ObjectFlags],
}

impl Job<'_> {
    /// A tuned kernel's request, as the recipe made it, with what is asked for single objects.
    fn for_objects(&self, mut request: BuildRequest, exclusions: &Exclusions) -> BuildRequest {
        request.object_flags.extend(self.object_flags.iter().cloned());
        exclusions.leave_out(&mut request, self.request, &self.base.manifest.version);
        request
    }

    /// [`sound`] for its base kernel and its exclusions.
    fn sound(
        &self,
        request: &Request,
        plain: &dyn Fn() -> Result<BuildRequest>,
        tuned_only: bool,
    ) -> Result<Kernel> {
        sound(self.session, self.base, self.excluded, request, plain, tuned_only)
    }
}

/// Makes a step, or finds that it was made; hands over the result's directory.
pub(crate) type Make<'a> = dyn FnMut(StepName, &mut dyn FnMut() -> Result<PathBuf>) -> Result<PathBuf> + 'a;

/// A recipe as the loop sees it.
pub(crate) trait Way {
    /// The steps between the base kernel and the tuned kernel, in order.
    fn steps(&self) -> Vec<StepName>;

    /// Whether all that is asked for in `options` is this recipe's.
    fn check(&self, options: RecipeOptions) -> Result<()>;

    /// Whether a profile can be made of `given`, as far as that can be told before anything is built.
    fn check_given(&self, given: &Given) -> Result<()>;

    /// What the base kernel is built from, where `request` was asked for.
    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest>;

    /// The steps between base kernel and tuned kernel, up to the profile. With `given` there is no training
    /// run.
    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf>;

    /// The tuned kernel. `profile` is what [`Way::profile`] made.
    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel>;

    /// Whether the tuned kernel carries its profile.
    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof>;
}

/// A recipe whose tuned kernel is compiled: what it is built from can be varied.
pub(crate) trait Compiles: Way {
    /// What the tuned kernel is built from, where nothing is said of single objects. `profile` is what
    /// [`Way::profile`] made.
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest>;

    /// The proof of a kernel whose functions were put in order after it: what `order` says, and what else is to be said.
    fn with_order(&self, _: &Job, _tuned: &Kernel, order: kerntune_optimize::layout::Proof) -> Result<Proof> {
        Ok(order.into())
    }

    /// Builds it under a label, without objects that make it fail.
    fn compile(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        let whole = self.request(job, profile)?;
        let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
            let request = BuildRequest { label: label.into(), ..whole.clone() };
            Ok(job.for_objects(request, exclusions))
        };
        job.sound(&request, &|| Ok(job.request.clone()), true)
    }
}

/// How the loop goes by `recipe`.
pub(crate) fn way(recipe: Recipe) -> &'static dyn Way {
    use layout::Layout;
    use propeller::Propeller;
    const PLAIN: ClangAutofdo = ClangAutofdo { recipe: Recipe::ClangAutofdo, link: Link::Objects };
    // What never ran is split off where there is a place for it: the order is of what is left.
    const SPLIT: ClangAutofdo = ClangAutofdo { recipe: Recipe::ClangAutofdo, link: Link::Upstream };
    const THIN: ClangAutofdo = ClangAutofdo { recipe: Recipe::ClangAutofdoThinlto, link: Link::ThinLto };
    match recipe {
        Recipe::GccPgo => &gcc_pgo::GccPgo,
        Recipe::ClangAutofdo => &PLAIN,
        Recipe::Layout => &Layout { recipe: Recipe::Layout, after: None },
        Recipe::GccPgoLayout => &Layout { recipe: Recipe::GccPgoLayout, after: Some(&gcc_pgo::GccPgo) },
        Recipe::ClangAutofdoLayout => &Layout { recipe: Recipe::ClangAutofdoLayout, after: Some(&SPLIT) },
        Recipe::ClangAutofdoThinlto => &THIN,
        Recipe::ClangAutofdoThinltoLayout => {
            &Layout { recipe: Recipe::ClangAutofdoThinltoLayout, after: Some(&THIN) }
        }
        Recipe::ClangAutofdoPropeller => {
            const BLOCKS: Propeller = Propeller {
                after: ClangAutofdo { recipe: Recipe::ClangAutofdoPropeller, link: Link::Objects },
            };
            &Layout { recipe: Recipe::ClangAutofdoPropeller, after: Some(&BLOCKS) }
        }
        Recipe::ClangAutofdoThinltoPropeller => {
            const BLOCKS: Propeller = Propeller {
                after: ClangAutofdo { recipe: Recipe::ClangAutofdoThinltoPropeller, link: Link::ThinLto },
            };
            &Layout { recipe: Recipe::ClangAutofdoThinltoPropeller, after: Some(&BLOCKS) }
        }
        Recipe::Bolt => &bolt::Bolt,
        Recipe::StockGcov => &stock::Gcov,
        Recipe::StockAutofdo => {
            const UPSTREAM: ClangAutofdo =
                ClangAutofdo { recipe: Recipe::StockAutofdo, link: Link::Upstream };
            &stock::Autofdo { like: UPSTREAM, movable: false }
        }
        Recipe::StockLldOrder => {
            const BY_LLD: ClangAutofdo = ClangAutofdo { recipe: Recipe::StockLldOrder, link: Link::Objects };
            &stock::Autofdo { like: BY_LLD, movable: true }
        }
    }
}

/// Refuses what `recipe` would ignore.
///
/// # Errors
/// [`Error::NoValues`], [`Error::CompilesNothing`].
pub fn check_options(
    recipe: Recipe,
    options: RecipeOptions,
    object_flags: &[ObjectFlags],
    exclusions: &Exclusions,
) -> Result<()> {
    way(recipe).check(options)?;
    let about_objects =
        [("--object-flags", !object_flags.is_empty()), ("--exclude", !exclusions.entries().is_empty())];
    match about_objects.into_iter().find(|(_, asked)| *asked && recipe == Recipe::Bolt) {
        Some((option, _)) => Err(Error::CompilesNothing { option, recipe: recipe.name() }),
        None => Ok(()),
    }
}

/// A recording that counts can be made of.
fn check_recording(directory: &Path) -> Result<()> {
    match load_manifest(directory)?.capture.edges {
        true => Ok(()),
        false => Err(Error::NoEdges { profile: directory.to_owned() }),
    }
}

/// The steps of a tuning by `recipe`, in order.
pub fn steps(recipe: Recipe) -> Vec<StepName> {
    use StepName::*;
    let mut steps = vec![Image, BaseKernel];
    steps.extend(way(recipe).steps());
    steps.extend([TunedKernel, Check, MeasureBase, MeasureBaseAgain, MeasureTuned]);
    steps
}

/// The name that a tuned kernel is listed under.
pub(crate) fn tuned_label(label: &str, recipe: Recipe, workload: &Workload) -> String {
    format!("{label}-{recipe}-{}", workload.name)
}

/// A recording of the training run of `kernel`, for its counts: without a trace of functions it is faster and
/// leaves megabytes.
fn record_training(session: &Session, kernel: &Kernel, workload: &Workload) -> Result<PathBuf> {
    record_run(session, kernel, workload, Capture { functions: false, edges: true }, None)
}

fn record_run(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    capture: Capture,
    model: Option<&Model>,
) -> Result<PathBuf> {
    let (run, repeat) = ("training", Repeat::Number(0));
    Ok(record(session, &RecordRequest { kernel, workload, run, capture, model, repeat })?.path)
}

/// Tells what the gate said of a profile.
fn tell(session: &Session, quality: Option<Quality>) {
    if let Some(quality) = quality {
        session.progress.note(&quality.line());
        for finding in &quality.findings {
            session.progress.note(&format!("warning: {finding}"));
        }
    }
}

fn not_of(recipe: Recipe, option: &'static str, instead: &'static str) -> Error {
    Error::NotOfRecipe { option, recipe: recipe.name(), instead }
}
