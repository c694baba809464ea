//! A kernel that can be profiled while it runs, the module for it, and guests that use them.

use crate::support;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{Kernel, ModuleSource, Symbols};
use kerntune_kgmon::Dump;
use kerntune_machine::{CaptureRequest, Demands, Emulator, Machine, Outcome, RunRequest};
use kerntune_work::{NoProgress, WorkDir};
use std::path::{Path, PathBuf};

/// A module whose functions are called a known number of times.
const CALLEE: ModuleSource = ModuleSource {
    name: "callee",
    files: &[("Makefile", include_str!("callee.mk")), ("callee.c", include_str!("callee.c"))],
};

/// What most guests run.
pub const RR: &str = "programs = [\"rr\"]\nbinaries = [\"sh\"]";

pub struct Bench {
    work: WorkDir,
    pub kernel: Kernel,
    pub symbols: Symbols,
    module: PathBuf,
    callee: PathBuf,
}

/// A run of the guest, and the directory that goes when it is dropped.
pub struct Run {
    _directory: tempfile::TempDir,
    pub outcome: Outcome,
}

impl Run {
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.outcome.guest_files.join(name)).unwrap()
    }

    pub fn dump(&self, name: &str) -> Dump {
        Dump::read(&std::fs::read(self.outcome.guest_files.join(name)).unwrap()).unwrap()
    }
}

impl Bench {
    pub fn new() -> Self {
        Self::on(&support::ftrace_kernel())
    }

    /// With a module whose direct registration fails in its last step on a function that is live-patched.
    pub fn with_failing_registration() -> Self {
        let mut bench = Self::new();
        let text = |&(name, text): &(&'static str, &'static str)| match name {
            "Makefile" => (name, &*format!("ccflags-y += -DKG_SHARED=-EBUSY\n{text}").leak()),
            _ => (name, text),
        };
        let files: Vec<_> = kerntune_kgmon::SOURCE.files.iter().map(text).collect();
        let source = ModuleSource { name: "kgmon", files: files.leak() };
        let _alone = support::with_objects();
        bench.module = kerntune_kernel::module(&bench.work, &bench.kernel, &source, &NoProgress).unwrap();
        bench
    }

    /// The same in this kernel.
    pub fn on(id: &str) -> Self {
        let work = WorkDir::open(support::work_dir()).unwrap();
        let kernel = kerntune_kernel::find(&work, id).unwrap();
        let symbols = kernel.symbols().unwrap();
        let _alone = support::with_objects();
        let module = kerntune_kgmon::build_for(&work, &kernel, &NoProgress).unwrap();
        let callee = kerntune_kernel::module(&work, &kernel, &CALLEE, &NoProgress).unwrap();
        Self { work, kernel, symbols, module, callee }
    }

    /// An image whose run `measured` is one process of `kgmon` with these steps (guest/kgmon.c): a line each. `LOAD` and
    /// `CALLEE` load the two modules. `workload` is what else is in the guest, lines of a workload's file.
    pub fn image(&self, workload: &str, steps: &str) -> GuestImage {
        let (module, callee) = (self.module.to_str().unwrap(), self.callee.to_str().unwrap());
        let lines = steps.lines().map(str::trim).filter(|line| !line.is_empty());
        let words: Vec<String> = lines
            .collect::<Vec<_>>()
            .join(" , ")
            .replace("LOAD", &format!("load {module}"))
            .replace("CALLEE", &format!("load {callee}"))
            .replace("TRACING", "/sys/kernel/tracing")
            .split_whitespace()
            .map(|word| format!("{word:?}"))
            .collect();
        let text = format!(
            "description = \"kgmon\"\nfiles = [{module:?}, {callee:?}]\n{workload}\n\
             [training]\n[[training.step]]\ncommand = [\"kgmon\"]\n\
             [measured]\n[[measured.step]]\ncommand = [\"kgmon\", {}]\n",
            words.join(", ")
        );
        let directory = tempfile::tempdir().unwrap();
        let file = support::workload(&directory, &text);
        GuestImage::build(&self.work, &Workload::load(Path::new(&file)).unwrap(), &NoProgress).unwrap()
    }

    /// Runs these steps in the emulator, with the programs of rr.
    pub fn run(&self, steps: &str, functions: bool) -> Run {
        self.run_with(RR, steps, CaptureRequest { functions, ..CaptureRequest::default() })
    }

    /// Runs these steps in a guest of this workload.
    pub fn run_with(&self, workload: &str, steps: &str, capture: CaptureRequest) -> Run {
        self.try_run(workload, steps, capture).unwrap()
    }

    /// The same, of steps that may fail.
    pub fn try_run(
        &self,
        workload: &str,
        steps: &str,
        capture: CaptureRequest,
    ) -> Result<Run, kerntune_machine::Error> {
        self.boot(workload, steps, Some(capture), Demands::default())
    }

    /// Runs these steps on four CPUs, without a recorder.
    pub fn run_on_four_cpus(&self, steps: &str) -> Run {
        let run = self.boot(RR, steps, None, Demands { cpus: 4, ..Demands::default() }).unwrap();
        let said = std::fs::read_to_string(run.outcome.directory.join("console.log")).unwrap();
        for bad in ["WARNING:", "BUG:", "Oops", "Call Trace"] {
            assert!(!said.contains(bad), "{said}");
        }
        run
    }

    fn boot(
        &self,
        workload: &str,
        steps: &str,
        capture: Option<CaptureRequest>,
        demands: Demands,
    ) -> Result<Run, kerntune_machine::Error> {
        let image = self.image(workload, steps);
        let directory = tempfile::tempdir().unwrap();
        let new = RunRequest::new(&self.kernel, &image.initramfs, "measured");
        let request = RunRequest { capture, demands, ..new };
        let outcome = Emulator::find().unwrap().run(&request, directory.path(), &NoProgress)?;
        Ok(Run { _directory: directory, outcome })
    }
}
