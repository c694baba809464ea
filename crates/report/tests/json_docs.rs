//! Sections of `docs/json.md` on reports are those that the reports' columns give.
//!
//! `KERNTUNE_BLESS=1 cargo test -p kerntune-report --test report json_docs` writes them.

use crate::{anatomy_page, path_length, tables};
use kerntune_profile::{Block, Instructions};
use kerntune_report::graph::GraphReportOptions;
use kerntune_report::subsystems::SubsystemsOptions;
use kerntune_report::{diff, path_length as length, reports, Report};
use kerntune_table::{render, Document};
use std::fs;

const BEGIN: &str =
    "<!-- Sections from here on are made of the reports' columns (crates/report/tests/json_docs.rs). -->\n";
const END: &str = "<!-- End of the sections that are made. -->\n";

/// Records that the section on sampled figures describes.
const ELSEWHERE: &[&str] = &["sampled", "counted"];

/// Reports that refuse a profile that is not exact.
const NEED_EXACT_CALLS: &[&str] = &["inline"];

/// Arguments without which a report refuses to be made.
fn arguments(name: &str) -> &'static [&'static str] {
    match name {
        "histogram" => &["tcp_recv", "--by-caller"],
        _ => &[],
    }
}

/// Returns the sections of all reports in the order of their names.
fn sections() -> String {
    let mut profile = tables::profile();
    profile.tables.blocks.push(Block {
        bytes: 4,
        instructions: Instructions(1),
        count: 1,
        ..Block::default()
    });
    let graph = GraphReportOptions::default();
    let subsystems = SubsystemsOptions { matrix: true, ..SubsystemsOptions::default() };
    // Reports with arguments of their own on the command line.
    let others: [&dyn Report; 2] = [&graph, &subsystems];
    let docs = |document: &Document| render::docs(document, ELSEWHERE);
    let other = tables::other();
    let options = diff::DiffOptions { paths: true, ..diff::DiffOptions::default() };
    let exact = path_length::profile(&[], &[]);
    let compared = [
        diff::document(&profile, &other, &options).unwrap(),
        length::document(&exact, &exact, &path_length::options()).unwrap(),
    ];
    let mut sections: Vec<String> = reports::ENTRIES
        .iter()
        .map(|entry| {
            let words = std::iter::once(&entry.name).chain(arguments(entry.name));
            let matches = entry.command().try_get_matches_from(words).unwrap();
            let report = entry.read(&matches).unwrap();
            let mut profile = profile.clone();
            profile.manifest.exact = NEED_EXACT_CALLS.contains(&entry.name);
            let document = report.document(&profile).unwrap();
            docs(&document)
        })
        .chain(others.iter().map(|report| docs(&report.document(&profile).unwrap())))
        .chain(compared.iter().map(docs))
        .chain([anatomy_page::documentation(docs)])
        .collect();
    sections.sort();
    sections.join("\n")
}

#[test]
fn the_documentation_of_reports_is_that_of_their_columns() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let text = fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the begin of the sections");
    let (found, after) = rest.split_once(END).expect("the end of the sections");
    let made = format!("\n{}\n", sections());
    if std::env::var_os("KERNTUNE_BLESS").is_some() {
        fs::write(file, [before, BEGIN, &made, END, after].concat()).unwrap();
    } else {
        assert_eq!(found, made, "docs/json.md: see the head of crates/report/tests/json_docs.rs");
    }
}
