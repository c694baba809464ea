//! State of `live top`, and its reaction to keys.

use crate::keys::TerminalKey;
use kerntune_live::{TopFunction, TopPath, TopView};
use kerntune_profile::CounterTotal;
use std::collections::HashMap;
use std::hash::Hash;

/// List that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TopTab {
    #[default]
    Functions,
    Paths,
    Subsystems,
    Interrupts,
    Rates,
}

impl TopTab {
    /// All lists, in order of their keys.
    pub const ALL: [TopTab; 5] =
        [TopTab::Functions, TopTab::Paths, TopTab::Subsystems, TopTab::Interrupts, TopTab::Rates];

    pub fn title(self) -> &'static str {
        match self {
            TopTab::Functions => "functions",
            TopTab::Paths => "paths",
            TopTab::Subsystems => "subsystems",
            TopTab::Interrupts => "interrupts",
            TopTab::Rates => "rates",
        }
    }

    fn beside(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + steps) % Self::ALL.len()]
    }
}

/// Order of functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TopSort {
    #[default]
    SelfTime,
    Total,
    Name,
}

impl TopSort {
    fn next(self) -> Self {
        match self {
            TopSort::SelfTime => TopSort::Total,
            TopSort::Total => TopSort::Name,
            TopSort::Name => TopSort::SelfTime,
        }
    }
}

/// Action for the caller after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopAction {
    Nothing,
    Save,
    Quit,
}

/// A row of a list: samples and their function or path; a count and its rate for [`TopTab::Rates`].
#[derive(Debug, Clone, PartialEq)]
pub struct TopRow {
    pub own: u64,
    pub total: Option<u64>,
    pub name: String,
    pub place: String,
}

/// State of the screen.
#[derive(Debug, Default)]
pub struct TopState {
    pub tab: TopTab,
    pub sort: TopSort,
    /// Text that names must contain.
    pub filter: String,
    /// Set while the user types the filter.
    pub typing: bool,
    /// Set while the keys are shown instead of the list, until the next key.
    pub help: bool,
    /// Set while the display is frozen.
    pub frozen: bool,
    /// Set to show changes since the last update, not totals since the start.
    pub recent: bool,
    /// First visible line.
    pub top: usize,
    /// Message below the list.
    pub said: String,
    last: TopView,
    shown: TopView,
    change: TopView,
}

impl TopState {
    /// Takes the figures of the next update.
    pub fn take(&mut self, view: TopView) {
        let change = since(&self.last, &view);
        self.last = view;
        if !self.frozen {
            self.shown = self.last.clone();
            self.change = change;
        }
    }

    /// Returns the figures to show.
    pub fn view(&self) -> &TopView {
        if self.recent {
            &self.change
        } else {
            &self.shown
        }
    }

    /// Shows a message below the list until the next key.
    pub fn say(&mut self, what: String) {
        self.said = what;
    }

    /// Handles a key.
    pub fn key(&mut self, key: TerminalKey) -> TopAction {
        self.said.clear();
        if key == TerminalKey::Interrupt {
            return TopAction::Quit;
        }
        if self.typing {
            match key {
                TerminalKey::Char(c) if !c.is_control() => self.filter.push(c),
                TerminalKey::Backspace => drop(self.filter.pop()),
                TerminalKey::Enter => self.typing = false,
                TerminalKey::Escape => {
                    self.typing = false;
                    self.filter.clear();
                }
                _ => {}
            }
            self.top = 0;
            return TopAction::Nothing;
        }
        if std::mem::take(&mut self.help) {
            return TopAction::Nothing;
        }
        match key {
            TerminalKey::Char('q') | TerminalKey::Escape => return TopAction::Quit,
            TerminalKey::Char('w') => return TopAction::Save,
            TerminalKey::Char('/') => self.typing = true,
            TerminalKey::Char('?') => self.help = true,
            TerminalKey::Char('s') => self.sort = self.sort.next(),
            TerminalKey::Char('i') => self.recent = !self.recent,
            TerminalKey::Char(' ') => {
                self.frozen = !self.frozen;
                if !self.frozen {
                    self.shown = self.last.clone();
                }
            }
            TerminalKey::Char(digit @ '1'..='5') => {
                self.tab = TopTab::ALL[digit as usize - '1' as usize];
                self.top = 0;
            }
            TerminalKey::Next => {
                self.tab = self.tab.beside(1);
                self.top = 0;
            }
            TerminalKey::Previous => {
                self.tab = self.tab.beside(TopTab::ALL.len() - 1);
                self.top = 0;
            }
            TerminalKey::Up(lines) => self.top = self.top.saturating_sub(lines),
            // Limited to the length of the list when it is drawn.
            TerminalKey::Down(lines) => self.top = self.top.saturating_add(lines),
            _ => {}
        }
        TopAction::Nothing
    }

    /// Returns the rows of the chosen list, filtered and sorted.
    pub fn rows(&self) -> Vec<TopRow> {
        let view = self.view();
        let plain = |(name, own): &(String, u64)| TopRow {
            own: *own,
            total: None,
            name: name.clone(),
            place: String::new(),
        };
        let mut rows: Vec<TopRow> = match self.tab {
            TopTab::Functions => view.functions.iter().map(of_function).collect(),
            TopTab::Paths => view.paths.iter().map(of_path).collect(),
            TopTab::Subsystems => view.subsystems.iter().map(plain).collect(),
            TopTab::Interrupts => view.entries.iter().map(plain).collect(),
            TopTab::Rates => view.counted.iter().filter(|row| row.kind != "time").map(of_count).collect(),
        };
        let wanted = self.filter.to_lowercase();
        rows.retain(|row| {
            (row.own > 0 || row.total.is_some_and(|total| total > 0))
                && [&row.name, &row.place].iter().any(|text| text.to_lowercase().contains(&wanted))
        });
        rows.sort_by(|a, b| {
            let by_own = || (b.own, b.total).cmp(&(a.own, a.total));
            let order = match self.sort {
                TopSort::SelfTime => by_own(),
                TopSort::Total => b.total.cmp(&a.total).then_with(by_own),
                TopSort::Name => a.name.cmp(&b.name),
            };
            order.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

fn of_function(function: &TopFunction) -> TopRow {
    let TopFunction { name, place, own, total } = function.clone();
    TopRow { own, total: Some(total), name, place }
}

fn of_path(path: &TopPath) -> TopRow {
    // The innermost function comes first, because long lines are cut at the end.
    let names: Vec<&str> = path.names.iter().rev().map(String::as_str).collect();
    TopRow { own: path.own, total: None, name: names.join(" < "), place: String::new() }
}

fn of_count(count: &CounterTotal) -> TopRow {
    TopRow { own: count.count, total: None, name: count.name.clone(), place: count.source.clone() }
}

/// Returns the differences from `base` to `now`.
fn since(base: &TopView, now: &TopView) -> TopView {
    // After a reset all figures are new.
    if now.wall_ns < base.wall_ns || base.wall_ns == 0 {
        return now.clone();
    }
    let functions: HashMap<_, _> =
        base.functions.iter().map(|row| ((&row.name, &row.place), (row.own, row.total))).collect();
    let paths: HashMap<_, _> = base.paths.iter().map(|row| (&row.names, row.own)).collect();
    let counted: HashMap<_, _> =
        base.counted.iter().map(|row| ((&row.kind, &row.name, &row.source), row.count)).collect();
    let named = |base: &[(String, u64)], now: &[(String, u64)]| -> Vec<(String, u64)> {
        let known: HashMap<&String, u64> = base.iter().map(|(name, samples)| (name, *samples)).collect();
        now.iter().map(|(name, samples)| (name.clone(), less(*samples, &known, &name))).collect()
    };
    TopView {
        wall_ns: now.wall_ns - base.wall_ns,
        samples: now.samples.saturating_sub(base.samples),
        halted: now.halted.saturating_sub(base.halted),
        user: now.user.saturating_sub(base.user),
        interrupts: now.interrupts.saturating_sub(base.interrupts),
        lost: now.lost.saturating_sub(base.lost),
        source: now.source.clone(),
        functions: now
            .functions
            .iter()
            .map(|row| {
                let (own, total) = functions.get(&(&row.name, &row.place)).copied().unwrap_or_default();
                let (own, total) = (row.own.saturating_sub(own), row.total.saturating_sub(total));
                TopFunction { own, total, ..row.clone() }
            })
            .collect(),
        subsystems: named(&base.subsystems, &now.subsystems),
        paths: now
            .paths
            .iter()
            .map(|row| TopPath { own: less(row.own, &paths, &&row.names), ..row.clone() })
            .collect(),
        entries: named(&base.entries, &now.entries),
        counted: now
            .counted
            .iter()
            .map(|row| CounterTotal {
                count: less(row.count, &counted, &(&row.kind, &row.name, &row.source)),
                ..row.clone()
            })
            .collect(),
    }
}

fn less<K: Hash + Eq>(now: u64, base: &HashMap<K, u64>, key: &K) -> u64 {
    now.saturating_sub(base.get(key).copied().unwrap_or(0))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Figures of two seconds, multiplied by `times`.
    pub fn view(times: u64) -> TopView {
        let function = |name: &str, place: &str, own, total| TopFunction {
            name: name.into(),
            place: place.into(),
            own: own * times,
            total: total * times,
        };
        let count = |kind: &str, name: &str, count, source: &str| CounterTotal {
            kind: kind.into(),
            name: name.into(),
            count: count * times,
            source: source.into(),
        };
        TopView {
            wall_ns: 2_000_000_000 * times,
            samples: 4_000 * times,
            halted: 1_000 * times,
            user: 500 * times,
            interrupts: 100 * times,
            lost: 0,
            source: "perf: cpu-clock".into(),
            functions: vec![
                function("tcp_ack", "net/ipv4/tcp_input.c", 300, 900),
                function("ksys_read", "fs/read_write.c", 10, 2_000),
                function("clear_page", "arch/x86/lib/clear_page.S", 400, 400),
            ],
            subsystems: vec![("arch/x86".into(), 400 * times), ("net/ipv4".into(), 300 * times)],
            paths: vec![TopPath {
                names: vec!["redis".into(), "ksys_read".into(), "tcp_ack".into()],
                own: 250 * times,
            }],
            entries: vec![("asm_common_interrupt".into(), 100 * times)],
            counted: vec![
                count("interrupt", "LOC Local timer interrupts", 500, "/proc/interrupts"),
                count("time", "idle", 1_000_000_000, "/proc/stat"),
            ],
        }
    }

    pub fn names(state: &TopState) -> Vec<String> {
        state.rows().into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn keys_sort_filter_and_walk() {
        let mut state = TopState::default();
        state.take(view(1));
        assert_eq!(names(&state), ["clear_page", "tcp_ack", "ksys_read"]);
        assert_eq!(state.key(TerminalKey::Char('s')), TopAction::Nothing);
        assert_eq!(names(&state), ["ksys_read", "tcp_ack", "clear_page"]);
        state.key(TerminalKey::Char('s'));
        assert_eq!(names(&state), ["clear_page", "ksys_read", "tcp_ack"]);
        for key in [
            TerminalKey::Char('/'),
            TerminalKey::Char('N'),
            TerminalKey::Char('e'),
            TerminalKey::Char('t'),
            TerminalKey::Char('q'),
            TerminalKey::Backspace,
            TerminalKey::Enter,
        ] {
            assert_eq!(state.key(key), TopAction::Nothing);
        }
        assert_eq!(
            (names(&state), state.filter.as_str(), state.typing),
            (vec!["tcp_ack".to_string()], "Net", false)
        );
        state.key(TerminalKey::Char('/'));
        state.key(TerminalKey::Escape);
        assert_eq!((names(&state).len(), state.typing), (3, false));
        state.key(TerminalKey::Next);
        assert_eq!(
            (state.tab, names(&state)),
            (TopTab::Paths, vec!["tcp_ack < ksys_read < redis".to_string()])
        );
        state.key(TerminalKey::Previous);
        state.key(TerminalKey::Previous);
        assert_eq!(
            (state.tab, names(&state)),
            (TopTab::Rates, vec!["LOC Local timer interrupts".to_string()])
        );
        state.key(TerminalKey::Char('3'));
        assert_eq!(
            (state.tab, names(&state)),
            (TopTab::Subsystems, vec!["arch/x86".to_string(), "net/ipv4".to_string()])
        );
        assert_eq!(
            [
                state.key(TerminalKey::Char('w')),
                state.key(TerminalKey::Char('q')),
                state.key(TerminalKey::Interrupt)
            ],
            [TopAction::Save, TopAction::Quit, TopAction::Quit]
        );
    }

    #[test]
    fn a_frozen_picture_stands_and_a_recent_one_is_of_the_last_interval() {
        let mut state = TopState::default();
        state.take(view(1));
        state.key(TerminalKey::Char(' '));
        state.take(view(3));
        assert_eq!(state.view().samples, 4_000);
        state.key(TerminalKey::Char(' '));
        assert_eq!(state.view().samples, 12_000);
        state.take(view(4));
        state.key(TerminalKey::Char('i'));
        assert_eq!(
            (state.view().samples, state.view().wall_ns, state.rows()[0].own),
            (4_000, 2_000_000_000, 400)
        );
        // After a reset all figures count as changes.
        state.take(view(1));
        assert_eq!(state.view().samples, 4_000);
    }
}
