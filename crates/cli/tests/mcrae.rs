//! McRae's profiler end to end: maintaining names, importing dumps, and the emulator instead of his
//! hardware, whose figures must equal those of a recording of the same run.

use crate::support::{self, checkout, fails, kerntune};
use kerntune_kernel::Triggers;
use kerntune_profile::{CallKind, PathKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PATCHES: &str = "embedded/kernel/patches/6.12/mcrae-tags";
const COMPILER: &str = "embedded/kernel/patches/6.12/mcrae-compiler";
/// Directories in which `planted/tags.patch` adds triggers; half of the objects are those of the
/// base kernel.
const TAGGED: [&str; 5] = ["fs/", "ipc/", "kernel/", "mm/", "net/"];

/// Largest number of instructions of a call outside its triggers: handling of the stack before the
/// first and after the last.
const OUTSIDE_NS: f64 = 50.0;

/// Standard deviation of the difference of two times that are each rounded down to whole
/// microseconds, in ns: √(2/12) µs.
const ROUNDING_NS: f64 = 408.3;

/// Runs a command; returns standard output as JSON.
fn json(arguments: &[&str]) -> Value {
    support::json(arguments)
}

/// Returns the directory of the profile.
fn profile(summary: &Value) -> PathBuf {
    support::work_dir().join("profiles").join(summary["profile"].as_str().unwrap())
}

/// Returns calls, self time and total time (ns) per function.
fn functions(profile: &Path) -> BTreeMap<String, (u64, u64, u64)> {
    let report = json(&["report", profile.to_str().unwrap(), "functions", "--json"]);
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
    let rows = report["functions"].as_array().unwrap();
    let row = |row: &Value| {
        let name = row["name"].as_str().unwrap().to_string();
        (name, (number(row, "calls"), number(row, "self"), number(row, "elapsed")))
    };
    rows.iter().map(row).collect()
}

/// Returns the time of interrupts and other threads during the program, in ns. A recording stops a
/// call's clock for them; triggers in a program do not know them.
fn beside(profile: &Path, program: &str) -> f64 {
    let report = json(&["report", profile.to_str().unwrap(), "threads", "--json"]);
    let others = report["threads"].as_array().unwrap().iter().filter(|thread| thread["comm"] != program);
    others.map(|thread| thread["self"].as_u64().unwrap() as f64).sum()
}

/// Checks that calls are equal, and that total times differ only by the position of the triggers,
/// the resolution of the clock, and the time `beside`.
fn agree(name: &str, imported: (u64, u64, u64), recorded: (u64, u64, u64), beside: f64) {
    println!("{name:20} imported {imported:?} recorded {recorded:?}");
    assert_eq!(imported.0, recorded.0, "calls of {name}");
    let calls = imported.0 as f64;
    let rounding = 4.0 * ROUNDING_NS * calls.sqrt();
    let difference = imported.2 as f64 - recorded.2 as f64;
    assert!(difference <= rounding + beside, "{name}: {difference} ns longer");
    assert!(-difference <= rounding + OUTSIDE_NS * calls, "{name}: {} ns shorter", -difference);
}

/// Records the program `tagged` with its user functions and its tags; returns the profile.
fn record_tagged(kernel: &str, tags: &str, more: &[&str]) -> PathBuf {
    let arguments = ["record", "--kernel", kernel, "--workload", "tagged", "--no-edges", "--json"];
    let of_program = ["--user", "tagged", "--tags", tags];
    profile(&json(&[&arguments, &of_program[..], more].concat()))
}

#[test]
fn a_program_with_triggers_gives_the_figures_of_its_recording() {
    let kernel = support::base_kernel();
    let recorded = record_tagged(&kernel, "memory:0x4b540000", &[]);
    let dump = recorded.join("run/tags.mcrae");
    // 400 requests and 50 resends; fibonacci(15) makes 2·F(16) - 1 calls.
    let expected = [("request", 400), ("checksum", 450), ("duplicate", 400), ("fibonacci", 1973)];
    let records = 2 * expected.iter().map(|(_, calls)| calls).sum::<u64>() + 50;
    assert_eq!(fs::metadata(&dump).unwrap().len(), 5 * records);
    let imported =
        profile(&json(&["import", "mcrae", "embedded/guest/tagged.names", dump.to_str().unwrap(), "--json"]));
    let (ours, theirs) = (functions(&imported), functions(&recorded));
    let beside = beside(&recorded, "tagged");
    for (name, calls) in expected {
        assert_eq!(ours[name].0, calls, "{name}");
        agree(name, ours[name], theirs[name], beside);
    }
    // The recursive function's self time is the sum of its levels.
    let net = (ours["fibonacci"].1 as f64, theirs["fibonacci"].1 as f64);
    assert!((net.0 - net.1).abs() <= 2_000.0 + 0.1 * net.1, "{net:?}");
    let path = support::run(["report", imported.to_str().unwrap(), "path"]);
    assert!(path.contains("== resend"), "{path}");
}

/// Functions that do not wait. Each is in the patches, and called by its own name.
const BUSY: [&str; 9] = [
    "net_rx_action",
    "ip_rcv",
    "tcp_v4_rcv",
    "tcp_v4_do_rcv",
    "sock_def_readable",
    "tcp_sendmsg",
    "tcp_sendmsg_locked",
    "__tcp_transmit_skb",
    "__dev_queue_xmit",
];
/// Functions in which the reader waits.
const WAITING: [&str; 2] = ["tcp_recvmsg", "sk_wait_data"];

#[test]
fn a_kernel_with_triggers_gives_the_figures_of_its_recording_and_of_the_one_without() {
    let base = support::base_kernel();
    let patches = ["0001-headers.patch", "0002-triggers.patch"].map(|name| format!("{PATCHES}/{name}"));
    let tagged = support::kernel(&["--patch", &patches[0], "--patch", &patches[1]], "tagged");
    assert_ne!(base, tagged);
    let directory = tempfile::tempdir().unwrap();
    let step =
        "[[training.step]]\ncommand = [\"rr\", \"--only\", \"udp_rr\"]\n[measured]\n[[measured.step]]\n\
                command = [\"rr\", \"--only\", \"tcp_rr\"]\n";
    let workload = support::workload(&directory, &format!("description = \"TCP\"\n[training]\n{step}"));
    let record = |kernel: &str, more: &[&str]| {
        let mut arguments =
            vec!["record", "--kernel", kernel, "--workload", &workload, "--no-edges", "--json"];
        arguments.extend_from_slice(more);
        profile(&json(&arguments))
    };
    let recorded = record(&tagged, &["--tags", "port:0x80"]);
    let untagged = record(&base, &[]);
    let (names, dump) = (format!("{PATCHES}/names"), recorded.join("run/tags.mcrae"));
    let imported = profile(&json(&["import", "mcrae", &names, dump.to_str().unwrap(), "--json"]));

    let (ours, theirs, without) = (functions(&imported), functions(&recorded), functions(&untagged));
    for name in BUSY {
        agree(name, ours[name], theirs[name], 0.0);
        assert!(ours[name].0 >= 1000, "{name}");
        // Cost of the triggers: two instructions for each of the at most 13 in a call, except the
        // two functions that call all others, plus the cost of keeping an exit for them in each
        // function.
        assert_eq!(ours[name].0, without[name].0, "{name} without triggers");
        let cost = (theirs[name].2 as f64 - without[name].2 as f64) / theirs[name].0 as f64;
        println!("{name:20} {cost:.1} ns more per call");
        assert!((0.0..100.0).contains(&cost), "{name}: {cost} ns per call");
    }
    // The time of a waiting function does not include the switch, which is idle by McRae's rule;
    // both have the same switch.
    let missing = WAITING.map(|name| {
        assert_eq!(ours[name].0, theirs[name].0, "{name}");
        theirs[name].2 as f64 - ours[name].2 as f64
    });
    let calls = theirs["tcp_recvmsg"].0 as f64;
    assert!(missing[0] > 0.0, "{missing:?}");
    let bound = 8.0 * ROUNDING_NS * calls.sqrt() + OUTSIDE_NS * calls;
    assert!((missing[0] - missing[1]).abs() <= bound, "{missing:?}");

    // Two processes take turns and wait in the same functions; triggers cannot distinguish them
    // (docs/mcrae.md). crates/mcrae/tests/dumps.rs tests cases that they can distinguish.
    let tables = json(&["report", imported.to_str().unwrap(), "summary", "--json"]);
    let text = support::run(["report", imported.to_str().unwrap(), "path"]);
    assert!(text.contains("process 1") && !text.contains("process 2"), "{tables} {text}");
    assert!(text.contains("== tcp_fast_path"), "{text}");
    for line in ["-> tcp_v4_rcv", "-> sock_def_readable", "---- Context switch", "<- sk_wait_data"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

/// Returns calls by function name in some regions, from the rows of call paths that are not below
/// an interrupt or the scheduler, in threads of `comm`; and the names of functions that ran there
/// or in other threads.
fn of_thread(profile: &Path, comm: &str, regions: &[&str]) -> (BTreeMap<String, u64>, BTreeSet<String>) {
    let tables = kerntune_profile::Profile::load(profile).unwrap().tables;
    let named: BTreeMap<u32, &str> =
        tables.regions.iter().map(|region| (region.region, region.name.as_str())).collect();
    let mut own: Vec<bool> = Vec::new();
    let (mut calls, mut others) = (BTreeMap::new(), BTreeSet::new());
    for row in &tables.paths {
        let above = own.get(row.parent as usize).copied();
        let is_own = match row.kind {
            PathKind::Thread => row.comm == comm,
            _ => {
                let by_time = row.how == CallKind::Interrupt || tables.name(row.function) == "__schedule";
                above.unwrap_or(false) && !by_time
            }
        };
        own.push(is_own);
        if row.kind == PathKind::Function && regions.contains(&named[&row.region]) {
            let name = tables.name(row.function).to_string();
            match is_own {
                true => *calls.entry(name).or_default() += row.calls,
                false => drop(others.insert(name)),
            }
        }
    }
    (calls, others)
}

/// Returns kernel instructions by region.
fn instructions(summary: &Value) -> BTreeMap<String, u64> {
    let regions = summary["regions"].as_array().unwrap().iter();
    let each =
        |row: &Value| (row["name"].as_str().unwrap().into(), row["kernel_instructions"].as_u64().unwrap());
    regions.map(each).collect()
}

/// Regions in which nothing waits, so that no call depends on the time of others.
const ALONE: [&str; 4] = ["creat_close", "stat", "read_cached", "write_cached"];

/// Options of the kernel with triggers by the compiler. Its tags begin where those of 16 bits end.
fn compiler_options() -> Vec<String> {
    let mut options = Vec::new();
    for patch in ["0001-triggers.patch", "0002-assembler.patch"] {
        options.extend(["--patch".to_string(), format!("{COMPILER}/{patch}")]);
    }
    options.extend(["--patch", "crates/cli/tests/planted/tags.patch"].map(String::from));
    for set in ["CONFIG_KT_TAG_BITS=24", "CONFIG_KT_TAG_FIRST=0x10000"] {
        options.extend(["--set", set].map(String::from));
    }
    options
}

fn tagged_by_compiler() -> String {
    let options = compiler_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    support::kernel(&options, "tagged-by-compiler")
}

/// Every function of five directories has triggers from the compiler, none placed by hand. Their
/// counts must equal the recorder's in the same run, and those of a kernel without triggers
/// wherever time has no influence.
#[test]
fn triggers_by_the_compiler_count_every_call_and_change_none() {
    let base = support::base_kernel();
    let tagged = tagged_by_compiler();
    let work = support::work_dir();
    let image = |kernel: &str| work.join("kernels").join(kernel).join("vmlinux");
    let triggers = Triggers::load(&image(&tagged)).unwrap().unwrap();
    assert!(triggers.all.len() > 10_000, "{}", triggers.all.len());
    assert!(triggers.all.iter().all(|trigger| trigger.tag >= 0x1_0000) && triggers.size % 4096 == 0);
    let mut narrow = kerntune(["record", "--kernel", &tagged, "--workload", "rr", "--tags", "kernel"]);
    fails(&mut narrow, 2, &["more than 16 bits", "--tag-bits 32"]);
    let plain = |name: &str| name.split('@').next().unwrap().to_string();
    // Elsewhere a function may have the same name as one with a trigger, or replace a weak one.
    let store = kerntune_work::WorkDir::open(&work).unwrap();
    let symbols = kerntune_kernel::find(&store, &tagged).unwrap().symbols().unwrap();
    let is_tagged = |file: &String| TAGGED.iter().any(|directory| file.starts_with(directory));
    let others = symbols.functions().iter().filter(|function| !function.file.as_ref().is_some_and(is_tagged));
    let others: BTreeSet<&str> = others.map(|function| function.name.as_str()).collect();
    let with = triggers.all.iter().map(|trigger| plain(&trigger.name));
    let with: BTreeSet<String> = with.filter(|name| !others.contains(name.as_str())).collect();

    let directory = tempfile::tempdir().unwrap();
    let rows = format!("tcp_rr,{}", ALONE.join(","));
    let text = format!(
        "description = \"TCP and files\"\n[training]\n[[training.step]]\ncommand = [\"rr\", \"--only\", \"udp_rr\"]\n\
         [measured]\n[[measured.step]]\ncommand = [\"rr\", \"--only\", \"{rows}\"]\n"
    );
    let workload = support::workload(&directory, &text);
    let record = |kernel: &str, more: &[&str]| {
        let mut arguments =
            vec!["record", "--kernel", kernel, "--workload", &workload, "--no-edges", "--json"];
        arguments.extend_from_slice(more);
        let summary = json(&arguments);
        (profile(&summary), summary)
    };
    let (recorded, with_tags) = record(&tagged, &["--tags", "kernel", "--tag-bits", "32"]);
    let (untagged, without_tags) = record(&base, &[]);
    let dump = recorded.join("run/tags.mcrae");
    let imported = profile(&json(&[
        "import",
        "mcrae",
        "--kernel",
        &tagged,
        "--tag-bits",
        "32",
        dump.to_str().unwrap(),
        "--json",
    ]));
    let mut other = kerntune(["import", "mcrae", "--kernel", &tagged, dump.to_str().unwrap()]);
    fails(&mut other, 2, &["65535, the greatest of 16 bits", "--tag-bits"]);

    // The same run: all functions.
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for (name, (calls, _, _)) in functions(&imported) {
        *ours.entry(plain(&name)).or_default() += calls;
    }
    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for (name, (calls, _, _)) in functions(&recorded) {
        *theirs.entry(name).or_default() += calls;
    }
    let of = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
    let (mut compared, mut calls) = (0, 0);
    for name in with.iter().filter(|name| of(&ours, name) > 0 || of(&theirs, name) > 0) {
        assert_eq!(of(&ours, name), of(&theirs, name), "calls of {name}: imported, recorded");
        (compared, calls) = (compared + 1, calls + of(&ours, name));
    }
    println!("{compared} functions ran, of {} with triggers: {calls} calls", triggers.all.len());
    assert!(compared > 300);

    // Without triggers: the same functions, because the compiler inlined the same ones.
    let functions_of = |kernel: &str| -> BTreeSet<String> {
        let symbols = kerntune_kernel::Symbols::load(&image(kernel)).unwrap();
        symbols.functions().iter().map(|function| function.name.clone()).collect()
    };
    let (before, after) = (functions_of(&base), functions_of(&tagged));
    let new: Vec<_> = after.difference(&before).chain(before.difference(&after)).collect();
    // What maps a box belongs to the patch.
    assert_eq!(new, ["kt_tags_map", "kt_tags_socket"], "functions of one kernel alone");
    // The same calls, except functions that ticks and the scheduler call too, at other moments. If
    // two processes take turns, a tick decides which one waits, and one more wait means one more
    // call of some forty functions.
    for (regions, bound) in [(&ALONE[..], None), (&["tcp_rr"], Some(20))] {
        let ((tagged_calls, timed), (plain_calls, timed_too)) =
            (of_thread(&recorded, "rr", regions), of_thread(&untagged, "rr", regions));
        // __cond_resched() calls it if it does not call the scheduler.
        let instead = "rcu_all_qs".to_string();
        let by_time: BTreeSet<&String> = timed.union(&timed_too).chain([&instead]).collect();
        let names: BTreeSet<&String> = tagged_calls.keys().chain(plain_calls.keys()).collect();
        let differ: Vec<_> = names
            .iter()
            .map(|name| (*name, of(&plain_calls, name), of(&tagged_calls, name)))
            .filter(|(_, without, with)| without != with)
            .collect();
        println!(
            "{regions:?}: {} of {} functions of rr are called as often with triggers as without; not: {differ:?}",
            names.len() - differ.len(),
            names.len()
        );
        assert!(names.len() > 60 && differ.len() * 2 < names.len());
        for (name, without, with) in &differ {
            let is_known = bound.map_or(by_time.contains(name), |bound| with.abs_diff(*without) <= bound);
            assert!(is_known, "{name}: {without} calls without triggers, {with} with them");
        }
    }

    // Cost: one instruction for each record, and the effects of the longer run.
    // Four bytes of a tag, three of the clock.
    let records = fs::metadata(&dump).unwrap().len() / 7;
    let (with, without) = (instructions(&with_tags), instructions(&without_tags));
    for (region, count) in &without {
        let percent = 100.0 * (with[region] as f64 / *count as f64 - 1.0);
        println!(
            "{region}: {count} instructions without triggers, {} with them: {percent:+.2} %",
            with[region]
        );
    }
    let (with, without): (u64, u64) = (with.values().sum(), without.values().sum());
    let more = with - without;
    let percent = 100.0 * more as f64 / without as f64;
    println!("{records} records, {more} instructions more: {percent:.2} % of {without}");
    assert!(more.abs_diff(records) * 50 < records, "{more} instructions, {records} records");
}

/// Program without an operating system that enters and leaves two functions, twice, and stops.
const BARE: &str = r#"
#include "kt_tags.h"
#define KT_TAG_f 600
#define KT_TAG_g 12000
__attribute__((section(".multiboot"), used)) static const unsigned header[] = { 0x1badb002, 0, -0x1badb002u };
__attribute__((used)) static char stack[4096];
__attribute__((used)) static const char no_table[8];
__attribute__((naked)) void _start(void) { __asm__("mov $stack+4096, %esp; call run; lidt no_table; int3"); }
__attribute__((used)) void run(void)
{
	for (int i = 0; i < 2; i++) { KT_ENTER(f); KT_ENTER(g); KT_EXIT(g); KT_EXIT(f); }
}
"#;

/// Devices of QEMU get the tags as kt_tags.h says: a serial line, ports, and an address behind which
/// there is nothing.
#[test]
fn triggers_reach_a_uart_outputs_a_port_and_a_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let header = checkout().join("embedded/guest/kt_tags.h");
    fs::copy(header, path("kt_tags.h")).unwrap();
    fs::write(path("bare.c"), BARE).unwrap();
    // Returns the bytes of the third serial line, and the lines of QEMU's log.
    let sent = |defines: &[&str]| -> (Vec<u8>, Vec<String>) {
        let mut command = Command::new("gcc");
        command.args([
            "-m32",
            "-O1",
            "-fno-pic",
            "-no-pie",
            "-ffreestanding",
            "-nostdlib",
            "-static",
            "-D__KERNEL__",
        ]);
        command.args([
            "-Wl,--section-start=.multiboot=0x100000",
            "-Wl,-Ttext=0x101000",
            "-Wl,-z,max-page-size=4096",
            "-Wl,--build-id=none",
        ]);
        command.args(defines.iter().map(|define| format!("-D{define}")));
        let output = command.args(["-o", &path("bare"), &path("bare.c")]).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        let mut command = Command::new("timeout");
        command.args([
            "120",
            "qemu-system-x86_64",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-m",
            "64",
        ]);
        command.args(["-kernel", &path("bare"), "-serial", "null", "-serial", "null"]);
        command.args(["-serial", &format!("file:{}", path("line")), "-d", "invalid_mem", "-D", &path("log")]);
        let output = command.args(["-trace", "memory_region_ops_write"]).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        let log = fs::read_to_string(path("log")).unwrap();
        (fs::read(path("line")).unwrap(), log.lines().map(String::from).collect())
    };
    let tags = [600, 12000, 12001, 601].repeat(2);
    let seven_bits = |tag: &u32, count: usize| {
        let byte = |at: usize| (tag >> (7 * at) & 0x7f) as u8 | if at + 1 == count { 0x80 } else { 0 };
        (0..count).rev().map(byte).collect::<Vec<u8>>()
    };
    let expected: Vec<u8> = tags.iter().flat_map(|tag| seven_bits(tag, 2)).collect();
    assert_eq!(sent(&["KT_TAGS_UART=0x3e8"]).0, expected);
    let expected: Vec<u8> = tags.iter().flat_map(|tag| seven_bits(tag, 5)).collect();
    assert_eq!(sent(&["KT_TAGS_UART=0x3e8", "KT_TAGS_BITS=32"]).0, expected);

    // What is written to a port at which there is nothing: its address, the value, the size.
    let written = |log: &[String]| -> Vec<String> {
        let of_port = |line: &String| {
            let (_, rest) = line.split_once(" addr 0x28")?;
            Some(format!("28{}", rest.strip_suffix(" name 'io'")?))
        };
        log.iter().filter_map(of_port).collect()
    };
    let write = |tag: &u32, size| format!("280 value {tag:#x} size {size}");
    let expected: Vec<String> = tags.iter().map(|tag| write(tag, 2)).collect();
    assert_eq!(written(&sent(&["KT_TAGS_PORT=0x280"]).1), expected);
    let expected: Vec<String> = tags.iter().map(|tag| write(tag, 4)).collect();
    assert_eq!(written(&sent(&["KT_TAGS_PORT=0x280", "KT_TAGS_BITS=32"]).1), expected);
    let strobe = ["282 value 0x1 size 1", "282 value 0x0 size 1"].map(String::from);
    let expected: Vec<String> =
        tags.iter().flat_map(|tag| [write(tag, 2)].into_iter().chain(strobe.clone())).collect();
    assert_eq!(written(&sent(&["KT_TAGS_GPIO=0x280"]).1), expected);

    let read = |line: &String| {
        let (_, rest) = line.split_once("Invalid read at addr 0xFD00")?;
        u32::from_str_radix(rest.split_once(", size 1")?.0, 16).ok()
    };
    let log = sent(&["KT_TAGS_MEMORY=0xfd000000u"]).1;
    assert_eq!(log.iter().filter_map(read).collect::<Vec<_>>(), tags);
}

/// A box at a socket sees what the recorder sees: the kernel maps its tags over a physical address
/// behind which there is nothing, and QEMU logs each access there.
#[test]
fn a_box_at_a_socket_sees_every_trigger() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let kernel = tagged_by_compiler();
    let triggers = Triggers::load(&support::work_dir().join("kernels").join(&kernel).join("vmlinux"));
    let greatest = triggers.unwrap().unwrap().last_tag();
    let text = "description = \"files\"\nappend = \"kt_tags=0xfd000000\"\n[training]\n[[training.step]]\n\
                command = [\"rr\", \"--only\", \"stat\"]\n[measured]\n[[measured.step]]\n\
                command = [\"rr\", \"--only\", \"stat\"]\n";
    let workload = support::workload(&directory, text);
    let programs = directory.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let search = std::env::var("PATH").unwrap();
    // The log has the address in each line, and the box only its offset.
    let script = format!(
        "#!/bin/bash\nPATH={search}\ncase \"$*\" in *-kernel*) ;; *) exec qemu-system-x86_64 \"$@\" ;; esac\n\
         exec qemu-system-x86_64 \"$@\" -d invalid_mem -D >(sed -n 's/^Invalid read at addr 0xFD\\(......\\), size 1,.*/\\1/p' >{})\n",
        path("box")
    );
    let program = programs.join("qemu-system-x86_64");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = kerntune([
        "record",
        "--kernel",
        &kernel,
        "--workload",
        &workload,
        "--no-edges",
        "--tags",
        "kernel",
        "--tag-bits",
        "32",
        "--json",
    ]);
    let output = command.env("PATH", format!("{}:{search}", programs.display())).output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let recorded = profile(&serde_json::from_slice(&output.stdout).unwrap());
    let tags: Vec<u32> = fs::read(recorded.join("run/tags.mcrae"))
        .unwrap()
        .chunks(7)
        .map(|record| u32::from_le_bytes([record[0], record[1], record[2], record[3]]))
        .collect();
    assert!(tags.len() > 10_000 && tags.iter().all(|tag| u64::from(*tag) <= greatest));
    // The recorder stores what is between the marks, the box all since the drivers have started. What
    // reads the log may end later than QEMU.
    let mut tries = 0;
    loop {
        let seen = fs::read_to_string(path("box")).unwrap();
        let whole = seen.lines().filter(|line| line.len() == 6);
        let seen: Vec<u32> = whole.map(|line| u32::from_str_radix(line, 16).unwrap()).collect();
        // The same calls repeat, so that the beginning is there several times.
        let first = (0..seen.len()).find(|first| seen[*first..].starts_with(&tags));
        println!("{} tags recorded, {} seen by the box, the first at {first:?}", tags.len(), seen.len());
        if first.is_some() {
            break;
        }
        tries += 1;
        assert!(tries < 20, "the box saw other tags");
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Wide records with ticks of a nanosecond give the recorder's own times.
#[test]
fn a_program_is_recorded_with_wide_tags_and_a_fine_clock() {
    let kernel = support::base_kernel();
    let widths = ["--tag-bits", "24", "--clock-bits", "40", "--tick-ns", "1"];
    let recorded = record_tagged(&kernel, "memory:0x4b540000+0x10000", &widths);
    let dump = recorded.join("run/tags.mcrae");
    let dump = dump.to_str().unwrap();
    assert_eq!(fs::metadata(dump).unwrap().len() % 8, 0);
    let mut arguments = vec!["import", "mcrae", "embedded/guest/tagged.names", dump, "--json"];
    arguments.extend(widths);
    let imported = profile(&json(&arguments));
    let (ours, theirs) = (functions(&imported), functions(&recorded));
    let beside = beside(&recorded, "tagged");
    for name in ["request", "checksum", "duplicate", "fibonacci"] {
        let (calls, difference) = (theirs[name].0, theirs[name].2 as f64 - ours[name].2 as f64);
        println!("{name}: {calls} calls, {difference} ns shorter");
        assert_eq!(ours[name].0, calls);
        assert!(difference <= OUTSIDE_NS * calls as f64 && -difference <= beside, "{name}: {difference}");
    }
    // Records of McRae's widths are other bytes.
    let mut narrow = kerntune(["import", "mcrae", "embedded/guest/tagged.names", dump]);
    fails(&mut narrow, 2, &["--tag-bits"]);
}

/// `import mcrae --follow` reads tags as they arrive; an interrupt ends it and keeps all of them.
#[test]
fn a_stream_is_followed_until_its_end_or_an_interrupt() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("names"), "swtch/600!\nmain/502\nread/504\n").unwrap();
    let (pipe, work) = (path("pipe"), path("work"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let follow = |dump: &str, more: &[&str]| {
        let dump = path(dump);
        let mut all = vec!["--dir", &work, "import", "mcrae", "--json", "--follow", &pipe, "--form", "text"];
        all.extend_from_slice(more);
        let names = path("names");
        all.extend_from_slice(&[&names, &dump]);
        kerntune(all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let text = b"502 10\n504 15\n505 25\n503 52\n";
    for interrupted in [false, true] {
        let child = follow(if interrupted { "second" } else { "first" }, &[]);
        let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
        writer.write_all(text).unwrap();
        if interrupted {
            // After it has read all, in the middle of the next line.
            writer.write_all(b"502").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1500));
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        } else {
            drop(writer);
        }
        let output = child.wait_with_output().unwrap();
        let said = support::said(&output);
        assert!(output.status.success() && said.contains("4 records in"), "{said}");
        assert_eq!(
            said.contains("ended by a signal") && said.contains("3 bytes that are not a whole record"),
            interrupted,
            "{said}"
        );
        let report = json(&["--dir", &work, "report", "latest", "functions", "--json"]);
        let main = report["functions"].as_array().unwrap().iter().find(|row| row["name"] == "main").unwrap();
        assert_eq!((main["calls"].as_u64(), main["elapsed"].as_u64()), (Some(1), Some(42_000)));
    }
    // The functions so far, while the stream goes on.
    let mut child = follow("third", &["--interval", "1"]);
    let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
    writer.write_all(text).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    writer.write_all(b"502 60\n").unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| !line.contains(" read")) {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "{lines:?}");
        lines.push(line);
    }
    let row = |name: &str| lines.iter().find(|line| line.ends_with(&format!(" {name}\n"))).unwrap();
    let words = |line: &str| line.split_whitespace().take(2).map(String::from).collect::<Vec<_>>();
    assert_eq!(
        (words(row("main")), words(row("read"))),
        (["1", "32.0"].map(String::from).to_vec(), ["1", "10.0"].map(String::from).to_vec()),
        "{lines:?}"
    );
    drop(writer);
    assert!(child.wait().unwrap().success());

    let dump = path("first");
    let names = path("names");
    let mut again = kerntune(["--dir", &work, "import", "mcrae", "--follow", &pipe, &names, &dump]);
    fails(&mut again, 2, &["first"]);
    let mut none = kerntune(["--dir", &work, "import", "mcrae", &dump]);
    fails(&mut none, 2, &["--kernel"]);
}

/// Imports a handmade dump: a call of 10 µs inside one of 42 µs, and 5 µs of idle time.
#[test]
fn a_dump_becomes_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("names"), "swtch/600!\nmain/502\n").unwrap();
    fs::write(path("more"), "read/504\nMGET/1002=\n").unwrap();
    let text = "502 10\n504 15\n1002 16\n505 25\n503 52\n600 60\n601 65\n700 66\n";
    fs::write(path("dump"), text).unwrap();
    let work = path("work");
    let run = |arguments: &[&str]| -> Value {
        let mut all = vec!["--dir", &work];
        all.extend_from_slice(arguments);
        json(&all)
    };
    let summary = run(&["import", "mcrae", &path("names"), &path("more"), &path("dump"), "--json"]);
    assert_eq!((summary["machine"].as_str(), summary["exact"].as_bool()), (Some("mcrae"), Some(false)));
    assert_eq!((summary["elapsed_ns"].as_u64(), summary["idle_ns"].as_u64()), (Some(56_000), Some(5_000)));
    let report = run(&["report", "latest", "functions", "--json"]);
    let row = |name: &str| {
        let rows = report["functions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        ["calls", "self", "elapsed"].map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(row("main"), [1, 32_000, 42_000]);
    assert_eq!(row("read"), [1, 10_000, 10_000]);
    // The same import finds the existing profile.
    let again = run(&["import", "mcrae", &path("names"), &path("more"), &path("dump"), "--json"]);
    assert_eq!(again["profile"], summary["profile"]);

    let import = |files: &[&str]| kerntune(["--dir", &work, "import", "mcrae"].iter().chain(files));
    fails(&mut import(&[&path("names"), &path("names"), &path("dump")]), 2, &["names:1", "swtch"]);
    fs::write(path("cut"), [0u8, 1, 2]).unwrap();
    fails(&mut import(&[&path("names"), &path("cut")]), 2, &["cut", "3 bytes"]);
    fs::write(path("foreign"), "7 1\n8 2\n").unwrap();
    fails(&mut import(&[&path("names"), &path("foreign")]), 2, &["foreign", "2 records"]);
    fails(&mut import(&[&path("names")]), 2, &["DUMP"]);
}

#[test]
fn a_names_file_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (names, header) = (path("names"), path("tags.h"));
    fs::write(&names, "# mine\nmain/502").unwrap();
    let added =
        json(&["tags", &names, "read", "main", "--inline", "MGET", "--context-switch", "swtch", "--json"]);
    let tags: Vec<u64> =
        added["added"].as_array().unwrap().iter().map(|row| row["tag"].as_u64().unwrap()).collect();
    assert_eq!(tags, [504, 506, 508]);
    support::run(["tags", &names, "--header", &header]);
    assert_eq!(fs::read_to_string(&names).unwrap(), "# mine\nmain/502\nswtch/504!\nread/506\nMGET/508=\n");
    assert!(fs::read_to_string(&header).unwrap().contains("#define KT_TAG_MGET 508"));
    // Functions of an ELF file: this test program.
    let program = std::env::current_exe().unwrap().display().to_string();
    support::run(["tags", &names, "--from-symbols", &program, "*a_names_file_is_kept*"]);
    assert!(fs::read_to_string(&names).unwrap().contains("a_names_file_is_kept"));
    let mut nobody = kerntune(["tags", &names, "--from-symbols", &program, "nobody_at_all_*"]);
    fails(&mut nobody, 2, &["no function", "nobody_at_all_*"]);
    fs::write(&names, "f/65534\n").unwrap();
    fails(&mut kerntune(["tags", &names, "g"]), 2, &["no tag left for g"]);
    assert_eq!(fs::read_to_string(&names).unwrap(), "f/65534\n");
}

/// Parallel processes, as under `make -j`.
#[test]
fn names_that_come_at_once_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let names = directory.path().join("names").display().to_string();
    let each: Vec<String> = (0..8).map(|number| format!("f{number}")).collect();
    let running: Vec<_> = each.iter().map(|name| kerntune(["tags", &names, name]).spawn().unwrap()).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    let text = fs::read_to_string(&names).unwrap();
    let (mut found, mut tags): (Vec<_>, Vec<_>) =
        text.lines().map(|line| line.split_once('/').unwrap()).unzip();
    found.sort_unstable();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!((found, tags.len()), (each.iter().map(String::as_str).collect(), 8));
}

#[test]
fn a_patch_that_does_not_apply_shows_its_first_hunk() {
    let directory = tempfile::tempdir().unwrap();
    let patch = fs::read_to_string(checkout().join(PATCHES).join("0002-triggers.patch")).unwrap();
    let bad = directory.path().join("bad.patch");
    fs::write(&bad, patch.replace(" \tschedule_debug(prev, preempt);", " \tschedule_nothing(prev);"))
        .unwrap();
    let mut command = kerntune(["kernel", "build", "--patch", bad.to_str().unwrap()]);
    fails(&mut command, 2, &["bad.patch", "kernel/sched/core.c", "FAILED", "schedule_nothing"]);
}
