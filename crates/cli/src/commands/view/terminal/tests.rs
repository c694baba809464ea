use super::super::model::{CallNode, ViewFunction, ViewModel};
use super::*;
use crate::keys::TerminalKey;
use kerntune_report::TickUnit;
use ratatui::backend::TestBackend;
use ratatui::Terminal;

/// A thread that calls `read`, which calls `copy`; and an interrupt.
fn model() -> ViewModel {
    let node = |name: &str, parent, own, total, calls| CallNode {
        name: name.into(),
        parent,
        children: Vec::new(),
        own,
        total,
        calls,
    };
    let mut nodes = vec![
        node("rr", None, 0, 900, None),
        node("read", Some(0), 300, 800, Some(4)),
        node("copy", Some(1), 500, 500, Some(8)),
        node("[user]", Some(0), 100, 100, None),
        node("[interrupt]", None, 0, 100, None),
        node("timer", Some(4), 100, 100, Some(1)),
    ];
    nodes[0].children = vec![1, 3];
    nodes[1].children = vec![2];
    nodes[4].children = vec![5];
    let function = |name: &str, own, total, calls| ViewFunction {
        name: name.into(),
        file: format!("{name}.c"),
        own,
        total,
        calls,
    };
    let line = |name: &str, self_ticks, calls, with: &[&str]| Change {
        name: name.into(),
        with: with.iter().map(|name| name.to_string()).collect(),
        self_ticks,
        calls,
    };
    ViewModel {
        title: "profile p1: rr".into(),
        measure: TickUnit::Instructions,
        busy: 1_000,
        nodes,
        roots: vec![0, 4],
        functions: vec![
            function("read", 300, 800, 4),
            function("copy", 500, 500, 8),
            function("timer", 100, 100, 1),
        ],
        difference: Some((
            "profile p2: rr".into(),
            vec![
                line("read", [800, 640], Some([4, 4]), &["copy"]),
                line("timer", [100, 120], Some([1, 2]), &[]),
                line("[user]", [100, 100], None, &[]),
            ],
        )),
    }
}

/// Returns the lines of the screen without trailing spaces.
fn screen(state: &mut ViewState, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line =
        |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..height).map(line).collect()
}

fn keys(state: &mut ViewState, keys: impl IntoIterator<Item = TerminalKey>) {
    for key in keys {
        assert!(state.key(key), "{key:?} ends it");
    }
}

#[test]
fn the_tree_opens_and_closes() {
    let mut state = ViewState::new(model());
    let lines = screen(&mut state, 60, 12);
    assert_eq!(lines[0], "profile p1: rr");
    assert_eq!(lines[1], "1,000 instr. in all; 4 lines");
    assert_eq!(lines[2], " 1 call tree │ 2 functions │ 3 paths │ 4 difference");
    assert_eq!(
        lines[3..8],
        [
            "% total  % self   calls        call tree",
            "   90.00     0.00              ▾ rr",
            "   80.00    30.00            4   ▸ read",
            "   10.00    10.00                  [user]",
            "   10.00     0.00              ▸ [interrupt]",
        ]
    );
    keys(&mut state, [TerminalKey::Down(1), TerminalKey::Right]);
    assert!(screen(&mut state, 60, 12)[6].ends_with("8       copy"));
    // On an open frame, Right moves to its first child; Left moves back and closes.
    keys(&mut state, [TerminalKey::Right]);
    assert_eq!(state.rows()[state.at], ViewRow::Node(2, 2));
    keys(&mut state, [TerminalKey::Left, TerminalKey::Left]);
    assert_eq!((state.rows().len(), &state.rows()[state.at]), (4, &ViewRow::Node(1, 1)));
}

#[test]
fn functions_and_paths_lead_into_the_tree() {
    let mut state = ViewState::new(model());
    keys(&mut state, [TerminalKey::Char('2')]);
    let names = |state: &mut ViewState| -> Vec<String> {
        let lines = screen(state, 80, 9);
        lines[4..8].iter().filter_map(|line| line.split_whitespace().nth(3)).map(Into::into).collect()
    };
    assert_eq!(names(&mut state), ["copy", "read", "timer"]);
    keys(&mut state, [TerminalKey::Char('s')]);
    assert_eq!(names(&mut state), ["read", "copy", "timer"]);
    keys(&mut state, [TerminalKey::Down(1), TerminalKey::Enter]);
    assert_eq!((state.tab, &state.rows()[state.at]), (ViewTab::Tree, &ViewRow::Node(2, 2)));
    keys(&mut state, [TerminalKey::Char('3')]);
    let lines = screen(&mut state, 80, 9);
    assert!(lines.iter().any(|line| line.ends_with("copy < read < rr")), "{lines:#?}");
}

#[test]
fn a_filter_shows_what_leads_to_it() {
    let mut state = ViewState::new(model());
    keys(&mut state, "/time".chars().map(TerminalKey::Char).chain([TerminalKey::Enter]));
    assert_eq!(state.rows(), [ViewRow::Node(4, 0), ViewRow::Node(5, 1)]);
    let lines = screen(&mut state, 80, 9);
    assert!(lines[8].starts_with("filter: time"), "{lines:#?}");
    keys(&mut state, [TerminalKey::Escape]);
    assert_eq!(state.rows().len(), 4);
    assert!(!state.key(TerminalKey::Escape) && !state.key(TerminalKey::Char('q')));
}

#[test]
fn a_difference_has_colors_and_signs() {
    let mut state = ViewState::new(model());
    keys(&mut state, [TerminalKey::Previous]);
    let lines = screen(&mut state, 90, 9);
    assert_eq!(lines[1], "against profile p2: rr");
    let words = |at: usize| lines[at].split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(4), ["800", "640", "-160", "0", "read", "with", "copy"]);
    assert_eq!(words(5), ["100", "120", "+20", "+1", "timer"]);
    let mut terminal = Terminal::new(TestBackend::new(90, 9)).unwrap();
    terminal.draw(|frame| draw(frame, &mut state)).unwrap();
    let buffer = terminal.backend().buffer();
    let color = |row: u16| (0..90).map(|x| buffer[(x, row)].fg).find(|color| *color != Color::Reset);
    assert_eq!((color(4), color(5), color(6)), (Some(Color::Green), Some(Color::Red), None));
    state.model.difference = None;
    keys(&mut state, [TerminalKey::Char('4')]);
    assert!(screen(&mut state, 90, 9)[3].contains("--against OTHER"));
}

#[test]
fn every_list_fits_any_screen() {
    let mut state = ViewState::new(model());
    for tab in ['1', '2', '3', '4'] {
        keys(&mut state, [TerminalKey::Char(tab), TerminalKey::Down(usize::MAX)]);
        for (width, height) in [(120, 40), (20, 5), (1, 1)] {
            screen(&mut state, width, height);
        }
    }
}

#[test]
fn a_question_mark_shows_all_keys_and_a_long_title_goes_on() {
    let mut state = ViewState::new(model());
    state.model.title = format!("profile p1: {}", "rr ".repeat(20));
    keys(&mut state, [TerminalKey::Char('?')]);
    let lines = screen(&mut state, 60, 14);
    assert!(lines[1].starts_with("rr ") && lines[2] == "1,000 instr. in all; 4 lines", "{lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("Enter ") && line.contains("open or close")),
        "{lines:?}"
    );
    // The next key only ends the help.
    keys(&mut state, [TerminalKey::Char('q')]);
    assert!(screen(&mut state, 60, 14).iter().any(|line| line.contains("call tree")));
}
