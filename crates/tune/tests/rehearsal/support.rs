//! Shared parts of these tests: the stand-in kernel, a workload for it, and calls of the loop.

use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, ObjectFlags};
use kerntune_machine::Machine;
use kerntune_rehearsal::Rehearsal;
use kerntune_tune::model::{self, Model};
use kerntune_tune::{tune, Recipe, Result, Session, TuneRequest, TuneResult, TuningSettings};
use kerntune_work::{NoProgress, WorkDir};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Workload of the stand-in. Its programs are built into the stand-in machine; the image contains
/// the real ones of these names.
pub const WORKLOAD: &str = "name = \"stand-in\"\n\
    [[training.step]]\ncommand = [\"rr\", \"--seed\", \"20\"]\n\
    [[measured.step]]\ncommand = [\"rr\", \"--seed\", \"1\"]\nexpect = [\"rr: done\"]\n";

/// Operations that `rr` marks there.
pub const OPERATIONS: [&str; 5] = ["getpid", "file_rr", "pipe_rr", "list_rr", "packet_rr"];

/// A temporary directory for work directories.
pub struct TestBench {
    dir: TempDir,
    pub workload: Workload,
    pub model: Model,
}

impl TestBench {
    pub fn new() -> Self {
        let workload = Workload::parse(WORKLOAD, Path::new("stand-in.toml")).unwrap();
        let model = model::find(model::DEFAULT).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), workload, model }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a work directory that shares the programs of guest images with others, since they do
    /// not depend on the test.
    pub fn work(&self, name: &str) -> WorkDir {
        let (work, programs) = (WorkDir::open(self.path(name)).unwrap(), "guest-programs");
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(programs);
        fs::create_dir_all(&shared).unwrap();
        symlink(shared, work.root().join(programs)).unwrap();
        work
    }

    pub fn machine(&self) -> Box<dyn Machine> {
        Box::new(Rehearsal::new(self.dir.path()).unwrap())
    }

    /// Creates a session on the stand-in machine.
    pub fn session<'a>(&self, work: &'a WorkDir) -> Session<'a> {
        session(self.machine(), work)
    }

    /// Tunes the stand-in kernel by `gcc-pgo` with these object flags. Also returns the number of
    /// steps whose results existed.
    pub fn tune(&self, session: &Session, object_flags: &[ObjectFlags]) -> Result<(TuneResult, usize)> {
        let build = build_request("base");
        let settings = TuningSettings { object_flags, ..TuningSettings::new(&self.model) };
        let (workload, recipe) = (&self.workload, recipe("gcc-pgo"));
        let request = TuneRequest { build: &build, workload, recipe, settings };
        let there = Cell::new(0);
        let tuned =
            tune(session, &request, &|_, found| there.set(there.get() + usize::from(found.is_some())))?;
        Ok((tuned, there.get()))
    }
}

pub fn session(machine: Box<dyn Machine>, work: &WorkDir) -> Session<'_> {
    Session::with(machine, work, &NoProgress).unwrap()
}

/// Returns the request of the stand-in kernel.
pub fn build_request(label: &str) -> BuildRequest {
    BuildRequest::new(kerntune_rehearsal::source(), label)
}

pub fn recipe(name: &str) -> Recipe {
    name.parse().unwrap()
}
