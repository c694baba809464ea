//! Checks kgmon against exact recordings: the module runs in an emulated guest while the recorder
//! observes it.

#[path = "live_kgmon/bench.rs"]
mod bench;
#[path = "live_kgmon/edges.rs"]
mod edges;
#[path = "live_kgmon/lengths.rs"]
mod lengths;
#[path = "live_kgmon/smp.rs"]
mod smp;
#[path = "live_kgmon/times.rs"]
mod times;
#[path = "live_kgmon/truth.rs"]
mod truth;

use crate::support::{self, arcs};
use bench::{KgmonBench, RR};
use kerntune_kgmon::KgmonDump;
use kerntune_machine::CaptureRequest;
use smp::{calls, places};
use std::collections::{BTreeMap, BTreeSet};

const ROWS: &str = "tcp_rr,udp_rr,pipe_rr,socketpair_rr,fork_exit,fork_exec,creat_close,stat,read_cached,write_cached,getpid";

/// Prints the differences between kgmon and the recorder in one window; returns the number of arcs
/// and calls on which they agree.
fn compare(bench: &KgmonBench, window: &arcs::ArcCounts, dump: &KgmonDump, functions: &str) -> (usize, u64) {
    let counted = truth::counted(dump, &bench.symbols);
    let traceable = arcs::traceable(functions, &bench.symbols);
    let differences = arcs::differences(window, &counted, &traceable, &bench.symbols);
    for difference in &differences {
        println!("{difference:?}");
    }
    assert_eq!(dump.lost_calls, 0);
    assert!(!dump.stalled && !dump.modules_missed);
    assert!(differences.is_empty(), "{} arcs differ", differences.len());
    (counted.len(), counted.values().sum())
}

/// Runs the module and the recorder over the same window, and checks that they agree on every arc.
fn every_arc(bench: &KgmonBench, workload: &str, load: &str, entry: &str) -> (usize, u64) {
    let steps = format!(
        "LOAD
         start timer=off entry={entry}
         begin all
         take before
         run {load}
         dump all
         end all
         save TRACING/available_filter_functions_addrs functions
         stop
         save TRACING/enabled_functions enabled
         unload kgmon"
    );
    let capture = CaptureRequest { functions: true, ..CaptureRequest::default() };
    let run = bench.run_with(workload, &steps, capture);
    let windows = truth::recorded(&run.outcome, &bench.symbols);
    assert_eq!(windows.len(), 3, "two snapshots");
    let dump = run.dump("all");
    assert_eq!(dump.direct, entry == "direct");
    let (arcs, calls) = compare(bench, &windows[1], &dump, &run.text("functions"));
    println!("{load}, {entry}: {arcs} arcs, {calls} calls, all equal");
    assert_eq!(run.text("enabled"), "");
    (arcs, calls)
}

#[test]
fn every_arc_is_the_recorders() {
    let bench = KgmonBench::new();
    for entry in ["direct", "generic"] {
        let (arcs, calls) = every_arc(&bench, RR, &format!("rr --only {ROWS} --scale 0.05"), entry);
        assert!(arcs > 2000 && calls > 100_000);
    }
}

#[test]
fn every_arc_of_kbx_and_of_redis_is_the_recorders() {
    const REDIS: &str = "packages = [\"redis-server\", \"redis-tools\"]
[[service]]
name = \"redis\"
command = [\"redis-server\", \"--bind\", \"127.0.0.1\", \"--save\", \"\", \"--appendonly\", \"no\", \"--daemonize\", \"no\"]
ready = { tcp = 6379, within_seconds = 10 }";
    let bench = KgmonBench::new();
    let (arcs, calls) = every_arc(&bench, "programs = [\"kbx\"]", "kbx --scale 0.02", "direct");
    assert!(arcs > 2000 && calls > 100_000);
    let load = "redis-benchmark -c 5 -n 500 -d 16 -t set,get --csv";
    let (arcs, calls) = every_arc(&bench, REDIS, load, "direct");
    assert!(arcs > 1000 && calls > 100_000);
}

/// Makes the process that is forked for each load as large as it will become.
const LARGE: &str = "save /init large";

/// Functions that process batches: a load also processes pages of files to which dumps were
/// written.
const BATCHED: [&str; 3] = ["folio_batch_move_lru", "lru_add", "folios_put_refs"];

/// Functions that depend on ticks: they are called if a file's time is of an earlier tick, or by a
/// tick in user mode, so their number depends on the position of ticks.
const BY_TICK: [&str; 4] =
    ["generic_update_time", "inode_update_timestamps", "__mark_inode_dirty", "account_user_time"];

#[test]
fn dumps_add_up_to_what_was_never_interrupted() {
    let bench = KgmonBench::new();
    let load = |row: &str| format!("run rr --only {row} --scale 0.05");
    let (first, second) = (load("pipe_rr"), load("stat,getpid"));
    let steps = format!(
        "LOAD
         {LARGE}
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
        let mut sum = arcs::ArcCounts::new();
        for (key, count) in of.iter().flat_map(|&at| &windows[at]) {
            *sum.entry(*key).or_default() += count;
        }
        sum
    };
    // A dump has all counts since the reset, however often it is read.
    compare(&bench, &windows[1], &run.dump("one"), &functions);
    compare(&bench, &windows[3], &run.dump("two"), &functions);
    compare(&bench, &sum(&[3, 4]), &run.dump("three"), &functions);
    // Takes lose nothing: together they contain everything since the reset, including calls by the
    // dumps themselves.
    let taken = run.dump("three").add(&run.dump("four")).unwrap();
    compare(&bench, &sum(&[3, 4, 5]), &taken, &functions);

    // The same loads without interruptions, counted by the module alone. The commands themselves
    // call functions, and the kernel's own activity comes at other moments, so only functions that
    // nothing but the loads calls are compared, with every arc.
    let steps = format!(
        "LOAD\n{LARGE}\nstart timer=off\ntake before\n{first}\n{second}\ndump all\nstop\nunload kgmon"
    );
    let whole = bench.run(&steps, false);
    let sum = truth::counted(&run.dump("one").add(&run.dump("two")).unwrap(), &bench.symbols);
    let all = truth::counted(&whole.dump("all"), &bench.symbols);
    let others = truth::of_others(&run.outcome, "rr");
    let called: BTreeSet<u32> = sum.keys().chain(all.keys()).map(|(_, to)| *to).collect();
    let by_time = BATCHED.iter().chain(&BY_TICK).map(|name| arcs::function(&bench.symbols, name));
    let others = &others | &by_time.collect();
    let loads: BTreeSet<u32> = called.difference(&others).copied().collect();
    let differences = arcs::differences(&sum, &all, &loads, &bench.symbols);
    for of in &differences {
        println!("{} -> {}: in two dumps {}, in one {}", of.caller, of.callee, of.recorder, of.kgmon);
    }
    let theirs = |(_, to): &(u32, u32)| loads.contains(to);
    let arcs = all.keys().filter(|key| theirs(key)).count();
    let calls: u64 = all.iter().filter(|(key, _)| theirs(key)).map(|(_, count)| count).sum();
    println!("{} functions that only the loads call: {arcs} arcs, {calls} calls", loads.len());
    assert!(differences.is_empty());
    assert!(arcs > 400 && calls > 10_000);
}

#[test]
fn what_does_not_fit_is_counted_as_lost() {
    let bench = KgmonBench::new();
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
    let traceable = arcs::traceable(&run.text("functions"), &bench.symbols);
    let of_all: u64 =
        windows[1].iter().filter(|((_, to), _)| traceable.contains(to)).map(|(_, count)| count).sum();
    let dump = run.dump("all");
    let counted: u64 = dump.arcs.iter().map(|arc| arc.calls).sum();
    assert!(dump.arcs.len() <= 100 && dump.lost_calls > 0);
    assert_eq!(counted + dump.lost_calls, of_all);
}

/// Number of writers; each calls a module's function a known number of times, on any CPU.
const WRITERS: u64 = 4;
const WRITES: u64 = 40;
const CALLS: u64 = 5000;

#[test]
fn four_cpus_with_hotplug_nmis_and_modules_lose_nothing() {
    let bench = KgmonBench::new();
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
    let run = bench.run_on_four_cpus(&steps);
    let dumps: Vec<KgmonDump> = (1..=7).map(|at| run.dump(&format!("d{at}"))).collect();
    for dump in &dumps {
        assert!(!dump.stalled && !dump.modules_missed && dump.lost_calls == 0 && dump.lost_samples == 0);
        assert_eq!(dump.possible_cpus, 4);
        assert_eq!(dump.samples.iter().map(|sample| sample.count).sum::<u64>(), dump.kernel_samples);
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
    // 600 on each of three or four CPUs; some merge with a pending one.
    println!("{handled} NMIs handled");
    assert!(handled > 600);
    assert_eq!(of(Some("in_nmi_handler"), "callee_in_nmi"), handled);
    assert_eq!(of(Some("in_nmi_handler"), "callee_leaf"), handled);
    assert_eq!(of(None, "callee_leaf"), all + handled + 600);

    // Loaded again, possibly at another address.
    let functions = places(&run.text("again"));
    assert_eq!(calls(&dumps[5], &functions, Some("callee_write"), "callee_calls"), 777);
    assert_eq!(calls(&dumps[5], &functions, None, "int_sqrt"), 777);
    let gone = |dump: &KgmonDump| {
        dump.modules.iter().filter(|module| module.gone).map(|m| m.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(gone(&dumps[5]), ["callee"]);
    assert_eq!(gone(&dumps[6]), ["callee"]);
    assert!(run.text("enabled1").contains("callee_calls"));
    assert_eq!(run.text("enabled2"), "");
}

#[test]
fn counting_goes_on_after_a_stop() {
    let bench = KgmonBench::new();
    let steps = "LOAD
         CALLEE
         start timer=off arcs=4096
         write /proc/callee calls 1000
         stop
         write /proc/callee calls 77
         dump stopped
         start timer=off arcs=4096
         write /proc/callee calls 500
         write /proc/callee depth 20
         dump on
         stop
         stop
         take again
         start timer=off arcs=4096
         write /proc/callee calls 30
         stop
         dump rest
         reset
         start timer=off arcs=4096 filter=callee_*
         write /proc/callee calls 9
         dump few
         save /proc/kallsyms kallsyms
         unload callee
         unload kgmon";
    let run = bench.run(steps, false);
    let functions = places(&run.text("kallsyms"));
    let of = |dump: &str, callee: &str| calls(&run.dump(dump), &functions, None, callee);
    let leaves = ["stopped", "on", "again", "rest", "few"].map(|dump| of(dump, "callee_leaf"));
    assert_eq!(leaves, [1000, 1500, 1500, 30, 9]);
    assert_eq!(["stopped", "on", "again", "rest"].map(|dump| of(dump, "callee_down")), [0, 21, 21, 0]);
    let [stopped, on] = ["stopped", "on"].map(|dump| run.dump(dump));
    assert!(!stopped.counting && on.counting && stopped.lost_calls == 0 && on.lost_calls == 0);
    // The counters use memory only while they count.
    assert!(stopped.memory_bytes < on.memory_bytes);
}

#[test]
fn what_cannot_be_done_is_refused_in_words_and_nothing_stays_behind() {
    let bench = KgmonBench::new();
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

/// Returns kernel instructions per operation for each row of a region.
fn path_lengths(run: &bench::KgmonRun, region: &str) -> BTreeMap<String, f64> {
    let regions = &run.outcome.recording.as_ref().unwrap().regions;
    let outer = regions.iter().find(|r| r.name == region).unwrap();
    let inside = |r: &&kerntune_trace::RecordedRegion| {
        r.depth == 1 && r.begin_ns >= outer.begin_ns && r.begin_ns < outer.begin_ns + outer.elapsed_ns
    };
    let per_operation =
        |r: &kerntune_trace::RecordedRegion| r.kernel.instructions as f64 / r.operations as f64;
    regions.iter().filter(inside).map(|r| (r.name.clone(), per_operation(r))).collect()
}

/// Runs the rows in a region of their own.
fn load(region: &str) -> String {
    format!("begin {region}\nrun rr --only {ROWS} --scale 0.1\nend {region}\n")
}

#[test]
fn counting_costs_what_the_documentation_says() {
    const NAMES: [&str; 9] =
        ["unloaded", "loaded", "stopped", "macro", "all", "generic", "timer", "profiler", "graph"];
    let bench = KgmonBench::new();
    let macro_set: String = kerntune_kgmon::MACRO.iter().map(|glob| format!(" filter={glob}")).collect();
    // The first rows in a guest find the slabs empty, so they are not compared.
    let steps = format!(
        "{}{}LOAD\n{}start timer=off\nstop\n{}start timer=off{macro_set}\n{}stop\nstart timer=off\n{}stop\n\
         start timer=off entry=generic\n{}stop\nstart entry=off\n{}stop\nunload kgmon\n\
         write TRACING/function_profile_enabled 1\n{}write TRACING/function_profile_enabled 0\n\
         write TRACING/current_tracer function_graph\n{}write TRACING/current_tracer nop",
        load("warm"),
        load("unloaded"),
        load("loaded"),
        load("stopped"),
        load("macro"),
        load("all"),
        load("generic"),
        load("timer"),
        load("profiler"),
        load("graph")
    );
    let run = bench.run(&steps, false);
    let tables = NAMES.map(|name| path_lengths(&run, name));
    println!("| row | {} |", NAMES.join(" | "));
    let mut sums = [0.0; NAMES.len()];
    for (row, base) in &tables[0] {
        let lengths: Vec<String> = tables.iter().map(|table| format!("{:.0}", table[row])).collect();
        println!("| {row} | {} |", lengths.join(" | "));
        for (sum, table) in sums.iter_mut().zip(&tables) {
            *sum += table[row] / base;
        }
    }
    let means = sums.map(|sum| sum / tables[0].len() as f64 - 1.0);
    let percents: Vec<String> = means.iter().map(|mean| format!("{:+.2} %", mean * 100.0)).collect();
    println!("| mean | {} |", percents.join(" | "));
    let [_, loaded, stopped, macro_set, all, generic, timer, profiler, graph] = means;
    assert!(loaded.abs() < 0.002 && stopped.abs() < 0.002 && timer.abs() < 0.01);
    assert!(macro_set < 0.02);
    assert!(all < profiler && all < graph / 3.0 && generic < profiler);
}

/// Measures the cost of other profilers on the same rows. Nothing else needs their packages: run
/// `cargo test --release --test cli live_kgmon:: -- --ignored --nocapture` with linux-perf,
/// trace-cmd and bpftrace installed.
#[test]
#[ignore = "needs linux-perf, trace-cmd and bpftrace"]
fn what_other_profilers_cost() {
    let rows = format!("rr --only {ROWS} --scale 0.1");
    let bench = KgmonBench::on(&support::bpf_kernel());
    for (program, watched) in [
        ("perf", format!("run perf record -a -g -F 1000 -o /tmp/perf.data {rows}")),
        ("trace-cmd", format!("run trace-cmd record -p function_graph -o /tmp/trace.dat {rows}")),
        (
            "bpftrace",
            format!("fork bpftrace -e kprobe:vfs_*{{@[func]=count();}}\nsleep 20000\nrun {rows}\nkill"),
        ),
        ("sh", format!("LOAD\nstart timer=off filter=vfs_*\nrun {rows}\nstop")),
        (
            "bpftrace",
            format!("fork bpftrace -e kprobe:tcp_*{{@[func]=count();}}\nsleep 20000\nrun {rows}\nkill"),
        ),
        ("sh", format!("LOAD\nstart timer=off filter=tcp_*\nrun {rows}\nstop")),
    ] {
        let workload = format!("programs = [\"rr\"]\nbinaries = [\"{program}\"]");
        let steps = format!("{}{}begin watched\n{watched}\nend watched", load("warm"), load("alone"));
        let started = std::time::Instant::now();
        let tried = bench.try_run(&workload, &steps, CaptureRequest::default());
        println!("{program}: {watched}: {:.0} s", started.elapsed().as_secs_f64());
        let run = match tried {
            Ok(run) => run,
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        println!("{}", run.text("measured-1-kgmon.log"));
        let [alone, watched] = ["alone", "watched"].map(|region| path_lengths(&run, region));
        let mut sum = 0.0;
        for (row, base) in &alone {
            println!("| {row} | {base:.0} | {:.0} |", watched[row]);
            sum += watched[row] / base;
        }
        println!("| mean | | {:+.2} % |", (sum / alone.len() as f64 - 1.0) * 100.0);
    }
}

/// Rows with constant paths; in the others a slab, page or name chain may differ in length.
const STEADY: [&str; 5] = ["tcp_rr", "udp_rr", "pipe_rr", "socketpair_rr", "getpid"];

#[test]
fn a_stopped_module_costs_no_instruction() {
    let bench = KgmonBench::new();
    let steps = format!(
        "{}{}LOAD\n{}start\n{}stop\n{}unload kgmon\n{}",
        load("warm"),
        load("unloaded"),
        load("loaded"),
        load("counting"),
        load("stopped"),
        load("gone")
    );
    let run = bench.run(&steps, true);
    let lengths = lengths::recorded(&run.outcome);
    for row in ROWS.split(',') {
        // First decile: a few operations have more or less work.
        let usual = |round: &str| {
            let mut sorted = lengths[&(round.to_string(), row.to_string())].clone();
            sorted.sort_unstable();
            sorted[sorted.len() / 10]
        };
        let of = ["unloaded", "loaded", "stopped", "gone"].map(usual);
        println!("{row}: unloaded, loaded, stopped, gone {of:?}, counting {}", usual("counting"));
        if STEADY.contains(&row) {
            assert_eq!(of, [of[0]; 4], "{row}");
            assert!(usual("counting") > of[0]);
        }
    }
}

/// Returns samples by function, [`times::USER`] and [`times::IDLE`].
fn sampled(bench: &KgmonBench, dump: &KgmonDump) -> BTreeMap<u32, u64> {
    let unknown = bench.symbols.functions().len() as u32;
    let function = |ip| bench.symbols.lookup(ip).map_or(unknown, |at| bench.symbols.whole(at) as u32);
    let mut samples = BTreeMap::from([(times::USER, dump.user_samples), (times::IDLE, dump.idle_samples)]);
    for sample in &dump.samples {
        *samples.entry(function(sample.ip)).or_default() += sample.count;
    }
    samples
}

/// Returns the name of a function, or of another consumer of time.
fn named(bench: &KgmonBench, number: u32) -> &str {
    match number {
        times::USER => "(user code)",
        times::IDLE => "(idle)",
        _ => bench.symbols.functions().get(number as usize).map_or("(modules)", |function| &function.name),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Period of the timer, in ns: about ten times the duration of a sample.
const PERIOD: u64 = 20_000;

#[test]
fn samples_are_where_the_time_goes_and_those_in_step_miss_what_the_tick_starts() {
    let bench = KgmonBench::new();
    let switches = times::switches(&bench.kernel, &bench.symbols);
    assert!(switches.len() > 200, "{}", switches.len());
    let steps = format!(
        "LOAD
         CALLEE
         start entry=off timer=random period={PERIOD} seed=1
         begin all
         take none
         run rr --only {ROWS} --scale 1
         take rr
         stop
         write /proc/callee ticking 100000
         start entry=off timer=random period=200000 seed=2
         take none
         sleep 2000
         take random
         stop
         start entry=off timer=tick
         take none
         sleep 2000
         take tick
         end all
         write /proc/callee ticking 0
         stop
         unload callee
         unload kgmon"
    );
    let capture = CaptureRequest { functions: true, points: switches.clone(), ..CaptureRequest::default() };
    let run = bench.run_with(RR, &steps, capture);
    let windows = times::recorded(&run.outcome, &bench.symbols, &switches, PERIOD);
    // Each take, start and stop reads the clock once.
    assert_eq!(windows.len(), 11);

    // Time with interrupts off is sampled where they are switched on.
    let (dump, window) = (run.dump("rr"), &windows[1]);
    let samples = sampled(&bench, &dump);
    let (count, all): (u64, u64) =
        (samples.values().sum(), window.own.values().map(times::InterruptTime::own).sum());
    assert!(count > 5000 && dump.lost_samples == 0, "{count}");
    println!("rr: {count} samples in {all} ns, {} late", dump.late_samples);
    let mut functions: Vec<(u32, times::InterruptTime)> =
        window.own.iter().map(|(at, time)| (*at, *time)).collect();
    functions.sort_by_key(|(_, time)| std::cmp::Reverse(time.seen()));
    let (mut squares, mut largest) = (Vec::new(), Vec::new());
    println!("| function | self time | interrupts off | expected | samples | sigma |");
    for (at, time) in functions.iter().take(60) {
        let expected = (count + dump.late_samples) as f64 * time.seen() as f64 / all as f64;
        let found = samples.get(at).copied().unwrap_or(0);
        let sigma = (found as f64 - expected) / expected.sqrt();
        println!(
            "| {} | {:.2} % | {:.2} % | {expected:.0} | {found} | {sigma:+.1} |",
            named(&bench, *at),
            percent(time.own(), all),
            percent(time.off, all)
        );
        squares.push(sigma * sigma);
        if sigma.abs() > 3.0 {
            largest.push(named(&bench, *at));
        }
    }
    functions.sort_by_key(|(_, time)| std::cmp::Reverse(time.off));
    println!("| function | self time | interrupts off | samples |");
    for (at, time) in functions.iter().take(15) {
        let found = samples.get(at).copied().unwrap_or(0);
        println!(
            "| {} | {:.2} % | {:.2} % | {:.2} % |",
            named(&bench, *at),
            percent(time.own(), all),
            percent(time.off, all),
            percent(found, count)
        );
    }
    // Two runs are not identical, because the host decides when a device's work is done. Of 60
    // functions, chance puts one beyond 3 sigma in every sixth run, so a few may be; none may be
    // beyond 4.5, and the sum of squares may differ by five deviations from its expectation, 60 ±
    // 11.
    let sum: f64 = squares.iter().sum();
    println!("sum of squares {sum:.1}, beyond 3 sigma {largest:?}");
    assert!(largest.len() <= 3, "{largest:?}");
    assert!(squares.iter().all(|square| *square <= 4.5 * 4.5), "{largest:?}");
    assert!(sum < 60.0 + 5.0 * 11.0, "{sum}");

    // A kernel timer calls it on every tick: callee spins for a tenth of the time.
    let unknown = bench.symbols.functions().len() as u32;
    let shares = [("random", 5), ("tick", 9)].map(|(name, at)| {
        let (dump, window) = (run.dump(name), &windows[at]);
        let samples = sampled(&bench, &dump);
        let (count, all): (u64, u64) =
            (samples.values().sum(), window.own.values().map(times::InterruptTime::own).sum());
        println!("{name}: {count} samples in {all} ns");
        println!("| function | self time | interrupts off | samples |");
        let mut functions: Vec<(u32, times::InterruptTime)> =
            window.own.iter().map(|(at, time)| (*at, *time)).collect();
        functions.sort_by_key(|(_, time)| std::cmp::Reverse(time.own()));
        for (at, time) in functions.iter().take(25) {
            let found = samples.get(at).copied().unwrap_or(0);
            println!(
                "| {} | {:.2} % | {:.2} % | {:.2} % ({found}) |",
                named(&bench, *at),
                percent(time.own(), all),
                percent(time.off, all),
                percent(found, count)
            );
        }
        let own = window.own[&unknown].own();
        (percent(own, all), percent(samples.get(&unknown).copied().unwrap_or(0), count))
    });
    let [(of_random, by_random), (of_tick, by_tick)] = shares;
    println!("callee: {of_random:.2} % of the time, {by_random:.2} % by random; {of_tick:.2} %, {by_tick:.2} % by tick");
    assert!(of_random > 3.0 && of_tick > 3.0);
    assert!((by_random - of_random).abs() < of_random / 10.0);
    assert!(by_tick < of_tick / 20.0);
}
