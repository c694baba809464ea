//! Hard cases of the module: readers that never come, samples during a dump, a registration that
//! fails.

use super::bench::{KgmonBench, RR};
use super::smp::{calls, places};

/// Returns the values of one name in all answers to `status`, in order.
fn statuses(log: &str, name: &str) -> Vec<String> {
    let values = log.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.map(str::to_owned).collect()
}

#[test]
fn who_reads_into_memory_that_does_not_come_stops_nobody_else() {
    let bench = KgmonBench::new();
    let steps = "LOAD
         CALLEE
         start timer=off filter=callee_*
         fork kgmon read-into /proc/callee
         sleep 200
         status
         take one
         write /proc/callee calls 10
         take two
         stop
         status
         write /proc/callee memory 1
         join
         unload callee
         unload kgmon";
    let run = bench.run(steps, false);
    let log = run.text("measured-1-kgmon.log");
    // The reader waited all the time, and got its answer in the end.
    let (late, last) = (log.find("read late"), log.rfind("module_functions "));
    assert!(late.is_some() && late > last, "{log}");
    assert_eq!(statuses(&log, "calls"), ["counting", "stopped"], "{log}");
    assert!(run.dump("two").arcs.iter().map(|arc| arc.calls).sum::<u64>() >= 20);
}

#[test]
fn functions_of_modules_are_counted_as_long_as_they_are_there() {
    let bench = KgmonBench::new();
    let steps = "LOAD
         start timer=off filter=callee_* filter=int_sqrt
         status
         CALLEE
         status
         unload callee
         status
         CALLEE
         status
         stop
         status
         unload callee
         unload kgmon";
    let log = bench.run(steps, false).text("measured-1-kgmon.log");
    let functions = statuses(&log, "module_functions");
    let [none, there, gone, again, stopped] = &functions[..] else { panic!("{log}") };
    assert_eq!([none, gone, stopped], ["0"; 3].each_ref(), "{log}");
    assert!(there == again && there.parse::<u32>().unwrap() >= 6, "{log}");
}

/// Most of these samples are of the dumps themselves, which take longer than a timer period.
#[test]
fn samples_of_a_dump_add_up_to_its_totals() {
    const DUMPS: [&str; 8] =
        ["take t0", "take t1", "dump d0", "dump d1", "take t2", "take t3", "dump d2", "take t4"];
    let steps = format!(
        "LOAD
         start entry=off timer=random period=20000 seed=1
         {}
         stop
         dump before
         take last
         take none
         unload kgmon",
        DUMPS.join("\n")
    );
    let run = KgmonBench::new().run(&steps, false);
    let samples = |name: &str| {
        let dump = run.dump(name);
        let sum: u64 = dump.samples.iter().map(|sample| sample.count).sum();
        assert_eq!(sum + dump.lost_samples, dump.kernel_samples, "{name}");
        sum
    };
    let of = DUMPS.map(|step| samples(step.split_once(' ').unwrap().1));
    println!("samples {of:?}");
    assert!(of.iter().all(|count| *count > 10), "{of:?}");
    assert!(of[3] > of[2], "a dump forgets nothing: {of:?}");
    assert_eq!(samples("before"), samples("last"));
    assert_eq!(samples("none"), 0);
}

#[test]
fn a_direct_registration_that_fails_leaves_nothing_behind() {
    let bench = KgmonBench::with_failing_registration();
    let steps = "LOAD
         CALLEE
         write /proc/callee patch 1
         refuse 16 start timer=off entry=direct filter=int_sqrt
         save TRACING/enabled_functions refused
         start timer=off entry=auto filter=int_sqrt
         status
         write /proc/callee calls 100
         take generic
         stop
         write /proc/callee patch 0
         start timer=off entry=direct filter=int_sqrt
         status
         write /proc/callee calls 50
         take direct
         stop
         save TRACING/enabled_functions stopped
         save /proc/kallsyms kallsyms
         unload callee
         unload kgmon";
    let run = bench.run_with(RR, steps, kerntune_machine::CaptureRequest::default());
    let log = run.text("measured-1-kgmon.log");
    assert_eq!(statuses(&log, "entry"), ["generic", "direct"], "{log}");
    let functions = places(&run.text("kallsyms"));
    let counted = ["generic", "direct"].map(|dump| calls(&run.dump(dump), &functions, None, "int_sqrt"));
    assert_eq!(counted, [100, 50]);
    // Only the live patch.
    assert_eq!(run.text("refused").lines().count(), 1, "{}", run.text("refused"));
    assert_eq!(run.text("stopped"), "");
    let said = std::fs::read_to_string(run.outcome.directory.join("console.log")).unwrap();
    for bad in ["WARNING:", "BUG:", "Oops", "Call Trace"] {
        assert!(!said.contains(bad), "{said}");
    }
}
