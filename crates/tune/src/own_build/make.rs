//! All files that fit a compiler, from a source, a configuration and a workload.

use super::readme::Readme;
use super::{afdo, counters, order, propeller};
use crate::dry_run::DryRun;
use crate::engine::{Engine, OnStep, StepInput, TuningPlan};
use crate::recipe_parts::context::{RecipeContext, TRAINING_CAPTURE};
use crate::recipe_parts::exclude::ExcludedObjects;
use crate::recipe_parts::settings::TuningSettings;
use crate::recipe_parts::steps::{build_kernel, pack_image, BASE_KERNEL, IMAGE};
use crate::runs::record::{record, RecordRequest, Repetition};
use crate::tuning::optimize::check;
use crate::{Error, Recipe, Result, Session};
use kerntune_convert::link_order::{script_fragment, symbol_order};
use kerntune_convert::own_build::SourceNames;
use kerntune_guest::Workload;
use kerntune_kernel::{preview, BuildRequest, Compiler, Kernel, KernelSource};
use kerntune_optimize::clang_autofdo::AutofdoProfile;
use kerntune_optimize::propeller::PreparedBlocks;
use kerntune_optimize::PreparedResult;
use kerntune_profile::{find, Profile};
use kerntune_work::{write_atomic, IoContext, Key};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the text with the lines for builds.
const README: &str = "README.md";

/// Source, configuration, compiler and workload.
#[derive(Debug, Clone, Copy)]
pub struct FilesRequest<'a> {
    /// Request of the base kernel.
    pub build: &'a BuildRequest,
    /// Workload whose training is recorded.
    pub workload: &'a Workload,
    /// With Clang: build a second kernel, for Propeller's files.
    pub propeller: bool,
    /// Settings of the training.
    pub settings: TuningSettings<'a>,
}

/// Files for a build of the user's own.
#[derive(Debug)]
pub struct MadeFiles {
    /// Base kernel.
    pub base: Kernel,
    /// Id of the recording that `profile check` takes.
    pub recording: String,
    /// Paths in the output directory, and bytes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl FilesRequest<'_> {
    fn recipe(&self) -> Result<Recipe> {
        match (&self.build.compiler, self.propeller) {
            (Compiler::Gcc { .. }, false) => "gcc-pgo".parse(),
            (Compiler::Gcc { program }, true) => Err(Error::NotOfCompiler { compiler: program.clone() }),
            (Compiler::Clang { .. }, false) => "clang-autofdo".parse(),
            (Compiler::Clang { .. }, true) => "clang-autofdo+propeller".parse(),
        }
    }

    /// Number of the recipe's parts that make the files. The order of functions that follows
    /// Propeller is computed without a kernel of its own.
    fn parts(&self) -> usize {
        1 + usize::from(self.propeller)
    }

    /// Returns the steps, in order.
    ///
    /// # Errors
    /// Options that do not fit the compiler.
    pub fn steps(&self) -> Result<Vec<crate::StepName>> {
        Ok(self.recipe()?.steps_of_parts(self.parts()))
    }

    fn plan(&self, session: &Session) -> Result<TuningPlan> {
        let Self { build, workload, settings, .. } = *self;
        let recipe = self.recipe()?;
        let about = vec![
            format!("source {}", build.source),
            format!("workload {}", workload.name),
            format!("files for a build of one's own ({recipe})"),
        ];
        let key = build
            .add_to(Key::new("own-build/1", crate::CODE), session)?
            .field("workload", workload.content_hash()?)
            .field("recipe", recipe.name())
            .field("machine", &session.machine_id);
        TuningPlan::open(session.work, &settings.add_to_key(key)?.id(), self.steps()?, about)
    }

    /// Checks the request, and adds its steps to a dry run.
    ///
    /// # Errors
    /// A source or a configuration that cannot be used; missing tools.
    pub fn dry_run(&self, dry: &mut DryRun) -> Result<()> {
        let (session, recipe) = (dry.session(), self.recipe()?);
        check(recipe, self.build, self.workload, &self.settings)?;
        preview(session.work, self.build)?;
        let plan = self.plan(session)?;
        let base = recipe.base_request(session, self.build)?;
        dry.recipe((recipe, &plan), (&base, None), self.workload)
    }
}

/// Carries out every step that has no result yet, and returns the files. `on_step` is called as each
/// step begins, with its result if it exists.
///
/// # Errors
/// Those of the steps.
pub fn make_files(session: &Session, request: &FilesRequest, on_step: &OnStep) -> Result<MadeFiles> {
    let FilesRequest { build, workload, settings, .. } = *request;
    let recipe = request.recipe()?;
    check(recipe, build, workload, &settings)?;
    let engine = Engine::new(session, request.plan(session)?, on_step);
    let base_request = |asked: &BuildRequest| recipe.base_request(session, asked);
    let asked = base_request(build)?;
    engine.run(IMAGE, workload, pack_image)?;
    let base = engine.run(BASE_KERNEL, &asked, build_kernel)?;
    let file = engine.directory().join("exclude.toml");
    let excluded = ExcludedObjects::open(settings.exclusions, Some(file))?;
    let context = RecipeContext {
        engine: &engine,
        recipe: recipe.name(),
        parts: &recipe.parts(),
        workload,
        base_request: &base_request,
        request: &asked,
        base: &base,
        settings,
        excluded: &excluded,
    };
    let profile = recipe.prepare_parts(&context, request.parts())?.profile;
    // The recording of the base kernel, which every recipe here makes first.
    let of_base = RecordRequest {
        kernel: &base,
        workload,
        run: "training",
        capture: TRAINING_CAPTURE,
        model: None,
        repeat: Repetition::Number(0),
    };
    let recording = record(session, &of_base)?;
    let loaded = Profile::load(&recording.path)?;
    let sources = source_names(&build.source);
    let mut readme = Readme::new(&base, workload, &loaded.manifest.id);
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut add = |path: &str, bytes: Vec<u8>| files.push((path.into(), bytes));
    let names = match request.propeller {
        true => {
            let blocks = PreparedBlocks::load(&profile)?;
            let mapped = kerntune_kernel::find(session.work, &blocks.kernel)?;
            let mapped_recording = Profile::load(&find(session.work, &blocks.recording)?.path)?;
            let made = propeller(session.work, &mapped_recording, &mapped, &sources)?;
            add("propeller_cc_profile.txt", made.compiler.into_bytes());
            add("propeller_ld_profile.txt", made.linker.into_bytes());
            add("kernel.afdo", made.afdo.unwrap_or_default());
            readme.propeller();
            None
        }
        false => Some(order(session.work, &loaded, &base)?),
    };
    match &build.compiler {
        Compiler::Clang { .. } if !request.propeller => {
            // Checked as a result of the recipe, and read again.
            AutofdoProfile::load(&profile)?;
            add("kernel.afdo", afdo(session.work, &loaded, &base)?.0);
            readme.afdo();
        }
        Compiler::Clang { .. } => {}
        Compiler::Gcc { .. } => {
            let id = profile.file_name().unwrap_or_default().to_string_lossy();
            let made = counters(session.work, &id, None, &sources)?.counters;
            for (name, bytes) in made.files {
                add(&format!("gcda/{name}"), bytes);
            }
            add(
                "gcda/objects",
                made.objects.iter().map(|name| format!("{name}\n")).collect::<String>().into(),
            );
            readme.counters(made.kept);
        }
    }
    if let Some(names) = names {
        add("order.txt", symbol_order(names.iter().map(String::as_str)).into_bytes());
        add("order.lds", script_fragment(names.iter().map(String::as_str)).into_bytes());
        readme.order();
    }
    add(README, readme.text().into_bytes());
    Ok(MadeFiles { base, recording: recording.manifest.id, files })
}

impl MadeFiles {
    /// Writes the files into an existing directory.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        for (name, bytes) in &self.files {
            let path = directory.join(name);
            let parent = path.parent().unwrap_or(directory);
            fs::create_dir_all(parent).at("create", parent)?;
            write_atomic(&path, bytes)?;
        }
        Ok(())
    }
}

/// Returns the names of sources in builds of this source: in the tree, directly below it and elsewhere.
fn source_names(source: &KernelSource) -> SourceNames {
    match source {
        KernelSource::Directory(path) => {
            SourceNames::in_tree().and_of(&path.canonicalize().unwrap_or_else(|_| path.clone()))
        }
        KernelSource::Debian(_) | KernelSource::Tarball(_) => SourceNames::in_tree(),
    }
}
