//! Runs a plan with Slurm: a controller and two node daemons of Debian's packages on the loopback
//! device (`scripts/slurm-here`). A job, a node daemon and the controller are killed meanwhile.

use crate::support::{results, MatrixBench, WorkerMachine};
use kerntune_matrix::slurm::Slurm;
use kerntune_matrix::{states, DirectoryStore, MatrixPlan, Store, TaskOutcome, TaskProgress};
use kerntune_work::NoProgress;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Slurm in a directory, ended with the test.
struct LocalSlurm {
    directory: PathBuf,
}

fn script(arguments: &[&str]) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/slurm-here");
    Command::new(script).args(arguments).output().unwrap()
}

impl LocalSlurm {
    /// Returns `None` if Slurm is not installed, or we are not root.
    fn start(directory: &Path) -> Option<Self> {
        let output = script(&["start", directory.to_str().unwrap(), "2"]);
        if output.status.code() == Some(3) {
            eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self { directory: directory.to_owned() })
    }

    fn call(&self, verb: &str, what: &str) {
        let output = script(&[verb, self.directory.to_str().unwrap(), what]);
        assert!(output.status.success(), "{verb} {what}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a program of Slurm.
    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let conf = self.directory.join("slurm.conf");
        let output = Command::new(program).args(arguments).env("SLURM_CONF", conf).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for LocalSlurm {
    fn drop(&mut self) {
        script(&["stop", self.directory.to_str().unwrap()]);
    }
}

/// Not a test: the worker that a job runs.
#[test]
fn as_a_worker() {
    let Some(task) = env::var_os("KERNTUNE_TEST_TASK") else { return };
    let path = |name| PathBuf::from(env::var_os(name).unwrap());
    let store: Arc<dyn Store> = Arc::new(DirectoryStore::open(&path("KERNTUNE_TEST_STORE")).unwrap());
    let plan = MatrixPlan::load(&*store, env::var("KERNTUNE_TEST_PLAN").unwrap().as_str()).unwrap();
    // Each task has a temporary work directory of its own.
    let scratch = tempfile::tempdir_in(path("KERNTUNE_TEST_SCRATCH")).unwrap();
    let mut node = WorkerMachine::new(scratch.path());
    node.before = Arc::new(|| std::thread::sleep(Duration::from_millis(1500)));
    let outcome = node.compute(&plan, &store, task.to_str().unwrap()).unwrap();
    println!("worker: {outcome:?}");
    assert!(
        matches!(outcome, TaskOutcome::Made | TaskOutcome::Found | TaskOutcome::Discarded),
        "{outcome:?}"
    );
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(240), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn slurm_finishes_what_is_killed_and_comes_to_the_same_results() {
    // Socket paths must be short.
    let place = tempfile::Builder::new().prefix("kt").tempdir_in("/tmp").unwrap();
    let Some(here) = LocalSlurm::start(&place.path().join("slurm")) else { return };
    let bench = MatrixBench::new(4, 6);
    let (alone, store) = (bench.store("alone"), bench.store("store"));
    let single = bench.node("single");
    let plan = bench.plan(&single, &*alone);
    assert_eq!(plan.cells.len(), 24);
    assert!(single.run(&plan, &alone, 2).unwrap().is_whole());
    plan.publish(&*store).unwrap();

    let worker = bench.path("worker");
    let scratch = bench.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let text = format!(
        "#!/bin/sh\nexec env KERNTUNE_TEST_TASK=\"$2\" KERNTUNE_TEST_PLAN={} KERNTUNE_TEST_STORE='{}' \
         KERNTUNE_TEST_SCRATCH='{}' '{}' --exact slurm::as_a_worker --nocapture\n",
        plan.id(),
        store.url(),
        scratch.display(),
        env::current_exe().unwrap().display()
    );
    fs::write(&worker, text).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    env::set_var("SLURM_CONF", here.directory.join("slurm.conf"));

    let directory = bench.path("jobs");
    let worker = [worker.display().to_string()];
    let slurm = Slurm {
        plan: &plan,
        store: &*store,
        directory: &directory,
        worker: &worker,
        options: &[],
        look: Duration::from_millis(500),
        patience: Duration::from_secs(20),
    };
    let done = || results(&*store).len();
    let over = AtomicBool::new(false);
    let handed = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let handed = slurm.run(&NoProgress);
            over.store(true, Ordering::SeqCst);
            handed
        });
        // Plays the administrator: a controller that lost unsaved state may take a node out of use.
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let states = here.ask("sinfo", &["--noheader", "--Node", "--format=%N %T"]);
                for line in
                    states.lines().filter(|line| line.contains("drain") || line.trim().ends_with("down"))
                {
                    let node = line.split(' ').next().unwrap_or_default();
                    here.ask("scontrol", &["update", &format!("nodename={node}"), "state=resume"]);
                }
                std::thread::sleep(Duration::from_secs(2));
            }
        });
        // A measuring job, killed at once. What runs meanwhile may fail; then there is nothing to
        // wait for.
        let until =
            |what: &str, holds: &dyn Fn() -> bool| until(what, || holds() || over.load(Ordering::SeqCst));
        until("measurements begin", &|| done() >= 5);
        let working = || {
            let all = states(&plan, &*store).unwrap();
            let measures = all.into_iter().filter(|task| task.title.starts_with("measure"));
            let process = |task: kerntune_matrix::TaskStatus| match task.progress {
                TaskProgress::Working { process, .. } => {
                    process.split_once('@').map(|(pid, _)| pid.to_owned())
                }
                _ => None,
            };
            measures.filter_map(process).next()
        };
        until("a job measures", &|| working().is_some());
        let pid = working().expect("it takes a second and a half");
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        // A node daemon: its node goes down after a while, and its jobs start elsewhere.
        until("more is done", &|| done() >= 8);
        here.call("kill", "node2");
        until("more is done", &|| done() >= 11);
        // The controller.
        here.call("kill", "controller");
        std::thread::sleep(Duration::from_secs(3));
        here.call("revive", "controller");
        until("more is done", &|| done() >= 16);
        here.call("revive", "node2");
        running.join().unwrap()
    });
    let logs = || {
        let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect::<String>()
    };
    let handed = handed.unwrap_or_else(|error| panic!("{error}\n{}", logs()));
    assert_eq!(results(&*store), results(&*alone), "the same bytes");
    let all = states(&plan, &*store).unwrap();
    assert!(all.iter().all(|task| task.computed == 1), "nothing whole is computed twice: {all:#?}");
    let lost = all.iter().filter(|task| task.claims > 1).count();
    assert!(lost >= 1, "the job that was killed is claimed again");
    println!("{} tasks, {lost} lost and computed again, {handed:?}", all.len());
}
