//! kgmon held against the truth: the module runs in an emulated guest while the recorder watches.

mod support;
#[path = "live_kgmon/bench.rs"]
mod bench;
#[path = "live_kgmon/smp.rs"]
mod smp;
#[path = "live_kgmon/truth.rs"]
mod truth;

use bench::Bench;
use kerntune_kgmon::Dump;
use smp::{calls, places, Smp};
use std::collections::BTreeMap;

const ROWS: &str = "tcp_rr,udp_rr,pipe_rr,socketpair_rr,fork_exit,fork_exec,creat_close,stat,read_cached,write_cached,getpid";

/// Everything that kgmon and the recorder say differently of one window, printed; how many arcs and calls they agree on.
fn compare(bench: &Bench, window: &truth::Arcs, dump: &Dump, functions: &str) -> (usize, u64) {
    let counted = truth::counted(dump, &bench.symbols);
    let traceable = truth::traceable(functions, &bench.symbols);
    let differences = truth::differences(window, &counted, &traceable, &bench.symbols);
    for difference in &differences {
        println!("{difference:?}");
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

#[test]
fn dumps_add_up_to_what_was_never_interrupted() {
    let bench = Bench::new();
    let load = |row: &str| format!("run rr --only {row} --scale 0.05");
    let (first, second) = (load("pipe_rr"), load("stat,getpid"));
    let steps = format!(
        "LOAD
         start timer=off
         begin all
         take before
         {first}
         dump one
         reset
         {second}
         dump two
         take three
         {first}
         take four
         end all
         save TRACING/available_filter_functions_addrs functions
         stop
         unload kgmon"
    );
    let run = bench.run(&steps, true);
    // Snapshots: before, one, the reset, two, three, four.
    let windows = truth::recorded(&run.outcome, &bench.symbols);
    assert_eq!(windows.len(), 7);
    let functions = run.text("functions");
    let sum = |of: &[usize]| {
        let mut sum = truth::Arcs::new();
        for (key, count) in of.iter().flat_map(|&at| &windows[at]) {
            *sum.entry(*key).or_default() += count;
        }
        sum
    };
    // A dump says what was counted since the reset, however often it is read.
    compare(&bench, &windows[1], &run.dump("one"), &functions);
    compare(&bench, &windows[3], &run.dump("two"), &functions);
    compare(&bench, &sum(&[3, 4]), &run.dump("three"), &functions);
    // Takes leave nothing out: together they are everything from the reset on, with what the dumps themselves called.
    let taken = run.dump("three").add(&run.dump("four")).unwrap();
    compare(&bench, &sum(&[3, 4, 5]), &taken, &functions);

    // The same loads without any interruption, counted by the module alone: of functions that nothing but the loads
    // calls, every arc.
    let control = |steps: &str| bench.run(&format!("LOAD\n{steps}\nunload kgmon"), false);
    let start = "start timer=off filter=*pipe_read filter=*pipe_write filter=__x64_sys_getpid filter=vfs_statx";
    let apart = control(&format!("{start}\n{first}\ndump one\nreset\n{second}\ndump two\nstop"));
    let whole = control(&format!("{start}\n{first}\n{second}\ndump all\nstop"));
    let sum = apart.dump("one").add(&apart.dump("two")).unwrap();
    let (sum, all) = (truth::counted(&sum, &bench.symbols), truth::counted(&whole.dump("all"), &bench.symbols));
    assert_eq!(sum, all);
    assert!(all.values().sum::<u64>() > 1000, "{all:?}");
}

#[test]
fn what_does_not_fit_is_counted_as_lost() {
    let bench = Bench::new();
    let steps = "LOAD
         start timer=off arcs=100
         begin all
         take before
         run rr --only tcp_rr --scale 0.05
         take all
         end all
         save TRACING/available_filter_functions_addrs functions
         stop
         unload kgmon";
    let run = bench.run(steps, true);
    let windows = truth::recorded(&run.outcome, &bench.symbols);
    let traceable = truth::traceable(&run.text("functions"), &bench.symbols);
    let of_all: u64 = windows[1].iter().filter(|((_, to), _)| traceable.contains(to)).map(|(_, count)| count).sum();
    let dump = run.dump("all");
    let counted: u64 = dump.arcs.iter().map(|arc| arc.calls).sum();
    assert!(dump.arcs.len() <= 100 && dump.lost_calls > 0);
    assert_eq!(counted + dump.lost_calls, of_all);
}

/// Four writers, each with so many calls of a module's function, on whatever CPU they are.
const WRITERS: u64 = 4;
const WRITES: u64 = 40;
const CALLS: u64 = 5000;

#[test]
fn four_cpus_with_hotplug_nmis_and_modules_lose_nothing() {
    let bench = Bench::new();
    const CPU3: &str = "/sys/devices/system/cpu/cpu3/online";
    let writer = format!("fork kgmon repeat {WRITES} /proc/callee calls {CALLS}\n");
    let steps = format!(
        "LOAD
         CALLEE
         start timer=random period=100000 seed=1
         {}
         write {CPU3} 0
         take d1
         write {CPU3} 1
         take d2
         write /proc/callee nmis 300
         write {CPU3} 0
         write /proc/callee nmis 300
         take d3
         write {CPU3} 1
         write /proc/callee depth 20
         take d4
         join
         take d5
         status
         save /proc/callee handled
         save /proc/kallsyms kallsyms
         unload callee
         CALLEE
         write /proc/callee calls 777
         take d6
         save /proc/kallsyms again
         save TRACING/enabled_functions enabled1
         unload callee
         run rr --only getpid --scale 0.1
         take d7
         stop
         save TRACING/enabled_functions enabled2
         unload kgmon",
        writer.repeat(WRITERS as usize)
    );
    let run = Smp::run(&bench, &steps);
    let dumps: Vec<Dump> = (1..=7).map(|at| run.dump(&format!("d{at}"))).collect();
    for dump in &dumps {
        assert!(!dump.stalled && !dump.modules_missed && dump.lost_calls == 0 && dump.lost_samples == 0);
        assert_eq!(dump.possible_cpus, 4);
    }
    assert_eq!(dumps.iter().map(|dump| dump.online_cpus).collect::<Vec<_>>(), [3, 4, 3, 4, 4, 4, 4]);
    let before = dumps[..5].iter().skip(1).fold(dumps[0].clone(), |sum, dump| sum.add(dump).unwrap());
    let functions = places(&run.text("kallsyms"));
    let handled: u64 = run.text("handled").trim().parse().unwrap();
    let of = |caller, callee| calls(&before, &functions, caller, callee);
    let all = WRITERS * WRITES * CALLS;
    assert_eq!(of(Some("callee_write"), "callee_calls"), all);
    assert_eq!(of(Some("callee_calls"), "callee_leaf"), all);
    assert_eq!(of(Some("callee_calls"), "int_sqrt"), all);
    assert_eq!(of(Some("callee_down"), "callee_down"), 20);
    assert_eq!(of(None, "callee_down"), 21);
    // 600 times three or four CPUs, of which some were merged while one was pending.
    println!("{handled} NMIs handled");
    assert!(handled > 600);
    assert_eq!(of(Some("in_nmi_handler"), "callee_in_nmi"), handled);
    assert_eq!(of(Some("in_nmi_handler"), "callee_leaf"), handled);
    assert_eq!(of(None, "callee_leaf"), all + handled + 600);

    // Loaded again, wherever the kernel put it this time.
    let functions = places(&run.text("again"));
    assert_eq!(calls(&dumps[5], &functions, Some("callee_write"), "callee_calls"), 777);
    assert_eq!(calls(&dumps[5], &functions, None, "int_sqrt"), 777);
    let gone = |dump: &Dump| dump.modules.iter().filter(|module| module.gone).map(|m| m.name.clone()).collect::<Vec<_>>();
    assert_eq!(gone(&dumps[5]), ["callee"]);
    assert_eq!(gone(&dumps[6]), ["callee"]);
    assert!(run.text("enabled1").contains("callee_calls"));
    assert_eq!(run.text("enabled2"), "");
}

#[test]
fn what_cannot_be_done_is_refused_in_words_and_nothing_stays_behind() {
    let bench = Bench::new();
    let steps = "LOAD
         refuse 61 dump
         refuse 22 fly
         refuse 22 stop now
         refuse 22 start filter=7
         refuse 22 start filter=no_such_function_*
         refuse 22 start timer=monthly
         refuse 22 start arcs=0
         refuse 22 start samples=100
         refuse 22 start period=1
         refuse 22 start entry=off timer=off
         write /proc/sys/kernel/ftrace_enabled 0
         refuse 16 start
         write /proc/sys/kernel/ftrace_enabled 1
         start timer=off
         refuse 16 start
         refuse-write 16 /proc/sys/kernel/ftrace_enabled 0
         stop
         save TRACING/enabled_functions enabled1
         fork kgmon start-and-hang hold filter=vfs_*
         sleep 100
         save TRACING/enabled_functions enabled2
         kill
         sleep 100
         save TRACING/enabled_functions enabled3
         start
         unload kgmon
         save TRACING/enabled_functions enabled4
         save /proc/modules modules";
    let run = bench.run(steps, false);
    assert!(run.text("enabled2").contains("vfs_read"));
    for stopped in ["enabled1", "enabled3", "enabled4", "modules"] {
        assert_eq!(run.text(stopped), "", "{stopped}");
    }
    let log = run.text("measured-1-kgmon.log");
    println!("{log}");
    for words in [
        "nothing was counted yet: give the command start first",
        "there is no command fly",
        "stop takes no words",
        "7 is not a glob",
        "no function that can be counted has such a name",
        "timer cannot be monthly",
        "arcs cannot be 0",
        "samples cannot be 100",
        "period cannot be 1",
        "neither calls nor samples are wanted",
        "ftrace is switched off (kernel.ftrace_enabled is 0)",
        "it is counting already",
    ] {
        assert!(log.contains(words), "{words:?} is not in:\n{log}");
    }
}

/// Kernel instructions per operation of each row within a region.
fn path_lengths(run: &bench::Run, region: &str) -> BTreeMap<String, f64> {
    let regions = &run.outcome.recording.as_ref().unwrap().regions;
    let outer = regions.iter().find(|r| r.name == region).unwrap();
    let inside = |r: &&kerntune_trace::Region| {
        r.depth == 1 && r.begin_ns >= outer.begin_ns && r.begin_ns < outer.begin_ns + outer.elapsed_ns
    };
    let per_operation = |r: &kerntune_trace::Region| r.kernel.instructions as f64 / r.operations as f64;
    regions.iter().filter(inside).map(|r| (r.name.clone(), per_operation(r))).collect()
}

#[test]
fn counting_costs_what_the_documentation_says() {
    let bench = Bench::new();
    let load = |name: &str| format!("begin {name}\nrun rr --only {ROWS} --scale 0.1\nend {name}\n");
    let macro_set: String = kerntune_kgmon::MACRO.iter().map(|glob| format!(" filter={glob}")).collect();
    let steps = format!(
        "{}LOAD\n{}start timer=off{macro_set}\n{}stop\nstart timer=off\n{}stop\n\
         start timer=off entry=generic\n{}stop\nstart entry=off\n{}stop\nunload kgmon\n\
         write TRACING/function_profile_enabled 1\n{}write TRACING/function_profile_enabled 0\n\
         write TRACING/current_tracer function_graph\n{}write TRACING/current_tracer nop",
        load("unloaded"),
        load("stopped"),
        load("macro"),
        load("all"),
        load("generic"),
        load("timer"),
        load("profiler"),
        load("graph")
    );
    let run = bench.run(&steps, false);
    let names = ["unloaded", "stopped", "macro", "all", "generic", "timer", "profiler", "graph"];
    let tables = names.map(|name| path_lengths(&run, name));
    println!("| row | {} |", names.join(" | "));
    let mut sums = [0.0; 8];
    for (row, base) in &tables[0] {
        let lengths: Vec<String> = tables.iter().map(|table| format!("{:.0}", table[row])).collect();
        println!("| {row} | {} |", lengths.join(" | "));
        for (sum, table) in sums.iter_mut().zip(&tables) {
            *sum += table[row] / base;
        }
    }
    let [_, stopped, macro_set, all, generic, timer, profiler, graph] =
        sums.map(|sum| sum / tables[0].len() as f64 - 1.0);
    println!(
        "mean: stopped {stopped:+.4} macro {macro_set:+.4} all {all:+.3} generic {generic:+.3} timer {timer:+.4} \
         profiler {profiler:+.3} graph {graph:+.3}"
    );
    assert!(stopped.abs() < 0.002);
    assert!(macro_set < 0.02);
    assert!(all < profiler && all < graph / 3.0 && generic < profiler);
}
