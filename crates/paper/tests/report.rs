//! A paper's tables beside ours: as text, as Markdown and as a page.

use crate::sample;
use kerntune_paper::report::{markdown, paper, paper_page};
use kerntune_paper::{ExperimentResult, ExperimentState, Paper, PaperOutcome};
use kerntune_table::Style;

/// A row of each kind, and a table that was not reproduced. Its texts contain markup everywhere.
fn outcome() -> PaperOutcome {
    let row = |name: &str, source: &str, std_dev: &str, improvement: &str| {
        format!(
            "[[experiment.row]]\nname='{name}'\n{source}\nunit='usec'\nbetter='lower'\nbase=120\noptimized=100\n{std_dev}\n\
             improvement='{improvement}'\n"
        )
    };
    let head = "name='x'\ntitle='Kernels, <b>tuned</b>'\nauthors='A. Author'\npublished='1994'\nmachine='a PA-RISC'\n\
                recipe='gcc-pgo'\n";
    let table =
        |title: &str| format!("[[experiment]]\ntitle='{title}'\nworkload='rr'\nabout='of 1|2 processes'\n");
    let text = [
        head.to_string(),
        table("Round trips"),
        row("tcp_rr", "operation='tcp_rr'", "std_dev=2.5", "20%"),
        row("a`b` | c", "operation='nothing'", "", "*"),
        row("udp_rr", "operation='udp_rr'", "", "*").replace("base=120", "base=1000"),
        row("gone", "none='there is no such call any more'", "", "20%"),
        table("Others"),
        row("tcp_rr", "operation='tcp_rr'", "", "20%"),
    ];
    let paper = Paper::parse(&text.concat(), "x.toml").unwrap();
    let mut outcome = PaperOutcome::new(&paper, "gcc-pgo", "emulator", "generic");
    let measured = ExperimentResult::new(&paper.experiments[0], &sample::comparison(), &|_| None);
    outcome.add(&paper.experiments[0], ExperimentState::Measured(Box::new(measured)));
    outcome.add(&paper.experiments[1], ExperimentState::NotMade { because: "the time was up".into() });
    outcome
}

#[test]
fn as_text() {
    sample::golden("paper.txt", &paper::table(&outcome(), Style::PLAIN));
}

#[test]
fn as_markdown() {
    let page = markdown::paper(&outcome(), &["kerntune paper x".into()], "kerntune, 2026-11-22");
    sample::golden("paper.md", &page);
    // Every line of a table has all columns, whatever its cells contain.
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(page.lines().filter(|line| line.starts_with('|')).all(|line| columns(line) == 14), "{page}");
}

#[test]
fn as_a_page() {
    let page = paper_page::page(&outcome(), &["kerntune paper x".into()], "kerntune, 2026-11-22");
    for words in ["Kernels, &lt;b&gt;tuned&lt;/b&gt;", "there is no such call any more", "the time was up"] {
        assert!(page.contains(words), "{words}");
    }
    // 900 % that the paper calls noise is as long as the longest bar, and not the other way round.
    let widths = page
        .match_indices(" width=\"")
        .filter_map(|(at, _)| page[at + 8..].split('"').next()?.parse::<f64>().ok());
    let mut widths: Vec<f64> = widths.filter(|width| *width > 300.0).collect();
    widths.dedup();
    assert!(page.contains("+900.0 %*") && widths.len() > 1, "{widths:?}");
    assert!(!page.contains("<b>tuned") && page.matches("<table>").count() == 1);
}
