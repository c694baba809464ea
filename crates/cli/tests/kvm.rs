//! The machine kvm: its error if it is missing, and the rest of the command on the same guest in
//! the emulator.

use crate::support::{base_kernel, fails, kerntune, work_dir};
use kerntune_guest::{Suite, Workload};
use kerntune_machine::Kvm;
use kerntune_stats::PerfCounter;
use kerntune_tune::bench::{select, timed};
use kerntune_tune::Session;
use kerntune_work::{NoProgress, WorkDir};

/// KVM may work, be absent, or emulate the kernel; the result must be a figure or a reason.
#[test]
fn there_are_times_or_there_is_a_reason() {
    let kernel = base_kernel();
    let run =
        ["bench", "run", "kbx", "--row", "getpid", "--machine", "kvm", "--kernel", &kernel, "--boots", "1"];
    let output = kerntune([&run[..], &["--json"]].concat()).output().unwrap();
    match output.status.code() {
        Some(0) => {
            let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(results["rows"][0]["values"][0]["value"].as_f64().unwrap() > 0.0, "{results}");
            assert!(results["cpu_model"].as_str().unwrap().starts_with("max"), "{results}");
        }
        _ => drop(fails(&mut kerntune(run), 3, &["no machine kvm here", "kerntune doctor"])),
    }
    fails(&mut kerntune([&run[..], &["--iterations", "2"]].concat()), 2, &["leave --iterations out"]);
    fails(&mut kerntune([&run[..], &["--runs", "2"]].concat()), 2, &["--runs is for the host"]);
    let wrong = ["bench", "run", "batched", "--machine", "uml", "--kernel", &kernel];
    fails(&mut kerntune(wrong), 2, &["--machine kvm"]);
}

#[test]
fn rows_of_all_kinds_get_their_values_in_their_units() {
    let kernel = base_kernel();
    let work = WorkDir::open(work_dir()).unwrap();
    let kernel = kerntune_kernel::find(&work, &kernel).unwrap();
    let suite = |name: &str| Suite::of(Workload::find(name, &[]).unwrap()).unwrap();
    let suites = ["kbx", "netperf", "batched", "redis"].map(suite);
    let rows = ["kbx/getpid", "netperf/tcp_rr_1", "batched/nop", "redis_get"].map(String::from);
    let checked = timed::check(&kernel, select(suites.to_vec(), &rows).unwrap()).unwrap();
    let cards = timed::check(&kernel, select(vec![suite("paths")], &[]).unwrap()).unwrap_err();
    assert!(cards.to_string().contains("network cards"), "{cards}");
    let session = Session::new(&work, &NoProgress).unwrap();
    let machine = Kvm::emulated(None);
    let effort = |workload: &Workload| {
        let batched = workload.name == "batched";
        let scale = (workload.name != "redis").then_some(0.2);
        timed::TimedEffort::of(workload, 2, batched.then_some(3), scale)
    };
    // Kernel counters need no PMU; an emulated CPU has no hardware counters.
    let counters = [PerfCounter::ContextSwitches, PerfCounter::Instructions];
    let effort = |workload: &Workload| Ok(effort(workload)?.counting(&counters));
    let results = timed::run(&session, &machine, checked, &kernel, effort).unwrap();
    assert_eq!(results.machine, "kvm");
    assert!(results.kernel.release.starts_with("6.12"), "{:?}", results.kernel);
    let rows: Vec<_> =
        results.rows.iter().map(|row| (row.row.as_str(), row.unit.as_str(), row.values.len())).collect();
    assert_eq!(
        rows,
        [
            ("getpid", "ns/op", 2),
            ("tcp_rr_1", "transactions/s", 2),
            ("nop", "ns/op", 6),
            ("redis_get", "requests/s of guest time", 2)
        ]
    );
    assert!(results.rows.iter().flat_map(|row| &row.values).all(|value| value.value > 0.0));
    let switches: Vec<_> = results.rows.iter().map(|row| row.counted(PerfCounter::ContextSwitches)).collect();
    // One operation of tcp_rr_1 is a round trip: two switches, or a few more. One of redis_get is
    // less: the client has five connections, and one wake-up serves several.
    assert!(switches[0].unwrap() < 0.5 && (1.9..2.5).contains(&switches[1].unwrap()), "{switches:?}");
    assert!(switches[2].unwrap() < 0.5 && (0.01..2.5).contains(&switches[3].unwrap()), "{switches:?}");
    assert_eq!(results.uncounted.keys().collect::<Vec<_>>(), [&PerfCounter::Instructions]);
    // Suites with different effort have no common values.
    assert_eq!((results.scale, results.iterations), (None, None));
}
