//! The reports of single tables against a profile made by hand, small enough to add up on paper.
//!
//! ```text
//! region "all" 0 .. 1,000 ns: busy 950, idle 50, user 150, unattributed 5
//!   "inner" within it: busy 225, idle 0, user 50
//!
//! functions      net (all + inner)   calls
//! 0 entry        100 + 20            4 + 1      arch/x86/entry/entry_64.S
//! 1 sys_read     200 + 30            4 + 1      fs/read_write.c
//! 2 tcp_recv     150 + 100           3 + 1      net/ipv4/tcp.c
//! 3 timer        20 + 25             2 + 1      arch/x86/kernel/apic.c (interrupt)
//! 4 fault        50 + 0              5          arch/x86/mm/fault.c (exception, from user code)
//! 5 main         50 + 0              1          /usr/bin/rr
//! ```

use crate::sample::{document_json, document_text};
use kerntune_profile::*;
use kerntune_report::subsystems::SubsystemsOptions;
use kerntune_report::{
    diff, histogram, idle, interrupts, switches, threads, Grouping, GroupsFile, Report, Selection, Style,
};
use serde_json::{json, Value};

const NONE: FunctionIndex = FunctionIndex::NONE;

fn ns(n: u64) -> Ticks {
    Ticks(n)
}

fn f(n: u32) -> FunctionIndex {
    FunctionIndex(n)
}

fn region(at: u32, name: &str, depth: u32, [busy, idle, user, unattributed]: [u64; 4]) -> RegionStats {
    RegionStats {
        region: at,
        name: name.into(),
        begin_ticks: ns(10),
        elapsed_ticks: ns(busy + idle),
        busy_ticks: ns(busy),
        idle_ticks: ns(idle),
        user_ticks: ns(user),
        unattributed_ticks: ns(unattributed),
        operations: 10,
        depth,
        kernel_instructions: Instructions(busy - user),
        user_instructions: Instructions(user),
        ..RegionStats::default()
    }
}

pub fn profile() -> Profile {
    let names = [
        ("entry", Some("arch/x86/entry/entry_64.S"), None),
        ("sys_read", Some("fs/read_write.c"), None),
        ("tcp_recv", Some("net/ipv4/tcp.c"), None),
        ("timer", Some("arch/x86/kernel/apic.c"), None),
        ("fault", Some("arch/x86/mm/fault.c"), None),
        ("main", None, Some("/usr/bin/rr")),
    ];
    let symbol = |(at, (name, file, module)): (usize, &(&str, Option<&str>, Option<&str>))| Symbol {
        function: f(at as u32),
        name: name.to_string(),
        address: Address(at as u64),
        size: 1,
        file: file.map(Into::into),
        module: module.map(Into::into),
    };
    let stats = |region, function, calls, net, slowest, at| FunctionStats {
        region,
        function: f(function),
        calls,
        ended: calls,
        self_ticks: ns(net),
        ended_self_ticks: ns(net),
        total_ticks: ns(2 * net),
        max_ticks: ns(net),
        min_ticks: ns(1),
        slowest_ticks: ns(slowest),
        slowest_at_ticks: ns(at),
    };
    let arc = |region, caller, callee, how, calls, elapsed| CallArc {
        region,
        caller,
        callee: f(callee),
        how,
        calls,
        ended: calls,
        total_ticks: ns(elapsed),
    };
    let thread = |region, thread, kind, pid, comm: &str, net, user, switches_in| ThreadStats {
        region,
        thread,
        kind,
        pid,
        tgid: 7,
        comm: comm.into(),
        self_ticks: ns(net),
        user_ticks: ns(user),
        switches_in,
    };
    let bucket = |region, caller, function, time, count, example| HistogramBucket {
        region,
        caller,
        function: f(function),
        bucket: bucket_of(ns(time)),
        count,
        example_ticks: ns(example),
    };
    let switch = |from: &str, to: &str, reason, kind, count| SwitchStats {
        region: 0,
        from: from.into(),
        to: to.into(),
        reason,
        kind,
        count,
    };
    let stretch = |waker, length, count| IdleStats {
        region: 0,
        waker,
        bucket: bucket_of(ns(length)),
        count,
        idle_ticks: ns(length * count),
    };
    let tables = Tables {
        symbols: names.iter().enumerate().map(symbol).collect(),
        regions: vec![region(0, "all", 0, [950, 50, 150, 5]), region(1, "inner", 1, [225, 0, 50, 0])],
        functions: vec![
            stats(0, 0, 4, 100, 300, 20),
            stats(1, 0, 1, 20, 90, 30),
            stats(0, 1, 4, 200, 100, 20),
            stats(1, 1, 1, 30, 80, 30),
            stats(0, 2, 3, 150, 64, 40),
            stats(1, 2, 1, 100, 100, 50),
            stats(0, 3, 2, 20, 12, 60),
            stats(1, 3, 1, 25, 25, 1_234_567_890),
            stats(0, 4, 5, 50, 11, 70),
            stats(0, 5, 1, 50, 500, 10),
        ],
        arcs: vec![
            arc(0, f(5), 0, CallKind::Syscall, 1, 100),
            arc(0, NONE, 0, CallKind::Syscall, 3, 200),
            arc(1, NONE, 0, CallKind::Syscall, 1, 90),
            arc(0, f(0), 1, CallKind::Call, 4, 350),
            arc(0, f(1), 2, CallKind::Call, 3, 150),
            arc(1, f(1), 2, CallKind::Jump, 1, 100),
            arc(0, NONE, 3, CallKind::Interrupt, 2, 20),
            arc(1, NONE, 3, CallKind::Interrupt, 1, 25),
            arc(0, NONE, 4, CallKind::Exception, 5, 50),
        ],
        threads: vec![
            thread(0, 1, ThreadKind::Thread, 7, "rr", 355, 100, 3),
            thread(1, 1, ThreadKind::Thread, 7, "rr", 200, 50, 0),
            thread(0, 2, ThreadKind::Thread, 8, "rr", 340, 50, 2),
            thread(0, 3, ThreadKind::Idle, 0, "swapper", 10, 0, 1),
            thread(0, 9, ThreadKind::Interrupt, 0, "[interrupt]", 20, 0, 0),
            thread(1, 9, ThreadKind::Interrupt, 0, "[interrupt]", 25, 0, 0),
        ],
        histograms: vec![
            bucket(0, f(1), 2, 40, 2, 41),
            bucket(0, f(1), 2, 64, 1, 40),
            bucket(1, f(1), 2, 100, 1, 50),
        ],
        switches: vec![
            switch("rr", "rr", f(2), SwitchKind::Voluntary, 3),
            switch("rr", "swapper", f(2), SwitchKind::Voluntary, 1),
            switch("swapper", "rr", NONE, SwitchKind::Preempted, 2),
        ],
        idles: vec![stretch(f(3), 11, 4), stretch(NONE, 6, 1)],
        ..Tables::default()
    };
    let kernel = KernelId { id: "k".into(), label: "base".into(), version: "6.12".into() };
    let mut manifest = Manifest::new("p", kernel, "w", "emulator");
    (manifest.elapsed_ticks, manifest.busy_ticks, manifest.idle_ticks) = (ns(1_000), ns(950), ns(50));
    manifest.capture.functions = true;
    Profile { manifest, tables }
}

fn parse(text: kerntune_report::Result<String>) -> Value {
    serde_json::from_str(&text.unwrap()).unwrap()
}

fn sum(rows: &Value, field: &str) -> i64 {
    rows.as_array().unwrap().iter().map(|row| row[field].as_i64().unwrap()).sum()
}

const INNER: Option<&str> = Some("inner");

fn inner_region() -> Selection {
    Selection { top: None, region: INNER.map(Into::into) }
}

fn top_row() -> Selection {
    Selection { top: Some(1), region: None }
}

#[test]
fn a_histogram_with_percentiles() {
    let options =
        histogram::HistogramOptions { function: "tcp_recv".into(), by_caller: true, ..Default::default() };
    let json = parse(options.json(&profile()));
    // 40 40 64 100: half are not longer than 40, and none is longer than 100.
    assert_eq!(json["percentiles"][0], json!({"percent": 50.0, "from": 40, "to": 47}));
    assert_eq!(json["percentiles"][2], json!({"percent": 99.0, "from": 96, "to": 100}));
    assert_eq!((json["calls"].as_u64(), json["slowest"].as_u64()), (Some(4), Some(100)));
    assert_eq!(sum(&json["buckets"], "count"), 4);
    assert_eq!(json["callers"][0]["caller"], "sys_read");
    assert_eq!(json["callers"][0]["elapsed"], 250);
    let text = options.text(&profile(), Style::PLAIN).unwrap();
    let expected = "tcp_recv (net/ipv4/tcp.c): elapsed time of 4 calls\n\n\
                    mean    125 ns\n\
                    p50     within 40 .. 47 ns\n\
                    p90     within 96 .. 100 ns\n\
                    p99     within 96 .. 100 ns\n\
                    p99.9   within 96 .. 100 ns\n\
                    max     100 ns, began at 0.000000050 s\n\n\
                    \x20      ns  calls      %  cum. %\n\
                    \x2040 .. 47      2  50.00   50.00  ████████████████████████████████████████\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("    4    63    40 .. 47   96 .. 100       96 .. 100  sys_read\n"), "{text}");
}

#[test]
fn a_histogram_of_a_region_and_of_no_calls() {
    let inner = |function: &str| histogram::HistogramOptions {
        function: function.into(),
        select: inner_region(),
        ..Default::default()
    };
    assert_eq!(parse(inner("tcp_recv").json(&profile()))["calls"], 1);
    let error = inner("fault").json(&profile()).unwrap_err().to_string();
    assert_eq!(error, "no call of fault ended in region inner: there is none to show");
    let options = histogram::HistogramOptions { function: "nothing".into(), ..Default::default() };
    assert!(options.json(&profile()).unwrap_err().to_string().contains("no function \"nothing\""));
}

#[test]
fn groups_user_and_unattributed_time_are_the_busy_time() {
    let options = SubsystemsOptions { matrix: true, ..Default::default() };
    let json = parse(options.json(&profile()));
    let groups: Vec<_> =
        json["groups"].as_array().unwrap().iter().map(|g| (&g["group"], &g["self"])).collect();
    let expected = [
        (json!("net/ipv4"), json!(250)),
        (json!("fs"), json!(230)),
        (json!("arch/x86"), json!(215)),
        (json!("/usr/bin/rr"), json!(50)),
    ];
    assert_eq!(groups, expected.iter().map(|(name, net)| (name, net)).collect::<Vec<_>>());
    assert_eq!(sum(&json["groups"], "self") + 200 + 5, 950);
    let pairs: Vec<String> = json["matrix"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| format!("{} {} {} {}", p["from"], p["to"], p["calls"], p["elapsed"]).replace('"', ""))
        .collect();
    assert_eq!(
        pairs,
        [
            "arch/x86 fs 4 350",
            "[syscall] arch/x86 4 290",
            "fs net/ipv4 4 250",
            "/usr/bin/rr arch/x86 1 100",
            "[user] arch/x86 5 50",
            "[interrupt] arch/x86 3 45",
        ]
    );
}

#[test]
fn groups_of_ones_own() {
    let groups = GroupsFile::parse("read: sys_* tcp_*\nentry: arch/x86/entry\n", "g").unwrap();
    let grouping = Grouping::File(groups);
    let options = SubsystemsOptions { grouping, select: top_row(), ..Default::default() };
    let text = options.text(&profile(), Style::PLAIN).unwrap();
    let table = text.split_once("\n\n").unwrap().1;
    // 250 + 230; 120, 45 + 50 + 50 in the others; percentages are of 950 ns.
    let expected = "net                              \n ns  % net  calls  functions  group\n\
                    480  50.53      9          2  read\n\
                    265  27.89                    2 more groups (--top)\n\
                    200  21.05                    [user]\n  5   0.53                    [unattributed]\n";
    assert_eq!(table, expected.replace("net                              \n", "net\n"));
}

#[test]
fn threads_one_by_one_and_by_name() {
    let json = parse(threads::ThreadsOptions::default().json(&profile()));
    assert_eq!(sum(&json["threads"], "self"), 950);
    let first = &json["threads"][0];
    assert_eq!((&first["pid"], &first["self"], &first["user"]), (&json!(7), &json!(555), &json!(150)));
    assert_eq!(first["kernel"], 405);
    let by_comm = threads::ThreadsOptions { by_comm: true, ..Default::default() };
    let text = by_comm.text(&profile(), Style::PLAIN).unwrap();
    let table = text.split_once("\n\n").unwrap().1;
    let expected = "\
\x20                         net  kernel  user         switches
threads  tgid  kind        ns      ns    ns  % net        in  name
      2     7  thread     895     695   200  94.21         5  rr
      1        interrupt   45      45     0   4.74         0  [interrupt]
      1     7  idle        10      10     0   1.05         1  swapper
";
    assert_eq!(table, expected);
    let inner = threads::ThreadsOptions { select: inner_region(), ..Default::default() };
    assert_eq!(sum(&parse(inner.json(&profile()))["threads"], "self"), 225);
}

#[test]
fn interrupts_and_exceptions() {
    let text = interrupts::InterruptsOptions::default().text(&profile(), Style::PLAIN).unwrap();
    let expected = "\
Elapsed time         = 0 sec      1 us
Accumulated run time = 0 sec      1 us  ( 95.00%)
Idle time            = 0 sec      0 us  (  5.00%)
Time in interrupts   = 0 sec      0 us  (  4.74% of busy, 3 interrupts)

                  per  elapsed          avg  longest          began
interrupts     second       ns  % busy   ns       ns             at  entry
         3  3,000,000       45    4.74   15       25  1.234567890 s  timer

                  per  elapsed          avg  longest          began
exceptions     second       ns  % busy   ns       ns             at  entry
         5  5,000,000       50    5.26   10       11  0.000000070 s  fault
";
    assert_eq!(text, expected);
    let inner = interrupts::InterruptsOptions { select: inner_region() };
    let json = parse(inner.json(&profile()));
    assert_eq!((&json["interrupts"][0]["count"], &json["interrupt"]), (&json!(1), &json!(25)));
    assert_eq!(json["exceptions"], json!([]));
}

#[test]
fn switches_by_reason_and_by_pair() {
    let json = parse(switches::SwitchesOptions::default().json(&profile()));
    assert_eq!((&json["count"], &json["voluntary"], &json["preempted"]), (&json!(6), &json!(4), &json!(2)));
    assert_eq!(json["per_second"], 6e6);
    assert_eq!(json["reasons"][0], json!({"reason": "tcp_recv", "kind": "voluntary", "count": 4}));
    assert_eq!(json["reasons"][1]["reason"], Value::Null);
    assert_eq!(json["pairs"][1], json!({"from": "swapper", "to": "rr", "count": 2, "preempted": 2}));
    let options = switches::SwitchesOptions { select: top_row() };
    let text = options.text(&profile(), Style::PLAIN).unwrap();
    let expected = "\
Context switches     =             6  (6,000,000 per second)
Voluntary            =             4  (4,000,000 per second, 66.67%)
Preempted            =             2  (2,000,000 per second, 33.33%)

switches      %  kind       reason: called the scheduler
       4  66.67  voluntary  tcp_recv
1 more reasons (--top)

switches      %  preempted  from  to
       3  50.00          0  rr    rr
2 more pairs (--top)
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn idle_time_by_length_and_by_what_ended_it() {
    let json = parse(idle::IdleOptions::default().json(&profile()));
    assert_eq!(sum(&json["wakers"], "idle_ns"), 50);
    assert_eq!((&json["stretches"], &json["avg_ns"]), (&json!(5), &json!(10)));
    let text = idle::IdleOptions::default().text(&profile(), Style::PLAIN).unwrap();
    let expected = "\
Stretches            =             5  (10 ns on average)

           idle          avg
stretches    ns  % idle   ns  ended by
        4    44   88.00   11  timer
        1     6   12.00    6  [no interrupt seen]

      ns  stretches      %  cum. %
       6          1  20.00   20.00  ██████████
       7          0   0.00   20.00
  8 .. 9          0   0.00   20.00
10 .. 11          4  80.00  100.00  ████████████████████████████████████████
";
    assert!(text.ends_with(expected), "{text}");
}

/// Second profile: sys_read is a clone and 60 ns slower, user time is 10 ns less, there is more
/// idle time.
pub fn other() -> Profile {
    let mut other = profile();
    other.manifest.id = "q".into();
    other.tables.symbols[1].name = "sys_read.constprop.0".into();
    other.tables.functions[2].self_ticks = ns(260);
    let all = &mut other.tables.regions[0];
    (all.user_ticks, all.busy_ticks, all.idle_ticks) = (ns(140), ns(1_000), ns(80));
    all.elapsed_ticks = ns(1_080);
    other
}

#[test]
fn the_rows_of_a_difference_sum_to_the_change() {
    for paths in [false, true] {
        for top in [None, Some(1)] {
            let options = diff::DiffOptions { paths, top, ..Default::default() };
            let json = document_json(diff::document(&profile(), &other(), &options));
            assert_eq!(json["change"], 80);
            let rows = sum(&json["rows"], "self_change");
            assert_eq!(rows + json["more_change"].as_i64().unwrap(), 80);
        }
    }
    let options = diff::DiffOptions { top: Some(2), ..Default::default() };
    let text = document_text(diff::document(&profile(), &other(), &options));
    let table = text.split_once("\n\n").unwrap().1;
    let expected = "\
net A  net B  net B - A    % of                    elapsed B - A
   ns     ns         ns  change  calls A  calls B             ns  function
  230    290        +60   75.00        5        5              0  sys_read *
   50     80        +30   37.50                                   [idle]
  720    710        -10  -12.50                                   7 more functions (--top)
1,000  1,080        +80  100.00                                   total
*  copies and pieces that the compiler made in one kernel only are one row with their function
";
    assert_eq!(table, expected);
}

#[test]
fn per_operation_and_of_a_region() {
    let mut more = other();
    more.tables.regions[0].operations = 20;
    let options = diff::DiffOptions { per_operation: true, top: Some(1), ..Default::default() };
    let text = document_text(diff::document(&profile(), &more, &options));
    // 1,000 ns / 10 and 1,080 ns / 20.
    assert!(text.contains("100.0   54.0      -46.0  100.00"), "{text}");
    assert!(text.contains("operations                    10         20       +10\n"), "{text}");
    let inner = diff::DiffOptions { region: INNER.map(Into::into), ..Default::default() };
    let json = document_json(diff::document(&profile(), &other(), &inner));
    assert_eq!((&json["change"], &json["base"]["busy"]), (&json!(0), &json!(225)));
    let mut none = profile();
    none.tables.regions[0].operations = 0;
    let error = diff::document(&profile(), &none, &options).err().unwrap().to_string();
    assert!(error.contains("leave out --per-operation"), "{error}");
}

#[test]
fn a_region_that_is_not_there() {
    let select = Selection { top: None, region: Some("tcp".into()) };
    let error = idle::IdleOptions { select }.text(&profile(), Style::PLAIN).unwrap_err().to_string();
    assert_eq!(error, "the profile has no region \"tcp\"; it has all, inner");
}
