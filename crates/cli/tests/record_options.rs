//! Options of `record`: the selected events are recorded, and all figures equal those of a full
//! recording.

use crate::support;
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_isa::{BlockEnding, BlockFlow, GuestIsa, Isa};
use kerntune_profile::{EdgeKind, ModelEvent, PathKind, Profile};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A workload of two programs: TCP in both directions, and new processes.
const WORK: [&str; 7] = ["rr", "--seed", "1", "--scale", "0.1", "--only", "tcp_rr,fork_exec"];

/// Records [`WORK`] with these options; returns the summary and the profile.
fn record(kernel: &str, options: &[&str]) -> (Value, Profile) {
    let mut arguments = vec!["record", "--kernel", kernel, "--workload", "rr", "--json"];
    arguments.extend_from_slice(options);
    arguments.push("--");
    arguments.extend(WORK);
    let summary = support::json(arguments);
    let profile = Profile::load(&directory(&summary)).unwrap();
    whole(&profile);
    (summary, profile)
}

fn directory(summary: &Value) -> PathBuf {
    support::work_dir().join("profiles").join(summary["profile"].as_str().unwrap())
}

/// Checks that all time is attributed, and that there are no anomalies.
fn whole(profile: &Profile) {
    let tables = &profile.tables;
    let net: u64 = tables.functions.iter().map(|row| row.self_ticks.0).sum();
    let rest: u64 = tables.regions.iter().map(|row| row.user_ticks.0 + row.unattributed_ticks.0).sum();
    assert_eq!(net + rest, profile.manifest.busy_ticks.0);
    let health = &profile.manifest.health;
    for what in [
        "lost_events",
        "unmatched_returns",
        "unmatched_exits",
        "stack_mismatches",
        "running_mismatches",
        "clock_mismatches",
        "clock_errors",
        "region_mismatches",
    ] {
        assert_eq!(health[what], 0, "{what}: {health:?}");
    }
}

/// Returns calls by name and place.
fn calls(profile: &Profile) -> BTreeMap<(String, Option<String>, u64), u64> {
    let tables = &profile.tables;
    let mut calls = BTreeMap::new();
    for row in &tables.functions {
        let symbol = &tables.symbols[row.function.0 as usize];
        let key = (symbol.name.clone(), symbol.file.clone(), symbol.address.0);
        *calls.entry(key).or_default() += row.calls;
    }
    calls
}

/// Compilers inline other functions in each configuration.
#[test]
fn each_shipped_list_of_functions_serves_each_configuration() {
    let lists = std::fs::read_dir(support::checkout().join("embedded/kernel/tags")).unwrap();
    let lists: Vec<String> = lists.map(|list| format!("@{}", list.unwrap().path().display())).collect();
    let kernels = [support::base_kernel(), support::planted_kernel(), support::ftrace_kernel()];
    for (kernel, list) in kernels.iter().flat_map(|kernel| lists.iter().map(move |list| (kernel, list))) {
        let (_, part) = record(kernel, &["--only", list]);
        let counted = calls(&part);
        let has = |name: &str| counted.keys().any(|(of, ..)| of.split('.').next() == Some(name));
        for name in
            ["do_syscall_64", "__x64_sys_read", "vfs_read", "__netif_receive_skb_core", "kernel_clone"]
        {
            assert!(has(name), "{kernel}: {name}");
        }
        assert!(!has("tcp_ack"));
    }
}

#[test]
fn what_is_selected_is_counted_as_if_all_were_traced() {
    let kernel = support::base_kernel();
    let (_, full) = record(&kernel, &[]);
    let all = calls(&full);
    let choices: [&[&str]; 3] =
        [&["--only", "net/"], &["--only", "tcp_*"], &["--skip", "mm/", "--skip", "kfree"]];
    for choice in choices {
        let (_, part) = record(&kernel, choice);
        assert_eq!(part.manifest.busy_ticks, full.manifest.busy_ticks, "{choice:?}: the guest noticed");
        assert_eq!(part.manifest.health["unwound_frames"], 0);
        assert!(!part.manifest.capture.edges && full.manifest.capture.edges, "{choice:?} costs less");
        let counted = calls(&part);
        assert!(counted.len() > 50, "{choice:?}: {} functions", counted.len());
        for (function, count) in &counted {
            if function.0 != "[not traced]" {
                assert_eq!(Some(count), all.get(function), "{choice:?}: {function:?}");
            }
        }
        let selected = |(name, file, _): &&(String, Option<String>, u64)| match choice {
            ["--only", "net/"] => file.as_ref().is_some_and(|file| file.starts_with("net/")),
            ["--only", ..] => name.starts_with("tcp_") && !name.contains(".cold"),
            _ => name != "kfree" && !file.as_ref().is_some_and(|file| file.starts_with("mm/")),
        };
        for function in all.keys().filter(selected) {
            assert!(counted.contains_key(function), "{choice:?} misses {function:?}");
        }
    }
    let (_, whole) = record(&kernel, &["--only", "tcp_*", "--edges"]);
    assert!(whole.manifest.capture.edges && whole.tables.edges == full.tables.edges);
    let refused = |options: &[&str], words: &[&str]| {
        let mut arguments = vec!["record", "--kernel", &kernel, "--workload", "rr"];
        arguments.extend_from_slice(options);
        support::fails(&mut support::kerntune(arguments), 2, words)
    };
    refused(&["--only", "tcp_sendmsgg"], &["`tcp_sendmsgg`", "did you mean tcp_sendmsg"]);
    refused(&["--skip", "nett/"], &["--skip `nett/`", "net/"]);
    refused(&["--only", "tcp_sendmsg", "--no-functions"], &["--no-functions"]);
    refused(&["--weights", "--no-edges"], &["need the model"]);
    refused(&["--user", "redis-servr"], &["redis-servr"]);
}

#[test]
fn points_count_passages() {
    let kernel = support::base_kernel();
    let points = ["--point", "tcp_sendmsg", "--point", "tcp_sendmsg+0x4", "--point", "begin_new_exec"];
    let (summary, profile) = record(&kernel, &points);
    let all = calls(&profile);
    let called = |name: &str| -> u64 { all.iter().filter(|((n, ..), _)| n == name).map(|(_, n)| n).sum() };
    let passed = |name: &str| -> u64 {
        profile.tables.points.iter().filter(|row| row.point == name).map(|row| row.count).sum()
    };
    // A function begins with `endbr64`, four bytes.
    assert!(called("tcp_sendmsg") >= 200, "there and back");
    assert_eq!(passed("tcp_sendmsg"), called("tcp_sendmsg"));
    assert_eq!(passed("tcp_sendmsg+0x4"), called("tcp_sendmsg"));
    assert_eq!(passed("begin_new_exec"), called("begin_new_exec"));
    let id = summary["profile"].as_str().unwrap();
    let path = support::run(["report", id, "path", "--worst", "tcp_sendmsg"]);
    assert!(path.contains("== tcp_sendmsg+0x4"), "{path}");
    let inside = ["record", "--kernel", &kernel, "--workload", "rr", "--point", "tcp_sendmsg+0x2"];
    let words = ["middle of an instruction", "tcp_sendmsg+0x0 and tcp_sendmsg+0x4"];
    support::fails(&mut support::kerntune(inside), 2, &words);
    let line = ["record", "--kernel", &kernel, "--workload", "rr", "--point", "net/ipv4/tcp.c:1300"];
    support::fails(&mut support::kerntune(line), 2, &["no debug information", "CONFIG_DEBUG_INFO"]);
}

#[test]
fn user_functions_are_in_the_same_timeline() {
    let kernel = support::base_kernel();
    let (summary, profile) = record(&kernel, &["--user", "rr"]);
    let tables = &profile.tables;
    let user = |name: &str| -> u64 {
        let named = |row: &&kerntune_profile::FunctionStats| {
            let symbol = &tables.symbols[row.function.0 as usize];
            symbol.name == name && symbol.module.as_deref() == Some("rr")
        };
        tables.functions.iter().filter(named).map(|row| row.calls).sum()
    };
    let operations = |name: &str| -> u64 {
        tables.regions.iter().filter(|row| row.name == name).map(|row| row.operations).sum()
    };
    // A row's function runs once for each operation, and 16 times before to warm up
    // (embedded/guest/kt_suite.h).
    assert_eq!((operations("tcp_rr"), operations("fork_exec")), (100, 3));
    assert_eq!((user("exchange_one"), user("fork_exec_one")), (100 + 16, 3 + 16));
    // The program itself, and each new process.
    assert_eq!((user("execve"), user("main")), (3 + 16, 1 + 3 + 16));
    assert_eq!(profile.manifest.health["unwound_frames"], 3 + 16, "those of `execve`");
    // One path leads from the program's main function through the system call into TCP.
    let mut longest = Vec::new();
    for row in tables.paths.iter().filter(|row| row.kind == PathKind::Function) {
        if tables.symbols[row.function.0 as usize].name != "tcp_sendmsg" {
            continue;
        }
        let (mut names, mut at) = (Vec::new(), row);
        loop {
            if at.kind == PathKind::Function {
                names.push(tables.symbols[at.function.0 as usize].name.as_str());
            }
            match tables.paths.get(at.parent as usize) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        if names.len() > longest.len() {
            longest = names;
        }
    }
    longest.reverse();
    let places: Vec<_> = ["main", "exchange_one", "entry_SYSCALL_64", "tcp_sendmsg"]
        .iter()
        .map(|name| longest.iter().position(|known| known == name))
        .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{longest:?}");
    // Without the kernel part, the user part is unchanged.
    let (_, part) = record(&kernel, &["--user", "rr", "--only", "tcp_sendmsg"]);
    let only_user = |profile: &Profile| {
        let mut calls = calls(profile);
        calls.retain(|(_, file, address), _| file.is_none() && *address < 1 << 32 && *address != 0);
        calls
    };
    assert_eq!(only_user(&part), only_user(&profile));
    assert_eq!(summary["lost_events"], 0);
}

#[test]
fn weights_of_paths_sum_to_the_counters_of_regions() {
    let kernel = support::base_kernel();
    for options in [&["--weights"][..], &["--weights", "--only", "net/", "--user", "rr"]] {
        let (_, profile) = record(&kernel, options);
        let tables = &profile.tables;
        assert!(profile.manifest.capture.weights);
        // Rows belong to the innermost region; counters of regions include inner regions.
        let outer = || tables.regions.iter().filter(|row| row.depth == 0);
        let sum = |of: fn(&kerntune_profile::PathNode) -> u64| tables.paths.iter().map(of).sum::<u64>();
        let taken: u64 = outer().map(|row| row.kernel_taken_branches + row.user_taken_branches).sum();
        let l1i: u64 = outer().map(|row| row.kernel_l1i_misses + row.user_l1i_misses).sum();
        let itlb: u64 = outer().map(|row| row.kernel_itlb_misses + row.user_itlb_misses).sum();
        assert!(taken > 0 && l1i > 0 && itlb > 0);
        assert_eq!(sum(|row| row.taken_branches), taken, "{options:?}");
        assert_eq!(sum(|row| row.l1i_misses), l1i, "{options:?}");
        assert_eq!(sum(|row| row.itlb_misses), itlb, "{options:?}");
    }
}

/// The first level of `zen4` equals `generic` except for its pages; the levels behind it do not
/// change it.
#[test]
fn a_model_with_more_parts_counts_more_and_nothing_else_differently() {
    let kernel = support::base_kernel();
    let (plain, generic) = record(&kernel, &[]);
    assert!(generic.tables.model_events.is_empty() && plain["regions"][0].get("model_events").is_none());
    let (summary, zen4) = record(&kernel, &["--model", "zen4"]);
    for (a, b) in generic.tables.regions.iter().zip(&zen4.tables.regions) {
        assert_eq!(
            (&a.name, a.kernel_instructions, a.kernel_taken_branches),
            (&b.name, b.kernel_instructions, b.kernel_taken_branches)
        );
        assert_eq!((a.kernel_l1i_misses, a.user_l1i_misses), (b.kernel_l1i_misses, b.user_l1i_misses));
    }
    assert_eq!(zen4.tables.model_events.len(), 4 * zen4.tables.regions.len());
    for region in summary["regions"].as_array().unwrap() {
        let figure = |event: &str| region["model_events"][event].as_f64().unwrap();
        assert!(figure("l2_miss") <= region["l1i_misses"].as_f64().unwrap());
        let branches = ["btb_l2_hit", "btb_miss", "misprediction"].map(figure);
        assert!(branches.iter().sum::<f64>() <= region["taken_branches"].as_f64().unwrap(), "{region}");
        assert!(branches[0] > 0.0, "thousands of branches have no room in 1,536 entries: {region}");
    }
}

#[test]
fn mitigations_need_a_kernel_that_has_them_and_all_of_its_functions() {
    let kernel = support::base_kernel();
    let refused = |more: &[&str]| {
        let run = ["record", "--kernel", &kernel, "--workload", "rr", "--mitigations", "zen2"];
        let output = support::kerntune(run.iter().chain(more)).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let lacks = refused(&["--", "true"]);
    assert!(
        lacks.contains("CONFIG_CPU_MITIGATIONS") && lacks.contains("embedded/kernel/mitigations.config"),
        "{lacks}"
    );
    let some = refused(&["--only", "tcp_*", "--", "true"]);
    assert!(some.contains("leave out --only, --skip and --user"), "{some}");
    let unknown = support::kerntune(["record", "--workload", "rr", "--mitigations", "z80"]).output().unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there are zen2 and skylake"));
}

/// A command needs no workload: its program is packed with its libraries and with the directory in
/// its arguments.
#[test]
fn a_command_alone_is_recorded_with_the_files_that_it_names() {
    support::base_kernel();
    let command = ["ls", "-lR", "/usr/share/common-licenses"];
    let summary = support::json([&["record", "--json", "--"], &command[..]].concat());
    assert_eq!(summary["workload"], command.join(" "));
    let regions = summary["regions"].as_array().unwrap();
    assert_eq!((regions.len(), &regions[0]["name"]), (1, &Value::from("command")));
    let tables = Profile::load(&directory(&summary)).unwrap().tables;
    let entries = std::fs::read_dir(command[2]).unwrap().count() as u64;
    let looks = |name: &str| ["__do_sys_newlstat", "do_statx"].contains(&name);
    let looked: u64 = tables
        .functions
        .iter()
        .filter(|row| looks(&tables.symbols[row.function.0 as usize].name))
        .map(|row| row.calls)
        .sum();
    assert!(looked >= entries, "{entries} entries, {looked} calls that look at one");
    // The last recording of this program is found, and the report names it.
    let id = summary["profile"].as_str().unwrap();
    let threads = support::run(["report", "latest:workload=ls,machine=emulator", "threads"]);
    let head = threads.lines().next().unwrap();
    assert!(head.starts_with(&format!("profile {id}: ls -lR")) && head.contains("emulator, exact"), "{head}");
}

/// Copies with `rep movsb` then execute one instruction per byte.
#[test]
fn fast_strings_are_used_where_the_cpu_has_them() {
    let kernel = support::base_kernel();
    let path = |more: &[&str]| {
        let (_, profile) = record(&kernel, more);
        profile.tables.regions.iter().map(|region| region.kernel_instructions.0).sum::<u64>()
    };
    let (plain, fast) = (path(&[]), path(&["--fast-strings"]));
    assert!(fast > plain + plain / 50, "{plain}, {fast} with fast strings");
}

/// Branch prediction is simulated on the same run: other figures do not change, and the better
/// predictor has fewer mispredictions.
#[test]
fn directions_are_guessed_by_the_part_that_is_named() {
    let kernel = support::base_kernel();
    let [gshare, tage] =
        ["gshare", "tage"].map(|part| record(&kernel, &["--model", &format!("zen4+{part}")]));
    assert_eq!(gshare.1.tables.regions, tage.1.tables.regions);
    let [gshare, tage] = [gshare, tage].map(|(summary, profile)| {
        assert_eq!(profile.tables.model_events.len(), 5 * profile.tables.regions.len());
        let regions = summary["regions"].as_array().unwrap();
        let wrong = |region: &Value| region["model_events"]["direction_misprediction"].as_f64();
        regions.iter().filter_map(wrong).sum::<f64>()
    });
    assert!(gshare > tage && tage > 0.0, "{gshare} by gshare, {tage} by TAGE");
}

/// The static rule mispredicts taken forward branches and untaken backward ones. Counts of blocks
/// and edges, which need no model, give their number. The two may differ only by interrupts between
/// a branch and its successor.
#[test]
fn the_static_rule_is_wrong_as_often_as_exact_counts_say() {
    let id = support::base_kernel();
    let (_, profile) = record(&id, &["--model", "pa-risc-720+static"]);
    let work = kerntune_work::WorkDir::open(support::work_dir()).unwrap();
    let vmlinux = MappedFile::open(kerntune_kernel::find(&work, &id).unwrap().vmlinux()).unwrap();
    let sections = Elf::parse(&vmlinux).unwrap().code_sections().unwrap();
    let target = |address: u64| {
        let code = sections.iter().find_map(|section| section.bytes(address, 16))?;
        let branch = GuestIsa::instructions(code, address).next()?;
        match GuestIsa::ending(&branch) {
            (
                BlockEnding::Jump { target },
                BlockFlow::Branch(kerntune_trace::counts::BranchKind::Conditional),
            ) => target,
            _ => None,
        }
    };
    let (mut executed, mut taken) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for block in &profile.tables.blocks {
        *executed.entry(block.last.0).or_default() += block.count;
    }
    for edge in profile.tables.edges.iter().filter(|edge| edge.kind == EdgeKind::Conditional) {
        *taken.entry(edge.source.0).or_default() += edge.count;
    }
    let (mut branches, mut expected) = (0, 0);
    for (last, count) in executed {
        let Some(target) = target(last) else { continue };
        let taken = taken.get(&last).copied().unwrap_or_default();
        branches += count;
        expected += if target < last { count - taken } else { taken };
    }
    let tables = &profile.tables;
    let outermost = |region: u32| tables.regions.iter().any(|row| row.region == region && row.depth == 0);
    let wrong = tables.model_events.iter().filter(|row| row.event == ModelEvent::DirectionMisprediction);
    let counted: u64 = wrong.filter(|row| outermost(row.region)).map(|row| row.kernel).sum();
    assert!(branches > 100_000 && counted > branches / 10, "{counted} of {branches}");
    assert!(counted.abs_diff(expected) <= 20, "{counted} by the model, {expected} by exact counts");
}

#[test]
fn tags_are_written_where_they_were_said() {
    let kernel = support::base_kernel();
    let command = ["--tags", "memory:0x4b540000", "--json", "--", "tagged", "16"];
    let mut arguments = vec!["record", "--kernel", &kernel, "--workload", "tagged"];
    arguments.extend(command);
    let summary = support::json(arguments);
    let tags = std::fs::read(directory(&summary).join("run/tags.mcrae")).unwrap();
    assert!(tags.len() > 16 * 4 * 5 && tags.len() % 5 == 0, "{} bytes", tags.len());
    let stamps: Vec<u32> =
        tags.chunks(5).map(|record| u32::from_le_bytes([record[2], record[3], record[4], 0])).collect();
    // 16 requests take less time than the range of the 24-bit counter.
    let first = stamps[0];
    let since: Vec<u32> = stamps.iter().map(|stamp| stamp.wrapping_sub(first) & 0xff_ffff).collect();
    assert!(since.is_sorted(), "{since:?}");
}
