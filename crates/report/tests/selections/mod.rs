//! Sums of a selection, and the analysis of the same stretch, in a comparable form.
#![allow(dead_code)] // each of those who include it uses a part

use kerntune_analyze::{analyze, cut, AnalysisInput, TraceFile};
use kerntune_profile::{FunctionIndex, Profile};
use kerntune_report::html::profile::{PageAnswers, TraceSums};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Rows of one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GroupRows {
    pub functions: BTreeMap<i64, Vec<i64>>,
    pub arcs: BTreeMap<(i64, i64, i64), Vec<i64>>,
    pub buckets: BTreeMap<(i64, i64, i64), i64>,
    pub tree: BTreeMap<Vec<(i64, i64)>, Vec<i64>>,
}

/// Unpacks all groups, and times.
pub fn plain(packed: &[u8]) -> (Value, Vec<GroupRows>) {
    rows(&serde_json::from_reader(flate2::read::ZlibDecoder::new(packed)).unwrap())
}

/// Returns times and groups of an answer.
pub fn rows(answer: &Value) -> (Value, Vec<GroupRows>) {
    let groups = answer["groups"].as_array().unwrap().iter().map(group).collect();
    (answer["times"].clone(), groups)
}

fn column(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn group(value: &Value) -> GroupRows {
    let columns = |table: &str, names: &[&str]| -> Vec<Vec<i64>> {
        names.iter().map(|name| column(&value[table][*name])).collect()
    };
    let row =
        |columns: &[Vec<i64>], at: usize| -> Vec<i64> { columns.iter().map(|column| column[at]).collect() };
    let mut out = GroupRows::default();
    let functions = columns("functions", &["calls", "ended", "net", "elapsed", "slowest", "at"]);
    for (at, f) in column(&value["functions"]["f"]).into_iter().enumerate() {
        let row = row(&functions, at);
        if row[..4].iter().any(|figure| *figure > 0) {
            out.functions.insert(f, row);
        }
    }
    let names = columns("arcs", &["from", "to", "h"]);
    let arcs = columns("arcs", &["calls", "ended", "elapsed"]);
    for (at, from) in names[0].iter().enumerate() {
        let row = row(&arcs, at);
        if row.iter().any(|figure| *figure > 0) {
            out.arcs.insert((*from, names[1][at], names[2][at]), row);
        }
    }
    let rows = columns("histograms", &["f", "c", "b", "n"]);
    for (at, f) in rows[0].iter().enumerate() {
        out.buckets.insert((*f, rows[1][at], rows[2][at]), rows[3][at]);
    }
    let nodes = columns("tree", &["d", "f", "h", "c"]);
    let own: Vec<Vec<i64>> = value["tree"]["w"].as_array().unwrap().iter().map(column).collect();
    let mut path: Vec<(i64, i64)> = Vec::new();
    for (at, depth) in nodes[0].iter().enumerate() {
        path.truncate(*depth as usize);
        path.push((nodes[1][at], nodes[2][at]));
        let mut row = vec![nodes[3][at]];
        row.extend(own.iter().map(|column| column[at]));
        assert!(out.tree.insert(path.clone(), row).is_none(), "a path is there twice: {path:?}");
    }
    out
}

/// Computes a stretch by analysis of the cut trace.
pub fn by_analysis(
    profile: &Profile,
    trace: &TraceFile<'_>,
    answers: &mut PageAnswers,
    from: u64,
    to: u64,
) -> Vec<u8> {
    let stretch = cut(trace, from, to).unwrap();
    let bytes = stretch.bytes.as_slice();
    let points = vec![(String::new(), FunctionIndex(0)); 4096];
    let input = AnalysisInput {
        points: &points,
        ..AnalysisInput::new(&bytes, &stretch.recording, &profile.tables.symbols)
    };
    let analysis = analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap();
    answers.stretch(&analysis.tables).unwrap()
}

/// Computes a stretch by adding up chunks.
pub fn by_sums(sums: &TraceSums<'_>, answers: &mut PageAnswers, from: u64, to: u64) -> Vec<u8> {
    let selected = sums.select(from, to, &|| false).unwrap();
    answers.selected(sums, &selected).unwrap()
}

/// Checks that two answers are equal, and shows the difference if not.
pub fn assert_equal(what: &str, sums: &[u8], analysis: &[u8]) {
    let ((times, mine), (wanted, theirs)) = (plain(sums), plain(analysis));
    assert_eq!(times, wanted, "times of {what}");
    for (at, (mine, theirs)) in mine.iter().zip(&theirs).enumerate() {
        differ(&format!("functions of {what}, group {at}"), &mine.functions, &theirs.functions);
        differ(&format!("arcs of {what}, group {at}"), &mine.arcs, &theirs.arcs);
        differ(&format!("buckets of {what}, group {at}"), &mine.buckets, &theirs.buckets);
        differ(&format!("tree of {what}, group {at}"), &mine.tree, &theirs.tree);
    }
}

fn differ<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    mine: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
) {
    let keys = mine.keys().chain(theirs.keys());
    if let Some(key) = keys.into_iter().find(|key| mine.get(key) != theirs.get(key)) {
        panic!("{what}: {key:?}: {:?} instead of {:?}", mine.get(key), theirs.get(key));
    }
}
