//! Characterization: sums, rates and similarities of a synthetic machine's profile, and output for
//! nearly empty profiles.

use crate::sample;
use crate::synthetic;
use kerntune_compare::ModelCosts;
use kerntune_profile::{
    CounterTotal, KernelId, Manifest, Profile, RegionScope, SwitchKind, SwitchStats, Tables, Ticks,
};
use kerntune_report::characterize::{characterize, CharacterSubject, Characterization};
use kerntune_report::Style;
use serde_json::{json, Value};

const OPERATIONS: u32 = 200;
const COSTS: ModelCosts = ModelCosts {
    path_length: 0.25,
    taken_branches: 1.0,
    l1i_misses: 12.0,
    itlb_misses: 14.0,
    events: kerntune_compare::EventCosts {
        l2_misses: 0.0,
        btb_l2_hits: 0.0,
        btb_misses: 0.0,
        mispredictions: 0.0,
    },
};

/// The synthetic machine's profile with added switches and misses.
fn profile() -> Profile {
    let mut profile = synthetic::run(OPERATIONS).profile;
    profile.manifest.exact = true;
    profile.manifest.model = Some("generic".into());
    for row in &mut profile.tables.regions {
        row.kernel_taken_branches = row.kernel_instructions.get() / 7;
        row.user_taken_branches = row.user_instructions.get() / 9;
        row.kernel_l1i_misses = row.kernel_instructions.get() / 40;
        row.user_l1i_misses = row.user_instructions.get() / 400;
        row.kernel_itlb_misses = row.kernel_instructions.get() / 900;
    }
    let schedule = profile.tables.symbols.iter().find(|symbol| symbol.name == "tcp_recvmsg_locked").unwrap();
    let switch = |from: &str, to: &str, kind, count| SwitchStats {
        region: 0,
        from: from.into(),
        to: to.into(),
        reason: schedule.function,
        kind,
        count,
    };
    profile.tables.switches = vec![
        switch("client", "swapper/0", SwitchKind::Voluntary, 90),
        switch("swapper/0", "client", SwitchKind::Voluntary, 80),
        switch("client", "server7", SwitchKind::Preempted, 10),
    ];
    profile
}

fn wanted<'a>(profile: &'a Profile, region: Option<&'a str>) -> CharacterSubject<'a> {
    CharacterSubject { profile, region, costs: Some(COSTS) }
}

fn of(profile: &Profile, region: Option<&str>) -> Characterization {
    characterize(&wanted(profile, region), &[]).unwrap()
}

fn json_of(found: &Characterization) -> Value {
    serde_json::from_str(&found.json().unwrap()).unwrap()
}

fn at(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field}: {json}"))
}

fn row<'a>(rows: &'a Value, field: &str, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row[field] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

const WHERE: [Option<&str>; 4] = [None, Some("tcp_rr"), Some("open"), Some("page_fault")];

#[test]
fn the_parts_of_the_time_sum_to_the_elapsed_time() {
    let profile = profile();
    for region in WHERE {
        let json = json_of(&of(&profile, region));
        let split = json["split"].as_array().unwrap();
        let sum: i64 = split.iter().map(|share| share["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum as u64, at(&json, "elapsed_ns"), "{region:?}");
        assert_eq!(at(&json, "busy") + at(&json, "idle_ns"), at(&json, "elapsed_ns"));
        let scope = match region {
            None => RegionScope::all(&profile.tables),
            Some(name) => RegionScope::named(&profile.tables, name).unwrap(),
        };
        let totals = scope.totals(&profile);
        assert_eq!(at(row(&json["split"], "part", "user"), "ns"), totals.user_ticks.get(), "{region:?}");
        assert_eq!(at(row(&json["split"], "part", "idle"), "ns"), totals.idle_ticks.get(), "{region:?}");
        // No time is left over, and each row is in a group.
        assert!(split.iter().all(|share| share["part"] != "no_path" && share["group"] != "unknown"));
    }
    let part =
        |region, part: &str| at(row(&json_of(&of(&profile, Some(region)))["split"], "part", part), "ns");
    assert_eq!(part("page_fault", "syscall"), 0);
    assert_eq!(part("tcp_rr", "exception"), 0);
    assert!(part("page_fault", "exception") > 0 && part("tcp_rr", "syscall") > 0);
    assert!(part("tcp_rr", "softirq_elsewhere") > 0 && part("tcp_rr", "interrupt") > 0);
    let softirqs: u64 =
        ["tcp_rr", "open", "page_fault"].map(|name| part(name, "softirq_after_interrupt")).iter().sum();
    assert!(softirqs > 0);
}

#[test]
fn counts_are_those_of_the_tables_per_operation_and_second() {
    let profile = profile();
    let json = json_of(&of(&profile, Some("tcp_rr")));
    let operations = u64::from(OPERATIONS);
    assert_eq!(at(&json, "operations"), operations);
    assert_eq!(at(&json["syscalls"], "entries"), 2 * operations);
    assert_eq!(json["syscalls"]["entries"], json["syscalls"]["dispatched"]);
    let sendto = row(&json["syscalls"]["calls"], "name", "sendto");
    assert_eq!((at(sendto, "count"), sendto["per_operation"].as_f64()), (operations, Some(1.0)));
    let passed = at(&json, "passed_ns") as f64;
    assert_eq!(sendto["per_second"].as_f64().unwrap(), operations as f64 * 1e9 / passed);
    let switches = |which: &str| at(&json["switches"][which], "count");
    assert_eq!(["all", "voluntary", "preempted", "from_idle"].map(switches), [180, 170, 10, 80]);
    assert_eq!(at(row(&json["switches"]["reasons"], "name", "[idle task]"), "count"), 80);
    let kernel = json["path"].as_array().unwrap().iter().find(|row| row["mode"] == "kernel").unwrap();
    let instructions = profile.tables.regions[0].kernel_instructions.get();
    assert_eq!((kernel["figure"].as_str(), at(kernel, "count")), (Some("instructions"), instructions));
    // Cycles: costs of events times their numbers.
    let cycles = row(&json["cycles"], "mode", "kernel");
    let region = &profile.tables.regions[0];
    let expected = instructions as f64 * 0.25
        + region.kernel_taken_branches as f64
        + region.kernel_l1i_misses as f64 * 12.0
        + region.kernel_itlb_misses as f64 * 14.0;
    assert!((cycles["cycles"].as_f64().unwrap() - expected).abs() < 1e-6);
    assert!((cycles["per_instruction"].as_f64().unwrap() - expected / instructions as f64).abs() < 1e-9);
    // An item of work has the count of the named function.
    let packets = row(&json["work"], "item", "packets_received");
    assert_eq!(packets["function"], "__netif_receive_skb_core");
    let function = |name: &str| {
        let symbol = profile.tables.symbols.iter().find(|symbol| symbol.name == name).unwrap().function;
        let totals = profile.tables.totals(|region| region == 0);
        totals.into_iter().find(|totals| totals.function == symbol).map_or(0, |totals| totals.calls)
    };
    assert_eq!(at(packets, "count"), function("__netif_receive_skb_core"));
    // The second of several alternative names.
    let pages = row(&json["work"], "item", "page_allocations");
    assert_eq!(
        (&pages["function"], at(pages, "count")),
        (&json!("__alloc_pages"), function("__alloc_pages"))
    );
}

#[test]
fn a_function_that_is_not_there_is_not_zero_and_one_that_was_never_called_is() {
    let mut profile = profile();
    let work = |profile: &Profile, item: &str| {
        let json = json_of(&of(profile, Some("open")));
        let work = row(&json["work"], "item", item);
        (work["count"].clone(), work["why"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(work(&profile, "packets_sent"), (json!(0), String::new()));
    let (count, why) = work(&profile, "forks");
    assert_eq!((count, why.as_str()), (Value::Null, "not in this kernel, or inlined"));
    // A split-off part is called by the rest of its function, wherever that is inlined.
    let at = profile.tables.symbols.iter().position(|symbol| symbol.name == "__dev_queue_xmit").unwrap();
    profile.tables.symbols[at].name = "__dev_queue_xmit.part.0".into();
    let (count, why) = work(&profile, "packets_sent");
    assert_eq!((count, why.as_str()), (Value::Null, "inlined but for a part of it"));
    profile.tables.symbols[at].name = "__dev_queue_xmit.constprop.0".into();
    assert_eq!(work(&profile, "packets_sent").0, json!(0));
    // If only some functions were traced, a missing call means nothing.
    profile.tables.symbols[0].name = "[not traced]".into();
    let (count, why) = work(&profile, "packets_sent");
    assert!(count.is_null() && why.contains("--only"), "{why}");
}

#[test]
fn operations_of_several_kinds_are_no_operations() {
    let profile = profile();
    let found = of(&profile, None);
    let json = json_of(&found);
    assert_eq!(
        (&json["operations"], &json["syscalls"]["calls"][0]["per_operation"]),
        (&Value::Null, &Value::Null)
    );
    let text = found.text(Style::PLAIN);
    assert!(text.contains("--region NAME also per operation (tcp_rr, open, page_fault)"), "{text}");
    assert!(!text.contains("per\noperation"), "{text}");
    let mut none = profile.clone();
    none.tables.regions[0].operations = 0;
    let text = of(&none, Some("tcp_rr")).text(Style::PLAIN);
    assert!(text.contains("no operations: figures are only per second"), "{text}");
    let error = characterize(&wanted(&profile, Some("nothing")), &[]).unwrap_err().to_string();
    assert_eq!(error, "the profile has no region \"nothing\"; it has tcp_rr, open, page_fault");
}

#[test]
fn a_workload_is_like_itself_and_less_like_others() {
    let profile = profile();
    let all = |region| wanted(&profile, Some(region));
    let found = characterize(&all("tcp_rr"), &[all("tcp_rr"), all("open"), all("page_fault")]).unwrap();
    let json = json_of(&found);
    let similarity = |at: usize, by: &str| json["beside"][at]["similarity"][by].as_f64();
    for by in ["functions", "syscalls", "subsystems", "split"] {
        assert_eq!((similarity(0, by), similarity(1, by)), (Some(100.0), Some(100.0)), "{by}");
        assert!(similarity(2, by).unwrap() < 90.0, "{by}");
    }
    assert_eq!(similarity(2, "syscalls"), Some(0.0));
    assert_eq!(similarity(3, "syscalls"), None);
    let back = json_of(&characterize(&all("open"), &[all("tcp_rr")]).unwrap());
    assert_eq!(back["beside"][1]["similarity"]["functions"], json["beside"][2]["similarity"]["functions"]);
    let text = found.text(Style::PLAIN);
    assert!(text.contains("similarity by kernel function, %"), "{text}");
    assert!(json_of(&of(&profile, None))["beside"].as_array().unwrap().is_empty());
}

#[test]
fn the_page_as_text() {
    let text = of(&profile(), Some("tcp_rr")).text(Style::PLAIN);
    // The most similar reference depends on the references available.
    let (before, rest) = text.split_once("Of the references it is most like ").unwrap();
    let (sentence, rest) = rest.split_once("\n\n").unwrap();
    let (section, rest) = rest.split_once("\n\n").unwrap();
    assert!(sentence.ends_with(" % by kernel function."), "{sentence}");
    assert!(section.starts_with("Most like, of the reference workloads\n"), "{section}");
    sample::golden("characterize.txt", &format!("{before}\n{rest}"));
}

/// The profile as a sampler would record it: times only.
fn sampled(calls: Option<&str>) -> Profile {
    let mut profile = profile();
    profile.manifest.exact = false;
    profile.manifest.machine = "host".into();
    profile.manifest.capture = kerntune_profile::CaptureSummary { functions: true, ..Default::default() };
    profile.manifest.sampled = Some(kerntune_profile::SamplingSummary {
        source: "perf: cpu-clock".into(),
        samples: 1_000,
        sample_ns: Ticks(1_000),
        cpus: 2,
        wall_ns: Ticks(profile.manifest.elapsed_ticks.get() / 2),
        period: "at random".into(),
        bias: None,
        filter: None,
        calls: calls.map(Into::into),
        bound_bytes: 0,
    });
    let count = |kind: &str, name: &str, count| CounterTotal {
        kind: kind.into(),
        name: name.into(),
        count,
        source: "/proc".into(),
    };
    profile.manifest.counted = vec![count("interrupt", "LOC", 4_000), count("time", "user", 10_000_000)];
    let tables = &mut profile.tables;
    for row in &mut tables.regions {
        (row.kernel_instructions, row.user_instructions) = Default::default();
    }
    tables.functions.iter_mut().for_each(|row| (row.calls, row.ended) = (0, 0));
    tables.arcs.iter_mut().for_each(|row| (row.calls, row.ended) = (0, 0));
    profile
}

#[test]
fn what_was_sampled_has_errors_and_no_counts() {
    let profile = sampled(None);
    let found = of(&profile, None);
    let json = json_of(&found);
    assert_eq!(json["basis"], "sampled");
    let sum: i64 = json["split"].as_array().unwrap().iter().map(|share| share["ns"].as_i64().unwrap()).sum();
    assert_eq!(sum as u64, at(&json, "elapsed_ns"));
    assert!(json["split"][0]["error_ns"].as_u64().unwrap() > 0);
    assert_eq!(json["path"], json!([]));
    assert_eq!((&json["syscalls"]["entries"], &json["syscalls"]["dispatched"]), (&Value::Null, &Value::Null));
    assert!(json["work"].as_array().unwrap().iter().all(|work| work["count"].is_null()));
    // Rates refer to wall-clock seconds.
    let told = row(&json["counted"], "name", "LOC");
    assert_eq!(told["per_second"].as_f64().unwrap(), 4_000e9 / at(&json, "passed_ns") as f64);
    assert_eq!(row(&json["counted"], "name", "user")["per_second"], Value::Null);
    let text = found.text(Style::PLAIN);
    for words in ["record with --calls", "sampling counts no instructions", "±", "Counted by the kernel"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let mut counted = sampled(Some("kgmon: calls of handle_mm_fault"));
    let fault =
        counted.tables.symbols.iter().find(|symbol| symbol.name == "handle_mm_fault").unwrap().function;
    counted.tables.functions.iter_mut().filter(|row| row.function == fault).for_each(|row| row.calls = 5);
    let json = json_of(&of(&counted, None));
    assert_eq!(at(row(&json["work"], "item", "page_faults"), "count"), 5);
    let why = row(&json["work"], "item", "packets_sent")["why"].as_str().unwrap();
    assert!(why.contains("its calls were not counted"), "{why}");
}

#[test]
fn profiles_with_next_to_nothing_say_so() {
    let empty = Profile {
        manifest: Manifest::new("p", KernelId::default(), "w", "emulator"),
        tables: Tables::default(),
    };
    let found = of(&empty, None);
    let text = found.text(Style::PLAIN);
    assert!(text.contains("No description: no time passed") && text.contains("no regions"), "{text}");
    assert_eq!(json_of(&found)["elapsed_ns"], 0);
    assert!(found.html("kerntune").contains("No description: no time passed"));
    let mut plain = profile();
    plain.manifest.capture.functions = false;
    let tables = &mut plain.tables;
    (tables.paths, tables.functions, tables.arcs) = Default::default();
    let found = of(&plain, Some("open"));
    let json = json_of(&found);
    let parts: Vec<&str> =
        json["split"].as_array().unwrap().iter().map(|share| share["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["user", "kernel", "idle"]);
    let text = found.text(Style::PLAIN);
    assert!(text.contains("record without --no-functions") && !text.contains("System calls ("), "{text}");
}

#[test]
fn an_import_with_calls_alone_has_no_zeros_for_what_it_does_not_know() {
    let mut profile = profile();
    profile.manifest.machine = "host".into();
    profile.manifest.exact = false;
    let tables = &mut profile.tables;
    (tables.paths, tables.switches) = Default::default();
    tables.arcs.retain(|arc| arc.how == kerntune_profile::CallKind::Call);
    let found = of(&profile, Some("open"));
    let json = json_of(&found);
    let parts: Vec<&str> =
        json["split"].as_array().unwrap().iter().map(|share| share["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["no_path", "idle"]);
    assert_eq!((&json["basis"], &json["syscalls"]["entries"]), (&json!("timed"), &Value::Null));
    assert_eq!(at(&json["syscalls"], "dispatched"), u64::from(OPERATIONS));
    let text = found.text(Style::PLAIN);
    for absent in ["Interrupts (", "Exceptions (", "Context switches (", "entries"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(text.contains("this profile has only calls of functions"), "{text}");
}

#[test]
fn a_profile_that_was_carried_is_refused() {
    let mut profile = profile();
    let carried = kerntune_profile::TransferSummary { profile: "recorded".into(), ..Default::default() };
    profile.manifest.carried = Some(carried);
    let error = characterize(&wanted(&profile, None), &[]).unwrap_err().to_string();
    assert!(error.contains("profile recorded transferred to another kernel"), "{error}");
}

#[test]
fn names_steer_neither_terminal_nor_page() {
    let mut profile = profile();
    let nasty = "</td><script>\u{1b}[2J";
    profile.manifest.workload = nasty.into();
    profile.tables.regions[0].name = nasty.into();
    let at = profile.tables.symbols.iter().position(|symbol| symbol.name == "__x64_sys_sendto").unwrap();
    profile.tables.symbols[at].name = format!("__x64_sys_{nasty}");
    profile.tables.symbols[at].file = Some(format!("{nasty}/x.c"));
    let found = of(&profile, Some(nasty));
    let text = found.text(Style::PLAIN);
    assert!(!text.contains('\u{1b}') && text.contains("\\u001b"), "{text}");
    let page = found.html("kerntune");
    assert!(!page.contains("<script>\u{fffd}") && !page.contains("</td><script"), "{page}");
}

#[test]
fn the_page_is_whole_and_loads_nothing() {
    let profile = profile();
    let found = characterize(&wanted(&profile, Some("tcp_rr")), &[wanted(&profile, Some("open"))]).unwrap();
    let page = found.html("kerntune 0");
    for text in
        ["<h1>made-up, region tcp_rr: 200 operations</h1>", "Beside each other", "Written by kerntune 0."]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    for loads in ["http://", "https://", "src=", "@import", "url(", "<link", "<iframe", "fetch("] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
}

/// Every field that is written is in `docs/json.md`, below its schema's name.
#[test]
fn the_contract_is_documented() {
    let contract = include_str!("../../../docs/json.md");
    let profile = profile();
    let sampled = sampled(None);
    let both = characterize(&wanted(&profile, Some("tcp_rr")), &[wanted(&profile, Some("open"))]).unwrap();
    for found in [both, of(&sampled, None)] {
        let json = json_of(&found);
        let schema = json["schema"].as_str().unwrap();
        let section = contract.split_once(&format!("## `{schema}`")).expect(schema).1;
        let section = section.split("\n## ").next().unwrap();
        let mut fields = Vec::new();
        collect_fields(&json, &mut fields);
        for field in fields {
            assert!(
                section.contains(&format!("\"{field}\":")),
                "docs/json.md: {schema} does not show {field}"
            );
        }
    }
}

fn collect_fields(json: &Value, fields: &mut Vec<String>) {
    match json {
        Value::Object(object) => {
            for (field, value) in object {
                fields.push(field.clone());
                collect_fields(value, fields);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_fields(value, fields)),
        _ => {}
    }
}
