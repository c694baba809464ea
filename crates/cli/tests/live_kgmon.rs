//! kgmon held against the truth: the module runs in an emulated guest while the recorder watches.

mod support;
#[path = "live_kgmon/truth.rs"]
mod truth;

use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_kgmon::Dump;
use kerntune_machine::{CaptureRequest, Emulator, Machine, Outcome, RunRequest};
use kerntune_work::{NoProgress, WorkDir};
use std::path::{Path, PathBuf};

const TRACING: &str = "/sys/kernel/tracing";

struct Bench {
    work: WorkDir,
    kernel: Kernel,
    module: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let fragment = support::checkout().join("kernel/ftrace.config");
        let id = support::kernel(&["--fragment", fragment.to_str().unwrap(), "--keep-objects"], "ftrace");
        let work = WorkDir::open(support::work_dir()).unwrap();
        let kernel = kerntune_kernel::find(&work, &id).unwrap();
        let module = kerntune_kgmon::build_for(&work, &kernel, &NoProgress).unwrap();
        Self { work, kernel, module }
    }

    /// Runs one process of `kgmon` with these steps (guest/kgmon.c); `LOAD` loads the module.
    fn run(&self, steps: &str, more: &str, capture: Option<CaptureRequest>) -> (tempfile::TempDir, Outcome) {
        let directory = tempfile::tempdir().unwrap();
        let module = self.module.to_str().unwrap();
        let words: Vec<String> = steps
            .replace("LOAD", &format!("load {module}"))
            .split_whitespace()
            .map(|word| format!("{word:?}"))
            .collect();
        let text = format!(
            "description = \"kgmon\"\nfiles = [{module:?}]\n{more}\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
             [measured]\n[[measured.step]]\ncommand = [\"kgmon\", {}]\n",
            words.join(", ")
        );
        let file = support::workload(&directory, &text);
        let workload = Workload::load(Path::new(&file)).unwrap();
        let image = GuestImage::build(&self.work, &workload, &NoProgress).unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let request = RunRequest { capture, ..RunRequest::new(&self.kernel, &image.initramfs, "measured") };
        let outcome = Emulator::find().unwrap().run(&request, &run, &NoProgress).unwrap();
        (directory, outcome)
    }
}

fn functions() -> Option<CaptureRequest> {
    Some(CaptureRequest { functions: true, ..CaptureRequest::default() })
}

fn text(outcome: &Outcome, name: &str) -> String {
    std::fs::read_to_string(outcome.guest_files.join(name)).unwrap()
}

fn dump(outcome: &Outcome, name: &str) -> Dump {
    Dump::read(&std::fs::read(outcome.guest_files.join(name)).unwrap()).unwrap()
}

#[test]
fn every_arc_is_the_recorders() {
    let bench = Bench::new();
    let symbols = truth::symbols(&bench.kernel);
    let rows = "tcp_rr,udp_rr,pipe_rr,socketpair_rr,fork_exit,fork_exec,creat_close,stat,read_cached,getpid";
    let steps = format!(
        "LOAD , start timer=off , begin all , take before , run rr --only {rows} --scale 0.05 , dump all , end all , \
         save {TRACING}/available_filter_functions_addrs functions , stop , \
         save {TRACING}/enabled_functions enabled , unload kgmon"
    );
    let (_directory, outcome) = bench.run(&steps, "", functions());
    let windows = truth::recorded(&outcome, &symbols);
    assert_eq!(windows.len(), 3, "two snapshots");
    let dump = dump(&outcome, "all");
    let kgmon = truth::counted(&dump, &symbols);
    let functions = truth::traceable(&text(&outcome, "functions"), &symbols);
    let differences = truth::differences(&windows[1], &kgmon, &functions, &symbols);
    let calls: u64 = dump.arcs.iter().map(|arc| arc.calls).sum();
    println!("{} arcs, {calls} calls, {} functions; {} differences", kgmon.len(), functions.len(), differences.len());
    for difference in &differences {
        println!("{difference:?}");
    }
    assert_eq!(text(&outcome, "enabled"), "");
    assert_eq!(dump.lost_calls, 0);
    assert!(differences.is_empty());
}
