//! Figures of a stream of tags while it arrives.
//!
//! An import sees all records and finds the process that resumes after a context switch. A stream
//! shows what has passed: after a switch the time until the first exit belongs to the function that
//! is exited, and if a function is entered first, to no known function.

use super::dump::DumpRecord;
use super::names::{TagKind, TagNames, TagRole};
use kerntune_trace::TagLayout;
use std::fmt::Write;

/// Limit of open functions, as of an import.
const DEPTH_LIMIT: usize = 10_000;

/// Calls and times of functions so far.
#[derive(Debug)]
pub struct LiveFigures<'a> {
    names: &'a TagNames,
    layout: TagLayout,
    last: Option<u64>,
    /// Open functions since the last context switch.
    stack: Vec<usize>,
    rows: Vec<NameFigures>,
    records: u64,
    unknown_tags: u64,
    total: u128,
    idle: u128,
    /// Time in no known function.
    other: u128,
}

/// Figures of a name; times are ticks.
#[derive(Debug, Clone, Copy, Default)]
struct NameFigures {
    calls: u64,
    net: u128,
}

/// Function or point with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRow {
    /// Name from the names file.
    pub name: String,
    /// Entries, or passages of a point.
    pub calls: u64,
    /// Time in the function itself, in ns.
    pub net_ns: u64,
    /// Share of the time in which the processor was not idle, in percent.
    pub busy_percent: f64,
}

impl<'a> LiveFigures<'a> {
    /// Begins without a record.
    pub fn new(names: &'a TagNames, layout: TagLayout) -> Self {
        let rows = vec![NameFigures::default(); names.all().len()];
        Self {
            names,
            layout,
            last: None,
            stack: Vec::new(),
            rows,
            records: 0,
            unknown_tags: 0,
            total: 0,
            idle: 0,
            other: 0,
        }
    }

    /// Adds the next records.
    pub fn add(&mut self, records: &[DumpRecord]) {
        records.iter().for_each(|record| self.add_record(*record));
    }

    fn kind(&self, name: usize) -> TagKind {
        self.names.all()[name].kind
    }

    fn add_record(&mut self, record: DumpRecord) {
        let role = self.names.role(record.tag);
        let last = self.last.replace(record.time).unwrap_or(record.time);
        let gap = u128::from(record.time.wrapping_sub(last) & self.layout.max_time());
        self.records += 1;
        self.total += gap;
        match (self.stack.last(), role) {
            (Some(&top), _) if matches!(self.kind(top), TagKind::ContextSwitch | TagKind::Idle) => {
                self.idle += gap;
            }
            (Some(&top), _) => self.rows[top].net += gap,
            (None, Some(TagRole::Exit(function))) if self.kind(function) != TagKind::ContextSwitch => {
                self.rows[function].net += gap;
            }
            // A capture that begins inside of a context switch.
            (None, Some(TagRole::Exit(_))) => self.idle += gap,
            (None, _) => self.other += gap,
        }
        match role {
            None => self.unknown_tags += 1,
            Some(TagRole::Point(point)) => self.rows[point].calls += 1,
            Some(TagRole::Entry(function)) => {
                self.rows[function].calls += 1;
                if self.kind(function) == TagKind::ContextSwitch || self.stack.len() >= DEPTH_LIMIT {
                    self.stack.clear();
                }
                self.stack.push(function);
            }
            Some(TagRole::Exit(function)) => {
                if let Some(at) = self.stack.iter().rposition(|&open| open == function) {
                    self.stack.truncate(at);
                }
            }
        }
    }

    /// Returns the number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the names with calls or time, by decreasing time in the function itself.
    pub fn rows(&self) -> Vec<LiveRow> {
        let busy = self.total - self.idle;
        let mut all: Vec<LiveRow> = self
            .names
            .all()
            .iter()
            .zip(&self.rows)
            .filter(|(_, figures)| figures.calls > 0 || figures.net > 0)
            .map(|(name, figures)| LiveRow {
                name: name.name.clone(),
                calls: figures.calls,
                net_ns: self.layout.ns(figures.net).unwrap_or(u64::MAX),
                busy_percent: percent(figures.net, busy),
            })
            .collect();
        all.sort_by(|a, b| (b.net_ns, b.calls, &a.name).cmp(&(a.net_ns, a.calls, &b.name)));
        all
    }

    /// Returns the line above the table, without a line end.
    pub fn heading(&self) -> String {
        let seconds = self.layout.ns(self.total).unwrap_or(u64::MAX) as f64 / 1e9;
        let mut text = format!(
            "{} records, {seconds:.3} s: {:.1} % idle, {:.1} % of busy in no known function",
            self.records,
            percent(self.idle, self.total),
            percent(self.other, self.total - self.idle)
        );
        if self.unknown_tags > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {} unknown tags", self.unknown_tags);
        }
        text
    }

    /// Returns heading and table with at most `max` rows, and a line end after each line.
    pub fn text(&self, max: usize) -> String {
        let mut text =
            format!("{}\n{:>12} {:>14} {:>7}  function\n", self.heading(), "calls", "net µs", "% busy");
        for LiveRow { name, calls, net_ns, busy_percent } in self.rows().into_iter().take(max) {
            let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let _ = writeln!(text, "{calls:>12} {:>14.1} {busy_percent:>7.2}  {name}", net_ns as f64 / 1e3);
        }
        text
    }
}

fn percent(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "main/502\nread/504\nintr/506\nswtch/600!\nMGET/1002=\n";

    fn figures(names: &TagNames, records: &[(u64, u64)]) -> (Vec<(String, u64, u64)>, String) {
        let mut figures = LiveFigures::new(names, TagLayout::MCRAE);
        for &(tag, time) in records {
            figures.add(&[DumpRecord { tag, time }]);
        }
        assert_eq!(figures.records(), records.len() as u64);
        let rows = figures.rows();
        (rows.into_iter().map(|row| (row.name, row.calls, row.net_ns)).collect(), figures.text(2))
    }

    #[test]
    fn time_belongs_to_the_innermost_function() {
        let names = TagNames::parse([("n", NAMES)]).unwrap();
        // main with read in it, the counter wraps; then 5 µs of user code and an unknown tag.
        let records = [(502, 0xff_fffe), (504, 1), (1002, 2), (505, 11), (503, 12), (700, 17)];
        let (rows, text) = figures(&names, &records);
        let row = |name: &str, calls, ns| (name.to_string(), calls, ns);
        assert_eq!(rows, [row("read", 1, 10_000), row("main", 1, 4_000), row("MGET", 1, 0)]);
        assert!(
            text.starts_with(
                "6 records, 0.000 s: 0.0 % idle, 26.3 % of busy in no known function, 1 unknown"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn a_switch_is_idle_and_what_is_exited_after_it_ran() {
        let names = TagNames::parse([("n", NAMES)]).unwrap();
        // main switches away; an interrupt of 3 µs in 10 µs of idle time; read goes on for 4 µs.
        let records =
            [(502, 0), (600, 5), (506, 8), (507, 11), (601, 15), (505, 19), (503, 20), (504, 21), (505, 23)];
        let (rows, text) = figures(&names, &records);
        let row = |name: &str, calls, ns| (name.to_string(), calls, ns);
        assert_eq!(
            rows,
            [row("main", 1, 6_000), row("read", 1, 6_000), row("intr", 1, 3_000), row("swtch", 1, 0)]
        );
        assert!(text.contains("30.4 % idle"), "{text}");
    }

    #[test]
    fn any_records_do_no_harm() {
        let names = TagNames::parse([("n", "f/2\ns/4!\nescape\u{1b}[2J/6\n")]).unwrap();
        let mut figures = LiveFigures::new(&names, TagLayout::new(64, 64, 1_000_000_000_000).unwrap());
        for at in 0..100_000u64 {
            figures.add(&[DumpRecord { tag: at * at % 9, time: at.wrapping_mul(0x9e37_79b9_7f4a_7c15) }]);
        }
        assert!(!figures.text(10).contains('\u{1b}'));
    }
}
