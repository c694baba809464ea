//! Conversion of McRae's dumps, compared with results worked out by hand.

use kerntune_analyze::{analyze, AnalysisInput, TraceFile};
use kerntune_mcrae::{replay, DumpByteOrder, DumpRecord, ImportedDump, ReplayAnomalies, TagDump, TagNames};
use kerntune_profile::{Address, FunctionIndex, Symbol};
use kerntune_trace::{EnterKind, Event, TagLayout};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const NAMES: &str = "main/502\nread/504\ntsleep/506\nsplx/508\nISAINTR/510\nweintr/512\nselect/514\n\
                     swtch/600!\nMGET/1002=\n";

/// Parses records from lines `TIME >f`, `TIME <f` or `TIME =point`.
fn dump(names: &TagNames, text: &str) -> TagDump {
    let record = |line: &str| {
        let (time, what) = line.trim().split_once(' ').unwrap();
        let tag = match what.split_at(1) {
            (">", name) => names.named(name).unwrap().tag,
            ("<", name) => names.named(name).unwrap().tag + 1,
            ("=", name) => names.named(name).unwrap().tag,
            _ => what.parse().unwrap(),
        };
        DumpRecord { tag, time: time.parse().unwrap() }
    };
    let records = text.lines().filter(|line| !line.trim().is_empty()).map(record).collect();
    TagDump { records, layout: TagLayout::MCRAE }
}

/// Lists the events of the trace with their time in µs: `>f` by a call, `*f` by an interrupt, `<f`,
/// `~N` frames that ended without a return, `=point`, `@thread`, `idle N` that ends at this time.
/// The state at the beginning comes first.
fn told(imported: &ImportedDump<Vec<u8>>) -> Vec<String> {
    let bytes = imported.trace.as_slice();
    let trace = TraceFile::open(&bytes, &imported.recording).unwrap();
    let mut reader = trace.reader().unwrap();
    let thread = |number: u32| imported.recording.threads[number as usize].comm.clone();
    let function = |number: u32| imported.functions[number as usize].0.clone();
    let mut lines = Vec::new();
    let mut stacks = vec![Vec::new(); imported.recording.threads.len()];
    let mut running = 0;
    for number in 0..trace.chunks() {
        let chunk = reader.read(number).unwrap();
        if number == 0 {
            for stack in &chunk.state.stacks {
                let frames: Vec<String> = stack.frames.iter().map(|&(f, _)| function(f)).collect();
                let star = if stack.running { "*" } else { "" };
                lines.push(format!("{star}{}: {}", thread(stack.thread), frames.join(" ")).trim_end().into());
                stacks[stack.thread as usize] = stack.frames.iter().map(|&(f, _)| f).collect();
                if stack.running {
                    running = stack.thread as usize;
                }
            }
        }
        let mut now = chunk.header.begin;
        let mut decoder = chunk.decoder();
        while let Some((delta, event)) = decoder.next().unwrap() {
            now += delta;
            let what = match event {
                Event::Enter { function: f, how } => {
                    stacks[running].push(f);
                    format!("{}{}", if how == EnterKind::Interrupt { '*' } else { '>' }, function(f))
                }
                Event::Exit => format!("<{}", function(stacks[running].pop().unwrap())),
                Event::Unwind { frames } => {
                    for _ in 0..frames {
                        stacks[running].pop().unwrap();
                    }
                    format!("~{frames}")
                }
                Event::Point { point } => format!("={}", imported.points[point as usize]),
                Event::Switch { thread: to } => {
                    running = to as usize;
                    format!("@{}", thread(to))
                }
                Event::Idle { ns } => {
                    now += ns;
                    format!("idle {}", ns / 1000)
                }
                Event::RegionBegin { .. } | Event::RegionEnd { .. } => continue,
                other => panic!("{other:?}"),
            };
            lines.push(format!("{} {what}", now / 1000));
        }
        assert_eq!(now, chunk.header.end);
    }
    lines
}

/// Returns the anomalies that the analysis finds; it checks its own sums.
fn analyzed(imported: &ImportedDump<Vec<u8>>) -> BTreeMap<String, u64> {
    let mut symbols = Vec::new();
    for (name, tag) in imported.functions.iter().chain([&("[unknown code]".to_owned(), 0)]) {
        let (function, address) = (FunctionIndex(symbols.len() as u32), Address(*tag));
        symbols.push(Symbol { function, name: name.clone(), address, size: 2, file: None, module: None });
    }
    let points: Vec<_> = imported.points.iter().map(|name| (name.clone(), FunctionIndex::NONE)).collect();
    let bytes = imported.trace.as_slice();
    let input = AnalysisInput {
        points: &points,
        threads: 1,
        ..AnalysisInput::new(&bytes, &imported.recording, &symbols)
    };
    analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap().health
}

fn names() -> TagNames {
    TagNames::parse([("names", NAMES)]).unwrap()
}

/// Asserts that the records convert to this trace.
fn comes_to(records: &str, expected: &[&str]) -> ReplayAnomalies {
    let names = names();
    let imported = replay(&names, &dump(&names, records), Vec::new()).unwrap();
    assert_eq!(told(&imported), expected);
    let region = &imported.recording.regions[0];
    let last = expected.last().unwrap().split(' ').next().unwrap();
    assert_eq!((region.begin_ns + region.elapsed_ns) / 1000, last.parse::<u64>().unwrap());
    imported.troubles
}

#[test]
fn calls_are_nested_and_points_are_in_them() {
    let troubles = comes_to(
        "10 >main\n 12 =MGET\n 15 >read\n 40 <read\n 52 <main",
        &["*process 1:", "10 >main", "12 =MGET", "15 >read", "40 <read", "52 <main"],
    );
    assert_eq!(troubles, ReplayAnomalies { longest_gap_ns: 25_000, ..ReplayAnomalies::default() });
}

#[test]
fn the_timer_wraps() {
    let troubles = comes_to(
        "16777210 >main\n 5 >read\n 16777000 <read\n 3 <main",
        &["*process 1:", "16777210 >main", "16777221 >read", "33554216 <read", "33554435 <main"],
    );
    assert_eq!((troubles.timer_wraps, troubles.longest_gap_ns), (2, 16_776_995_000));
}

#[test]
fn a_capture_that_begins_inside_has_those_functions_open() {
    let troubles = comes_to(
        "10 >splx\n 11 <splx\n 15 <tsleep\n 20 <read\n 30 >main\n 35 <main",
        &[
            "*process 1: read tsleep",
            "10 >splx",
            "11 <splx",
            "15 <tsleep",
            "20 <read",
            "30 >main",
            "35 <main",
        ],
    );
    assert_eq!((troubles.open_at_begin, troubles.unmatched_exits), (2, 0));
}

#[test]
fn calls_that_are_open_when_the_memory_is_full_are_cut() {
    let troubles =
        comes_to("10 >main\n 12 >read\n 20 =MGET", &["*process 1:", "10 >main", "12 >read", "20 =MGET"]);
    assert_eq!(troubles.open_at_end, 2);
}

#[test]
fn the_process_that_goes_on_is_found_by_what_it_exits() {
    // Process 1 sleeps in read, the unknown one in select; then process 1 wakes up, then the other.
    let troubles = comes_to(
        "10 >read\n 11 >tsleep\n 12 >swtch\n 20 <swtch\n 21 <tsleep\n 22 <select\n 30 >select\n 31 >tsleep\n \
         32 >swtch\n 40 <swtch\n 41 >splx\n 42 <splx\n 43 <tsleep\n 44 <read\n 45 >swtch\n 50 <swtch\n 51 <tsleep\n 52 <select",
        &[
            "*process 1:",
            "process 2: select tsleep swtch",
            "10 >read",
            "11 >tsleep",
            "12 >swtch",
            "12 @idle",
            "20 idle 8",
            "20 @process 2",
            "20 <swtch",
            "21 <tsleep",
            "22 <select",
            "30 >select",
            "31 >tsleep",
            "32 >swtch",
            "32 @idle",
            "40 idle 8",
            "40 @process 1",
            "40 <swtch",
            "41 >splx",
            "42 <splx",
            "43 <tsleep",
            "44 <read",
            "45 >swtch",
            "45 @idle",
            "50 idle 5",
            "50 @process 2",
            "50 <swtch",
            "51 <tsleep",
            "52 <select",
        ],
    );
    assert_eq!((troubles.switches, troubles.uncertain_switches, troubles.open_at_begin), (3, 0, 3));
}

#[test]
fn interrupts_in_the_switch_are_not_idle_and_another_switch_in_them_is_theirs() {
    let troubles = comes_to(
        "10 >tsleep\n 12 >swtch\n 15 >ISAINTR\n 16 >weintr\n 18 <weintr\n 20 >swtch\n 22 >ISAINTR\n 23 <ISAINTR\n \
         25 <swtch\n 27 <ISAINTR\n 30 <swtch\n 31 <tsleep",
        &[
            "*process 1:",
            "10 >tsleep",
            "12 >swtch",
            "12 @idle",
            "15 idle 3",
            "15 *ISAINTR",
            "16 >weintr",
            "18 <weintr",
            "20 >swtch",
            "22 idle 2",
            "22 *ISAINTR",
            "23 <ISAINTR",
            "25 idle 2",
            "25 <swtch",
            "27 <ISAINTR",
            "30 idle 3",
            "30 @process 1",
            "30 <swtch",
            "31 <tsleep",
        ],
    );
    assert_eq!((troubles.switches, troubles.uncertain_switches, troubles.unmatched_exits), (2, 0, 0));
}

#[test]
fn a_capture_that_begins_in_an_interrupt_in_the_switch() {
    let troubles = comes_to(
        "10 >splx\n 11 <splx\n 14 <weintr\n 15 <ISAINTR\n 20 <swtch\n 22 <tsleep",
        &[
            "*idle: ISAINTR weintr",
            "process 1: tsleep swtch",
            "10 >splx",
            "11 <splx",
            "14 <weintr",
            "15 <ISAINTR",
            "20 idle 5",
            "20 @process 1",
            "20 <swtch",
            "22 <tsleep",
        ],
    );
    assert_eq!(troubles.open_at_begin, 4);
}

#[test]
fn what_does_not_match_is_counted() {
    // The exit of tsleep is missing; select is not open; 700 and 701 have no names.
    let troubles = comes_to(
        "10 >read\n 11 >tsleep\n 12 700\n 13 <read\n 14 >main\n 15 <select\n 16 701\n 17 701\n 19 <main\n \
         20 >swtch\n 22 >swtch\n 25 <swtch\n 26 <swtch\n 27 >main",
        &[
            "*process 1:",
            "10 >read",
            "11 >tsleep",
            "13 ~1",
            "13 <read",
            "14 >main",
            "19 <main",
            "20 >swtch",
            "20 @idle",
            "25 idle 5",
            "25 @process 1",
            "25 <swtch",
            "27 >main",
        ],
    );
    let expected = ReplayAnomalies {
        unknown_tags: [(700, 1), (701, 2)].into(),
        unmatched_exits: 2,
        unwound_calls: 1,
        open_at_end: 1,
        switches: 1,
        repeated_switches: 1,
        longest_gap_ns: 3_000,
        ..ReplayAnomalies::default()
    };
    assert_eq!(troubles, expected);
}

#[test]
fn names_of_another_kernel_are_refused() {
    let names = names();
    let error = |text: &str| replay(&names, &dump(&names, text), Vec::new()).unwrap_err().to_string();
    assert!(error("1 700\n2 701").contains("700"));
    let endless = "1 >main\n".repeat(20_000);
    assert!(error(&endless).contains("main"));
}

/// Figure 4 of the paper, whose ellipses stand for exits that are not printed: a packet that
/// arrives in the idle loop, and the reader that it wakes.
#[test]
fn figure_4_of_the_paper() {
    let names = "ISAINTR/500\nweintr/502\nwerint/504\nweread/506\nbcopy/508\nipintr/510\nsplnet/512\nsplx/514\n\
                 in_cksum/516\ntcp_input/518\nin_pcblookup/520\nspl0/522\ntsleep/524\nfalloc/526\nfdalloc/528\n\
                 min/530\nmalloc/532\nswtch/600!\n";
    let names = TagNames::parse([("names", names)]).unwrap();
    let records = "2671 >ISAINTR\n2679 >weintr\n2704 >werint\n2739 >weread\n3458 >bcopy\n4531 <bcopy\n4600 <weread\n\
                   4700 <werint\n4900 <weintr\n4996 >ipintr\n4998 >splnet\n5008 <splnet\n5012 >splx\n5016 <splx\n\
                   5031 >in_cksum\n5054 <in_cksum\n5074 >tcp_input\n5082 >in_cksum\n5120 <in_cksum\n\
                   5138 >in_pcblookup\n5147 <in_pcblookup\n5392 <tcp_input\n5420 <ipintr\n5424 >spl0\n5445 <spl0\n\
                   5449 <ISAINTR\n5488 <swtch\n5492 >splx\n5495 <splx\n5513 <tsleep\n5520 >falloc\n5523 >fdalloc\n\
                   5528 >min\n5533 <min\n5541 <fdalloc\n5547 >malloc\n";
    let imported = replay(&names, &dump(&names, records), Vec::new()).unwrap();
    let told = told(&imported);
    assert_eq!(told[..4], ["*idle:", "process 1: tsleep swtch", "2671 *ISAINTR", "2679 >weintr"]);
    let at = told.iter().position(|line| line == "5449 <ISAINTR").unwrap();
    assert_eq!(
        told[at + 1..],
        [
            "5488 idle 39",
            "5488 @process 1",
            "5488 <swtch",
            "5492 >splx",
            "5495 <splx",
            "5513 <tsleep",
            "5520 >falloc",
            "5523 >fdalloc",
            "5528 >min",
            "5533 <min",
            "5541 <fdalloc",
            "5547 >malloc",
        ]
    );
    // Like Figure 3: idle is the time in swtch without the interrupt's.
    let region = &imported.recording.regions[0];
    assert_eq!((region.elapsed_ns, region.idle_ns), (2_876_000, 39_000));
    // tsleep and its swtch at the beginning; falloc and malloc at the end.
    assert_eq!((imported.troubles.open_at_begin, imported.troubles.open_at_end), (2, 2));
}

/// More events than one chunk holds, with waiting processes at its end.
#[test]
fn long_dumps_go_on_from_chunk_to_chunk() {
    let names = shared_names();
    let blocks: Vec<Block> =
        (0..12_000).map(|i| (i % PROCESSES, vec![(1, 0, 10), (2, 1, 5), (0, 2, 1)])).collect();
    let (dump, expected) = capture(&blocks, &names);
    assert_eq!(dump.records.len(), expected.len());
    let imported = replay(&names, &dump, Vec::new()).unwrap();
    assert!(imported.recording.chunks.len() > 2);
    assert_eq!(imported.recording.threads.len(), PROCESSES + 1);
    assert_eq!(told(&imported).iter().filter(|line| line.ends_with("=p")).count(), 12_000);
    let health = analyzed(&imported);
    for what in [
        "stack_mismatches",
        "running_mismatches",
        "clock_mismatches",
        "region_mismatch_ns",
        "unmatched_exits",
    ] {
        assert_eq!(health.get(what).copied().unwrap_or(0), 0, "{what}");
    }
}

/// Each process has a function of its own in which it sleeps (`s0`, `s1` …), and some that all use.
const PROCESSES: usize = 4;
const SHARED: usize = 5;

fn shared_names() -> TagNames {
    let mut text = String::from("swtch/2!\n");
    for i in 0..PROCESSES {
        text.push_str(&format!("s{i}/{}\n", 100 + 2 * i));
    }
    for i in 0..SHARED {
        text.push_str(&format!("f{i}/{}\n", 200 + 2 * i));
    }
    text.push_str("p/301=\n");
    TagNames::parse([("names", text.as_str())]).unwrap()
}

/// Block of activity: process, and calls (function and depth to go down to before) with times.
type Block = (usize, Vec<(u8, usize, u32)>);

/// A well-formed capture of several processes: the records, and the process of each.
fn capture(blocks: &[Block], names: &TagNames) -> (TagDump, Vec<(usize, String, u64)>) {
    let tag = |name: &str| names.named(name).unwrap().tag;
    let mut records = Vec::new();
    let mut expected = Vec::new();
    let mut now = 5_000_000u64;
    let mut known: Vec<usize> = Vec::new();
    for (number, (who, calls)) in blocks.iter().enumerate() {
        // Numbered in order of appearance.
        let process = match known.iter().position(|p| p == who) {
            Some(at) => at,
            None => {
                known.push(*who);
                known.len() - 1
            }
        };
        let mut put = |process: usize, what: &str, name: &str, after: u32| {
            now += u64::from(after);
            let tag = tag(name) + u64::from(what == "<");
            records.push(DumpRecord { tag, time: now % (1 << 24) });
            expected.push((process, format!("{what}{name}"), now));
        };
        let sleep = format!("s{who}");
        if number > 0 {
            put(process, "<", "swtch", 7);
            put(process, "<", &sleep, 3);
        }
        let mut open: Vec<String> = Vec::new();
        for (function, down_to, after) in calls {
            while open.len() > *down_to {
                put(process, "<", &open.pop().unwrap(), 1);
            }
            match function {
                0 => put(process, "=", "p", *after),
                f => {
                    let name = format!("f{}", (usize::from(*f) - 1) % SHARED);
                    put(process, ">", &name, *after);
                    open.push(name);
                }
            }
        }
        while let Some(name) = open.pop() {
            put(process, "<", &name, 2);
        }
        put(process, ">", &sleep, 4);
        put(process, ">", "swtch", 1);
    }
    (TagDump { records, layout: TagLayout::MCRAE }, expected)
}

/// Wide tags, a counter of 32 bits that wraps, and ticks of 83.333 ns.
#[test]
fn other_widths_and_ticks() {
    let names = TagNames::parse([("n", "main/65536\nread/4294967294\n")]).unwrap();
    let layout = TagLayout::new(32, 32, 83_333).unwrap();
    let text = b"65536 4294967290\n4294967294 6\n4294967295 18\n65537 12000018\n";
    let dump = TagDump::read(text, DumpByteOrder::Little, layout).unwrap();
    assert_eq!(dump.to_bytes().len(), 4 * 8);
    let imported = replay(&names, &dump, Vec::new()).unwrap();
    // 12, 12 and 12,000,000 ticks; no rounding adds up.
    assert_eq!(imported.recording.regions[0].elapsed_ns, 12_000_024 * 83_333 / 1000);
    let troubles = imported.troubles;
    assert_eq!((troubles.timer_wraps, troubles.longest_gap_ns), (1, 999_996_000));
    // A counter of 64 bits that wraps once.
    let layout = TagLayout::new(17, 64, 1_000_000).unwrap();
    let text = format!("65536 {}\n65537 1\n", u64::MAX);
    let dump = TagDump::read(text.as_bytes(), DumpByteOrder::Little, layout).unwrap();
    let imported = replay(&names, &dump, Vec::new()).unwrap();
    let region = &imported.recording.regions[0];
    assert_eq!((region.begin_ns, region.elapsed_ns), (0, 2_000));
    // A pause of centuries is a wrong layout.
    let dump = TagDump::read(b"65536 5\n65537 4\n", DumpByteOrder::Little, layout).unwrap();
    let error = replay(&names, &dump, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("record 1") && error.contains("--clock-bits"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Calls, times and processes of an import are those of the dump.
    #[test]
    fn what_was_recorded_is_imported(
        blocks in prop::collection::vec(
            (0..PROCESSES, prop::collection::vec((0u8..9, 0usize..5, 0u32..9_000_000), 0..12)), 1..20)
    ) {
        let names = shared_names();
        let (dump, expected) = capture(&blocks, &names);
        let bytes = dump.to_bytes();
        let dump = TagDump::read(&bytes, DumpByteOrder::Little, TagLayout::MCRAE).unwrap();
        let imported = replay(&names, &dump, Vec::new()).unwrap();
        let mut found = Vec::new();
        let mut running = String::new();
        for line in told(&imported) {
            if let Some((thread, _)) = line.split_once(':') {
                if let Some(thread) = thread.strip_prefix('*') {
                    running = thread.to_owned();
                }
                continue;
            }
            let (time, what) = line.split_once(' ').unwrap();
            if let Some(thread) = what.strip_prefix('@') {
                running = thread.to_owned();
            } else if !what.starts_with("idle") {
                let process = running.strip_prefix("process ").unwrap().parse::<usize>().unwrap() - 1;
                found.push((process, what.to_owned(), time.parse::<u64>().unwrap()));
            }
        }
        let offset = expected[0].2 - found[0].2;
        for event in &mut found {
            event.2 += offset;
        }
        prop_assert_eq!(found, expected);
        let idle: u64 = 7 * (blocks.len() as u64 - 1);
        prop_assert_eq!(imported.recording.regions[0].idle_ns, idle * 1000);
        let troubles = imported.troubles;
        prop_assert_eq!((troubles.unmatched_exits, troubles.unwound_calls, troubles.uncertain_switches), (0, 0, 0));
    }

    /// Any records give a valid trace or an error.
    #[test]
    fn any_records_do_no_harm(
        records in prop::collection::vec((prop::sample::select(vec![2u64, 3, 100, 101, 102, 103, 200, 201, 202, 203, 301, 9]), 0u64..1 << 24), 1..300)
    ) {
        let names = shared_names();
        let records: Vec<DumpRecord> = records.into_iter().map(|(tag, time)| DumpRecord { tag, time }).collect();
        let dump = TagDump { records, layout: TagLayout::MCRAE };
        let Ok(imported) = replay(&names, &dump, Vec::new()) else { return Ok(()) };
        // Panics if an event ends something that is not open.
        told(&imported);
        let health = analyzed(&imported);
        for what in ["stack_mismatches", "running_mismatches", "clock_mismatches", "region_mismatch_ns", "unmatched_exits"] {
            prop_assert_eq!(health.get(what).copied().unwrap_or(0), 0, "{}", what);
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), text in "[a-c/0-9!=\n ]{0,60}") {
        let Ok(dump) = TagDump::read(&bytes, DumpByteOrder::Big, TagLayout::MCRAE) else { return Ok(()) };
        let names = TagNames::parse([("x", text.as_str())]).unwrap_or_else(|_| shared_names());
        let _ = replay(&names, &dump, Vec::new());
    }
}
