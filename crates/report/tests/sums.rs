//! A selection added up from chunks, by the server and by the page, equals the analysis of the same
//! stretch exactly.

use crate::selections::{assert_equal, by_analysis, by_sums, plain, rows, GroupRows};
use crate::synthetic;
use crate::synthetic::{DeterministicRandom, SyntheticRun};
use kerntune_analyze::TraceFile;
use kerntune_profile::{bounds, bucket_of, Ticks, BUCKETS};
use kerntune_report::html::profile::profile_page;
use kerntune_report::html::profile::{PageAnswers, ProfilePage, TraceSums};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

#[test]
fn sums_of_random_selections_are_those_of_the_analysis() {
    // Blocks of chunks, and blocks of blocks.
    let run = synthetic::run_in_chunks(700, 1_000);
    let bytes = run.trace.as_slice();
    let trace = TraceFile::open(&bytes, &run.recording).unwrap();
    assert!(trace.chunks() > 128, "{} chunks", trace.chunks());
    let chunks = &run.recording.chunks;
    let (begin, end) = (chunks[0].begin_ns, chunks[chunks.len() - 1].end_ns);
    for region in [None, Some("tcp_rr")] {
        let written = "a test";
        let page =
            ProfilePage { profile: &run.profile, region, timeline: None, against: None, code: None, written };
        let mut answers = PageAnswers::new(&page, Some(&run.recording)).unwrap();
        let sums = TraceSums::new(&run.profile, region, trace).unwrap();
        let mut dice = DeterministicRandom(20);
        let mut spans =
            vec![(begin, end + 1), (0, u64::MAX), (end + 1, end + 9), (begin, begin), (begin, begin + 1)];
        for chunk in chunks.iter().take(4) {
            spans.push((chunk.begin_ns, chunk.end_ns));
            spans.push((chunk.begin_ns, chunk.end_ns + 1));
            spans.push((chunk.end_ns, chunk.end_ns + 1000));
        }
        for round in 0..60 {
            let from = begin + dice.below(end - begin);
            let length = [100, 10_000, 1_000_000, end - begin][round % 4];
            spans.push((from, from + 1 + dice.below(length)));
        }
        let mut expected = Vec::new();
        // The selections count some chunks themselves; the others are counted before the second
        // half of them.
        for (at, (from, to)) in spans.iter().enumerate() {
            if at == spans.len() / 2 {
                sums.prepare(&mut |_| ControlFlow::Continue(())).unwrap();
            }
            let mine = by_sums(&sums, &mut answers, *from, *to);
            let theirs = by_analysis(&run.profile, &trace, &mut answers, *from, *to);
            assert_equal(&format!("{from} to {to}"), &mine, &theirs);
            expected.push(theirs);
        }
        assert_page_adds_up(&run, region, &spans, &expected);
    }
}

/// Largest number that scripts have exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Checks that the page's scripts, run by node, add up selections to the expected tables. Skipped
/// without node, unless KERNTUNE_BROWSER requires it (as in `make check`).
fn assert_page_adds_up(run: &SyntheticRun, region: Option<&str>, spans: &[(u64, u64)], expected: &[Vec<u8>]) {
    let timeline = synthetic::timeline(run);
    let page = ProfilePage {
        profile: &run.profile,
        region,
        timeline: Some(&timeline),
        against: None,
        code: None,
        written: "a test",
    };
    let html = profile_page(&page).unwrap();
    let embedded = |id: &str| {
        let (_, rest) = html.split_once(&format!("id=\"{id}\">")).unwrap();
        rest.split_once('<').unwrap().0.trim()
    };
    let selections: Vec<[u64; 2]> = spans.iter().map(|span| [span.0, span.1.min(MAX_SAFE_INTEGER)]).collect();
    let numbers: Vec<u64> = (0..=MAX_SAFE_INTEGER.ilog2())
        .flat_map(|bit| [4_u64, 5, 6, 7].map(|quarters| (quarters << bit) / 4))
        .flat_map(|number| [number, number.saturating_sub(1)])
        .collect();
    // The bounds of the last buckets are no numbers of scripts.
    let buckets = bucket_of(Ticks(MAX_SAFE_INTEGER));
    assert!(buckets < BUCKETS);
    let input = json!({
        "data": embedded("kt-data"), "trace": embedded("kt-trace"), "selections": selections, "numbers": numbers,
        "buckets": buckets,
    });
    let name = format!("selections-{}.json", region.unwrap_or("all"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, input.to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/selections.js");
    let output = match Command::new("node").arg(script).arg(&file).output() {
        Err(error)
            if error.kind() == ErrorKind::NotFound && std::env::var_os("KERNTUNE_BROWSER").is_none() =>
        {
            eprintln!("no node is here: the page's sums are not checked");
            return;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lows: Vec<u64> = (0..buckets).map(|bucket| bounds(bucket).0 .0).collect();
    assert_eq!(found["lows"], json!(lows));
    let wanted: Vec<u32> = numbers.iter().map(|number| bucket_of(Ticks(*number))).collect();
    assert_eq!(found["buckets"], json!(wanted));
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), expected.len());
    for ((answer, expected), span) in answers.iter().zip(expected).zip(spans) {
        let ((times, page), (wanted, analysis)) = (rows(answer), plain(expected));
        assert_eq!(times, wanted, "times of {span:?}");
        assert_eq!(page.len(), analysis.len());
        for (page, analysis) in page.iter().zip(&analysis) {
            assert_eq!(page.functions, analysis.functions, "functions of {span:?}");
            assert_eq!(page.arcs, analysis.arcs, "arcs of {span:?}");
            assert_eq!(by_bucket(page), by_bucket(analysis), "buckets of {span:?}");
            assert_eq!(weights(page), weights(analysis), "the tree's sum of {span:?}");
            for (path, row) in &analysis.tree {
                let is_shown_alone = path.iter().all(|(code, _)| *code != SMALLER);
                assert!(!is_shown_alone || page.tree.get(path) == Some(row), "{path:?} of {span:?}");
            }
        }
    }
}

/// Code of nodes that are too small to be shown alone; the page adds up all nodes.
const SMALLER: i64 = -6;

/// Adds up the histograms' callers, of which the server merges all but the most frequent.
fn by_bucket(rows: &GroupRows) -> BTreeMap<(i64, i64), i64> {
    let mut sums = BTreeMap::new();
    for ((function, _, bucket), count) in &rows.buckets {
        *sums.entry((*function, *bucket)).or_default() += count;
    }
    sums
}

/// Adds up each weight of the tree.
fn weights(rows: &GroupRows) -> Vec<i64> {
    let columns = rows.tree.values().next().map_or(1, Vec::len);
    (1..columns).map(|at| rows.tree.values().map(|row| row[at]).sum()).collect()
}
