//! `kerntune anatomy` on a recording of the base kernel: its figures must equal those of the
//! profile's tables and of single paths.

use crate::support::{self, fails, json, kerntune, run};
use serde_json::Value;
use std::sync::OnceLock;

/// Returns a recording of `rr`.
fn profile() -> &'static str {
    static PROFILE: OnceLock<String> = OnceLock::new();
    PROFILE.get_or_init(|| {
        let kernel = support::base_kernel();
        let summary = json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
        summary["profile"].as_str().unwrap().to_owned()
    })
}

fn anatomy(options: &[&str]) -> Value {
    json([&["anatomy"], options, &["--profile", profile(), "--json"]].concat())
}

fn at(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

/// Sum of a field of a part of rows.
fn sum(rows: &Value, part: &str, field: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| at(&row[part], field)).sum()
}

#[test]
fn figures_are_those_of_the_table_of_functions() {
    for region in [None, Some("tcp_rr"), Some("read_cached")] {
        let within = region.map_or(vec![], |name| vec!["--region", name]);
        let functions = json([&["report", profile(), "functions", "--json"][..], &within].concat());
        let rows = functions["functions"].as_array().unwrap();
        let mut compared = 0;
        // None of these functions is recursive.
        for name in
            ["tcp_sendmsg", "vfs_read", "__x64_sys_read", "schedule", "asm_sysvec_apic_timer_interrupt"]
        {
            let Some(row) = rows.iter().find(|row| row["name"] == name && at(row, "ended") > 0) else {
                continue;
            };
            let found = anatomy(&[&[name], &within[..]].concat());
            // The mean is the same fraction.
            assert_eq!(
                (at(&found, "calls_whole"), at(&found["all"]["elapsed"], "sum")),
                (at(row, "ended"), at(row, "elapsed")),
                "{name}"
            );
            assert_eq!(sum(&found["tree"], "all", "self"), at(row, "elapsed"), "{name}");
            assert_eq!(sum(&found["tree"], "all", "calls"), at(&found["all"]["calls"], "sum"), "{name}");
            assert_eq!(at(&found["tree"][0]["all"], "self"), at(row, "ended_self"), "{name}");
            compared += 1;
        }
        assert!(compared >= 2, "{compared} in {region:?}");
    }
}

#[test]
fn what_is_before_a_boundary_and_what_is_after_are_all() {
    for until in ["tcp_write_xmit", "net/ipv4/", "tcp_*"] {
        let found = anatomy(&["tcp_sendmsg", "--region", "tcp_rr", "--until", until]);
        let before = &found["before"];
        assert_eq!((at(before, "reach"), at(before, "do_not")), (at(&found, "calls_whole"), 0), "{until}");
        let times = at(&before["spreads"]["elapsed"], "sum") + at(&before["after"], "sum");
        assert_eq!(times, at(&found["all"]["elapsed"], "sum"), "{until}");
        assert_eq!(
            sum(&found["tree"], "before", "self"),
            at(&before["spreads"]["elapsed"], "sum"),
            "{until}"
        );
        assert_eq!(sum(&found["tree"], "before", "calls"), at(&before["spreads"]["calls"], "sum"), "{until}");
        let stages = before["typical"]["stages"].as_array().unwrap();
        let of_stages: u64 = stages.iter().map(|stage| at(stage, "self")).sum();
        assert_eq!(of_stages, at(&before["typical"]["before"], "elapsed"), "{until}");
        assert_eq!(stages.iter().filter(|stage| stage["kind"] == "boundary").count(), 1);
    }
    let text = run(["anatomy", "read", "--profile", profile(), "--until", "schedule"]);
    assert!(text.starts_with("Anatomy of __x64_sys_read (fs/read_write.c)\n"), "{text}");
    assert!(text.contains("Before schedule, which ") && text.contains("Done more than once"), "{text}");
}

/// Calls that a single path shows, without those of interrupts.
fn of_path(entries: &Value, depth: u64, counts: &mut (u64, u64)) {
    for entry in entries.as_array().unwrap() {
        if ["call", "jump", "exception", "syscall"].contains(&entry["kind"].as_str().unwrap()) {
            *counts = (counts.0 + 1, counts.1.max(depth + 1));
            of_path(&entry["children"], depth + 1, counts);
        }
    }
}

#[test]
fn single_calls_are_those_of_single_paths() {
    for name in ["tcp_sendmsg", "vfs_read", "__x64_sys_execve", "handle_mm_fault"] {
        let found = anatomy(&[name]);
        for one in ["typical", "worst"] {
            let call = &found[one];
            let (begin, pid) = (at(call, "begin_ns").to_string(), at(call, "pid").to_string());
            let path = [
                "report",
                profile(),
                "path",
                "--function",
                name,
                "--at",
                &begin,
                "--thread",
                &pid,
                "--no-fold",
                "--json",
            ];
            let path = json(path);
            let entries = &path["threads"][0]["entries"];
            let mut counts = (0, 0);
            of_path(entries, 0, &mut counts);
            assert_eq!(counts, (at(call, "calls"), at(call, "depth")), "{one} {name}");
            assert_eq!(at(&entries[0], "total"), at(call, "elapsed"), "{one} {name}");
            assert_eq!(sum(&found["tree"], one, "self"), at(call, "elapsed"), "{one} {name}");
            assert_eq!(sum(&found["tree"], one, "calls"), at(call, "calls"), "{one} {name}");
        }
    }
}

#[test]
fn a_kernel_against_itself_has_no_difference() {
    let both = anatomy(&["tcp_sendmsg", "--against", profile()]);
    let against = &both["against"];
    assert_eq!(against["rest"], serde_json::json!([0, 0]));
    for row in against["functions"].as_array().unwrap() {
        assert_eq!((&row["self"][0], &row["only"]), (&row["self"][1], &Value::Null), "{row}");
    }
    let text = run(["anatomy", "tcp_sendmsg", "--profile", profile(), "--against", profile()]);
    assert!(text.contains("  rest\n"), "{text}");
}

#[test]
fn call_paths_sum_to_the_path_length() {
    let report = |region| {
        json(["report", profile(), "diff", profile(), "--path-length", "--region", region, "--json"])
    };
    for region in ["tcp_rr", "fork_exit", "getpid"] {
        let found = report(region);
        assert_eq!(found["rest"], serde_json::json!([0, 0]), "{region}");
        let rows = found["paths"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row["instructions"][0].as_u64().unwrap()).sum();
        assert_eq!(sum, at(&found["base"], "kernel_instructions"), "{region}");
        for row in rows {
            assert_eq!(row["instructions"][0], row["instructions"][1], "{row}");
            assert!(row["parts"].as_array().unwrap().is_empty() && row["only"].is_null(), "{row}");
        }
    }
    let nowhere = ["report", profile(), "path-length", profile(), "--region", "nowhere"];
    fails(&mut kerntune(nowhere), 2, &["no region \"nowhere\""]);
    let much = ["report", profile(), "diff", profile(), "--path-length", "--min-percent", "101"];
    fails(&mut kerntune(much), 2, &["write a number from 0 to 100"]);
}

#[test]
fn system_calls_and_interrupts_are_operations() {
    assert_eq!(anatomy(&["getpid"])["function"], "__x64_sys_getpid");
    assert_eq!(anatomy(&["asm_sysvec_apic_timer_interrupt"])["function"], "asm_sysvec_apic_timer_interrupt");
    let nowhere = ["anatomy", "tcp_sendmsg", "--profile", profile(), "--region", "getpid"];
    fails(
        &mut kerntune(nowhere),
        2,
        &["no call of tcp_sendmsg was seen", "in region getpid", "ended in other regions"],
    );
}
