//! Plans: tasks with all inputs that decide their results, and the cells of the matrix.

use crate::{Error, Result, Store};
use kerntune_kernel::Arch;
use kerntune_work::{CommitHash, Hash, Id, Key, Label, RelativePath};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Schema of a plan in the store.
const SCHEMA: &str = "kerntune-matrix-plan/2";

/// Everything to compute for a matrix. Its id is a hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixPlan {
    schema: String,
    /// Name of the matrix, from the plan file.
    pub name: String,
    /// [`crate::CODE`] of the program that made the plan; other versions refuse it, since they may
    /// compute other results.
    pub code: String,
    /// Name of the front-end model of all measurements.
    pub model: String,
    /// The front-end model's TOML text.
    pub model_text: String,
    /// Workloads by name, with the text of the user's file; `None` for a workload that comes with
    /// kerntune.
    pub workloads: BTreeMap<String, Option<String>>,
    /// Files that tasks read (patches, configurations), by the BLAKE3 hash of their text.
    pub texts: BTreeMap<Hash, String>,
    /// Tasks, each after those that it needs.
    pub tasks: Vec<Task>,
    /// Cells, in the order of the plan file's axes.
    pub cells: Vec<MatrixCell>,
    /// Combinations that cannot be made, if the plan file keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCell>,
}

/// Combination that was refused when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCell {
    /// Name of the kernel or commit.
    pub kernel: String,
    /// Name of the configuration; `-` if the matrix has only one.
    pub configuration: String,
    /// Name of the compiler; `-` for a kernel that is already built.
    pub compiler: String,
    /// Name of the recipe.
    pub recipe: String,
    /// True if the machine lacked something, so that another one may make it.
    pub is_missing: bool,
    /// Reason.
    pub reason: String,
}

/// One computation, named by its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Hash of the task's inputs and of [`crate::CODE`].
    pub id: Id,
    /// Description for people: `build debian:6.12 hz100 gcc`.
    pub title: String,
    /// The computation and its parameters.
    #[serde(rename = "what")]
    pub kind: TaskKind,
    /// Ids of the tasks whose results this one reads.
    pub needs: Vec<Id>,
    /// Names and values of everything that decides the result: hashes of contents, versions of
    /// programs.
    pub inputs: Vec<(String, String)>,
}

/// CPUs that a task occupies on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreDemand {
    /// Every CPU, as for a build.
    All,
    /// One CPU: a guest in the emulator, then the analysis of its recording.
    One,
}

/// The computation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TaskKind {
    /// Builds a kernel.
    Build {
        /// Source to build.
        source: SourceRef,
        /// Hashes of the patches' texts, in the order in which they apply.
        patches: Vec<Hash>,
        /// Hash of the text of a complete configuration to start from.
        config: Option<Hash>,
        /// Hashes of the texts of configuration fragments, in order.
        fragments: Vec<Hash>,
        /// Lines of the configuration, such as `CONFIG_HZ_100=y`.
        set: Vec<String>,
        /// Compiler, as `--compiler` takes it.
        compiler: String,
        /// Flags for `KCFLAGS`.
        kcflags: Vec<String>,
        /// Label of the built kernel.
        label: Label,
    },
    /// Tunes a kernel.
    Tune {
        /// Base kernel.
        kernel: KernelRef,
        /// Name of the recipe.
        recipe: String,
        /// Compiler of the kernel, as `--compiler` takes it.
        #[serde(default)]
        compiler: String,
        /// Name of the workload whose training run gives the profile.
        workload: String,
    },
    /// Records a run and keeps its exact counters.
    Measure {
        /// Kernel to measure.
        kernel: KernelRef,
        /// Name of the workload to run.
        workload: String,
        /// Run of the workload: `measured` or `training`.
        run: String,
    },
    /// Runs a command of kerntune and keeps its output.
    Command {
        /// Arguments of the command, without the program's name.
        arguments: Vec<String>,
        /// Kernels that the arguments name; the worker puts them into its work directory first.
        kernels: Vec<KernelRef>,
        /// Files that the command reads: path below the plan's directory, and hash of the text.
        files: Vec<(RelativePath, Hash)>,
        /// CPUs that the command occupies.
        cores: CoreDemand,
    },
}

/// Source of a kernel to build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceRef {
    /// A source, as `--source` takes it.
    Named(String),
    /// A commit of a git tree.
    Commit {
        /// Path of the tree.
        tree: String,
        /// Full hash of the commit.
        commit: CommitHash,
    },
}

/// A kernel that a task reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelRef {
    /// A kernel that existed when the plan was made; it is packed in the store.
    Given {
        /// Id of the kernel.
        id: Id,
        /// Hash of its images.
        content: String,
    },
    /// The kernel that this task makes.
    Of(Id),
}

/// One cell of the matrix: a position on each axis, and the task whose result it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// Name of the kernel or commit.
    pub kernel: String,
    /// Name of the configuration; `-` if the matrix has only one.
    pub configuration: String,
    /// Name of the compiler; `-` for a kernel that is already built.
    pub compiler: String,
    /// Name of the recipe; `none` for the untuned kernel.
    pub recipe: String,
    /// Name of the workload or of the command.
    pub workload: String,
    /// Task whose result the cell shows.
    pub task: Id,
}

impl TaskKind {
    /// Returns the CPUs that the task occupies.
    pub fn cores(&self) -> CoreDemand {
        match self {
            Self::Build { .. } | Self::Tune { .. } => CoreDemand::All,
            Self::Measure { .. } => CoreDemand::One,
            Self::Command { cores, .. } => *cores,
        }
    }

    /// Returns the tasks that make the kernels it reads, sorted.
    fn needs(&self) -> Vec<Id> {
        let needs: BTreeSet<&Id> = self.kernels().iter().filter_map(KernelRef::task).collect();
        needs.into_iter().cloned().collect()
    }

    /// Returns the kernels that the task reads.
    pub fn kernels(&self) -> &[KernelRef] {
        match self {
            Self::Build { .. } => &[],
            Self::Tune { kernel, .. } | Self::Measure { kernel, .. } => std::slice::from_ref(kernel),
            Self::Command { kernels, .. } => kernels,
        }
    }
}

impl KernelRef {
    /// Returns the task that makes the kernel; `None` for a kernel that existed before.
    pub fn task(&self) -> Option<&Id> {
        match self {
            Self::Of(task) => Some(task),
            Self::Given { .. } => None,
        }
    }
}

fn id_of(inputs: &[(String, String)]) -> Id {
    let key = inputs
        .iter()
        .fold(Key::new("matrix-task/1", crate::CODE), |key, (name, value)| key.field(name, value));
    Id::of(&key)
}

impl Task {
    pub(crate) fn new(title: String, kind: TaskKind, inputs: Vec<(String, String)>) -> Self {
        Self { id: id_of(&inputs), title, needs: kind.needs(), kind, inputs }
    }

    /// Checks that the id is that of the inputs and that the needs are those of the task's kind.
    fn check(&self) -> Result<(), String> {
        if self.id != id_of(&self.inputs) {
            return Err(format!("the task {} has the inputs of {}", self.id, id_of(&self.inputs)));
        }
        match self.needs == self.kind.needs() {
            true => Ok(()),
            false => Err(format!("the task {} does not need what it says", self.id)),
        }
    }
}

impl MatrixPlan {
    /// Creates an empty plan.
    pub(crate) fn new(name: String, model: &kerntune_tune::model::Model) -> Self {
        Self {
            schema: SCHEMA.into(),
            name,
            code: crate::CODE.into(),
            model: model.name.clone(),
            model_text: model.text.clone(),
            workloads: BTreeMap::new(),
            texts: BTreeMap::new(),
            tasks: Vec::new(),
            cells: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Adds a task unless the plan has it, and returns its id.
    pub(crate) fn add(&mut self, task: Task) -> Id {
        let id = task.id.clone();
        if self.task(&id).is_none() {
            self.tasks.push(task);
        }
        id
    }

    /// Returns the plan's id, the first 16 hex digits of the hash of its content.
    pub fn id(&self) -> String {
        blake3::hash(&self.bytes()).to_hex()[..16].to_owned()
    }

    /// Checks that the plan is consistent: every text has its hash, every task has the id of its
    /// inputs and comes after its needs, and every cell has a task.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some((hash, _)) = self.texts.iter().find(|(hash, text)| Hash::of(text.as_bytes()) != **hash) {
            return Err(format!("the text {hash} has another hash"));
        }
        let mut known: BTreeSet<&Id> = BTreeSet::new();
        for task in &self.tasks {
            task.check()?;
            if let Some(need) = task.needs.iter().find(|need| !known.contains(need)) {
                return Err(format!("the task {} comes before {need}, which it needs", task.id));
            }
            if !known.insert(&task.id) {
                return Err(format!("the task {} is there twice", task.id));
            }
        }
        match self.cells.iter().find(|cell| !known.contains(&cell.task)) {
            Some(cell) => {
                Err(format!("the cell {} is of the task {}, which it lacks", cell.name(), cell.task))
            }
            None => Ok(()),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        // Serialization cannot fail: all map keys are strings.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Finds a task by its id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Finds a cell by its name (kernel, configuration, compiler, recipe and workload, joined by
    /// `/`) or by the number that `matrix status` prints.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn cell(&self, name: &str) -> Result<&MatrixCell> {
        let by_number = name.parse::<usize>().ok().and_then(|number| self.cells.get(number.checked_sub(1)?));
        let by_name = self.cells.iter().find(|cell| cell.name() == name);
        by_name.or(by_number).ok_or_else(|| Error::Unknown { what: "cell", name: name.to_owned() })
    }

    /// Writes the plan to a store and returns its id.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn publish(&self, store: &dyn Store) -> Result<String> {
        let id = self.id();
        store.put_new(&object(&id), &self.bytes())?;
        Ok(id)
    }

    /// Loads the plan whose id begins with `wanted`.
    ///
    /// # Errors
    /// No such plan, or several; a plan that is damaged, or made by another version of kerntune.
    pub fn load(store: &dyn Store, wanted: &str) -> Result<Self> {
        let no_plan = || Error::NoPlan { store: store.url(), plan: wanted.to_owned() };
        let names = store.list("plans/")?;
        let ids = names.iter().filter_map(|name| name.strip_prefix("plans/")?.strip_suffix(".json"));
        let found: Vec<&str> = ids.filter(|id| !wanted.is_empty() && id.starts_with(wanted)).collect();
        let &[id] = &found[..] else { return Err(no_plan()) };
        let name = object(id);
        let bytes = store.get(&name)?.ok_or_else(no_plan)?;
        let damaged = |what: String| Error::Object { store: store.url(), name: name.clone(), what };
        if blake3::hash(&bytes).to_hex()[..16] != *id {
            return Err(damaged("it is not what its name says".into()));
        }
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let schema = value.get("schema").and_then(|schema| schema.as_str()).unwrap_or("none");
        if schema != SCHEMA {
            return Err(damaged(format!("its schema is {schema}, this version of kerntune reads {SCHEMA}")));
        }
        let plan: Self = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        if plan.code != crate::CODE {
            return Err(Error::OtherCode { plan: id.to_owned() });
        }
        plan.check().map_err(damaged)?;
        Ok(plan)
    }

    /// Finds a workload of the plan by its name.
    ///
    /// # Errors
    /// A workload that is invalid, or that this version of kerntune does not have.
    pub fn workload(&self, name: &str) -> Result<kerntune_guest::Workload> {
        let path = std::path::PathBuf::from(format!("{name}.toml"));
        match self.workloads.get(name) {
            Some(Some(text)) => Ok(kerntune_guest::Workload::parse(text, &path)?),
            Some(None) => Ok(kerntune_guest::Workload::find(name, &[])?),
            None => Err(Error::Unknown { what: "workload", name: name.to_owned() }),
        }
    }

    /// Architecture of all kernels of the plan.
    pub fn arch(&self) -> Arch {
        Arch::default()
    }
}

impl MatrixCell {
    /// Returns the cell's unique name: its position on each axis, joined by `/`.
    pub fn name(&self) -> String {
        [&self.kernel, &self.configuration, &self.compiler, &self.recipe, &self.workload]
            .map(String::as_str)
            .join("/")
    }
}

/// Name of the object that holds a plan.
fn object(id: &str) -> String {
    format!("plans/{id}.json")
}
