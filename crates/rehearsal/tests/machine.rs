//! Tests of the stand-in kernel on the stand-in machine, without the rest of kerntune.

use kerntune_kernel::{build, BuildRequest, Kernel, ObjectFlags};
use kerntune_machine::{CaptureRequest, Error, Machine, RunOutcome, RunRequest};
use kerntune_rehearsal::{source, Rehearsal};
use kerntune_work::{NoProgress, WorkDir};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Init's plan: the part of a guest image that the machine reads.
const PLAN: &str = "kerntune-plan\t1\nlimit\t600\nrun\ttraining\nstep\t-\t0\tunknown\n\
    run\tmeasured\nstep\t-\t0\tselftest\t--report\nstep\tall\t2\trr\t--seed\t3\n";

struct TestBench {
    dir: TempDir,
    machine: Rehearsal,
}

impl TestBench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Rehearsal::new(dir.path()).unwrap();
        let plan = cpio::newc::Builder::new("kt/plan");
        let image = fs::File::create(dir.path().join("image")).unwrap();
        let mut member = plan.write(image, PLAN.len() as u32);
        std::io::Write::write_all(&mut member, PLAN.as_bytes()).unwrap();
        cpio::newc::trailer(member.finish().unwrap()).unwrap();
        Self { dir, machine }
    }

    fn kernel(&self, object_flags: Vec<ObjectFlags>) -> Kernel {
        let work = WorkDir::open(self.dir.path().join("work")).unwrap();
        let request = BuildRequest { object_flags, ..BuildRequest::new(source(), "stand-in") };
        build(&work, &request, &NoProgress).unwrap()
    }

    fn run(&self, kernel: &Kernel, run: &str, name: &str) -> Result<RunOutcome, Error> {
        let (image, directory) = (self.dir.path().join("image"), self.path(name));
        fs::create_dir(&directory).unwrap();
        let capture = CaptureRequest { functions: true, edges: true, ..CaptureRequest::default() };
        let request = RunRequest { capture: Some(capture), ..RunRequest::new(kernel, &image, run) };
        self.machine.run(&request, &directory, &NoProgress)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

#[test]
fn the_kernel_passes_its_checks_and_runs_are_exact() {
    let bench = TestBench::new();
    let kernel = bench.kernel(Vec::new());
    let first = bench.run(&kernel, "measured", "first").unwrap();
    let said = fs::read_to_string(first.guest_files.join("measured-1-selftest.log")).unwrap();
    assert!(
        said.lines().count() >= 9 && said.lines().all(|line| line.contains("\"result\":\"ok\"")),
        "{said}"
    );
    assert_eq!(fs::read_to_string(first.guest_files.join("measured-2-rr.log")).unwrap(), "rr: done\n");
    let phases: Vec<_> = first.phases.iter().map(|(phase, _)| phase.as_str()).collect();
    assert_eq!(phases, ["boot", "measured step 1 selftest", "measured step 2 all"]);

    let recording = first.recording.as_ref().unwrap();
    let regions: Vec<_> =
        recording.regions.iter().map(|r| (r.name.as_str(), r.operations, r.closed)).collect();
    assert_eq!((regions[0], regions.len()), (("all", 2, true), 6));
    assert_eq!(regions[1], ("getpid", 200, true));
    let health = recording.health;
    let odd = health.foreign_returns + health.unmatched_returns + health.unwound_frames + health.clock_errors;
    assert_eq!(odd, 0, "{health:?}");

    let second = bench.run(&kernel, "measured", "second").unwrap();
    for name in ["recording.json", "trace.kt", "counts.kt", "console.log"] {
        let [one, two] = [&first, &second].map(|run| fs::read(run.directory.join(name)).unwrap());
        assert_eq!(one, two, "{name}");
    }
}

#[test]
fn failures_of_a_guest_are_told_apart() {
    let bench = TestBench::new();
    let kernel = bench.kernel(Vec::new());
    let error = bench.run(&kernel, "training", "a").unwrap_err();
    assert!(matches!(&error, Error::Guest { reason, .. } if reason.contains("no such program")), "{error}");
    let kernel = bench.kernel(vec![ObjectFlags::add("mm/slab.o", "-DBROKEN")]);
    let error = bench.run(&kernel, "measured", "b").unwrap_err();
    assert!(matches!(&error, Error::Panic { phase, .. } if phase.starts_with("measured step")), "{error}");
}
