//! Interface of a part of a recipe: a base recipe, or a modifier that follows one.

use crate::engine::StepName;
use crate::recipe_parts::context::{PreparedBuild, RecipeContext};
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, Compiler, Kernel};
use kerntune_optimize::quality::GateFinding;
use kerntune_optimize::Requirement;

/// Facts about a part.
#[derive(Debug, Clone, Copy)]
pub struct PartFacts {
    /// Name on the command line and in manifests. Names of modifiers stand after a `+`.
    pub name: &'static str,
    /// Description of a recipe that stands alone, in one sentence.
    pub about: &'static str,
    /// Description of a modifier: the rest of a sentence that begins with the name of the recipe
    /// before it.
    pub about_after: &'static str,
    /// Rank in lists; smaller ranks come first.
    pub place: u8,
    /// Modifier that always comes after this one without being named.
    pub then: Option<&'static str>,
    /// True if this is an upstream baseline, which exists only to compare with: its kernel is
    /// accepted even if the compiler ignored the profile.
    pub is_upstream: bool,
    /// True if the tuned kernel is compiled, so that flags and exclusions of single objects apply.
    pub compiles: bool,
    /// True if the recipe can profile values besides arcs (`--values`).
    pub counts_values: bool,
    /// True if the recipe can compile code that the training did not run in several ways (`--cold`).
    pub tells_untrained: bool,
    /// True if the result depends on the front-end model.
    pub uses_model: bool,
    /// Kind of profile that can replace the recipe's own training.
    pub trained_by: TrainingKind,
    /// Tools and versions without which the recipe cannot run.
    pub requirements: &'static [Requirement],
    /// Steps between base kernel and tuned kernel, in order.
    pub steps: &'static [StepName],
    /// The steps of a modifier, if they are others than those of the recipe that stands alone.
    pub steps_after: Option<&'static [StepName]>,
    /// Steps for a kernel that no machine records (`--arch um`), or the reason why there are none.
    pub elsewhere: std::result::Result<&'static [StepName], &'static str>,
}

impl PartFacts {
    /// Defaults: compiles, trained by a recording, no steps.
    pub const DEFAULT: PartFacts = PartFacts {
        name: "",
        about: "",
        about_after: "",
        place: u8::MAX,
        then: None,
        is_upstream: false,
        compiles: true,
        counts_values: false,
        tells_untrained: false,
        uses_model: false,
        trained_by: TrainingKind::Recording,
        requirements: &[],
        steps: &[],
        steps_after: None,
        elsewhere: Err(
            "it needs a recording of that kernel's own code, and no machine records a kernel that is a process",
        ),
    };
}

/// A recipe, or a modifier that follows one: `ENTRY` of a file of `recipes/`.
pub trait RecipePart: Sync {
    /// Returns name, place and other facts.
    fn facts(&self) -> &PartFacts;

    /// Returns whether this part can follow the parts `before`. A base recipe follows an empty
    /// list.
    fn follows(&self, before: &[&dyn RecipePart]) -> bool {
        before.is_empty()
    }

    /// Returns the compiler to use if none is named.
    fn default_compiler(&self) -> Compiler {
        Compiler::default()
    }

    /// Checks whether the installed compiler can carry out the recipe.
    ///
    /// # Errors
    /// The tool that is needed instead.
    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        Ok(compiler.identify().map(drop)?)
    }

    /// Returns the reason for which `recipe` refuses a recording of `kernel`, for the quality gate.
    fn refusal(&self, _recipe: &str, _kernel: &Kernel) -> Option<GateFinding> {
        None
    }

    /// Returns the request that builds the base kernel, made from the user's request.
    ///
    /// # Errors
    /// A source or a configuration that cannot be used.
    fn base_request(&self, _session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        Ok(request.clone())
    }

    /// Carries out the steps, after the result of the part before.
    ///
    /// # Errors
    /// Those of the steps.
    fn prepare<'a>(
        &self,
        _context: &RecipeContext<'a>,
        before: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        before.ok_or(Error::NothingToModify)
    }
}

/// Kind of training data that a recipe takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingKind {
    /// Counters of an instrumented kernel.
    Counters,
    /// A recording with edges.
    Recording,
}
