//! A guest with a kernel that can be profiled while it runs, and with the kgmon module.

use crate::support;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{Kernel, ModuleSource, Symbols};
use kerntune_kgmon::KgmonDump;
use kerntune_machine::{CaptureRequest, Emulator, Machine, MachineDemands, RunOutcome, RunRequest};
use kerntune_work::{NoProgress, WorkDir};
use std::path::{Path, PathBuf};

/// A module whose functions are called a known number of times.
const CALLEE: ModuleSource = ModuleSource {
    name: "callee",
    files: &[("Makefile", include_str!("callee.mk")), ("callee.c", include_str!("callee.c"))],
};

/// Programs of most guests.
pub const RR: &str = "programs = [\"rr\"]\nbinaries = [\"sh\"]";

pub struct KgmonBench {
    work: WorkDir,
    pub kernel: Kernel,
    pub symbols: Symbols,
    module: PathBuf,
    callee: PathBuf,
}

/// A run of the guest, and its directory, which is deleted when dropped.
pub struct KgmonRun {
    _directory: tempfile::TempDir,
    pub outcome: RunOutcome,
}

impl KgmonRun {
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.outcome.guest_files.join(name)).unwrap()
    }

    pub fn dump(&self, name: &str) -> KgmonDump {
        KgmonDump::read(&std::fs::read(self.outcome.guest_files.join(name)).unwrap()).unwrap()
    }
}

impl KgmonBench {
    pub fn new() -> Self {
        Self::on(&support::ftrace_kernel())
    }

    /// Uses a module whose direct registration fails in its last step, on a function that is
    /// live-patched.
    pub fn with_failing_registration() -> Self {
        let mut bench = Self::new();
        let text = |&(name, text): &(&'static str, &'static str)| match name {
            "Makefile" => (name, &*format!("ccflags-y += -DKG_SHARED=-EBUSY\n{text}").leak()),
            _ => (name, text),
        };
        let files: Vec<_> = kerntune_kgmon::SOURCE.files.iter().map(text).collect();
        let source = ModuleSource { name: "kgmon", files: files.leak() };
        let _alone = support::with_objects();
        bench.module =
            kerntune_kernel::build_module(&bench.work, &bench.kernel, &source, &NoProgress).unwrap();
        bench
    }

    /// Uses this kernel.
    pub fn on(id: &str) -> Self {
        let work = WorkDir::open(support::work_dir()).unwrap();
        let kernel = kerntune_kernel::find(&work, id).unwrap();
        let symbols = kernel.symbols().unwrap();
        let _alone = support::with_objects();
        let module = kerntune_kgmon::build_for(&work, &kernel, &NoProgress).unwrap();
        let callee = kerntune_kernel::build_module(&work, &kernel, &CALLEE, &NoProgress).unwrap();
        Self { work, kernel, symbols, module, callee }
    }

    /// Makes an image whose measured run is one `kgmon` process with these steps, one per line
    /// (embedded/guest/kgmon.c). `LOAD` and `CALLEE` load the two modules. `workload` has more lines of the
    /// workload's file.
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
    pub fn run(&self, steps: &str, functions: bool) -> KgmonRun {
        self.run_with(RR, steps, CaptureRequest { functions, ..CaptureRequest::default() })
    }

    /// Runs these steps in a guest of this workload.
    pub fn run_with(&self, workload: &str, steps: &str, capture: CaptureRequest) -> KgmonRun {
        self.try_run(workload, steps, capture).unwrap()
    }

    /// Runs steps that may fail.
    pub fn try_run(
        &self,
        workload: &str,
        steps: &str,
        capture: CaptureRequest,
    ) -> Result<KgmonRun, kerntune_machine::Error> {
        self.boot(workload, steps, Some(capture), MachineDemands::default())
    }

    /// Runs these steps on four CPUs, without a recorder.
    pub fn run_on_four_cpus(&self, steps: &str) -> KgmonRun {
        let run =
            self.boot(RR, steps, None, MachineDemands { cpus: 4, ..MachineDemands::default() }).unwrap();
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
        demands: MachineDemands,
    ) -> Result<KgmonRun, kerntune_machine::Error> {
        let image = self.image(workload, steps);
        let directory = tempfile::tempdir().unwrap();
        let new = RunRequest::new(&self.kernel, &image.initramfs, "measured");
        let request = RunRequest { capture, demands, ..new };
        let outcome = Emulator::find().unwrap().run(&request, directory.path(), &NoProgress)?;
        Ok(KgmonRun { _directory: directory, outcome })
    }
}
