//! What these tests share: a matrix of stand-in kernels, and machines that compute it.

use kerntune_machine::{Machine, Outcome, RunRequest};
use kerntune_matrix::{
    resolve, Directory, Place, Plan, PlanFile, Pool, Result, Store, Summary, Task, Trust, Turn, Worker,
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

/// A test's directory: plan file, workloads, stores and work directories.
pub struct Bench {
    pub dir: TempDir,
}

/// What a machine does before it runs a guest.
pub type Before = dyn Fn() + Send + Sync;

/// The stand-in machine, with something to do before each run.
pub struct Watched {
    machine: Rehearsal,
    before: Arc<Before>,
    identity: Option<String>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.machine.fmt(f)
    }
}

impl Machine for Watched {
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
    ) -> kerntune_machine::Result<Outcome> {
        (self.before)();
        self.machine.run(request, dir, progress)
    }
}

/// A machine that works on plans: a work directory of its own.
pub struct Node {
    pub work: WorkDir,
    path: PathBuf,
    pub before: Arc<Before>,
    pub identity: Option<String>,
    pub trust: Trust,
    /// After so long another machine's silent claim is taken over.
    lease: Duration,
}

impl Bench {
    /// A matrix of so many configurations and workloads.
    pub fn new(configurations: usize, workloads: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let kerntune_kernel::Source::Directory(source) = kerntune_rehearsal::source() else { unreachable!() };
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
        Arc::new(Directory::open(&self.path(name)).unwrap())
    }

    /// A machine of this name.
    pub fn node(&self, name: &str) -> Node {
        Node::new(&self.path(name))
    }

    /// The plan, put into a store.
    pub fn plan(&self, node: &Node, store: &dyn Store) -> Plan {
        let file = PlanFile::load(&self.path("plan.toml")).unwrap();
        let plan = node.at(|place| resolve(&file, place, store)).unwrap();
        plan.publish(store).unwrap();
        plan
    }
}

impl Node {
    pub fn new(path: &Path) -> Self {
        let work = WorkDir::open(path).unwrap();
        // The programs of guest images do not depend on anything here.
        let programs = "guest-programs";
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(programs);
        fs::create_dir_all(&shared).unwrap();
        let _ = symlink(shared, work.root().join(programs));
        // The stand-in's source is a directory, and make runs what stands there.
        let trust = Trust { commands: true, confirm: false };
        let lease = Duration::from_secs(2);
        Self { work, path: path.to_owned(), before: Arc::new(|| ()), identity: None, trust, lease }
    }

    /// The same machine with another lease.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Calls something with this machine.
    pub fn at<T>(&self, call: impl FnOnce(&Place) -> T) -> T {
        let init = self.path.join(format!("init-{:?}", std::thread::current().id()));
        fs::create_dir_all(&init).unwrap();
        let machine = || -> kerntune_machine::Result<Box<dyn Machine>> {
            let (before, identity) = (self.before.clone(), self.identity.clone());
            Ok(Box::new(Watched { machine: Rehearsal::new(&init)?, before, identity }))
        };
        let command = |arguments: &[String], directory: &Path| {
            let files: Vec<String> = fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            Ok(format!("{} in {}", arguments.join(" "), files.join(" ")))
        };
        let place = Place { work: &self.work, machine: &machine, command: &command, progress: &NoProgress };
        call(&place)
    }

    /// One task, here.
    pub fn turn(&self, plan: &Plan, store: &Arc<dyn Store>, task: &str) -> Result<Turn> {
        self.at(|place| {
            let place = Place { ..*place };
            let (lease, log) = (self.lease, || b"a log\n".to_vec());
            Worker { plan, store: store.clone(), place, lease, log: &log, trust: self.trust }.turn(task)
        })
    }

    /// All of a plan, on so many cores.
    pub fn run(&self, plan: &Plan, store: &Arc<dyn Store>, cores: usize) -> Result<Summary> {
        let run = |task: &Task| self.turn(plan, store, &task.id);
        let confirm = self.trust.confirm;
        Pool { plan, store: &**store, cores, run: &run, confirm, tell: &|_, _, _| () }.run()
    }
}

/// What is in a store below a name, by name.
pub fn objects(store: &dyn Store, start: &str) -> BTreeMap<String, Vec<u8>> {
    let names = store.list(start).unwrap();
    names.into_iter().map(|name| (name.clone(), store.get(&name).unwrap().unwrap())).collect()
}

/// The results of a store: the same bytes, wherever they were computed.
pub fn results(store: &dyn Store) -> BTreeMap<String, Vec<u8>> {
    objects(store, "results/")
}
