//! Recipe `clang-autofdo`: records the training run of the base kernel, or of its surrogate, and
//! compiles with the counts.

use crate::recipe_parts::context::{PreparedBuild, RecipeContext, TrainingRecording};
use crate::recipe_parts::part::{PartFacts, RecipePart};
use crate::recipe_parts::steps::{reported, PROFILE, RECORD_TRAINING, TRAINING_KERNEL};
use crate::runs::record::RecordedProfile;
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Compiler, ImportedSource, Kernel};
use kerntune_optimize::clang_autofdo::{
    base_request, check_compiler, check_kernel, default_compiler, prepare_profile, prove, tuned_request,
    AutofdoProfile, LinkMode, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_profile::Profile;

/// AutoFDO: exact counts of the production kernel, compiled in with Clang's `-fprofile-sample-use`.
pub const ENTRY: ClangAutofdo = ClangAutofdo {
    facts: PartFacts {
        name: NAME,
        about:
            "records which code of the plain kernel the workload runs and rebuilds with these counts (Clang)",
        place: 20,
        requirements: REQUIREMENTS,
        steps: &[RECORD_TRAINING, PROFILE],
        elsewhere: Ok(&[TRAINING_KERNEL, RECORD_TRAINING, PROFILE]),
        ..PartFacts::DEFAULT
    },
    link: None,
    sorted_by_linker: false,
};

/// The recipe and its upstream baselines.
pub struct ClangAutofdo {
    pub facts: PartFacts,
    /// Way to link the objects; `None` if it depends on the modifiers.
    pub link: Option<LinkMode>,
    /// True if each function has a section, and lld sorts them by the profile's call graph.
    pub sorted_by_linker: bool,
}

impl RecipePart for ClangAutofdo {
    fn facts(&self) -> &PartFacts {
        &self.facts
    }

    fn default_compiler(&self) -> Compiler {
        default_compiler()
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        check_compiler(compiler)
    }

    fn refusal(&self, recipe: &str, kernel: &Kernel) -> Option<GateFinding> {
        let reason = check_kernel(kernel).err()?;
        let found = format!("recipe {recipe} cannot use counts of this kernel");
        Some(GateFinding::refused("recipe", found, reason.to_string()))
    }

    fn base_request(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        // The flags depend on the source's version.
        let version = ImportedSource::version_of(session.work, &request.source, session.progress)?;
        Ok(base_request(request, &version)?)
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        _: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let base = context.base;
        let TrainingRecording { kernel, recording } = context.trained()?;
        let profile = context.engine.run(PROFILE, (&kernel, &recording), convert_counts)?;
        let link = self.link.unwrap_or_else(|| link(context));
        let mut request = tuned_request(context.request, base, &profile, link)?;
        request.movable |= self.sorted_by_linker;
        Ok(PreparedBuild::to_compile(context, profile.dir.clone(), request, move |tuned| {
            Ok(Box::new(prove(base, &profile, tuned)?))
        }))
    }
}

/// Returns how objects are linked, which depends on the modifiers.
pub(super) fn link(context: &RecipeContext) -> LinkMode {
    if context.has("thinlto") {
        LinkMode::ThinLto
    } else if context.has("layout") && !context.has("propeller") {
        // Upstream's link splits off code that never ran, and the order is of the rest.
        LinkMode::Upstream
    } else {
        LinkMode::Objects
    }
}

/// Converts counts to Clang's format.
fn convert_counts(
    session: &Session,
    (kernel, recording): (&Kernel, &RecordedProfile),
) -> Result<AutofdoProfile> {
    reported(session, prepare_profile(session.work, &Profile::load(&recording.path)?, kernel)?)
}
