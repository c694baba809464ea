//! `record --data`: known cache misses and sharing must be reported.

use crate::support::{self, json, planted_kernel, work_dir};
use kerntune_profile::{Profile, Tables};
use serde_json::Value;

/// Compiles a program as a workload for this number of CPUs.
fn program(directory: &tempfile::TempDir, source: &str, cpus: u32, memory_mb: u32) -> String {
    let source = support::checkout().join(source);
    let program = directory.path().join("program");
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]);
    gcc.arg("-I").arg(support::checkout().join("embedded/guest")).arg(source).arg("-o").arg(&program);
    assert!(gcc.status().unwrap().success(), "{gcc:?}");
    let program = program.display();
    let text = format!(
        "description = \"x\"\ncpus = {cpus}\nmemory_mb = {memory_mb}\n[training]\n[[training.step]]\ncommand = [{0:?}]\n\
         [measured]\n[[measured.step]]\ncommand = [{0:?}]\n",
        program.to_string()
    );
    support::workload(directory, &text)
}

fn record(workload: &str, options: &[&str]) -> (String, Profile) {
    let kernel = planted_kernel();
    let mut line = vec!["record", "--kernel", &kernel, "--workload", workload, "--json"];
    line.extend_from_slice(options);
    let summary = json(line);
    let id = summary["profile"].as_str().unwrap().to_owned();
    let profile = Profile::load(&work_dir().join("profiles").join(&id)).unwrap();
    (id, profile)
}

fn data(profile: &str, region: &str) -> Value {
    json(["report", profile, "data", "--region", region, "--json"])
}

/// Returns the lines that contain a variable.
fn lines<'a>(report: &'a Value, object: &str) -> Vec<&'a Value> {
    let lines = report["lines"].as_array().unwrap().iter();
    lines
        .filter(|line| line["pieces"].as_array().unwrap().iter().any(|piece| piece["object"] == object))
        .collect()
}

/// Returns misses by region: by access mode, by path, and by place.
fn sums(tables: &Tables) -> [Vec<[u64; 6]>; 3] {
    let mut sums = [0, 1, 2].map(|_| vec![[0; 6]; tables.regions.len()]);
    let mut add = |which: usize, region: u32, counts: [u64; 6]| {
        for (sum, count) in sums[which][region as usize].iter_mut().zip(counts) {
            *sum += count;
        }
    };
    macro_rules! counts {
        ($row:expr) => {
            [$row.l1d_misses, $row.l2_misses, $row.l3_misses, $row.transfers, $row.dtlb_misses, $row.walks]
        };
    }
    tables.data_accesses.iter().for_each(|row| add(0, row.region, counts!(row)));
    tables.data_paths.iter().for_each(|row| add(1, row.region, counts!(row)));
    tables.data_places.iter().for_each(|row| add(2, row.region, counts!(row)));
    sums
}

#[test]
fn planted_sharing_and_known_misses_are_found() {
    let directory = tempfile::tempdir_in(work_dir()).unwrap();
    let workload = program(&directory, "crates/cli/tests/planted/sharing.c", 2, 512);
    const WITH: &[&str] = &["--data", "--model", "skylake"];
    const WITHOUT: &[&str] = &["--model", "skylake"];
    planted_kernel();
    // In parallel: each uses one CPU for half a minute, and counts do not depend on other
    // processes.
    let recorded = std::thread::scope(|scope| {
        let workload = workload.as_str();
        let start = |options| scope.spawn(move || record(workload, options));
        [WITH, WITH, WITHOUT].map(start).map(|thread| thread.join().unwrap())
    });
    let [(id, profile), (_, again), (plain_id, plain)] = recorded;

    // The tables must agree.
    let [accesses, paths, places] = sums(&profile.tables);
    assert_eq!(accesses, paths);
    assert_eq!(accesses, places);

    let shared = data(&id, "shared");
    // Two counters in one line, each used by one CPU: false sharing, by type and member.
    let [line] = lines(&shared, "kt_counters")[..] else { panic!("{shared:#}") };
    assert_eq!(line["sharing"], "false");
    let transfers = line["transfers"].as_u64().unwrap();
    assert!((590..=600).contains(&transfers), "each write but the first few: {line:#}");
    for piece in line["pieces"].as_array().unwrap() {
        assert_eq!(piece["type"], "struct kt_counters", "{piece:#}");
        assert_eq!(piece["field"], format!("of_cpu{}", piece["cpu"]), "{piece:#}");
        // Counted from the first transfer.
        assert!((295..=300).contains(&piece["stores"].as_u64().unwrap()), "{piece:#}");
    }
    // One counter used by both CPUs: true sharing.
    let [line] = lines(&shared, "kt_common")[..] else { panic!("{shared:#}") };
    assert_eq!(line["sharing"], "true");
    assert_eq!(line["pieces"][0]["field"], "of_both");
    // A line for each counter: no transfers.
    assert!(lines(&shared, "kt_apart").is_empty(), "{shared:#}");
    let by_field = shared["fields"].as_array().unwrap();
    let counters: u64 = by_field
        .iter()
        .filter(|row| row["object"] == "kt_counters")
        .map(|row| row["transfers"].as_u64().unwrap())
        .sum();
    assert_eq!(counters, transfers);

    // Each line of 12 MiB is read once; a cache of 8 MiB holds none of them.
    let walk = data(&id, "walk");
    let user = &walk["modes"][1];
    assert_eq!(user["mode"], "user");
    let lines = 12 << 20 >> 6;
    for event in ["l1d_misses", "l2_misses", "l3_misses"] {
        let missed = user[event].as_u64().unwrap();
        assert!((lines..lines + 200).contains(&missed), "{event}: {missed}");
    }
    assert!((lines..lines + 5000).contains(&user["loads"].as_u64().unwrap()), "{user:#}");

    let text = support::run(["report", &id, "data", "--region", "shared", "--by", "line"]);
    let row = text.lines().find(|row| row.contains("kt_counters")).unwrap();
    assert!(
        row.contains("false") && row.contains("struct kt_counters (variable kt_counters) of_cpu1"),
        "{row}"
    );

    // Recording is reproducible, down to members; without --data all other figures are the same.
    assert_eq!(again.tables, profile.tables);
    let nothing = Tables {
        data_accesses: Vec::new(),
        data_paths: Vec::new(),
        data_places: Vec::new(),
        shared_lines: Vec::new(),
        ..profile.tables
    };
    assert_eq!(plain.tables.regions, nothing.regions);
    assert_eq!(plain.tables.functions, nothing.functions);
    assert_eq!(plain.tables.model_events, nothing.model_events);
    let report = support::run(["report", &plain_id, "data"]);
    assert!(report.contains("record with --data"), "{report}");
}

#[test]
fn a_model_without_data_is_named() {
    let kernel = support::base_kernel();
    let line = ["record", "--kernel", &kernel, "--workload", "rr", "--data", "--model", "pa-risc-720"];
    support::fails(&mut support::kerntune(line), 2, &["pa-risc-720", "has no [data]"]);
    let line = ["record", "--kernel", &kernel, "--workload", "rr", "--data", "--no-edges"];
    support::fails(&mut support::kerntune(line), 2, &["--data", "--no-edges"]);
    let line = ["record", "--kernel", &kernel, "--workload", "rr", "--data", "--no-functions"];
    support::fails(&mut support::kerntune(line), 2, &["--data", "--no-functions"]);
}

/// Returns the use of a memory area by a region, for pages of one size: pages, lines, accesses.
fn touched(profile: &str, region: &str, memory: &str, page_bytes: u64) -> [u64; 3] {
    let report = data(profile, region);
    let rows = report["memory"]["touched"].as_array().unwrap();
    let row = rows.iter().find(|row| row["memory"] == memory && row["page_bytes"] == page_bytes);
    let number = |field: &str| row.map_or(0, |row| row[field].as_u64().unwrap());
    [number("pages"), number("lines"), number("loads") + number("stores")]
}

#[test]
fn pages_and_lines_that_are_touched_are_counted_exactly() {
    let directory = tempfile::tempdir_in(work_dir()).unwrap();
    // Kernels with less than 512 MiB do not use huge pages by themselves.
    let workload = program(&directory, "crates/cli/tests/data/touch.c", 1, 1024);
    let kernel = support::base_kernel();
    let line =
        ["record", "--kernel", &kernel, "--workload", &workload, "--data", "--model", "skylake", "--json"];
    let id = json(line)["profile"].as_str().unwrap().to_owned();
    const SMALL: u64 = 4096;
    const HUGE: u64 = 2 << 20;
    let user = |region: &str, page_bytes: u64| touched(&id, region, "user", page_bytes);
    // Besides the requested accesses, a region touches one line of the program's stack a few times.
    let holds = |region: &str, [pages, lines, accesses]: [u64; 3]| {
        let found = user(region, SMALL);
        println!("{region}: {found:?}");
        assert_eq!(found[..2], [pages + 1, lines + 1], "{region}");
        assert!((accesses + 1..=accesses + 12).contains(&found[2]), "{region}: {found:?}");
    };
    holds("small_300", [300, 300, 300]);
    holds("small_500", [500, 500, 500]);
    holds("lines", [100, 6400, 6400]);
    holds("huge", [0, 0, 0]);
    holds("both", [300, 300, 300]);
    // Both ends of each access: the second page of one access is never the first of the next. Each
    // counts as one access.
    holds("across", [200, 200, 100]);
    assert_eq!(user("small_500", HUGE), [0; 3]);
    assert_eq!(user("huge", HUGE), [6, 6 * 512, 6 * 512]);
    assert_eq!(user("both", HUGE), [6, 6 * 512, 6 * 512]);

    // Sums over pages equal sums over access modes, in each region.
    let profile = Profile::load(&work_dir().join("profiles").join(&id)).unwrap();
    for region in &profile.tables.regions {
        let of_pages = profile.tables.page_accesses.iter().filter(|row| row.region == region.region);
        let of_modes = profile.tables.data_accesses.iter().filter(|row| row.region == region.region);
        let pages = of_pages.fold([0, 0], |sum, row| [sum[0] + row.loads, sum[1] + row.stores]);
        let modes = of_modes.fold([0, 0], |sum, row| [sum[0] + row.loads, sum[1] + row.stores]);
        assert_eq!(pages, modes, "{}", region.name);
    }
    // Memory used by several regions counts once in the total.
    let all = json(["report", &id, "data", "--json"]);
    let row = |memory: &str, page_bytes: u64| {
        let rows = all["memory"]["touched"].as_array().unwrap();
        let row = rows.iter().find(|row| row["memory"] == memory && row["page_bytes"] == page_bytes);
        row.map_or([0; 2], |row| ["pages", "lines"].map(|field| row[field].as_u64().unwrap()))
    };
    assert_eq!(row("user", HUGE), [6, 6 * 512]);
    assert_eq!(row("user", SMALL)[0], 500 + 1);
    // TLBs of the model.
    let reach = all["memory"]["reach"].as_array().unwrap();
    assert!(reach.iter().any(|row| row["tlb"] == "dtlb" && row["bytes"] == 64 * SMALL), "{reach:?}");
    assert!(reach.iter().any(|row| row["tlb"] == "dtlb_large" && row["bytes"] == 32 * HUGE), "{reach:?}");
    let text = support::run(["report", &id, "data", "--region", "huge"]);
    assert!(text.contains("Memory touched") && text.contains("2 MiB"), "{text}");
    let json =
        json(["characterize", &id, "--region", "huge", "--against", &format!("{id}:small_500"), "--json"]);
    let percent = |at: usize| json["beside"][at]["figures"]["huge_percent"].as_f64().unwrap();
    assert!(percent(0) > 99.0 && percent(1) == 0.0, "{}", json["beside"]);
}
