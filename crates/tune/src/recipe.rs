//! Recipes by name, `base+modifier+…`, composed of the parts in `recipes/`.

use crate::engine::StepName;
use crate::recipe_parts::context::{PreparedBuild, RecipeContext};
use crate::recipe_parts::part::{PartFacts, RecipePart, TrainingKind};
use crate::recipe_parts::settings::{RecipeOptions, SuppliedProfile};
use crate::recipe_parts::steps::{
    BASE_KERNEL, CHECK, IMAGE, MEASURE_BASE, MEASURE_BASE_AGAIN, MEASURE_TUNED, TUNED_KERNEL,
};
use crate::recipes::ENTRIES;
use crate::{Error, Result, Session};
use kerntune_kernel::{Arch, BuildRequest, Compiler, Kernel, ObjectFlags};
use kerntune_optimize::gcc_pgo::{check_files, Exclusions, UntrainedCode};
use kerntune_optimize::quality::GateFinding;
use kerntune_optimize::Requirement;
use kerntune_profile::{lacking, load_manifest};
use serde::{Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::LazyLock;

/// A way to turn a workload into a tuned kernel, such as `gcc-pgo+layout`.
#[derive(Clone, Copy)]
pub struct Recipe(&'static ComposedRecipe);

struct ComposedRecipe {
    name: String,
    about: String,
    first: &'static dyn RecipePart,
    /// All parts, including those that are implied and not named.
    parts: Vec<&'static dyn RecipePart>,
}

static ALL: LazyLock<Vec<ComposedRecipe>> = LazyLock::new(|| compose(ENTRIES));

/// Composes all recipes from `parts`: each base recipe and every sequence of modifiers that fits.
/// Shorter ones come first, upstream baselines last.
fn compose(parts: &[&'static dyn RecipePart]) -> Vec<ComposedRecipe> {
    let mut parts = parts.to_vec();
    parts.sort_by_key(|part| (part.facts().place, part.facts().name));
    let of_name = |name: &str| parts.iter().find(|part| part.facts().name == name);
    let mut all: Vec<ComposedRecipe> = Vec::new();
    let longer = |before: Option<&ComposedRecipe>| -> Vec<ComposedRecipe> {
        let there = before.map_or(&[][..], |before| &before.parts);
        let fits = |part: &&&'static dyn RecipePart| {
            !there.iter().any(|other| other.facts().name == part.facts().name) && part.follows(there)
        };
        let with = |part: &&'static dyn RecipePart| {
            let facts = part.facts();
            let (name, about) = match before {
                None => (facts.name.to_owned(), facts.about.to_owned()),
                Some(ComposedRecipe { name, .. }) => {
                    (format!("{name}+{}", facts.name), format!("{name}{}", facts.about_after))
                }
            };
            let parts = there.iter().chain([part]).chain(facts.then.and_then(of_name)).copied().collect();
            ComposedRecipe { name, about, first: before.map_or(*part, |before| before.first), parts }
        };
        parts.iter().filter(fits).map(with).collect()
    };
    let mut found = longer(None);
    while !found.is_empty() {
        let longest = all.len();
        all.append(&mut found);
        found = all[longest..].iter().flat_map(|before| longer(Some(before))).collect();
    }
    all.sort_by_key(|recipe| recipe.facts().any(|part| part.is_upstream));
    all
}

impl ComposedRecipe {
    /// Iterates over the facts about all parts.
    fn facts(&self) -> impl Iterator<Item = &PartFacts> {
        self.parts.iter().map(|part| part.facts())
    }
}

impl Recipe {
    /// Iterates over all recipes.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(Self)
    }

    /// Returns the name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Describes the recipe in one sentence.
    pub fn about(self) -> &'static str {
        &self.0.about
    }

    /// Returns whether this is an upstream baseline. Its kernel is accepted even if the compiler
    /// ignored the profile.
    pub fn is_upstream(self) -> bool {
        self.0.facts().any(|part| part.is_upstream)
    }

    /// Returns whether counters of an instrumented kernel are the only training data. Such a kernel
    /// runs on any machine.
    pub fn counts_by_itself(self) -> bool {
        self.first_facts().trained_by == TrainingKind::Counters && self.0.parts.len() == 1
    }

    /// Returns whether the tuned kernel depends on the front-end model.
    pub fn uses_model(self) -> bool {
        self.0.facts().any(|part| part.uses_model)
    }

    /// Returns the tools and versions that the recipe needs.
    pub fn requirements(self) -> impl Iterator<Item = &'static Requirement> {
        self.0.facts().flat_map(|part| part.requirements)
    }

    /// Returns the compiler to use if none is named.
    pub fn default_compiler(self) -> Compiler {
        self.0.first.default_compiler()
    }

    /// Checks whether the installed `compiler` can carry out the recipe.
    ///
    /// # Errors
    /// The tool that is needed instead; an absent compiler as [`Compiler::identify`] reports it.
    pub fn check_compiler(self, compiler: &Compiler) -> Result<()> {
        Ok(self.0.parts.iter().try_for_each(|part| part.check_compiler(compiler))?)
    }

    /// Returns the steps of a tuning by this recipe, in order.
    pub fn steps(self) -> Vec<StepName> {
        let mut steps = vec![IMAGE, BASE_KERNEL];
        steps.extend(self.first_facts().steps);
        steps.extend(self.0.facts().skip(1).flat_map(|part| part.steps_after.unwrap_or(part.steps)));
        steps.extend([TUNED_KERNEL, CHECK, MEASURE_BASE, MEASURE_BASE_AGAIN, MEASURE_TUNED]);
        steps
    }

    /// Returns the steps up to the profile that the first `count` parts make.
    pub(crate) fn steps_of_parts(self, count: usize) -> Vec<StepName> {
        let mut steps = vec![IMAGE, BASE_KERNEL];
        steps.extend(self.first_facts().steps);
        let others = self.0.facts().take(count).skip(1);
        steps.extend(others.flat_map(|part| part.steps_after.unwrap_or(part.steps)));
        steps
    }

    /// Returns whether `step` compiles a whole kernel. Ordering and rewriting make the tuned kernel
    /// in seconds.
    pub fn compiles(self, step: StepName) -> bool {
        let links = self.0.facts().any(|part| part.uses_model || !part.compiles);
        step.compiles() && !(step == TUNED_KERNEL && links)
    }

    /// Returns the request with a compiler that the recipe can use.
    pub(crate) fn build_for(self, request: &BuildRequest) -> BuildRequest {
        let compiler = match self.check_compiler(&request.compiler) {
            Ok(()) => request.compiler.clone(),
            Err(_) => self.default_compiler(),
        };
        BuildRequest { compiler, ..request.clone() }
    }

    /// Returns the [`steps`](Self::steps) for a kernel of this architecture.
    pub fn steps_on(self, arch: Arch) -> Vec<StepName> {
        if arch.can_be_recorded() {
            return self.steps();
        }
        let mut steps = vec![IMAGE, BASE_KERNEL];
        for step in self.0.facts().flat_map(|part| part.elsewhere.unwrap_or_default()) {
            if !steps.contains(step) {
                steps.push(*step);
            }
        }
        steps.push(TUNED_KERNEL);
        steps
    }

    /// Refuses an architecture for which the recipe has no steps.
    ///
    /// # Errors
    /// [`Error::NotOnArch`], with the reason and the recipes that work.
    pub fn check_arch(self, arch: Arch) -> Result<()> {
        let why_not =
            |recipe: Self| recipe.0.facts().find_map(|part| Some((part.name, part.elsewhere.err()?)));
        match why_not(self).filter(|_| !arch.can_be_recorded()) {
            None => Ok(()),
            Some((part, why)) => {
                let known: Vec<_> =
                    Self::all().filter(|one| why_not(*one).is_none()).map(Self::name).collect();
                Err(Error::NotOnArch { recipe: self.name(), arch, part, why, known: known.join(", ") })
            }
        }
    }

    /// Refuses options that the recipe would ignore.
    ///
    /// # Errors
    /// [`Error::NoValues`], [`Error::NoColdCode`], [`Error::CompilesNothing`].
    pub fn check_options(
        self,
        options: RecipeOptions,
        object_flags: &[ObjectFlags],
        exclusions: &Exclusions,
    ) -> Result<()> {
        if options.values && !self.0.facts().any(|part| part.counts_values) {
            return Err(Error::NoValues(self.name()));
        }
        let is_default = options.untrained == UntrainedCode::default();
        if !is_default && !self.0.facts().any(|part| part.tells_untrained) {
            return Err(Error::NoColdCode(self.name()));
        }
        let about_objects =
            [("--object-flags", !object_flags.is_empty()), ("--exclude", !exclusions.entries().is_empty())];
        match about_objects.into_iter().find(|(_, asked)| *asked && !self.first_facts().compiles) {
            Some((option, _)) => Err(Error::CompilesNothing { option, recipe: self.name() }),
            None => Ok(()),
        }
    }

    /// Returns the options that this recipe knows, and defaults for the others.
    pub(crate) fn known(self, options: RecipeOptions) -> RecipeOptions {
        match self.check_options(options, &[], &Exclusions::default()) {
            Ok(()) => options,
            Err(_) => RecipeOptions::default(),
        }
    }

    /// Checks whether a profile can be made of `supplied`, as far as this is known before anything
    /// is built.
    pub(crate) fn check_supplied(self, supplied: &SuppliedProfile) -> Result<()> {
        match (self.first_facts().trained_by, supplied) {
            (TrainingKind::Counters, SuppliedProfile::Counters(runs)) => {
                runs.iter().try_for_each(|run| Ok(check_files(&run.dir)?))
            }
            (TrainingKind::Recording, SuppliedProfile::Recording(directory)) => {
                let manifest = load_manifest(directory)?;
                match lacking(self.name(), &manifest.count_kinds()) {
                    None => Ok(()),
                    Some(what) => Err(Error::Lacking { profile: manifest.id, what }),
                }
            }
            (TrainingKind::Counters, SuppliedProfile::Recording(directory)) => {
                let manifest = load_manifest(directory)?;
                match lacking(self.name(), &manifest.count_kinds()) {
                    None => Err(supplied.not_of(self.name())),
                    Some(what) => Err(Error::Lacking { profile: manifest.id, what }),
                }
            }
            (_, supplied) => Err(supplied.not_of(self.name())),
        }
    }

    /// Returns the reason for which the recipe refuses a recording of `kernel`, for the quality
    /// gate.
    pub(crate) fn refusal(self, kernel: &Kernel) -> Option<GateFinding> {
        self.0.first.refusal(self.name(), kernel)
    }

    /// Returns the request of the base kernel for the user's `request`.
    pub(crate) fn base_request(self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        self.0.first.base_request(session, request)
    }

    /// Carries out all steps between base kernel and final step.
    pub(crate) fn prepare<'a>(self, context: &RecipeContext<'a>) -> Result<PreparedBuild<'a>> {
        self.prepare_parts(context, self.0.parts.len())
    }

    /// Carries out the steps of the first `count` parts.
    pub(crate) fn prepare_parts<'a>(
        self,
        context: &RecipeContext<'a>,
        count: usize,
    ) -> Result<PreparedBuild<'a>> {
        let after = |before, part: &&dyn RecipePart| part.prepare(context, before).map(Some);
        self.0.parts.iter().take(count).try_fold(None, after)?.ok_or(Error::NothingToModify)
    }

    /// Returns the names of all parts, including those that are implied and not named.
    pub(crate) fn parts(self) -> Vec<&'static str> {
        self.0.facts().map(|part| part.name).collect()
    }

    fn first_facts(self) -> &'static PartFacts {
        self.0.first.facts()
    }
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Recipe {}

impl Hash for Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        Self::all().find(|recipe| recipe.name() == given).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Recipe::name).collect();
            Error::UnknownRecipe { given: given.into(), known: names.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn recipe(name: &str) -> Recipe {
        name.parse().unwrap()
    }

    #[test]
    fn parts_go_together_as_they_say() {
        let names: Vec<&str> = Recipe::all().map(Recipe::name).collect();
        let known = [
            "gcc-pgo",
            "clang-autofdo",
            "layout",
            "bolt",
            "gcc-pgo+layout",
            "clang-autofdo+thinlto",
            "clang-autofdo+layout",
            "clang-autofdo+propeller",
            "layout+bolt",
            "clang-autofdo+thinlto+layout",
            "clang-autofdo+thinlto+propeller",
            "stock-gcov",
            "stock-autofdo",
            "stock-lld-order",
        ];
        // Additions may bring further recipes.
        let ours: Vec<&str> = names.iter().copied().filter(|name| known.contains(name)).collect();
        assert_eq!(ours, known);
        for name in [
            "bolt+layout",
            "gcc-pgo+layout+bolt",
            "layout+layout",
            "thinlto",
            "clang-autofdo+propeller+layout",
            "",
        ] {
            assert!(name.parse::<Recipe>().is_err(), "{name}");
        }
    }

    #[test]
    fn names_are_read_back_and_said_in_errors() {
        for one in Recipe::all() {
            assert_eq!(recipe(one.name()), one);
            assert_eq!(serde_json::to_value(one).unwrap(), one.name());
            assert_eq!(one.is_upstream(), one.name().starts_with("stock-"));
            assert!(!one.about().is_empty() && one.requirements().count() > 0, "{one}");
        }
        let error = "bolt2".parse::<Recipe>().unwrap_err().to_string();
        assert!(
            error.starts_with("no recipe `bolt2`; there are gcc-pgo, clang-autofdo, layout, "),
            "{error}"
        );
        let about = recipe("clang-autofdo+thinlto+layout").about();
        assert_eq!(
            about,
            "clang-autofdo+thinlto, and then layout by a recording of the kernel that came out"
        );
    }

    #[test]
    fn steps_that_compile_a_kernel_are_told_from_those_that_link_one() {
        let compiling = |name: &str| -> Vec<&str> {
            let recipe = recipe(name);
            recipe.steps().into_iter().filter(|step| recipe.compiles(*step)).map(StepName::as_str).collect()
        };
        assert_eq!(compiling("gcc-pgo"), ["base-kernel", "instrumented-kernel", "tuned-kernel"]);
        assert_eq!(compiling("layout"), ["base-kernel", "movable-kernel"]);
        assert_eq!(compiling("gcc-pgo+layout"), ["base-kernel", "instrumented-kernel", "movable-kernel"]);
        assert_eq!(compiling("bolt"), ["base-kernel"]);
        assert_eq!(compiling("layout+bolt"), ["base-kernel", "movable-kernel"]);
        assert_eq!(compiling("clang-autofdo+propeller"), ["base-kernel", "mapped-kernel", "movable-kernel"]);
    }

    #[test]
    fn each_step_has_a_name_of_its_own() {
        for recipe in Recipe::all() {
            let steps = recipe.steps();
            let names: BTreeSet<&str> = steps.iter().map(|step| step.as_str()).collect();
            assert_eq!(names.len(), steps.len(), "{recipe}");
        }
        let steps = recipe("clang-autofdo+propeller").steps();
        let names: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
        assert_eq!(
            names[2..10],
            [
                "record-training",
                "profile",
                "mapped-kernel",
                "record-mapped",
                "blocks",
                "movable-kernel",
                "record-movable",
                "order"
            ]
        );
    }

    #[test]
    fn a_kernel_that_nothing_records_gets_what_can_be_had_and_a_reason() {
        for name in ["gcc-pgo", "clang-autofdo", "layout", "gcc-pgo+layout", "clang-autofdo+layout"] {
            recipe(name).check_arch(Arch::Um).unwrap();
        }
        for (name, word) in [
            ("clang-autofdo+propeller", "propeller: "),
            ("clang-autofdo+thinlto", "Segfault"),
            ("bolt", "no machine records"),
            ("layout+bolt", "no machine records"),
            ("stock-lld-order", "lld"),
        ] {
            recipe(name).check_arch(Arch::X86_64).unwrap();
            let error = recipe(name).check_arch(Arch::Um).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("There are gcc-pgo, clang-autofdo, "), "{error}");
        }
        let names = |name| -> Vec<&str> {
            recipe(name).steps_on(Arch::Um).iter().map(|step| step.as_str()).collect()
        };
        let steps = names("clang-autofdo+layout");
        assert_eq!(
            steps,
            [
                "image",
                "base-kernel",
                "training-kernel",
                "record-training",
                "profile",
                "movable-kernel",
                "order",
                "tuned-kernel"
            ]
        );
        assert_eq!(recipe("layout").steps_on(Arch::X86_64), recipe("layout").steps());
    }

    #[test]
    fn what_a_recipe_would_ignore_is_refused() {
        let values = RecipeOptions { values: true, ..RecipeOptions::default() };
        let check = |name: &str, options, flags: &[ObjectFlags]| {
            recipe(name).check_options(options, flags, &Exclusions::default())
        };
        check("gcc-pgo+layout", values, &[]).unwrap();
        for name in ["clang-autofdo", "layout", "bolt", "stock-gcov"] {
            assert!(matches!(check(name, values, &[]), Err(Error::NoValues(_))), "{name}");
        }
        let flags = [ObjectFlags { path: "a.o".into(), add: vec![], leave_out: vec![], reason: None }];
        assert!(matches!(
            check("bolt", RecipeOptions::default(), &flags),
            Err(Error::CompilesNothing { .. })
        ));
        check("clang-autofdo", RecipeOptions::default(), &flags).unwrap();
    }

    #[test]
    fn each_recipe_asks_for_what_it_needs() {
        let manifest = include_str!("../../cli/tests/schemas/kernel-2.json");
        let mut manifest: kerntune_kernel::KernelManifest = serde_json::from_str(manifest).unwrap();
        manifest.movable = false;
        let kernel = Kernel { dir: "/nowhere".into(), manifest };
        let ask = |name: &str| {
            recipe(name).refusal(&kernel).map(|finding| format!("{finding}")).unwrap_or_default()
        };
        for name in ["gcc-pgo", "gcc-pgo+layout", "stock-gcov"] {
            assert!(ask(name).contains(name) && ask(name).contains("--gcda"), "{}", ask(name));
        }
        assert!(ask("layout").contains("kernel build --movable"));
        for name in ["clang-autofdo", "clang-autofdo+propeller", "stock-autofdo"] {
            assert!(ask(name).contains("cannot use counts of this kernel"), "{}", ask(name));
        }
        assert_eq!(ask("bolt"), "");
    }

    #[test]
    fn compilers_are_told_what_the_recipe_needs() {
        recipe("gcc-pgo").check_compiler(&Compiler::default()).unwrap();
        let clang = Compiler::Clang { llvm: "-19".into() };
        let error = recipe("gcc-pgo").check_compiler(&clang).unwrap_err().to_string();
        assert!(error.contains("clang-19") && error.contains("GCC 12"), "{error}");
        let error = recipe("clang-autofdo").check_compiler(&Compiler::default()).unwrap_err().to_string();
        assert!(error.contains("gcc") && error.contains("Clang 19"), "{error}");
    }
}
