//! Writes the page of a synthetic machine to standard output, for development: `cargo run -p
//! kerntune-report --example profile_page -- [OPERATIONS [PATHS]] > /tmp/page.html`. PATHS is the
//! number of paths to add to the call tree: a million tests its speed.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use kerntune_report::html::profile::{profile_page, ProfilePage};
use std::time::Instant;

fn main() -> Result<(), kerntune_report::Error> {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (operations, paths) = (numbers.next().unwrap_or(2000), numbers.next().unwrap_or(0));
    let mut run = synthetic::run(operations);
    synthetic::grow(&mut run.profile, paths as usize);
    let began = Instant::now();
    let timeline = synthetic::timeline(&run);
    eprintln!("{} events, timeline read in {:.2?}", run.recording.events, began.elapsed());
    let began = Instant::now();
    let page = ProfilePage {
        profile: &run.profile,
        region: None,
        timeline: Some(&timeline),
        against: None,
        code: None,
        written: "kerntune, an example",
    };
    let html = profile_page(&page)?;
    eprintln!(
        "{} paths, page of {} bytes in {:.2?}",
        run.profile.tables.paths.len(),
        html.len(),
        began.elapsed()
    );
    print!("{html}");
    Ok(())
}
