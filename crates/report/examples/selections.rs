//! Compares selections added up from chunks with analyses of the same stretches, on a profile's
//! real trace, and prints the time of both: `cargo run --release --example selections --
//! PROFILE_DIRECTORY [SELECTIONS]`.

#[path = "../tests/selections/mod.rs"]
mod selections;

use kerntune_analyze::TraceFile;
use kerntune_profile::Profile;
use kerntune_report::html::profile::{PageAnswers, ProfilePage, TraceSums};
use kerntune_trace::Recording;
use selections::{assert_equal, by_analysis, by_sums};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let directory = PathBuf::from(words.next().ok_or("PROFILE_DIRECTORY [SELECTIONS]")?);
    let count: u64 = words.next().map_or(Ok(40), |word| word.parse())?;
    let profile = Profile::load(&directory)?;
    let recording: Recording = serde_json::from_slice(&std::fs::read(directory.join("run/recording.json"))?)?;
    let file = std::fs::File::open(directory.join("run/trace.kt"))?;
    let trace = TraceFile::open(&file, &recording)?;
    let page = ProfilePage {
        profile: &profile,
        region: None,
        timeline: None,
        against: None,
        code: None,
        written: "an example",
    };
    let mut answers = PageAnswers::new(&page, Some(&recording))?;
    let sums = TraceSums::new(&profile, None, trace)?;
    let began = Instant::now();
    sums.prepare(&mut |_| ControlFlow::Continue(()))?;
    println!("{} events in {} chunks counted in {:.2?}", recording.events, trace.chunks(), began.elapsed());
    let (begin, end) = (recording.chunks[0].begin_ns, recording.chunks[trace.chunks() - 1].end_ns);
    let mut random = 88_172_645_463_325_252_u64;
    for round in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let length = (end - begin) / [2, 100, 10_000, 1_000_000][round as usize % 4];
        let from = begin + random % (end - begin - length).max(1);
        let began = Instant::now();
        let selected = sums.select(from, from + length, &|| false)?;
        let added = began.elapsed();
        let mine = answers.selected(&sums, &selected)?;
        let answered = began.elapsed();
        let began = Instant::now();
        let theirs = by_analysis(&profile, &trace, &mut answers, from, from + length);
        println!(
            "{length:>12} ns: added {added:.1?}, answered {answered:.1?} ({} bytes); by analysis {:.1?}",
            mine.len(),
            began.elapsed()
        );
        assert_eq!(mine, by_sums(&sums, &mut answers, from, from + length), "it is the same each time");
        assert_equal(&format!("{from}+{length}"), &mine, &theirs);
    }
    println!("{count} selections are the same to the digit");
    Ok(())
}
