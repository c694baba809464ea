//! HTML page: complete, self-contained, and without markup from any text.

use crate::sample;
use kerntune_report::html::{report, HtmlInput, ProvenanceLine, StepLine};
use std::time::Duration;

fn full() -> String {
    let (comparison, before, after) = (sample::comparison(), sample::before(), sample::after());
    report(&HtmlInput {
        title: "rr: clang-autofdo against clang -O2",
        comparison: Some(&comparison),
        before: Some(&before),
        after: Some(&after),
        provenance: &[ProvenanceLine {
            what: "Flags".into(),
            base: "-O2".into(),
            tuned: Some("-O2 -fprofile".into()),
        }],
        commands: &["kerntune tune --workload rr".into()],
        steps: &[StepLine {
            name: "build base".into(),
            result: "ok".into(),
            took: Some(Duration::from_secs(243)),
            resumed: true,
        }],
        written: "kerntune, 2025-06-01",
    })
    .unwrap()
}

/// Returns the page without its style and script.
fn markup(page: &str) -> String {
    let mut out = page.to_string();
    for element in ["style", "script"] {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let (start, end) = (out.find(&open).unwrap(), out.find(&close).unwrap());
        out.replace_range(start..end + close.len(), "");
    }
    out
}

/// Checks that every opened element is closed, in order.
fn assert_balanced(markup: &str) {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open = Vec::new();
    for tag in markup.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        if tag.ends_with('/') {
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "closing {name}"),
            None if VOID.contains(&name) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let page = full();
    for loads in ["http://", "https://", "src=", "@import", "url(", "<link", "<iframe", "fetch("] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn the_page_is_whole() {
    let page = full();
    let markup = markup(&page);
    assert_balanced(&markup);
    for text in [
        "<title>rr: clang-autofdo against clang -O2</title>",
        "tcp_rr",
        "\u{2212}11.8 %",
        "__netif_receive_skb_core</code>",
        "skb_release_data",
        "data/cpu-models/generic.toml",
        "12 returns (of 28,060,412 events) could not be matched with a call.",
        "resumed, 4 min 03 s more",
        "kerntune tune --workload rr",
    ] {
        assert!(markup.contains(text), "{text}");
    }
    // A split-off part counts as its function.
    assert!(!markup.contains("tcp_ack.cold") && !markup.contains("constprop.0"));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
}

#[test]
fn text_is_never_markup() {
    let nasty = "<img onerror=\"alert('x')\">&";
    let (mut comparison, mut before) = (sample::comparison(), sample::before());
    comparison.workload = nasty.into();
    comparison.tuned.label = nasty.into();
    comparison.model = nasty.into();
    comparison.rows.iter_mut().take(4).for_each(|row| row.operation = nasty.into());
    before.manifest.health.insert(nasty.into(), 1);
    before.tables.symbols[0].name = nasty.into();
    let words = [nasty.to_string()];
    let page = report(&HtmlInput {
        title: nasty,
        comparison: Some(&comparison),
        before: Some(&before),
        after: None,
        provenance: &[ProvenanceLine { what: nasty.into(), base: nasty.into(), tuned: None }],
        commands: &words,
        steps: &[StepLine { name: nasty.into(), result: nasty.into(), took: None, resumed: false }],
        written: nasty,
    })
    .unwrap();
    assert!(!page.contains("<img") && page.contains("&lt;img onerror=&quot;alert('x')&quot;&gt;&amp;"));
    assert_balanced(&markup(&page));
}

#[test]
fn every_part_may_be_missing() {
    let (unchanged, before) = (sample::unchanged(), sample::before());
    for (comparison, profile) in [(None, None), (Some(&unchanged), None), (None, Some(&before))] {
        let page = report(&HtmlInput { comparison, after: profile, ..HtmlInput::default() }).unwrap();
        assert_balanced(&markup(&page));
        assert!(!page.contains("NaN"));
    }
}

#[test]
fn random_layouts_are_a_picture_with_every_order_in_it() {
    let comparison = sample::whole_with_layouts();
    let page =
        report(&HtmlInput { title: "luck", comparison: Some(&comparison), ..HtmlInput::default() }).unwrap();
    assert_balanced(&markup(&page));
    for words in [
        "Luck of layout",
        "Whole path (kernel and user)",
        "below all of them",
        "User code, and the whole path",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // Five metrics of the operation and of the total, five orders each; the key has one of each
    // mark.
    let svg = kerntune_report::html::layouts::picture(&comparison).unwrap();
    assert_eq!(svg.matches("<circle").count(), 5 * 5 * 2 + 1, "{svg}");
    assert_eq!(svg.matches("class=\"tuned\"").count(), 5 * 2 + 1);
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert_balanced(&svg);
    assert!(kerntune_report::html::layouts::picture(&sample::comparison()).is_none());
}

/// A change in the work of user code is no gain of the kernel: the page says so first, and colors
/// no figure that includes it.
#[test]
fn runs_of_other_work_are_named_on_the_page() {
    let comparison = sample::other_work();
    let input = HtmlInput { title: "x", comparison: Some(&comparison), ..HtmlInput::default() };
    let page = markup(&report(&input).unwrap());
    assert!(
        page.contains("The runs did not do the same work: user code executed \u{2212}1.5 % instructions"),
        "{page}"
    );
    assert!(page.contains("<dt>~</dt>"), "{page}");
    let tile = page.split("<li>").find(|tile| tile.contains("Whole instructions, total")).unwrap();
    assert!(tile.contains("change same") && tile.contains("\u{2212}1.3 %~"), "{tile}");
    assert!(!markup(&full()).contains("did not do the same work"));
}
