//! A plan file → a plan: everything that it names is read, and named by its content.

use crate::plan_file::{CommandEntry, ConfigurationEntry, KernelEntry};
use crate::{
    inputs, materials, pack, Cell, Error, KernelRef, Place, Plan, PlanFile, Result, SourceRef, Store, Task,
    What,
};
use kerntune_guest::{read_text, Workload, SHIPPED};
use kerntune_tune::{model, Recipe, Session};
use kerntune_work::{CommitHash, Hash, Id, RelativePath};
use std::path::Path;

/// The word for the kernel as it is.
const NONE: &str = "none";
/// What cells have where there is nothing to tell apart.
const DASH: &str = "-";
/// Of which run figures are taken.
const RUN: &str = "measured";

/// Makes a plan. Kernels that are there are put into the store, so that other machines have them; guest images are packed, since
/// what is in them is an input. Nothing is built.
///
/// # Errors
/// Something that the file names and that is not there; combinations that cannot be.
pub fn resolve(file: &PlanFile, place: &Place, store: &dyn Store) -> Result<Plan> {
    let session = place.session()?;
    let model = model::find(file.model.as_deref().unwrap_or(model::DEFAULT))?;
    if model::find(&model.name).map_or(true, |known| known.text != model.text) {
        let name = &model.name;
        return Err(Error::Plan(format!(
            "the model {name}: a matrix takes models that come with kerntune, and parts of them"
        )));
    }
    let plan = Plan::new(file.name.clone(), &model);
    let mut maker = Maker { file, session: &session, store, plan };
    let workloads = maker.workloads()?;
    let mut kernels = Vec::new();
    for entry in &file.kernel {
        kernels.extend(maker.kernels(entry)?);
    }
    let recipes: Vec<&str> = match &file.recipes[..] {
        [] => vec![NONE],
        some => some.iter().map(String::as_str).collect(),
    };
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

/// A kernel of the matrix and what cells call it.
struct Planned {
    kernel: String,
    configuration: String,
    compiler: String,
    is: KernelRef,
}

struct Maker<'a> {
    file: &'a PlanFile,
    session: &'a Session<'a>,
    store: &'a dyn Store,
    plan: Plan,
}

impl Maker<'_> {
    /// Names of workloads; the texts of those that are files go into the plan.
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

    /// A file's text, kept by its hash.
    fn text(&mut self, path: &Path) -> Result<Hash> {
        let text = read_text("read", &self.file.directory.join(path))?;
        let hash = Hash::of(text.as_bytes());
        self.plan.texts.insert(hash.clone(), text);
        Ok(hash)
    }

    fn texts(&mut self, paths: &[std::path::PathBuf]) -> Result<Vec<Hash>> {
        paths.iter().map(|path| self.text(path)).collect()
    }

    /// A kernel that is there.
    fn given(&self, name: &str) -> Result<KernelRef> {
        let kernel = kerntune_kernel::find(self.session.work, name)?;
        if !kernel.manifest.arch.is_default() {
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

    /// The kernels of an entry: by commit, configuration and compiler.
    fn kernels(&mut self, entry: &KernelEntry) -> Result<Vec<Planned>> {
        if let Some(built) = &entry.built {
            let kernel = entry.name.clone().unwrap_or_else(|| built.clone());
            let dash = DASH.to_owned();
            return Ok(vec![Planned {
                kernel,
                configuration: dash.clone(),
                compiler: dash,
                is: self.given(built)?,
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
                    let what = What::Build {
                        source: source.clone(),
                        patches: patches.clone(),
                        config: config.clone(),
                        fragments: fragments.clone(),
                        set: configuration.set.clone(),
                        compiler: compiler.clone(),
                        kcflags: configuration.kcflags.clone(),
                        label: plain(&label.join("-")).parse()?,
                    };
                    planned.push(Planned {
                        kernel: kernel.clone(),
                        configuration: configuration.name.clone(),
                        compiler: compiler.clone(),
                        is: KernelRef::Of(self.task(format!("build {}", words.join(" ")), what)?),
                    });
                }
            }
        }
        Ok(planned)
    }

    /// What an entry is built of, and what cells call it.
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

    fn cell(&mut self, kernel: &Planned, recipe: &str, workload: &str) -> Result<()> {
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
            known.check_compiler(&compiler)?;
            self.plan.workload(workload)?.require_run("training")?;
            let what = What::Tune { kernel: of, recipe: recipe.to_owned(), workload: workload.to_owned() };
            of = KernelRef::Of(self.task(format!("tune {words} {recipe} {workload}"), what)?);
        }
        let what = What::Measure { kernel: of, workload: workload.to_owned(), run: RUN.into() };
        let title = match recipe {
            NONE => format!("measure {words} {workload}"),
            recipe => format!("measure {words} {recipe} {workload}"),
        };
        let task = self.task(title, what)?;
        let cell = Cell {
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

    fn command(&mut self, entry: &CommandEntry) -> Result<()> {
        let kernels = entry.kernels.iter().map(|name| self.given(name)).collect::<Result<Vec<_>>>()?;
        let mut files = Vec::new();
        for path in &entry.files {
            let odd = |error| {
                Error::Plan(format!("{error}: the files of a command are below the plan's directory"))
            };
            let name: RelativePath = path.display().to_string().parse().map_err(odd)?;
            files.push((name, self.text(path)?));
        }
        let (arguments, cores) = (entry.arguments.clone(), entry.cores);
        let task =
            self.task(format!("command {}", entry.name), What::Command { arguments, kernels, files, cores })?;
        let dash = || DASH.to_owned();
        let (kernel, configuration, compiler, recipe) = (dash(), dash(), dash(), dash());
        self.plan.cells.push(Cell {
            kernel,
            configuration,
            compiler,
            recipe,
            workload: entry.name.clone(),
            task,
        });
        Ok(())
    }

    /// Adds a task with its inputs.
    fn task(&mut self, title: String, what: What) -> Result<Id> {
        let inputs = inputs::of(&self.plan, self.session, &what)?;
        Ok(self.plan.add(Task::new(title, what, inputs)))
    }

    /// Builds first, and tunings after them: what others need is begun early. Each comes after what it needs.
    fn in_order(mut self) -> Plan {
        let rank = |task: &Task| match task.what {
            What::Build { .. } => 0,
            What::Tune { .. } => 1,
            What::Measure { .. } => 2,
            What::Command { .. } => 3,
        };
        self.plan.tasks.sort_by_key(rank);
        self.plan
    }
}

/// As a kernel may be called.
fn plain(label: &str) -> String {
    let label: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    label.trim_start_matches(['.', '-']).to_owned()
}
