//! Text outputs against `tests/golden` (see its README), JSON against the contract.

use crate::sample;
use crate::sample::golden;
use clap::ValueEnum;
use kerntune_report::functions::{FunctionSort, FunctionsOptions};
use kerntune_report::{bench, comparison, summary, Report, Selection, Style};
use kerntune_stats::{BenchResults, JoinedResults, TimedComparison};
use serde_json::{json, Value};

fn by(sort: FunctionSort) -> FunctionsOptions {
    FunctionsOptions { sort, ..FunctionsOptions::default() }
}

fn of_region(name: &str) -> FunctionsOptions {
    let select = Selection { top: None, region: Some(name.into()) };
    FunctionsOptions { select, ..FunctionsOptions::default() }
}

#[test]
fn functions_by_net_time() {
    golden("functions.txt", &by(FunctionSort::SelfTime).text(&sample::before(), Style::PLAIN).unwrap());
}

#[test]
fn the_top_functions_of_a_region_on_a_narrow_terminal() {
    let options = FunctionsOptions {
        sort: FunctionSort::Calls,
        select: Selection { top: Some(5), region: Some("tcp_rr".into()) },
        ..FunctionsOptions::default()
    };
    let style = Style { width: Some(94), ..Style::PLAIN };
    let text = options.text(&sample::before(), style).unwrap();
    golden("functions_tcp_rr_top5_calls.txt", &text);
}

#[test]
fn summaries() {
    golden("summary.txt", &summary::SummaryOptions.text(&sample::before(), Style::PLAIN).unwrap());
    golden("summary.json", &summary::SummaryOptions.json(&sample::before()).unwrap());
}

#[test]
fn comparisons() {
    golden("comparison.txt", &comparison::table(&sample::comparison(), Style::PLAIN));
    golden("changes.txt", &comparison::changes(&sample::comparison(), Style::PLAIN));
    golden("comparison_layouts.txt", &comparison::table(&sample::whole_with_layouts(), Style::PLAIN));
    golden("changes_whole.txt", &comparison::changes(&sample::whole_with_layouts(), Style::PLAIN));
    golden("comparison_other_work.txt", &comparison::table(&sample::other_work(), Style::PLAIN));
    golden("changes_other_work.txt", &comparison::changes(&sample::other_work(), Style::PLAIN));
    golden("changes_none.txt", &comparison::changes(&sample::unchanged(), Style::PLAIN));
}

#[test]
fn functions_as_json() {
    let text = FunctionsOptions::default().json(&sample::before()).unwrap();
    golden("functions.json", &text);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "kerntune-functions/3");
    for key in ["elapsed_ns", "busy", "idle_ns", "events", "lost_events"] {
        assert!(json[key].is_u64(), "{key}");
    }
    let functions = json["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 14);
    for function in functions {
        assert!(function["name"].is_string());
        for key in ["calls", "ended", "self", "ended_self", "elapsed", "max", "avg", "min"] {
            assert!(function[key].is_u64(), "{key}");
        }
    }
    // Functions that share a name stay apart, with their files.
    let shared: Vec<_> = functions.iter().filter(|f| f["name"] == "cleanup").map(|f| &f["file"]).collect();
    assert_eq!(shared, ["net/unix/garbage.c", "fs/pipe.c"]);
}

#[test]
fn calls_that_did_not_end_stand_apart_and_are_in_no_average() {
    let mut profile = sample::before();
    let row = &mut profile.tables.functions[0];
    // One call more than ended, with more time so far than all others.
    row.calls = row.ended + 1;
    row.self_ticks += row.self_ticks * 9;
    let function = row.function;
    let totals = profile.tables.totals(|_| true);
    let totals = totals.iter().find(|totals| totals.function == function).unwrap();
    assert!(totals.min_ticks <= totals.avg_ticks() && totals.avg_ticks() <= totals.max_ticks, "{totals:?}");
    let text = FunctionsOptions::default().text(&profile, Style::PLAIN).unwrap();
    let head = text.lines().find(|line| line.contains("ended")).unwrap();
    assert!(head.contains("open net") || text.contains("open net"), "{text}");
    assert!(text.contains("times of single calls are of those that ended"), "{text}");
    let json: Value = serde_json::from_str(&FunctionsOptions::default().json(&profile).unwrap()).unwrap();
    for row in json["functions"].as_array().unwrap() {
        let at = |key: &str| row[key].as_u64().unwrap();
        assert!(at("min") <= at("avg") && at("avg") <= at("max"), "{row}");
    }
    let mut all_ended = sample::before();
    all_ended.tables.functions.retain(|row| row.ended > 0);
    let without = FunctionsOptions::default().text(&all_ended, Style::PLAIN).unwrap();
    assert!(!without.contains("ended"), "nothing stands apart where all calls ended");
}

#[test]
fn every_order_is_the_one_that_it_says() {
    for &sort in FunctionSort::value_variants() {
        let text = by(sort).json(&sample::before()).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let functions = json["functions"].as_array().unwrap();
        let key = match sort {
            FunctionSort::Name => {
                assert!(functions.is_sorted_by_key(|f| f["name"].as_str().unwrap()));
                continue;
            }
            FunctionSort::Calls => "calls".to_string(),
            FunctionSort::SelfTime => "self".to_string(),
            _ => sort.to_possible_value().unwrap().get_name().to_string(),
        };
        assert!(functions.is_sorted_by_key(|f| std::cmp::Reverse(f[&key].as_u64().unwrap())), "{key}");
    }
    assert!(FunctionSort::from_str("speed", false).is_err());
}

#[test]
fn functions_of_programs_have_no_share_of_the_kernels_time() {
    let mut profile = sample::before();
    let rr = profile.tables.functions[0].function;
    let symbol = &mut profile.tables.symbols[rr.get() as usize];
    (symbol.module, symbol.address) = (Some("/usr/bin/rr".into()), kerntune_profile::Address(0x40_1000));
    let name = profile.tables.name(rr).to_owned();
    let text = FunctionsOptions::default().json(&profile).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let kernel = json["busy"].as_f64().unwrap() - json["user"].as_f64().unwrap();
    for row in json["functions"].as_array().unwrap() {
        let share = (row["name"] != name.as_str()).then(|| 100.0 * row["self"].as_f64().unwrap() / kernel);
        assert_eq!(row["kernel_percent"].as_f64(), share, "{row}");
    }
}

#[test]
fn a_region_that_is_not_there_is_said_with_those_that_are() {
    let options = of_region("tcp");
    let error = options.text(&sample::before(), Style::PLAIN).unwrap_err().to_string();
    assert_eq!(error, "the profile has no region \"tcp\"; it has tcp_rr, getpid, setup");
}

#[test]
fn figures_of_a_region_and_those_within_it() {
    let mut profile = sample::before();
    profile.tables.regions[1].depth = 1;
    profile.tables.functions[0].region = 1;
    let options = of_region("tcp_rr");
    let text = options.json(&profile).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["elapsed_ns"], 214_272_000 + 278_800_000);
    let entry =
        json["functions"].as_array().unwrap().iter().find(|f| f["name"] == "entry_SYSCALL_64").unwrap();
    assert_eq!(entry["calls"], 120_000);
}

#[test]
fn a_measurement_is_a_profile() {
    use kerntune_compare::{Comparison, Measurement, Metric};
    let [before, after] =
        [sample::before(), sample::after()].map(|profile| Measurement::from_profile(&profile).unwrap());
    let comparison = Comparison::new(&before, &before, &after, sample::labels()).unwrap();
    let row = comparison.row("tcp_rr", Metric::PathLength).unwrap();
    // Both regions of that name: (203,964,000 + 203,960,000) / 20,000.
    assert_eq!((row.base, row.change_percent.map(f64::round)), (20_396.2, Some(-12.0)));
    // The region without operations is in the total only.
    assert_eq!(comparison.operations().collect::<Vec<_>>(), ["tcp_rr", "getpid"]);
    assert_eq!(comparison.row("total", Metric::PathLength).unwrap().base, 411_274_300.0);
}

#[test]
fn lost_events_are_said() {
    let mut profile = sample::after();
    assert!(summary::SummaryOptions.text(&profile, Style::PLAIN).unwrap().contains("health     good"));
    profile.manifest.lost_events = 3;
    let text = FunctionsOptions::default().text(&profile, Style::PLAIN).unwrap();
    assert!(text.ends_with("note  3 events were lost: the figures are too low. Record again.\n"), "{text}");
}

#[test]
fn color_is_only_dress() {
    let plain = comparison::table(&sample::comparison(), Style::PLAIN);
    let mut colored = comparison::table(&sample::comparison(), Style { color: true, ..Style::PLAIN });
    assert!(!plain.contains('\x1b') && colored.contains("\x1b[32m"));
    for code in ["0", "1", "2", "31", "32"] {
        colored = colored.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(colored, plain);
}

/// Every field that is written is in `docs/json.md`, and every example there is JSON.
#[test]
fn the_contract_is_documented() {
    let contract = include_str!("../../../docs/json.md");
    let mut fields = Vec::new();
    let json: Value = serde_json::from_str(&sample::comparison().to_json()).unwrap();
    assert!(contract.contains(&format!("`{}`", json["schema"].as_str().unwrap())));
    collect_fields(&json, &mut fields);
    for field in fields {
        let is_shown =
            [format!("\"{field}\":"), format!("| `{field}` |")].iter().any(|line| contract.contains(line));
        assert!(is_shown, "docs/json.md does not show {field}");
    }
    let examples: Vec<_> = contract.split("```json\n").skip(1).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let example = example.split("```").next().unwrap();
        let json: Value = serde_json::from_str(example).expect(example);
        if json["schema"] == kerntune_compare::SCHEMA {
            let comparison = kerntune_compare::Comparison::from_json(example).unwrap();
            assert_eq!(comparison.rows[0].unit, "instructions/op");
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

/// Creates a kernel's results as `kerntune bench run` writes them: boots of each row.
fn results(version: &str, rows: &[(&str, &str, &str, &[f64])]) -> (String, BenchResults) {
    let row = |(suite, row, unit, values): &(&str, &str, &str, &[f64])| {
        let value = |(boot, value): (usize, &f64)| json!({"build": 0, "boot": boot, "run": 0, "iteration": 0, "value": value});
        let values: Vec<Value> = values.iter().enumerate().map(value).collect();
        let better = if *unit == "MB/s" { "higher" } else { "lower" };
        json!({"suite": suite, "row": row, "unit": unit, "better": better, "values": values})
    };
    let text = json!({
        "schema": "kerntune-bench-results/1",
        "machine": "uml",
        "kernel": {"release": "6.12.117", "version": version, "id": "3f9a01"},
        "started": "2026-11-22T08:00:00Z",
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    let file = format!("{}.json", version.trim_start_matches('#'));
    let results = BenchResults::parse(&file, &text.to_string()).unwrap();
    (file, results)
}

/// One row of each verdict, one that only counts without the correction, one of a noisy base
/// kernel, and one that the tuned kernel lacks.
fn timed() -> TimedComparison {
    let base = results(
        "#1",
        &[
            ("kbx", "getpid", "ns/op", &[101.0, 100.5, 99.5, 100.0, 100.25, 99.75]),
            ("kbx", "pipe", "ns/op", &[2_010.0, 2_000.0, 1_990.0, 2_005.0, 1_995.0, 2_000.0]),
            ("kbx", "fork\u{1b}[2J", "us/op", &[64.0, 80.0, 55.0, 71.0, 90.0, 60.0]),
            ("kbx", "null", "ns/op", &[31.0; 6]),
            ("osbench", "read", "MB/s", &[4_000.0, 4_100.0, 4_050.0, 3_950.0, 4_000.0, 4_050.0]),
            ("osbench", "select", "us/op", &[50.0, 51.0, 49.0, 50.5, 49.5, 50.0]),
            ("osbench", "noisy", "us/op", &[1.0, 2.0, 2.01, 1.01, 2.02, 1.02]),
            ("osbench", "gone", "us/op", &[1.0, 2.0]),
        ],
    );
    let tuned = results(
        "#2",
        &[
            ("kbx", "getpid", "ns/op", &[90.0, 90.5, 90.25, 89.5, 89.75]),
            ("kbx", "pipe", "ns/op", &[2_002.0, 1_998.0, 2_004.0, 1_996.0, 2_001.0, 1_999.0]),
            ("kbx", "fork\u{1b}[2J", "us/op", &[61.0, 77.0, 66.0, 58.0, 80.0, 74.0]),
            ("kbx", "null", "ns/op", &[31.0; 6]),
            ("osbench", "read", "MB/s", &[3_500.0, 3_600.0, 3_550.0, 3_450.0, 3_550.0, 3_500.0]),
            ("osbench", "select", "us/op", &[49.0, 49.8, 48.6, 49.6, 48.4, 49.0]),
            ("osbench", "noisy", "us/op", &[0.9, 0.91, 0.92, 0.9, 0.9, 0.91]),
        ],
    );
    let [base, tuned] = [base, tuned].map(|file| JoinedResults::join(&[file]).unwrap());
    TimedComparison::new(&base, &tuned, None, &Default::default()).unwrap()
}

#[test]
fn timed_comparisons() {
    golden("bench.txt", &bench::table(&timed(), Style::PLAIN));
    golden("bench_paper.txt", &bench::paper(&timed(), Style::PLAIN));
}

#[test]
fn a_report_has_every_form() {
    use kerntune_report::{render, ReportForm};
    let profile = sample::before();
    let options = FunctionsOptions::default();
    let document = options.document(&profile).unwrap();
    let form = |form| render(&document, form, "profile p1", Style::PLAIN);
    assert_eq!(form(ReportForm::Json), options.json(&profile).unwrap());
    assert_eq!(
        form(ReportForm::Text),
        format!("profile p1\n\n{}", options.text(&profile, Style::PLAIN).unwrap())
    );
    let rows = profile.tables.totals(|_| true).len();
    let csv = form(ReportForm::Csv);
    assert!(csv.starts_with("elapsed,self,") && csv.lines().count() == rows + 1, "{csv}");
    assert!(form(ReportForm::Markdown).starts_with("profile p1\n\n```\n"));
    let page = form(ReportForm::Html);
    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("<script"), "{page}");
}
