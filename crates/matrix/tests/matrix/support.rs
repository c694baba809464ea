//! Shared by these tests: a matrix of stand-in kernels, and machines that compute it.

use kerntune_machine::{Machine, RunOutcome, RunRequest};
use kerntune_matrix::{
    resolve, DirectoryStore, MatrixPlan, PlanFile, PoolSummary, Result, Store, Task, TaskEnvironment,
    TaskOutcome, TaskPool, Trust, Worker,
};
use kerntune_rehearsal::Rehearsal;
use kerntune_work::{NoProgress, Progress, WorkDir};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Directory of a test: plan file, workloads, stores and work directories.
pub struct MatrixBench {
    pub dir: TempDir,
}

/// Hook that runs before each guest.
pub type BeforeRun = dyn Fn() + Send + Sync;

/// The stand-in machine with a hook before each run.
pub struct HookedMachine {
    machine: Rehearsal,
    before: Arc<BeforeRun>,
    identity: Option<String>,
}

impl std::fmt::Debug for HookedMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.machine.fmt(f)
    }
}

impl Machine for HookedMachine {
    fn name(&self) -> &'static str {
        self.machine.name()
    }
    fn identity(&self) -> kerntune_machine::Result<String> {
        self.identity.clone().map_or_else(|| self.machine.identity(), Ok)
    }
    fn run(
        &self,
        request: &RunRequest,
        dir: &Path,
        progress: &dyn Progress,
    ) -> kerntune_machine::Result<RunOutcome> {
        (self.before)();
        self.machine.run(request, dir, progress)
    }
}

/// A machine that works on plans, with a work directory of its own.
pub struct WorkerMachine {
    pub work: WorkDir,
    pub path: PathBuf,
    pub before: Arc<BeforeRun>,
    pub identity: Option<String>,
    pub trust: Trust,
    /// Time without a change after which another machine's claim is taken over.
    pub lease: Duration,
}

impl MatrixBench {
    /// A matrix of so many configurations and workloads.
    pub fn new(configurations: usize, workloads: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let kerntune_kernel::KernelSource::Directory(source) = kerntune_rehearsal::source() else {
            unreachable!()
        };
        let mut plan = String::from("workloads = [");
        for number in 0..workloads {
            let file = format!("w{number}.toml");
            let step = |seed: usize| format!("command = [\"rr\", \"--seed\", \"{seed}\"]\n");
            let text = format!(
                "name = \"w{number}\"\n[[training.step]]\n{}[[measured.step]]\n{}expect = [\"rr: done\"]\n",
                step(number + 50),
                step(number + 1)
            );
            fs::write(dir.path().join(&file), text).unwrap();
            plan += &format!("\"./{file}\", ");
        }
        plan += &format!("]\n[[kernel]]\nname = \"stand-in\"\nsource = \"{}\"\n", source.display());
        for number in 0..configurations {
            plan += &format!("[[configuration]]\nname = \"c{number}\"\nkcflags = [\"-DCELL={number}\"]\n");
        }
        fs::write(dir.path().join("plan.toml"), plan).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn store(&self, name: &str) -> Arc<dyn Store> {
        Arc::new(DirectoryStore::open(&self.path(name)).unwrap())
    }

    /// A machine of this name.
    pub fn node(&self, name: &str) -> WorkerMachine {
        WorkerMachine::new(&self.path(name))
    }

    /// Makes the plan and puts it into a store.
    pub fn plan(&self, node: &WorkerMachine, store: &dyn Store) -> MatrixPlan {
        let file = PlanFile::load(&self.path("plan.toml")).unwrap();
        let plan = node.at(|environment| resolve(&file, environment, store)).unwrap();
        plan.publish(store).unwrap();
        plan
    }
}

impl WorkerMachine {
    pub fn new(path: &Path) -> Self {
        let work = WorkDir::open(path).unwrap();
        // Programs of guest images are the same for every test.
        let programs = "guest-programs";
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(programs);
        fs::create_dir_all(&shared).unwrap();
        let _ = symlink(shared, work.root().join(programs));
        // The stand-in's source is a directory, whose makefiles run.
        let trust = Trust { commands: true, confirm: false };
        let lease = Duration::from_secs(2);
        Self { work, path: path.to_owned(), before: Arc::new(|| ()), identity: None, trust, lease }
    }

    /// Calls a function with this machine's environment.
    pub fn at<T>(&self, call: impl FnOnce(&TaskEnvironment) -> T) -> T {
        let init = self.path.join(format!("init-{:?}", std::thread::current().id()));
        fs::create_dir_all(&init).unwrap();
        let machine = || -> kerntune_machine::Result<Box<dyn Machine>> {
            let (before, identity) = (self.before.clone(), self.identity.clone());
            Ok(Box::new(HookedMachine { machine: Rehearsal::new(&init)?, before, identity }))
        };
        let command = |arguments: &[String], directory: &Path| {
            let files: Vec<String> = fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            Ok(format!("{} in {}", arguments.join(" "), files.join(" ")))
        };
        let environment =
            TaskEnvironment { work: &self.work, machine: &machine, command: &command, progress: &NoProgress };
        call(&environment)
    }

    /// Computes one task.
    pub fn compute(&self, plan: &MatrixPlan, store: &Arc<dyn Store>, task: &str) -> Result<TaskOutcome> {
        self.at(|environment| {
            let environment = TaskEnvironment { ..*environment };
            let (lease, log) = (self.lease, || b"a log\n".to_vec());
            Worker { plan, store: store.clone(), environment, lease, log: &log, trust: self.trust }
                .compute(task)
        })
    }

    /// Works on a whole plan, on so many cores.
    pub fn run(&self, plan: &MatrixPlan, store: &Arc<dyn Store>, cores: usize) -> Result<PoolSummary> {
        let run = |task: &Task| self.compute(plan, store, &task.id);
        let confirm = self.trust.confirm;
        TaskPool { plan, store: &**store, cores, run: &run, confirm, on_event: &|_, _, _| () }.run()
    }
}

/// Objects of a store whose names begin with `start`.
pub fn objects(store: &dyn Store, start: &str) -> BTreeMap<String, Vec<u8>> {
    let names = store.list(start).unwrap();
    names.into_iter().map(|name| (name.clone(), store.get(&name).unwrap().unwrap())).collect()
}

/// Results of a store.
pub fn results(store: &dyn Store) -> BTreeMap<String, Vec<u8>> {
    objects(store, "results/")
}
