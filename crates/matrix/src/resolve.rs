//! Resolves a plan file into a plan: reads everything that it names, and identifies it by content.

use crate::plan_file::{CommandEntry, ConfigurationEntry, KernelEntry};
use crate::{
    inputs, materials, pack, Error, KernelRef, MatrixCell, MatrixPlan, PlanFile, RefusedCell, Result,
    SourceRef, Store, Task, TaskEnvironment, TaskKind,
};
use kerntune_guest::{read_text, Workload, SHIPPED};
use kerntune_tune::{model, Recipe, Session};
use kerntune_work::{ClassifyError, CommitHash, ErrorClass, Hash, Id, RelativePath};
use std::path::Path;

/// Recipe name that stands for the untuned kernel.
const NONE: &str = "none";
/// Placeholder in cells for an axis with nothing to distinguish.
const DASH: &str = "-";
/// Run whose counters are measured.
const RUN: &str = "measured";

/// Makes a plan from a file, without building anything. Puts kernels that are already built into
/// the store for other machines, and packs the guest images, because their contents are inputs.
///
/// # Errors
/// Missing files, kernels or sources; impossible combinations.
pub fn resolve(file: &PlanFile, environment: &TaskEnvironment, store: &dyn Store) -> Result<MatrixPlan> {
    let session = environment.session()?;
    let model = model::find(file.model.as_deref().unwrap_or(model::DEFAULT))?;
    if model::find(&model.name).map_or(true, |known| known.text != model.text) {
        let name = &model.name;
        return Err(Error::Plan(format!(
            "the model {name}: a matrix takes models that come with kerntune, and parts of them"
        )));
    }
    let plan = MatrixPlan::new(file.name.clone(), &model);
    let mut maker = PlanBuilder { file, session: &session, store, plan };
    let workloads = maker.workloads()?;
    let recipes: Vec<&str> = match &file.recipes[..] {
        [] => vec![NONE],
        some => some.iter().map(String::as_str).collect(),
    };
    let mut kernels = Vec::new();
    for entry in &file.kernel {
        kernels.extend(maker.kernels(entry, &recipes)?);
    }
    for kernel in &kernels {
        for recipe in &recipes {
            for workload in &workloads {
                maker.cell(kernel, recipe, workload)?;
            }
        }
    }
    for entry in &file.command {
        maker.command(entry)?;
    }
    Ok(maker.in_order())
}

/// A kernel of the matrix with its names in cells.
struct PlannedKernel {
    kernel: String,
    configuration: String,
    compiler: String,
    is: KernelRef,
}

struct PlanBuilder<'a> {
    file: &'a PlanFile,
    session: &'a Session<'a>,
    store: &'a dyn Store,
    plan: MatrixPlan,
}

impl PlanBuilder<'_> {
    /// Adds the workloads to the plan and returns their names.
    fn workloads(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for given in &self.file.workloads {
            let is_file = given.contains('/') || given.ends_with(".toml");
            let (workload, text) = if is_file {
                let path = self.file.directory.join(given);
                let text = read_text("read workload", &path)?;
                (Workload::parse(&text, &path)?, Some(text))
            } else {
                (Workload::find(given, &[])?, None)
            };
            workload.require_run(RUN)?;
            let name = workload.name.clone();
            let is_shipped = SHIPPED.iter().any(|(known, _)| *known == name);
            if names.contains(&name) || (text.is_some() && is_shipped) {
                return Err(Error::Plan(format!(
                    "the workload name {name:?} stands for two workloads: give one another name"
                )));
            }
            self.plan.workloads.insert(name.clone(), text);
            names.push(name);
        }
        Ok(names)
    }

    /// Adds a file's text to the plan and returns its hash.
    fn text(&mut self, path: &Path) -> Result<Hash> {
        let text = read_text("read", &self.file.directory.join(path))?;
        let hash = Hash::of(text.as_bytes());
        self.plan.texts.insert(hash.clone(), text);
        Ok(hash)
    }

    fn texts(&mut self, paths: &[std::path::PathBuf]) -> Result<Vec<Hash>> {
        paths.iter().map(|path| self.text(path)).collect()
    }

    /// Finds a kernel that is already built and puts it into the store.
    fn existing_kernel(&self, name: &str) -> Result<KernelRef> {
        let kernel = kerntune_kernel::find(self.session.work, name)?;
        if !kernel.manifest.arch.is_pc() {
            return Err(Error::Plan(format!(
                "kernel {name} is for {}: a matrix is of kernels for a PC",
                kernel.manifest.arch.name()
            )));
        }
        if !pack::can_send(&kernel) {
            return Err(Error::Plan(format!(
                "kernel {name} has links among its files, which no store takes"
            )));
        }
        pack::send(self.store, &kernel)?;
        Ok(KernelRef::Given { id: kernel.manifest.id.parse()?, content: kernel.content()? })
    }

    /// Plans the kernels of an entry: one for each source, configuration and compiler.
    /// A kernel that cannot be built is refused with each of the recipes.
    fn kernels(&mut self, entry: &KernelEntry, recipes: &[&str]) -> Result<Vec<PlannedKernel>> {
        if let Some(built) = &entry.built {
            let kernel = entry.name.clone().unwrap_or_else(|| built.clone());
            let dash = DASH.to_owned();
            return Ok(vec![PlannedKernel {
                kernel,
                configuration: dash.clone(),
                compiler: dash,
                is: self.existing_kernel(built)?,
            }]);
        }
        let usual = [ConfigurationEntry { name: DASH.into(), ..ConfigurationEntry::default() }];
        let configurations =
            if self.file.configuration.is_empty() { &usual[..] } else { &self.file.configuration[..] };
        let gcc = ["gcc".to_owned()];
        let compilers = if self.file.compilers.is_empty() { &gcc[..] } else { &self.file.compilers[..] };
        let patches = self.texts(&entry.patches)?;
        let config = entry.config.as_deref().map(|path| self.text(path)).transpose()?;
        let mut planned = Vec::new();
        for (kernel, source) in self.sources(entry)? {
            for configuration in configurations {
                let fragments = self.texts(&configuration.fragments)?;
                for compiler in compilers {
                    let words = [kernel.as_str(), &configuration.name, compiler];
                    let label: Vec<&str> = words.into_iter().filter(|word| *word != DASH).collect();
                    let kind = TaskKind::Build {
                        source: source.clone(),
                        patches: patches.clone(),
                        config: config.clone(),
                        fragments: fragments.clone(),
                        set: configuration.set.clone(),
                        compiler: compiler.clone(),
                        kcflags: configuration.kcflags.clone(),
                        label: sanitize_label(&label.join("-")).parse()?,
                    };
                    let made = self.task(format!("build {}", words.join(" ")), kind);
                    let names = [&kernel, &configuration.name, compiler];
                    match made {
                        Ok(task) => {
                            let [kernel, configuration, compiler] = names.map(Clone::clone);
                            let is = KernelRef::Of(task);
                            planned.push(PlannedKernel { kernel, configuration, compiler, is });
                        }
                        Err(error) => self.refuse(names, recipes, error)?,
                    }
                }
            }
        }
        Ok(planned)
    }

    /// Returns the sources of an entry with their names in cells.
    fn sources(&self, entry: &KernelEntry) -> Result<Vec<(String, SourceRef)>> {
        if let Some(source) = &entry.source {
            let path = self.file.directory.join(source);
            let is_path = !source.starts_with("debian:") && path.exists();
            let named = match is_path {
                true => path.canonicalize().unwrap_or(path).display().to_string(),
                false => source.clone(),
            };
            let name =
                entry.name.clone().unwrap_or_else(|| source.rsplit('/').next().unwrap_or(source).to_owned());
            return Ok(vec![(name, SourceRef::Named(named))]);
        }
        let tree = self.file.directory.join(entry.tree.clone().unwrap_or_default());
        let tree = tree.canonicalize().unwrap_or(tree);
        let mut commits = Vec::new();
        for revision in &entry.commits {
            let listed = match revision.contains("..") {
                true => materials::git(&tree, &["rev-list", "--reverse", revision])?,
                false => {
                    materials::git(&tree, &["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?
                }
            };
            for commit in listed.lines() {
                let odd = |_| Error::Git { tree: tree.clone(), message: commit.to_owned() };
                let hash: CommitHash = commit.parse().map_err(odd)?;
                let name = if revision.contains("..") { &commit[..12] } else { revision };
                let at = SourceRef::Commit { tree: tree.display().to_string(), commit: hash };
                commits.push((name.to_owned(), at));
            }
        }
        Ok(commits)
    }

    fn cell(&mut self, kernel: &PlannedKernel, recipe: &str, workload: &str) -> Result<()> {
        let words = [kernel.kernel.as_str(), &kernel.configuration, &kernel.compiler];
        let words: Vec<&str> = words.into_iter().filter(|word| *word != DASH).collect();
        let words = words.join(" ");
        let mut of = kernel.is.clone();
        if recipe != NONE {
            let known: Recipe = recipe.parse()?;
            let compiler = match &kernel.is {
                KernelRef::Of(_) => kernel.compiler.parse()?,
                KernelRef::Given { id, .. } => {
                    let given = kerntune_kernel::find(self.session.work, id)?;
                    kerntune_tune::optimize::request_of(self.session.work, &given)?.compiler
                }
            };
            if let Err(error) = known.check_compiler(&compiler) {
                let names = [&kernel.kernel, &kernel.configuration, &kernel.compiler];
                return self.refuse(names, &[recipe], error.into());
            }
            let compiler = compiler.to_string();
            self.plan.workload(workload)?.require_run("training")?;
            let (recipe_name, workload_name) = (recipe.to_owned(), workload.to_owned());
            let kind = TaskKind::Tune { kernel: of, recipe: recipe_name, compiler, workload: workload_name };
            of = KernelRef::Of(self.task(format!("tune {words} {recipe} {workload}"), kind)?);
        }
        let kind = TaskKind::Measure { kernel: of, workload: workload.to_owned(), run: RUN.into() };
        let title = match recipe {
            NONE => format!("measure {words} {workload}"),
            recipe => format!("measure {words} {recipe} {workload}"),
        };
        let task = self.task(title, kind)?;
        let cell = MatrixCell {
            kernel: kernel.kernel.clone(),
            configuration: kernel.configuration.clone(),
            compiler: kernel.compiler.clone(),
            recipe: recipe.to_owned(),
            workload: workload.to_owned(),
            task,
        };
        if self.plan.cells.iter().any(|other| other.name() == cell.name()) {
            return Err(Error::Plan(format!(
                "two cells are called {}: give one of the kernels a `name`",
                cell.name()
            )));
        }
        self.plan.cells.push(cell);
        Ok(())
    }

    /// Notes that a kernel cannot be had with these recipes, if the plan file asks for that.
    fn refuse(&mut self, names: [&String; 3], recipes: &[&str], error: Error) -> Result<()> {
        let is_missing = error.class() == ErrorClass::MissingPrerequisite;
        if !self.file.refusals || !(is_missing || error.class() == ErrorClass::Usage) {
            return Err(error);
        }
        let [kernel, configuration, compiler] = names.map(Clone::clone);
        for recipe in recipes {
            let refused = RefusedCell {
                kernel: kernel.clone(),
                configuration: configuration.clone(),
                compiler: compiler.clone(),
                recipe: (*recipe).to_owned(),
                is_missing,
                reason: error.to_string(),
            };
            if !self.plan.refused.contains(&refused) {
                self.plan.refused.push(refused);
            }
        }
        Ok(())
    }

    fn command(&mut self, entry: &CommandEntry) -> Result<()> {
        let kernels =
            entry.kernels.iter().map(|name| self.existing_kernel(name)).collect::<Result<Vec<_>>>()?;
        let mut files = Vec::new();
        for path in &entry.files {
            let odd = |error| {
                Error::Plan(format!("{error}: the files of a command are below the plan's directory"))
            };
            let name: RelativePath = path.display().to_string().parse().map_err(odd)?;
            files.push((name, self.text(path)?));
        }
        let (arguments, cores) = (entry.arguments.clone(), entry.cores);
        let task = self.task(
            format!("command {}", entry.name),
            TaskKind::Command { arguments, kernels, files, cores },
        )?;
        let dash = || DASH.to_owned();
        let (kernel, configuration, compiler, recipe) = (dash(), dash(), dash(), dash());
        self.plan.cells.push(MatrixCell {
            kernel,
            configuration,
            compiler,
            recipe,
            workload: entry.name.clone(),
            task,
        });
        Ok(())
    }

    /// Determines the task's inputs and adds it to the plan.
    fn task(&mut self, title: String, kind: TaskKind) -> Result<Id> {
        let inputs = inputs::determine(&self.plan, self.session, &kind)?;
        Ok(self.plan.add(Task::new(title, kind, inputs)))
    }

    /// Sorts tasks so that builds and then tunings come first, because others wait for them.
    fn in_order(mut self) -> MatrixPlan {
        let rank = |task: &Task| match task.kind {
            TaskKind::Build { .. } => 0,
            TaskKind::Tune { .. } => 1,
            TaskKind::Measure { .. } => 2,
            TaskKind::Command { .. } => 3,
        };
        self.plan.tasks.sort_by_key(rank);
        self.plan
    }
}

/// Replaces characters that a kernel's label must not contain.
fn sanitize_label(label: &str) -> String {
    let label: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    label.trim_start_matches(['.', '-']).to_owned()
}
