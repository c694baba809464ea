//! What `live top` shows, and what keys do to it.

use crate::keys::Key;
use kerntune_live::{TopFunction, TopPath, TopView};
use kerntune_profile::Counted;
use std::collections::HashMap;
use std::hash::Hash;

/// What is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Functions,
    Paths,
    Subsystems,
    Interrupts,
    Rates,
}

impl Tab {
    /// All, in the order of their keys.
    pub const ALL: [Tab; 5] = [Tab::Functions, Tab::Paths, Tab::Subsystems, Tab::Interrupts, Tab::Rates];

    pub fn title(self) -> &'static str {
        match self {
            Tab::Functions => "functions",
            Tab::Paths => "paths",
            Tab::Subsystems => "subsystems",
            Tab::Interrupts => "interrupts",
            Tab::Rates => "rates",
        }
    }

    fn beside(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + steps) % Self::ALL.len()]
    }
}

/// What functions are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Own,
    Total,
    Name,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Sort::Own => Sort::Total,
            Sort::Total => Sort::Name,
            Sort::Name => Sort::Own,
        }
    }
}

/// What is to be done outside of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Save,
    Quit,
}

/// A line of a list: samples and what they are of; a count and its rate for [`Tab::Rates`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub own: u64,
    pub total: Option<u64>,
    pub name: String,
    pub place: String,
}

/// Everything.
#[derive(Debug, Default)]
pub struct State {
    pub tab: Tab,
    pub sort: Sort,
    /// What names have to contain.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Whether the picture stands still.
    pub frozen: bool,
    /// Whether it is of the time since the last picture, and not since the beginning.
    pub recent: bool,
    /// First line that is shown.
    pub top: usize,
    /// What is to be said.
    pub said: String,
    last: TopView,
    shown: TopView,
    change: TopView,
}

impl State {
    /// Takes new figures.
    pub fn take(&mut self, view: TopView) {
        let change = since(&self.last, &view);
        self.last = view;
        if !self.frozen {
            self.shown = self.last.clone();
            self.change = change;
        }
    }

    /// What is to be seen.
    pub fn view(&self) -> &TopView {
        if self.recent {
            &self.change
        } else {
            &self.shown
        }
    }

    /// Says something below the list, until the next key.
    pub fn say(&mut self, what: String) {
        self.said = what;
    }

    /// Does what a key is for.
    pub fn key(&mut self, key: Key) -> Wish {
        self.said.clear();
        if key == Key::Interrupt {
            return Wish::Quit;
        }
        if self.typing {
            match key {
                Key::Char(c) if !c.is_control() => self.filter.push(c),
                Key::Backspace => drop(self.filter.pop()),
                Key::Enter => self.typing = false,
                Key::Escape => {
                    self.typing = false;
                    self.filter.clear();
                }
                _ => {}
            }
            self.top = 0;
            return Wish::Nothing;
        }
        match key {
            Key::Char('q') | Key::Escape => return Wish::Quit,
            Key::Char('w') => return Wish::Save,
            Key::Char('/') => self.typing = true,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('i') => self.recent = !self.recent,
            Key::Char(' ') => {
                self.frozen = !self.frozen;
                if !self.frozen {
                    self.shown = self.last.clone();
                }
            }
            Key::Char(digit @ '1'..='5') => {
                self.tab = Tab::ALL[digit as usize - '1' as usize];
                self.top = 0;
            }
            Key::Next => {
                self.tab = self.tab.beside(1);
                self.top = 0;
            }
            Key::Previous => {
                self.tab = self.tab.beside(Tab::ALL.len() - 1);
                self.top = 0;
            }
            Key::Up(lines) => self.top = self.top.saturating_sub(lines),
            // What there is less of is known when it is drawn.
            Key::Down(lines) => self.top = self.top.saturating_add(lines),
            _ => {}
        }
        Wish::Nothing
    }

    /// The lines of the list that is chosen, filtered and in order.
    pub fn rows(&self) -> Vec<Row> {
        let view = self.view();
        let plain = |(name, own): &(String, u64)| Row {
            own: *own,
            total: None,
            name: name.clone(),
            place: String::new(),
        };
        let mut rows: Vec<Row> = match self.tab {
            Tab::Functions => view.functions.iter().map(of_function).collect(),
            Tab::Paths => view.paths.iter().map(of_path).collect(),
            Tab::Subsystems => view.subsystems.iter().map(plain).collect(),
            Tab::Interrupts => view.entries.iter().map(plain).collect(),
            Tab::Rates => view.counted.iter().filter(|row| row.kind != "time").map(of_count).collect(),
        };
        let wanted = self.filter.to_lowercase();
        rows.retain(|row| {
            (row.own > 0 || row.total.is_some_and(|total| total > 0))
                && [&row.name, &row.place].iter().any(|text| text.to_lowercase().contains(&wanted))
        });
        rows.sort_by(|a, b| {
            let by_own = || (b.own, b.total).cmp(&(a.own, a.total));
            let order = match self.sort {
                Sort::Own => by_own(),
                Sort::Total => b.total.cmp(&a.total).then_with(by_own),
                Sort::Name => a.name.cmp(&b.name),
            };
            order.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

fn of_function(function: &TopFunction) -> Row {
    let TopFunction { name, place, own, total } = function.clone();
    Row { own, total: Some(total), name, place }
}

fn of_path(path: &TopPath) -> Row {
    // The end first: what is cut off is the beginning.
    let names: Vec<&str> = path.names.iter().rev().map(String::as_str).collect();
    Row { own: path.own, total: None, name: names.join(" < "), place: String::new() }
}

fn of_count(count: &Counted) -> Row {
    Row { own: count.count, total: None, name: count.name.clone(), place: count.source.clone() }
}

/// What is new in `now`.
fn since(base: &TopView, now: &TopView) -> TopView {
    // After a reset everything is.
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
            .map(|row| Counted {
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

    /// Two seconds of some kernel, times `times`.
    pub fn view(times: u64) -> TopView {
        let function = |name: &str, place: &str, own, total| TopFunction {
            name: name.into(),
            place: place.into(),
            own: own * times,
            total: total * times,
        };
        let count = |kind: &str, name: &str, count, source: &str| Counted {
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

    pub fn names(state: &State) -> Vec<String> {
        state.rows().into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn keys_sort_filter_and_walk() {
        let mut state = State::default();
        state.take(view(1));
        assert_eq!(names(&state), ["clear_page", "tcp_ack", "ksys_read"]);
        assert_eq!(state.key(Key::Char('s')), Wish::Nothing);
        assert_eq!(names(&state), ["ksys_read", "tcp_ack", "clear_page"]);
        state.key(Key::Char('s'));
        assert_eq!(names(&state), ["clear_page", "ksys_read", "tcp_ack"]);
        for key in [
            Key::Char('/'),
            Key::Char('N'),
            Key::Char('e'),
            Key::Char('t'),
            Key::Char('q'),
            Key::Backspace,
            Key::Enter,
        ] {
            assert_eq!(state.key(key), Wish::Nothing);
        }
        assert_eq!(
            (names(&state), state.filter.as_str(), state.typing),
            (vec!["tcp_ack".to_string()], "Net", false)
        );
        state.key(Key::Char('/'));
        state.key(Key::Escape);
        assert_eq!((names(&state).len(), state.typing), (3, false));
        state.key(Key::Next);
        assert_eq!((state.tab, names(&state)), (Tab::Paths, vec!["tcp_ack < ksys_read < redis".to_string()]));
        state.key(Key::Previous);
        state.key(Key::Previous);
        assert_eq!((state.tab, names(&state)), (Tab::Rates, vec!["LOC Local timer interrupts".to_string()]));
        state.key(Key::Char('3'));
        assert_eq!(
            (state.tab, names(&state)),
            (Tab::Subsystems, vec!["arch/x86".to_string(), "net/ipv4".to_string()])
        );
        assert_eq!(
            [state.key(Key::Char('w')), state.key(Key::Char('q')), state.key(Key::Interrupt)],
            [Wish::Save, Wish::Quit, Wish::Quit]
        );
    }

    #[test]
    fn a_frozen_picture_stands_and_a_recent_one_is_of_the_last_interval() {
        let mut state = State::default();
        state.take(view(1));
        state.key(Key::Char(' '));
        state.take(view(3));
        assert_eq!(state.view().samples, 4_000);
        state.key(Key::Char(' '));
        assert_eq!(state.view().samples, 12_000);
        state.take(view(4));
        state.key(Key::Char('i'));
        assert_eq!(
            (state.view().samples, state.view().wall_ns, state.rows()[0].own),
            (4_000, 2_000_000_000, 400)
        );
        // After a reset the new figures are what is new.
        state.take(view(1));
        assert_eq!(state.view().samples, 4_000);
    }
}
