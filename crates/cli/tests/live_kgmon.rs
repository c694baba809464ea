//! kgmon held against the truth: the module runs in an emulated guest while the recorder watches.

#[path = "live_kgmon/bench.rs"]
mod bench;
mod support;
#[path = "live_kgmon/truth.rs"]
mod truth;

use bench::Bench;
use kerntune_kgmon::Dump;

const ROWS: &str = "tcp_rr,udp_rr,pipe_rr,socketpair_rr,fork_exit,fork_exec,creat_close,stat,read_cached,write_cached,getpid";

/// Everything that kgmon and the recorder say differently of one window, printed; how many arcs and calls they agree on.
fn compare(bench: &Bench, window: &truth::Arcs, dump: &Dump, functions: &str) -> (usize, u64) {
    let counted = truth::counted(dump, &bench.symbols);
    let traceable = truth::traceable(functions, &bench.symbols);
    let differences = truth::differences(window, &counted, &traceable, &bench.symbols);
    for of in &differences {
        println!("{} -> {}: recorder {}, kgmon {}", of.caller, of.callee, of.recorder, of.kgmon);
    }
    assert_eq!(dump.lost_calls, 0);
    assert!(!dump.stalled && !dump.modules_missed);
    assert!(differences.is_empty(), "{} arcs differ", differences.len());
    (counted.len(), counted.values().sum())
}

#[test]
fn every_arc_is_the_recorders() {
    let bench = Bench::new();
    for entry in ["direct", "generic"] {
        let steps = format!(
            "LOAD
             start timer=off entry={entry}
             begin all
             take before
             run rr --only {ROWS} --scale 0.05
             dump all
             end all
             save TRACING/available_filter_functions_addrs functions
             stop
             save TRACING/enabled_functions enabled
             unload kgmon"
        );
        let run = bench.run(&steps, true);
        let windows = truth::recorded(&run.outcome, &bench.symbols);
        assert_eq!(windows.len(), 3, "two snapshots");
        let dump = run.dump("all");
        assert_eq!(dump.direct, entry == "direct");
        let (arcs, calls) = compare(&bench, &windows[1], &dump, &run.text("functions"));
        println!("{entry}: {arcs} arcs, {calls} calls, all equal");
        assert!(arcs > 2000 && calls > 100_000);
        assert_eq!(run.text("enabled"), "");
    }
}
