//! What the loop asks of a recipe: one file for each, and nothing of it elsewhere.

mod clang_autofdo;
mod gcc_pgo;

use crate::plan::StepName;
use crate::{Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::{Proof, Recipe};
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
    /// `gcc-pgo`: count arcs alone, even where there are patches for values.
    pub no_values: bool,
}

/// The base kernel with what it was built from, and what it is tuned for.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub session: &'a Session<'a>,
    pub workload: &'a Workload,
    /// As [`Way::base`] made it.
    pub request: &'a BuildRequest,
    pub base: &'a Kernel,
    pub options: RecipeOptions,
}

/// Makes a step, or finds that it was made; hands over the result's directory.
pub(crate) type Make<'a> = dyn FnMut(StepName, &mut dyn FnMut() -> Result<PathBuf>) -> Result<PathBuf> + 'a;

/// A recipe as the loop sees it.
pub(crate) trait Way {
    /// All steps of a tuning, in order.
    fn steps(&self) -> &'static [StepName];

    /// Whether all that is asked for in `options` is this recipe's.
    fn check(&self, options: RecipeOptions) -> Result<()>;

    /// What the base kernel is built from, where `request` was asked for.
    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest>;

    /// The steps between base kernel and tuned kernel, up to the profile. With `given` there is no training
    /// run.
    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf>;

    /// What the tuned kernel is built from. `profile` is what [`Way::profile`] made.
    fn tuned(&self, job: &Job, profile: &Path) -> Result<BuildRequest>;

    /// Whether the tuned kernel carries its profile.
    fn prove(&self, base: &Kernel, profile: &Path, tuned: &Kernel) -> Result<Proof>;
}

/// How the loop goes by `recipe`.
pub(crate) fn way(recipe: Recipe) -> &'static dyn Way {
    match recipe {
        Recipe::GccPgo => &gcc_pgo::GccPgo,
        Recipe::ClangAutofdo => &clang_autofdo::ClangAutofdo,
    }
}

/// The steps of a tuning by `recipe`, in order.
pub fn steps(recipe: Recipe) -> &'static [StepName] {
    way(recipe).steps()
}

/// What the tuned kernel is built from, listed under the label of what was asked for.
pub(crate) fn tuned_request(
    way: &dyn Way,
    recipe: Recipe,
    label: &str,
    job: &Job,
    profile: &Path,
) -> Result<BuildRequest> {
    let mut request = way.tuned(job, profile)?;
    request.label = format!("{label}-{recipe}-{}", job.workload.name);
    Ok(request)
}

fn not_of(recipe: Recipe, option: &'static str, instead: &'static str) -> Error {
    Error::NotOfRecipe { option, recipe: recipe.name(), instead }
}
