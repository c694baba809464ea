//! A plan: tasks with all that decides what comes of each, and the cells of the matrix.

use crate::{Error, Result, Store};
use kerntune_kernel::Arch;
use kerntune_work::{CommitHash, Hash, Id, Key, Label, RelativePath};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of a plan's form in the store.
const SCHEMA: &str = "kerntune-matrix-plan/2";

/// What is to be computed. Its id is that of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    schema: String,
    /// What the file calls it.
    pub name: String,
    /// [`crate::CODE`] of the program that made it: only the same program computes the same.
    pub code: String,
    /// The front-end model of all measurements, by name.
    pub model: String,
    /// The same in full: TOML.
    pub model_text: String,
    /// Workloads by name: the text of a user's file; none of one that comes with kerntune.
    pub workloads: BTreeMap<String, Option<String>>,
    /// Files that tasks read (patches, configurations), by the BLAKE3 of their text.
    pub texts: BTreeMap<Hash, String>,
    /// In an order in which each comes after those that it needs.
    pub tasks: Vec<Task>,
    /// In the order of the file's axes.
    pub cells: Vec<Cell>,
}

/// One thing to compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The id of its key: rule, code and inputs.
    pub id: Id,
    /// For people: `build debian:6.12 hz100 gcc`.
    pub title: String,
    /// What to do.
    pub what: What,
    /// Tasks whose results it reads.
    pub needs: Vec<Id>,
    /// All that decides the result, by name: contents by their hashes, programs by their versions.
    pub inputs: Vec<(String, String)>,
}

/// How much of a machine a task takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    /// Every CPU: builds.
    All,
    /// One: a guest in the emulator, and the analysis of what it recorded.
    One,
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// Builds a kernel.
    Build {
        /// Of what.
        source: SourceRef,
        /// Patches in order, by the hash of their text.
        patches: Vec<Hash>,
        /// A whole configuration, by the hash of its text.
        config: Option<Hash>,
        /// Fragments in order, by the hash of their text.
        fragments: Vec<Hash>,
        /// Lines of the configuration.
        set: Vec<String>,
        /// The compiler, as `--compiler` takes it.
        compiler: String,
        /// `KCFLAGS`.
        kcflags: Vec<String>,
        /// What it is to be called.
        label: Label,
    },
    /// Tunes a kernel.
    Tune {
        /// Which.
        kernel: KernelRef,
        /// How.
        recipe: String,
        /// For what.
        workload: String,
    },
    /// Records a run and keeps its exact counters.
    Measure {
        /// On which kernel.
        kernel: KernelRef,
        /// Of what.
        workload: String,
        /// `measured` or `training`.
        run: String,
    },
    /// Runs a command of kerntune and keeps what it prints.
    Command {
        /// Its arguments.
        arguments: Vec<String>,
        /// Kernels that it names, which have to be in the work directory.
        kernels: Vec<KernelRef>,
        /// Files that it reads: name, and hash of the text.
        files: Vec<(RelativePath, Hash)>,
        /// Whether it takes one CPU or all.
        cores: Cores,
    },
}

/// A kernel's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceRef {
    /// As `--source` takes it.
    Named(String),
    /// A commit of a git tree.
    Commit {
        /// Where the tree is.
        tree: String,
        /// The commit's hash in full.
        commit: CommitHash,
    },
}

/// A kernel that a task reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelRef {
    /// One that was there when the plan was made; it is in the store.
    Given {
        /// Its id.
        id: Id,
        /// Names the contents of its images.
        content: String,
    },
    /// What a task makes.
    Of(Id),
}

/// A cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The kernel or commit.
    pub kernel: String,
    /// The configuration; `-` where there is one only.
    pub configuration: String,
    /// The compiler; `-` of a kernel that was there.
    pub compiler: String,
    /// The recipe; `none` for the kernel as it is.
    pub recipe: String,
    /// The workload, or the command's name.
    pub workload: String,
    /// The task whose result is the cell's.
    pub task: Id,
}

impl What {
    /// How much of a machine it takes.
    pub fn cores(&self) -> Cores {
        match self {
            Self::Build { .. } | Self::Tune { .. } => Cores::All,
            Self::Measure { .. } => Cores::One,
            Self::Command { cores, .. } => *cores,
        }
    }

    /// Tasks that make kernels which it reads, sorted.
    fn needs(&self) -> Vec<Id> {
        let needs: BTreeSet<&Id> = self.kernels().iter().filter_map(KernelRef::task).collect();
        needs.into_iter().cloned().collect()
    }

    /// Kernels that it reads.
    pub fn kernels(&self) -> &[KernelRef] {
        match self {
            Self::Build { .. } => &[],
            Self::Tune { kernel, .. } | Self::Measure { kernel, .. } => std::slice::from_ref(kernel),
            Self::Command { kernels, .. } => kernels,
        }
    }
}

impl KernelRef {
    /// The task that makes it, if one does.
    pub fn task(&self) -> Option<&Id> {
        match self {
            Self::Of(task) => Some(task),
            Self::Given { .. } => None,
        }
    }
}

/// The id of a task of these inputs.
fn id_of(inputs: &[(String, String)]) -> Id {
    let key = inputs
        .iter()
        .fold(Key::new("matrix-task/1", crate::CODE), |key, (name, value)| key.field(name, value));
    Id::of(&key)
}

impl Task {
    /// A task of these inputs.
    pub(crate) fn new(title: String, what: What, inputs: Vec<(String, String)>) -> Self {
        Self { id: id_of(&inputs), title, needs: what.needs(), what, inputs }
    }

    /// Refuses a task whose id is not that of its inputs, or whose needs are not those of what it does.
    fn check(&self) -> Result<(), String> {
        if self.id != id_of(&self.inputs) {
            return Err(format!("the task {} has the inputs of {}", self.id, id_of(&self.inputs)));
        }
        match self.needs == self.what.needs() {
            true => Ok(()),
            false => Err(format!("the task {} does not need what it says", self.id)),
        }
    }
}

impl Plan {
    /// A plan of nothing yet.
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
        }
    }

    /// Adds a task, unless it is there. Returns its id.
    pub(crate) fn add(&mut self, task: Task) -> Id {
        let id = task.id.clone();
        if self.task(&id).is_none() {
            self.tasks.push(task);
        }
        id
    }

    /// Its name in the store: 16 hex digits that name its content.
    pub fn id(&self) -> String {
        blake3::hash(&self.bytes()).to_hex()[..16].to_owned()
    }

    /// Refuses a plan that contradicts itself: a text under another hash, an id that is not that of its inputs, a task that comes before
    /// one that it needs, a cell of no task.
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
        // Maps with keys of text and no floats: it cannot fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The task of this id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The cell of this name: kernel, configuration, compiler, recipe and workload with `/` between them, or the number that
    /// `matrix status` shows.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn cell(&self, name: &str) -> Result<&Cell> {
        let by_number = name.parse::<usize>().ok().and_then(|number| self.cells.get(number.checked_sub(1)?));
        let by_name = self.cells.iter().find(|cell| cell.name() == name);
        by_name.or(by_number).ok_or_else(|| Error::Unknown { what: "cell", name: name.to_owned() })
    }

    /// Puts it into a store.
    ///
    /// # Errors
    /// What the store says.
    pub fn publish(&self, store: &dyn Store) -> Result<String> {
        let id = self.id();
        store.put_new(&object(&id), &self.bytes())?;
        Ok(id)
    }

    /// The plan whose id begins with `wanted`.
    ///
    /// # Errors
    /// None, or several; one that is damaged, or of another version of kerntune.
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

    /// The workload of this name.
    ///
    /// # Errors
    /// One that does not come with this version of kerntune, or does not read.
    pub fn workload(&self, name: &str) -> Result<kerntune_guest::Workload> {
        let path = std::path::PathBuf::from(format!("{name}.toml"));
        match self.workloads.get(name) {
            Some(Some(text)) => Ok(kerntune_guest::Workload::parse(text, &path)?),
            Some(None) => Ok(kerntune_guest::Workload::find(name, &[])?),
            None => Err(Error::Unknown { what: "workload", name: name.to_owned() }),
        }
    }

    /// What all of its kernels are to run on.
    pub fn arch(&self) -> Arch {
        Arch::default()
    }
}

impl Cell {
    /// What tells it from others.
    pub fn name(&self) -> String {
        [&self.kernel, &self.configuration, &self.compiler, &self.recipe, &self.workload]
            .map(String::as_str)
            .join("/")
    }
}

/// The object that a plan is.
fn object(id: &str) -> String {
    format!("plans/{id}.json")
}
