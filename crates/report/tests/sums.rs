//! A selection added up from chunks equals the analysis of the same stretch exactly.

use crate::selections::{assert_equal, by_analysis, by_sums};
use crate::synthetic;
use crate::synthetic::DeterministicRandom;
use kerntune_analyze::TraceFile;
use kerntune_report::html::profile::{PageAnswers, ProfilePage, TraceSums};
use std::ops::ControlFlow;

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
        // The selections count some chunks themselves; the others are counted before the second
        // half of them.
        for (at, (from, to)) in spans.iter().enumerate() {
            if at == spans.len() / 2 {
                sums.prepare(&mut |_| ControlFlow::Continue(())).unwrap();
            }
            let mine = by_sums(&sums, &mut answers, *from, *to);
            let theirs = by_analysis(&run.profile, &trace, &mut answers, *from, *to);
            assert_equal(&format!("{from} to {to}"), &mine, &theirs);
        }
    }
}
