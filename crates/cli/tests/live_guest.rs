//! `kerntune live` in an emulated guest, compared with the recorder, which sees every instruction.

#[path = "live_guest/seen.rs"]
mod seen;

use crate::support::arcs::{self, ArcCounts};
use crate::support::{self, gprof, unique};
use kerntune_analyze::graph::{CallGraph, Propagation};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::Symbols;
use kerntune_machine::{CaptureRequest, Emulator, Machine, RunRequest};
use kerntune_profile::Profile;
use kerntune_work::{NoProgress, WorkDir};
use seen::{TraceWindow, WindowBoundary};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Script of the guest, one step per line. Files in OUT are returned.
const SCRIPT: &str = r#"
set -e
kt() { kerntune --dir "$OUT/work" "$@"; }
tracing=/sys/kernel/tracing
# Without the module: ftrace's own profiler counts.
kt record --verbose --live --calls __do_sys_getpid --json -- sh -c 'rr --only getpid --scale 0.5 > /dev/null' > "$OUT/profiler.json" 2> "$OUT/profiler.txt"
cat $tracing/function_profile_enabled $tracing/set_ftrace_filter > "$OUT/profiler.after"
# Samples alone, of the whole machine.
kt record --live --all --rate 5000 --json -- sh -c 'rr --only tcp_rr,stat,read_cached,fork_exit,getpid --scale 4 > /dev/null' > "$OUT/samples.json" 2> "$OUT/samples.txt"
kgmon load MODULE
# One command.
kt record --live --calls all --json -- sh -c 'rr --only tcp_rr,stat,read_cached,fork_exit,getpid --scale 3 > /dev/null' > "$OUT/command.json" 2> "$OUT/command.txt"
# A collector that goes on: two dumps, a reset between them.
kt live start --calls all 2> "$OUT/start.txt"
rr --only pipe_rr,stat --scale 0.2 > /dev/null
kt live dump --json --gmon "$OUT/gmon.out" > "$OUT/first.json" 2>> "$OUT/start.txt"
kt live reset
rr --only pipe_rr,stat --scale 0.1 > /dev/null
kt live dump --json > "$OUT/second.json"
kt live status > "$OUT/status.txt"
# A killed one leaves nothing behind.
read -r _ _ process _ < "$OUT/status.txt"
cat $tracing/enabled_functions > "$OUT/enabled.during"
kill -9 "${process%,}"
for tenth in 0 1 2 3 4 5 6 7 8 9; do
    [ -n "$(cat $tracing/enabled_functions)" ] || break
    sleep 0.1
done
cat $tracing/enabled_functions > "$OUT/enabled.after"
cat $tracing/available_filter_functions_addrs > "$OUT/functions"
kgmon unload kgmon
"#;

struct LiveGuest {
    _directory: tempfile::TempDir,
    out: PathBuf,
    windows: Vec<TraceWindow>,
    sampled: Vec<TraceWindow>,
    symbols: Symbols,
    vmlinux: PathBuf,
}

impl LiveGuest {
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn profile(&self, summary: &str) -> Profile {
        let json: serde_json::Value = serde_json::from_str(&self.text(summary)).unwrap();
        let id = json["profile"].as_str().unwrap();
        Profile::load(&self.out.join("work/profiles").join(id)).unwrap()
    }

    fn run() -> Self {
        let id = support::ftrace_kernel();
        let work = WorkDir::open(support::work_dir()).unwrap();
        let kernel = kerntune_kernel::find(&work, &id).unwrap();
        let symbols = kernel.symbols().unwrap();
        let module = kerntune_kgmon::build_for(&work, &kernel, &NoProgress).unwrap();
        // Not below /tmp: the guest has its own.
        let directory = tempfile::tempdir_in(support::work_dir()).unwrap();
        // Without debug information, because everything is unpacked into the guest's memory.
        let program = directory.path().join("kerntune");
        let stripped =
            Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_kerntune")).status();
        assert!(stripped.unwrap().success());
        let script = directory.path().join("script");
        let text = SCRIPT.replace("MODULE", module.to_str().unwrap()).replace("$OUT", "$KT_OUT");
        std::fs::write(&script, text).unwrap();
        let text = format!(
            "description = \"live\"\nfiles = [{module:?}, {script:?}]\nprograms = [\"rr\", \"kgmon\"]\n\
             binaries = [\"sh\", \"cat\", \"sleep\", {program:?}]\nmemory_mb = 1024\n\
             [training]\n[[training.step]]\ncommand = [\"rr\"]\n\
             [measured]\n[[measured.step]]\nregion = \"live\"\noperations = 1\ncommand = [\"sh\", {script:?}]\n"
        );
        let file = support::workload(&directory, &text);
        let image =
            GuestImage::build(&work, &Workload::load(Path::new(&file)).unwrap(), &NoProgress).unwrap();
        let capture = CaptureRequest { functions: true, ..CaptureRequest::default() };
        let request =
            RunRequest { capture: Some(capture), ..RunRequest::new(&kernel, &image.initramfs, "measured") };
        let ran = directory.path().join("run");
        std::fs::create_dir(&ran).unwrap();
        let outcome = Emulator::find().unwrap().run(&request, &ran, &NoProgress).unwrap();
        let windows = seen::recorded(&outcome, &symbols, WindowBoundary::Snapshots);
        let sampled = seen::recorded(&outcome, &symbols, WindowBoundary::Samples);
        Self {
            out: outcome.guest_files.clone(),
            _directory: directory,
            windows,
            sampled,
            symbols,
            vmlinux: kernel.vmlinux(),
        }
    }

    /// Returns the profile's counted calls by function, for functions that ftrace can trace.
    fn counted(&self, profile: &Profile, traceable: &BTreeSet<u32>) -> ArcCounts {
        let number = |function: kerntune_profile::FunctionIndex| {
            let symbol = profile.tables.symbols.iter().find(|symbol| symbol.function == function);
            symbol
                .and_then(|symbol| self.symbols.lookup(symbol.address.0))
                .map_or(self.symbols.functions().len() as u32, |at| self.symbols.whole(at) as u32)
        };
        let mut numbers = BTreeMap::new();
        let mut of = |function| *numbers.entry(function).or_insert_with(|| number(function));
        let mut arcs = ArcCounts::new();
        for arc in profile.tables.arcs.iter().filter(|arc| arc.calls > 0) {
            let key = (of(arc.caller), of(arc.callee));
            if traceable.contains(&key.1) {
                *arcs.entry(key).or_default() += arc.calls;
            }
        }
        arcs
    }

    /// Returns the window of the profile: its counts must equal the recorder's between two
    /// snapshots, arc by arc.
    fn window_of(&self, profile: &Profile, traceable: &BTreeSet<u32>) -> TraceWindow {
        // The recorder may not know functions that were called before the recording began and have
        // not returned.
        let entered = seen::entered(&self.windows);
        let unknown = self.symbols.functions().len() as u32;
        let merged = |arcs: &ArcCounts| {
            let mut merged = ArcCounts::new();
            for ((caller, callee), calls) in arcs.iter().filter(|(key, _)| traceable.contains(&key.1)) {
                let caller = if entered.contains(caller) { *caller } else { unknown };
                *merged.entry((caller, *callee)).or_default() += calls;
            }
            merged
        };
        let counted = merged(&self.counted(profile, traceable));
        let calls: u64 = counted.values().sum();
        // Code in no known function reads this clock for other reasons too, so the time may span
        // several windows.
        let of_traceable = |window: &TraceWindow| -> u64 {
            window.arcs.iter().filter(|(key, _)| traceable.contains(&key.1)).map(|(_, calls)| calls).sum()
        };
        let each: Vec<u64> = self.windows.iter().map(of_traceable).collect();
        let ranges = (0..each.len()).flat_map(|from| (from + 1..=each.len()).map(move |to| from..to));
        let nearest =
            ranges.min_by_key(|range| each[range.clone()].iter().sum::<u64>().abs_diff(calls)).unwrap();
        let window = TraceWindow::sum(&self.windows[nearest]);
        let left: Vec<String> = arcs::differences(&merged(&window.arcs), &counted, traceable, &self.symbols)
            .iter()
            .map(|of| format!("{} -> {}: recorder {}, live {}", of.caller, of.callee, of.recorder, of.kgmon))
            .collect();
        assert!(
            left.is_empty(),
            "{} arcs of {} differ: {:#?}",
            left.len(),
            counted.len(),
            &left[..left.len().min(40)]
        );
        assert!(counted.len() > 300, "{} arcs", counted.len());
        println!("{} arcs, {calls} calls, all equal", counted.len());
        window
    }
}

#[test]
fn what_live_says_is_what_happened() {
    let guest = LiveGuest::run();
    let traceable = arcs::traceable(&guest.text("functions"), &guest.symbols);
    // Calls counted by the module, for one command and for two dumps of a collector.
    let command = guest.profile("command.json");
    guest.window_of(&command, &traceable);
    let [first, second] = ["first.json", "second.json"].map(|name| guest.profile(name));
    guest.window_of(&first, &traceable);
    guest.window_of(&second, &traceable);
    // GNU gprof reads the dump, and its graph equals ours.
    let symbols = guest.text("gmon.out.symbols");
    let (text, names) = unique::unique(&symbols, &first);
    let named = guest.out.join("unique");
    std::fs::write(&named, text).unwrap();
    let printed =
        gprof::parse(&gprof::gprof(&[Path::new("-S"), &named, &guest.vmlinux, &guest.out.join("gmon.out")]));
    let graph = CallGraph::of_tables(&first.tables, |_| true, Propagation::Counts).unwrap();
    let name = |at: Option<usize>| at.map_or("<spontaneous>".into(), |at| names[&at].clone());
    let compared = gprof::compare(&graph, &printed, name, 1e3);
    println!("gprof: {compared:?}");
    assert!(compared.functions > 300, "{compared:?}");
    // ftrace's profiler counts the same calls of a function, without callers.
    let calls = |profile: &Profile, name: &str| -> u64 {
        let symbol = profile.tables.symbols.iter().find(|symbol| symbol.name == name).unwrap();
        let rows = profile.tables.functions.iter().filter(|row| row.function == symbol.function);
        rows.map(|row| row.calls).sum()
    };
    let counted = calls(&guest.profile("profiler.json"), "__x64_sys_getpid");
    assert!(counted >= 20_000, "{counted}");
    assert!(guest.text("profiler.txt").contains("calls have no callers"));
    assert_eq!(guest.text("profiler.after").lines().next(), Some("0"));
    assert!(guest.text("profiler.after").contains("#### all functions enabled"));
    assert_eq!(
        command.manifest.counted.iter().find(|row| row.name == "getpid").map(|row| row.kind.as_str()),
        Some("syscall")
    );
    // After a collector was killed, its functions are NOPs again.
    assert!(guest.text("enabled.during").lines().count() > 1000);
    assert_eq!(guest.text("enabled.after"), "");
    // Every sample belongs to the function that the sampler's interrupt hit.
    let samples = guest.profile("samples.json");
    let of = samples.manifest.sampled.as_ref().unwrap().samples - samples.manifest.lost_events;
    let window = guest.sampled.iter().max_by_key(|window| window.samples.values().sum::<u64>()).unwrap();
    let rows = seen::rows(&samples, window, &guest.symbols);
    println!("{of} samples");
    // Samples of the halted CPU count as idle time.
    let busy: Vec<_> = rows.iter().filter(|row| row.name != "pv_native_safe_halt").collect();
    let other: Vec<_> = busy.iter().filter(|row| row.sampled != row.hit).collect();
    assert!(other.is_empty(), "{other:#?}");
    assert!(busy.iter().map(|row| row.sampled).sum::<u64>() > 1_000, "{busy:#?}");
}

#[test]
fn what_cannot_be_counted_together_is_refused() {
    let live = |more: &[&str]| support::kerntune([&["record", "--live"], more, &["--", "true"]].concat());
    support::fails(&mut live(&["--calls", "all", "--calls", "tcp_*"]), 2, &["--calls macro alone"]);
    support::fails(&mut live(&["--calls", "macro", "--pid", "1"]), 2, &["whole machine"]);
    support::fails(&mut live(&["--calls-except", "x"]), 2, &["--calls"]);
    let mut recorded = support::kerntune(["record", "--kernel", "x", "--workload", "rr", "--calls", "all"]);
    support::fails(&mut recorded, 2, &["--live"]);
}
