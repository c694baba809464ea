//! McKusick's Figure 1, from data: the numbers that the figure shows, and around it a program in
//! which they hold.
//!
//! The paper prints one entry and explains each number; the rest of the program is ours, and
//! chosen so that the numbers in brackets come out too: of the 8.43 s, CALLER2 has 4.98, EXAMPLE
//! 3.50, TOP 3.45, SUB1 (2.00 + 18/25 of BELOW's 2.00) 3.44, UPPER 3.43, LOWER 3.42, CALLER1 3.41,
//! LEAF 2.51, SUB2 2.50, BELOW 2.00, SUB3 (14/40 of the cycle's 5.00) 1.75.

use kerntune_analyze::graph::CodeArc;
use kerntune_profile::{
    Address, CallArc, FunctionIndex, FunctionStats, KernelId, Manifest, Profile, RegionStats, Symbol, Tables,
    Ticks,
};
use kerntune_report::graph::{StaticCalls, UnknownCallees};
use kerntune_report::{flat, graph, DisplayUnit, GraphOptions, Report, Style};
use serde_json::Value;

/// Name, self time in milliseconds.
const FUNCTIONS: [(&str, u64); 13] = [
    ("CALLER2", 370),
    ("EXAMPLE", 500),
    ("TOP", 20),
    ("SUB1", 2_000),
    ("UPPER", 10),
    ("LOWER", 10),
    ("CALLER1", 10),
    ("LEAF", 2_510),
    ("SUB2", 0),
    ("BELOW", 2_000),
    ("SUB3", 0),
    ("PARTNER", 1_000),
    ("NEVER", 0),
];

/// Caller, callee, calls.
const ARCS: [(&str, &str, u64); 21] = [
    ("", "CALLER2", 1),
    ("", "TOP", 1),
    ("TOP", "UPPER", 1),
    ("UPPER", "LOWER", 1),
    ("LOWER", "CALLER1", 1),
    ("CALLER1", "EXAMPLE", 4),
    ("CALLER2", "EXAMPLE", 6),
    ("EXAMPLE", "EXAMPLE", 4),
    ("EXAMPLE", "SUB1", 20),
    ("EXAMPLE", "SUB2", 1),
    ("EXAMPLE", "SUB3", 0),
    ("CALLER1", "SUB2", 4),
    ("CALLER2", "SUB1", 6),
    ("CALLER2", "SUB3", 5),
    ("CALLER2", "LEAF", 1),
    ("SUB3", "PARTNER", 14),
    ("SUB1", "PARTNER", 30),
    ("PARTNER", "SUB1", 70),
    ("SUB2", "LEAF", 250),
    ("SUB1", "BELOW", 18),
    ("PARTNER", "BELOW", 7),
];

fn profile() -> Profile {
    let index = |name: &str| {
        let at = FUNCTIONS.iter().position(|(known, _)| *known == name);
        at.map_or(FunctionIndex::NONE, |at| FunctionIndex(at as u32))
    };
    let symbols = FUNCTIONS.iter().map(|(name, _)| Symbol {
        function: index(name),
        name: (*name).into(),
        address: Address(0x1000 + u64::from(index(name).get()) * 64),
        size: 64,
        file: Some(if name.starts_with("SUB") { "lib/sub.c" } else { "main.c" }.into()),
        module: None,
    });
    let zero = Ticks::ZERO;
    let functions = FUNCTIONS.iter().map(|(name, ms)| FunctionStats {
        function: index(name),
        self_ticks: Ticks(ms * 1_000_000),
        ended_self_ticks: zero,
        total_ticks: zero,
        max_ticks: zero,
        min_ticks: zero,
        slowest_ticks: zero,
        slowest_at_ticks: zero,
        ..FunctionStats::default()
    });
    let arcs = ARCS.iter().map(|(caller, callee, calls)| CallArc {
        caller: index(caller),
        callee: index(callee),
        calls: *calls,
        total_ticks: zero,
        ..CallArc::default()
    });
    let regions = vec![region("all")];
    let tables = Tables {
        symbols: symbols.collect(),
        functions: functions.collect(),
        arcs: arcs.collect(),
        regions,
        ..Tables::default()
    };
    let mut manifest = Manifest::new("figure-1", KernelId::default(), "figure", "host");
    manifest.capture.functions = true;
    Profile { manifest, tables }
}

fn region(name: &str) -> RegionStats {
    let zero = Ticks::ZERO;
    let none = kerntune_profile::Instructions(0);
    RegionStats {
        name: name.into(),
        begin_ticks: zero,
        elapsed_ticks: zero,
        busy_ticks: zero,
        idle_ticks: zero,
        user_ticks: zero,
        unattributed_ticks: zero,
        kernel_instructions: none,
        user_instructions: none,
        ..RegionStats::default()
    }
}

fn text(options: &GraphOptions) -> String {
    graph::GraphReportOptions { graph: options.clone(), ..Default::default() }
        .text(&profile(), Style::PLAIN)
        .unwrap()
}

#[test]
fn figure_1_comes_out_number_for_number() {
    let options = GraphOptions { function: vec!["EXAMPLE".into()], ..GraphOptions::default() };
    let text = text(&options);
    println!("{text}");
    let begin = text.find("children\n").unwrap() + "children\n".len();
    let entry: Vec<Vec<&str>> = text[begin..]
        .lines()
        .take_while(|line| !line.starts_with("---"))
        .map(|l| l.split_whitespace().collect())
        .collect();
    // The figure, line by line; it writes <cycle1> without a space.
    let figure: [&[&str]; 6] = [
        &["0.20", "1.20", "4/10", "CALLER1", "[7]"],
        &["0.30", "1.80", "6/10", "CALLER2", "[1]"],
        &["[2]", "41.5", "0.50", "3.00", "10+4", "EXAMPLE", "[2]"],
        &["1.50", "1.00", "20/40", "SUB1", "<cycle", "1>", "[4]"],
        &["0.00", "0.50", "1/5", "SUB2", "[9]"],
        &["0.00", "0.00", "0/5", "SUB3", "[11]"],
    ];
    assert_eq!(entry, figure);
}

#[test]
fn the_cycle_as_a_whole_and_its_members() {
    let options = GraphOptions { function: vec!["PARTNER".into()], ..GraphOptions::default() };
    let text = text(&options);
    println!("{text}");
    assert!(text.contains("<cycle 1 as a whole>"), "{text}");
    let json: Value = serde_json::from_str(
        &graph::GraphReportOptions { graph: options, ..Default::default() }.json(&profile()).unwrap(),
    )
    .unwrap();
    let cycle = &json["entries"][0];
    assert_eq!(
        (&cycle["kind"], &cycle["cycle"], &cycle["self"]),
        (&"cycle".into(), &1.into(), &3_000_000_000u64.into())
    );
    assert_eq!(
        (&cycle["descendants"], &cycle["calls"], &cycle["self_calls"]),
        (&2_000_000_000u64.into(), &40.into(), &100.into())
    );
    let members: Vec<_> = cycle["members"].as_array().unwrap().iter().map(|m| &m["name"]).collect();
    assert_eq!(members, ["SUB1", "PARTNER"]);
}

#[test]
fn the_whole_program() {
    let all = text(&GraphOptions::default());
    println!("{all}\n{}", flat::FlatOptions::default().text(&profile(), Style::PLAIN).unwrap());
    assert_eq!(all.matches("\n-----").count(), 13, "twelve functions that ran and a cycle");
    let never = GraphOptions { never_called: Some("*".into()), ..GraphOptions::default() };
    let flat = flat::FlatOptions { graph: never }.json(&profile());
    let flat: Value = serde_json::from_str(&flat.unwrap()).unwrap();
    assert_eq!(flat["total"], 8_430_000_000u64);
    let functions = flat["functions"].as_array().unwrap();
    assert_eq!(functions.last().unwrap()["cumulative"], flat["total"]);
    assert_eq!(flat["never_called"], serde_json::json!([{"name": "NEVER", "file": "main.c"}]));
}

/// The figure's last line is a call that exists in the code and was never made; here it comes from
/// the code. A call through a pointer is marked as unknown.
#[test]
fn the_code_says_who_was_not_called() {
    let mut of = profile();
    of.tables.arcs.retain(|arc| arc.calls > 0);
    let at = |name: &str| FUNCTIONS.iter().position(|(known, _)| *known == name).unwrap();
    let arc = |caller, callee, calls, jumps| CodeArc { caller: at(caller), callee: at(callee), calls, jumps };
    let mut arcs = vec![
        arc("EXAMPLE", "SUB1", 2, 0),
        arc("EXAMPLE", "SUB3", 1, 0),
        arc("EXAMPLE", "NEVER", 0, 1),
        arc("NEVER", "EXAMPLE", 1, 0),
        arc("TOP", "SUB3", 1, 1),
    ];
    arcs.sort();
    let unknown = [(at("EXAMPLE"), UnknownCallees { calls: 3, jumps: 1, patched: 0 })].into();
    let code = StaticCalls { arcs, unknown, binds: false };
    let options = graph::GraphReportOptions {
        graph: GraphOptions { function: vec!["EXAMPLE".into(), "SUB3".into()], ..GraphOptions::default() },
        ..Default::default()
    };
    let text = options.text_with(&of, Some(&code), Style::PLAIN).unwrap();
    println!("{text}");
    let has = |words: &[&str]| text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == *words);
    assert!(has(&["0.00", "0.00", "0/5", "SUB3", "[11]"]), "as in the figure");
    assert!(has(&["0.00", "0.00", "0/0", "NEVER", "(jump)"]));
    assert!(has(&["?", "<3", "indirect", "calls,", "1", "indirect", "jump>"]));
    assert!(has(&["0/5", "<2", "callers", "in", "the", "code", "that", "did", "not>"]), "of SUB3");
    assert!(has(&["[2]", "41.5", "0.50", "3.00", "10+4", "EXAMPLE", "[2]"]), "no time moves");
    let json: Value = serde_json::from_str(&options.json_with(&of, Some(&code)).unwrap()).unwrap();
    assert_eq!((&json["code"]["arcs"], &json["code"]["never_taken"]), (&5.into(), &4.into()));
    let entry = &json["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == "EXAMPLE").unwrap();
    assert_eq!((&entry["unknown"]["calls"], &entry["unknown"]["jumps"]), (&3.into(), &1.into()));
    let bound = StaticCalls { binds: true, ..code };
    let json: Value = serde_json::from_str(&options.json_with(&of, Some(&bound)).unwrap()).unwrap();
    let cycles: Vec<&Value> =
        json["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "cycle").collect();
    println!("{cycles:?}");
    assert_eq!(cycles.len(), 1, "EXAMPLE and NEVER are one; SUB3 is in none");
    let members = cycles[0]["members"].as_array().unwrap();
    assert_eq!(members.len(), 2, "{members:?}");
}

#[test]
fn a_cut_is_told_with_its_calls() {
    let cut = |cuts: &[&str]| graph::GraphReportOptions {
        cut: cuts.iter().map(|cut| cut.parse().unwrap()).collect(),
        ..Default::default()
    };
    let text = cut(&["PART*/SUB1"]).text(&profile(), Style::PLAIN).unwrap();
    println!("{text}");
    assert!(text.contains("Cut: 1 arc, 70 calls; 0 cycles are left") && text.contains("PARTNER"), "{text}");
    assert!(text.contains("(cut)") && !text.contains("<cycle"), "{text}");
    let json: Value = serde_json::from_str(&cut(&["PARTNER/SUB1"]).json(&profile()).unwrap()).unwrap();
    assert_eq!(json["cuts"][0]["calls"], 70);
    assert_eq!(
        (&json["cuts"][0]["by"], &json["cuts"][0]["caller"]["name"]),
        (&"name".into(), &"PARTNER".into())
    );
    // PARTNER's arc has most of the calls within the cycle, SUB1's 30 of the 114 are more than 5 %,
    // but not of 100 %.
    let auto = |text: &str| cut(&[text]).text(&profile(), Style::PLAIN).unwrap();
    assert!(auto("auto").contains("Cut: 0 arcs, 0 calls; 1 cycle is left"), "{}", auto("auto"));
    assert!(auto("auto:100").contains("0 cycles are left"), "{}", auto("auto:100"));
    let error = cut(&["SUB1/TOP"]).text(&profile(), Style::PLAIN).unwrap_err().to_string();
    assert!(error.contains("SUB1/TOP"), "{error}");
    let error = cut(&["SUB1/SUB1"]).text(&profile(), Style::PLAIN).unwrap_err().to_string();
    assert!(error.contains("SUB1/SUB1"), "{error}");
}

#[test]
fn options_choose() {
    let table = |graph: GraphOptions| flat::FlatOptions { graph }.text(&profile(), Style::PLAIN);
    let chosen = GraphOptions {
        function: vec!["SUB*".into()],
        unit: Some(DisplayUnit::Milliseconds),
        ..GraphOptions::default()
    };
    let text = table(chosen).unwrap();
    assert!(text.contains("2,000") && !text.contains("CALLER"), "{text}");
    let json = |graph| {
        serde_json::from_str::<Value>(
            &graph::GraphReportOptions { graph, ..Default::default() }.json(&profile()).unwrap(),
        )
        .unwrap()
    };
    let count = |options| json(options)["entries"].as_array().unwrap().len();
    assert_eq!(count(GraphOptions { top: Some(3), ..GraphOptions::default() }), 3);
    // The cycle has 59.3 %, CALLER2 above half.
    assert_eq!(count(GraphOptions { min_percent: 50.0, ..GraphOptions::default() }), 2);
    let never = GraphOptions { never_called: Some("lib/".into()), ..GraphOptions::default() };
    assert_eq!(json(never)["never_called"], serde_json::json!([]));
    for options in [
        GraphOptions { function: vec!["nothing*".into()], ..GraphOptions::default() },
        GraphOptions { function: vec!["net/".into()], ..GraphOptions::default() },
        GraphOptions { never_called: Some("net/".into()), ..GraphOptions::default() },
    ] {
        assert!(table(options).unwrap_err().to_string().starts_with("no function matches"));
    }
    let near = GraphOptions { function: vec!["CALLER_1".into()], ..GraphOptions::default() };
    assert!(table(near).unwrap_err().to_string().contains("did you mean CALLER1"));
    let exact =
        GraphOptions { propagate: Some(kerntune_report::Propagation::Exact), ..GraphOptions::default() };
    assert!(table(exact).unwrap_err().to_string().contains("counted but not timed"));
    let nowhere = GraphOptions { region: Some("x".into()), ..GraphOptions::default() };
    assert!(table(nowhere).unwrap_err().to_string().contains("it has all"));
}
