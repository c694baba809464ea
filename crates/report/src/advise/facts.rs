//! What rules can ask of a profile, and whether a condition holds.

use super::when::When;
use crate::characterise::counters::NOT_TRACED;
use crate::characterise::facts::Character;
use crate::characterise::split::{is_user, Group};
use crate::sampled;
use crate::view::share;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_profile::{Profile, Scope, ThreadKind};
use std::collections::{BTreeMap, HashSet};
use wildmatch::WildMatch;

/// A figure of the whole: its name, the words after it, and how it is had; none where the profile does not have it.
type Fact = (&'static str, &'static str, fn(&Character) -> Option<f64>);

const FACTS: [Fact; 12] = [
    ("kernel-percent", "% of the busy time is kernel code", |of| busy(of, Group::Kernel)),
    ("user-percent", "% of the busy time is user code", |of| busy(of, Group::User)),
    ("interrupt-percent", "% of the busy time is hard interrupts", |of| busy(of, Group::Interrupt)),
    ("softirq-percent", "% of the busy time is softirqs", |of| busy(of, Group::Softirq)),
    ("idle-percent", "% of the time is idle", |of| {
        (of.elapsed_ns > 0).then(|| share(of.idle_ns, of.elapsed_ns))
    }),
    ("cpus", "CPUs", |of| Some(of.cpus as f64)),
    ("switches-per-second", "context switches a second", |of| {
        of.switches.all.per_second.filter(|_| of.entries)
    }),
    ("page-faults-per-second", "page faults a second", |of| {
        of.entries.then(|| entered(of, |name| name.contains("exc_page_fault"), true)).flatten()
    }),
    ("timer-interrupts-per-second", "interrupts of the timer a second", |of| {
        of.entries.then(|| entered(of, |name| name.contains("timer"), false)).flatten()
    }),
    ("device-interrupts-per-second", "interrupts of devices a second", |of| {
        of.entries.then(|| entered(of, |name| name.contains("common_interrupt"), false)).flatten()
    }),
    ("migrations-per-second", "migrations from CPU to CPU a second", |of| {
        let migrations = &of.scheduling.as_ref()?.migrations;
        Some(migrations.iter().filter_map(|count| count.per_second).sum())
    }),
    ("lock-percent", "% of the busy time is waiting for locks", |of| {
        of.functions.then_some(of.locks.percent_busy)
    }),
];

fn busy(of: &Character, group: Group) -> Option<f64> {
    (of.busy_ns > 0 && of.entries).then(|| of.percent_of_busy(group))
}

/// How often in a second the kernel was entered so; none if it was not counted.
fn entered(of: &Character, is_it: impl Fn(&str) -> bool, exceptions: bool) -> Option<f64> {
    let events = if exceptions { &of.exceptions } else { &of.interrupts };
    let those: Vec<_> = events.iter().filter(|event| is_it(&event.name)).collect();
    if those.iter().any(|event| event.count.is_none()) {
        return None;
    }
    Some(those.iter().filter_map(|event| event.per_second).sum())
}

/// Why nothing is said of functions that were not chosen.
const UNTRACED: &str = "only some functions were traced (--only, --skip)";

/// Said of the configuration of a damaged kernel.
pub(crate) const DAMAGED_KERNEL: &str = "the recorded kernel is damaged";

/// Whether there is such a fact.
pub(crate) fn is_known(name: &str) -> bool {
    FACTS.iter().any(|(known, ..)| *known == name)
}

/// All names, for messages.
pub(crate) fn names() -> String {
    FACTS.map(|(name, ..)| name).join(", ")
}

/// What became of a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// It holds: the figures that say so, and what part of the busy time they are of.
    Holds { evidence: String, percent_busy: Option<f64> },
    /// It does not: the figures that say so.
    Fails(String),
    /// The profile, or what is known of its kernel, does not say.
    Unknown(String),
}

/// A function of the kernel: calls if they were counted, and its own time.
struct Function {
    name: String,
    calls: Option<u64>,
    net_ns: u64,
}

/// The configuration of the kernel that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedConfig<'a> {
    /// Its text.
    Known(&'a str),
    /// The kernel is not at hand.
    Missing,
    /// The kernel is at hand and damaged: nothing in it is believed.
    Damaged,
}

/// All that is asked.
pub(crate) struct Facts<'a> {
    character: &'a Character,
    functions: Vec<Function>,
    /// Names of threads, and their own time, of the kernel for them and in user mode.
    threads: Vec<(String, u64)>,
    /// Names of the functions that ran in any region: a set-up may need what a region does not.
    ran: HashSet<String>,
    /// By option; or why none is known.
    config: Result<BTreeMap<&'a str, &'a str>, &'static str>,
    sampled: bool,
    /// Whether only some functions were traced: one that is not there may have run.
    selected: bool,
}

impl<'a> Facts<'a> {
    /// The facts of a profile and of the kernel that was recorded.
    pub fn new(
        profile: &Profile,
        scope: &Scope,
        character: &'a Character,
        config: RecordedConfig<'a>,
    ) -> Self {
        let tables = &profile.tables;
        let of_kernel = |at: usize| tables.symbols.get(at).filter(|symbol| !is_user(profile, symbol));
        let mut functions = Vec::new();
        for totals in tables.totals(|region| scope.contains(region)) {
            if let Some(symbol) = of_kernel(totals.function.get() as usize) {
                let calls = sampled::calls_of(profile, totals.calls);
                functions.push(Function { name: symbol.name.clone(), calls, net_ns: totals.net_ns.get() });
            }
        }
        let selected = tables.symbols.iter().any(|symbol| symbol.name == NOT_TRACED);
        let everywhere = tables.totals(|_| true).into_iter();
        let ran = everywhere.filter(|totals| totals.calls > 0 || totals.net_ns.get() > 0);
        let ran =
            ran.filter_map(|totals| Some(of_kernel(totals.function.get() as usize)?.name.clone())).collect();
        let threads = tables.threads.iter().filter(|row| scope.contains(row.region));
        let threads = threads.filter(|row| row.kind == ThreadKind::Thread);
        let threads = threads.map(|row| (row.comm.clone(), row.net_ns.get())).collect();
        let config = match config {
            RecordedConfig::Known(text) => Ok(lines(text)),
            RecordedConfig::Missing => Err("the configuration of the recorded kernel is not at hand"),
            RecordedConfig::Damaged => Err(DAMAGED_KERNEL),
        };
        let sampled = sampled::is(profile);
        Self { character, functions, threads, ran, config, sampled, selected }
    }

    /// Whether a condition holds.
    pub fn ask(&self, when: &When) -> Answer {
        match &when.fact {
            Some(name) => self.fact(name, when),
            None if !when.threads.is_empty() => self.threads(when),
            None if when.config.is_empty() => match self.functions(when) {
                Answer::Fails(_) if self.selected && !when.never => Answer::Unknown(UNTRACED.into()),
                Answer::Holds { .. } if self.selected && when.never => Answer::Unknown(UNTRACED.into()),
                answer => answer,
            },
            None => self.config(&when.config),
        }
    }

    fn fact(&self, name: &str, when: &When) -> Answer {
        let Some((_, words, of)) = FACTS.iter().find(|(known, ..)| *known == name) else {
            return Answer::Unknown(format!("there is no fact {name}"));
        };
        let Some(value) = of(self.character) else {
            return Answer::Unknown(format!("the profile does not say how many {words}"));
        };
        let evidence = format!("{} {words}", number(value));
        let holds =
            when.at_least.is_none_or(|least| value >= least) && when.at_most.is_none_or(|most| value <= most);
        match holds {
            true => Answer::Holds { evidence, percent_busy: None },
            false => {
                let least = when.at_least.map(|least| format!("at least {}", number(least)));
                let most = when.at_most.map(|most| format!("at most {}", number(most)));
                let asked: Vec<String> = least.into_iter().chain(most).collect();
                Answer::Fails(format!("{evidence}; {} asked for", asked.join(" and ")))
            }
        }
    }

    fn config(&self, asked: &[String]) -> Answer {
        let config = match &self.config {
            Ok(config) => config,
            Err(why) => return Answer::Unknown((*why).into()),
        };
        for line in asked {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let has = config.get(name).copied().unwrap_or("n");
            if has != value {
                return Answer::Fails(format!("the kernel has {name}={has}"));
            }
        }
        Answer::Holds { evidence: format!("the kernel has {}", asked.join(", ")), percent_busy: None }
    }

    fn threads(&self, when: &When) -> Answer {
        if self.threads.is_empty() {
            return Answer::Unknown("no threads were recorded".into());
        }
        let patterns: Vec<WildMatch> = when.threads.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let those = self.threads.iter().filter(|(name, _)| patterns.iter().any(|of| of.matches(name)));
        let net_ns = those.fold(0u64, |sum, (_, net_ns)| sum.saturating_add(*net_ns));
        let (percent, least) = (share(net_ns, self.character.busy_ns), when.percent.unwrap_or(0.0));
        let named = when.threads.join(", ");
        // What its threads execute is who it is, and not what is at stake.
        match net_ns > 0 && percent >= least {
            true => Answer::Holds {
                evidence: format!("{named} executes {} % of the busy time", fixed(percent, 2)),
                percent_busy: None,
            },
            false => Answer::Fails(match net_ns {
                0 => format!("no thread {named} ran"),
                _ => format!(
                    "{named} executes {} % of the busy time; {} % asked for",
                    fixed(percent, 2),
                    number(least)
                ),
            }),
        }
    }

    fn functions(&self, when: &When) -> Answer {
        if !self.character.functions {
            return Answer::Unknown("no functions were recorded".into());
        }
        let patterns: Vec<WildMatch> = when.functions.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let is_one = |name: &str| patterns.iter().any(|pattern| pattern.matches(name));
        let called = when.functions.join(", ");
        if when.never {
            return match (self.ran.iter().filter(|name| is_one(name)).min(), self.sampled) {
                (Some(name), _) => Answer::Fails(format!("{name} ran")),
                (None, true) => Answer::Unknown("samples do not say what never ran".into()),
                (None, false) => {
                    Answer::Holds { evidence: format!("none of {called} ran"), percent_busy: None }
                }
            };
        }
        let mut those: Vec<&Function> =
            self.functions.iter().filter(|function| is_one(&function.name)).collect();
        those.sort_by(|a, b| b.net_ns.cmp(&a.net_ns).then_with(|| a.name.cmp(&b.name)));
        let net_ns = those.iter().fold(0u64, |sum, function| sum.saturating_add(function.net_ns));
        let percent = share(net_ns, self.character.busy_ns);
        let calls = those.iter().try_fold(0u64, |sum, function| Some(sum.saturating_add(function.calls?)));
        let named: Vec<&str> = those.iter().take(3).map(|function| function.name.as_str()).collect();
        let more = if those.len() > 3 { format!(" and {} more", those.len() - 3) } else { String::new() };
        let named = match named.is_empty() {
            true => format!("no function {called} ran"),
            false => format!("{}{more}: {} % of the busy time", named.join(", "), fixed(percent, 2)),
        };
        let (holds, evidence) = match (when.percent, when.calls_per_second) {
            (Some(least), _) => (percent >= least && net_ns > 0, named),
            (None, least) => {
                let passed = self.character.passed_ns;
                let (Some(calls), true) = (calls, passed > 0) else {
                    return Answer::Unknown(format!("calls of {called} were not counted"));
                };
                let per_second = calls as f64 * 1e9 / passed as f64;
                let rate = format!("{} calls, {} a second", grouped(calls), number(per_second));
                (calls > 0 && per_second >= least.unwrap_or(0.0), format!("{named}, {rate}"))
            }
        };
        match holds {
            true => Answer::Holds { evidence, percent_busy: Some(percent) },
            false => {
                let asked = when.percent.map(|least| format!("{} % asked for", number(least)));
                let rate =
                    when.calls_per_second.map(|least| format!("{} calls a second asked for", number(least)));
                Answer::Fails(format!("{evidence}; {}", asked.or(rate).unwrap_or_default()))
            }
        }
    }
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => grouped(value.round() as u64),
        value => figure(value),
    }
}

/// Options by name; what is not set is `n`.
fn lines(config: &str) -> BTreeMap<&str, &str> {
    let set = config.lines().filter(|line| line.starts_with("CONFIG_"));
    set.filter_map(|line| line.split_once('=')).map(|(name, value)| (name, value.trim())).collect()
}
