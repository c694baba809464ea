//! Facts that rules can query, and evaluation of their conditions.

use super::when::RuleCondition;
use crate::characterize::counters::NOT_TRACED;
use crate::characterize::facts::WorkloadCharacter;
use crate::characterize::split::PartGroup;
use crate::sampled;
use crate::view::is_user;
use kerntune_profile::{Profile, RegionScope, ThreadKind, Ticks};
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::share;
use std::collections::{BTreeMap, HashSet};
use toml::{Table, Value};
use wildmatch::WildMatch;

/// Fact of the whole workload: name, text after the figure, and getter, which returns `None` if the
/// profile lacks the figure.
type FactDefinition = (&'static str, &'static str, fn(&WorkloadCharacter) -> Option<f64>);

const FACTS: [FactDefinition; 12] = [
    ("kernel-percent", "% of the busy time is kernel code", |of| busy(of, PartGroup::Kernel)),
    ("user-percent", "% of the busy time is user code", |of| busy(of, PartGroup::User)),
    ("interrupt-percent", "% of the busy time is hard interrupts", |of| busy(of, PartGroup::Interrupt)),
    ("softirq-percent", "% of the busy time is softirqs", |of| busy(of, PartGroup::Softirq)),
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

fn busy(of: &WorkloadCharacter, group: PartGroup) -> Option<f64> {
    (of.busy_ticks > 0 && of.entries).then(|| of.percent_of_busy(group))
}

/// Returns the kernel entries per second by matching interrupts or exceptions; `None` if they were
/// not counted.
fn entered(of: &WorkloadCharacter, is_it: impl Fn(&str) -> bool, exceptions: bool) -> Option<f64> {
    let events = if exceptions { &of.exceptions } else { &of.interrupts };
    let those: Vec<_> = events.iter().filter(|event| is_it(&event.name)).collect();
    if those.iter().any(|event| event.count.is_none()) {
        return None;
    }
    Some(those.iter().filter_map(|event| event.per_second).sum())
}

/// Reason why nothing is known of functions that were not traced.
const UNTRACED: &str = "only some functions were traced (--only, --skip)";

/// Reason why the configuration of a damaged kernel is not used.
pub(crate) const DAMAGED_KERNEL: &str = "the recorded kernel is damaged";

/// Checks whether a fact of this name exists.
pub(crate) fn is_known(name: &str) -> bool {
    FACTS.iter().any(|(known, ..)| *known == name)
}

/// Returns all fact names, for error messages.
pub(crate) fn names() -> String {
    FACTS.map(|(name, ..)| name).join(", ")
}

/// Share of the busy time, in per cent, from which functions whose calls were not counted are called
/// often enough for a rule that asks for calls.
const WORTH_PERCENT: f64 = 0.1;

/// Checks whether a counter of this name belongs to a fact.
type IsCounter = fn(&str) -> bool;

/// Facts by the counters of the running kernel: fact, kind of counter, and test of its name.
const COUNTED: [(&str, &str, IsCounter); 4] = [
    ("page-faults-per-second", "fault", |name| name == "page faults"),
    ("timer-interrupts-per-second", "interrupt", |name| name.to_lowercase().contains("timer")),
    // Vectors of devices have numbers, those of the CPU letters.
    ("device-interrupts-per-second", "interrupt", |name| {
        name.starts_with(|c: char| c.is_ascii_digit()) && !name.to_lowercase().contains("timer")
    }),
    ("migrations-per-second", "migration", |_| true),
];

/// Fact that the running kernel counted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CountedFact {
    per_second: f64,
    /// True if it is of the whole machine, and only a part of it was profiled.
    is_of_more: bool,
}

/// Outcome of a rule's condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConditionOutcome {
    /// The condition holds: the figures that show it, and the share of the busy time that they
    /// concern.
    Holds { evidence: String, percent_busy: Option<f64> },
    /// The condition fails: the figures that show it.
    Fails(String),
    /// Neither the profile nor its kernel's configuration decides: the reason.
    Unknown(String),
}

/// Kernel function with its self time, and its calls if they were counted.
struct KernelFunction {
    name: String,
    calls: Option<u64>,
    self_ticks: u64,
}

/// Configuration of the recorded kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedConfig<'a> {
    /// Text of the configuration.
    Known(&'a str),
    /// The kernel is not available.
    Missing,
    /// The kernel is available but damaged; its configuration is not used.
    Damaged,
}

/// Facts of a workload and its kernel that conditions are evaluated against.
pub(crate) struct WorkloadFacts<'a> {
    character: &'a WorkloadCharacter,
    functions: Vec<KernelFunction>,
    /// Names of threads with their self time, kernel and user mode.
    threads: Vec<(String, u64)>,
    /// Names of functions that ran in any region: setup may need functions that the region does
    /// not.
    ran: HashSet<String>,
    /// Configuration by option, or the reason why it is unknown.
    config: Result<BTreeMap<&'a str, &'a str>, String>,
    /// Samples of busy time, if times were sampled.
    samples: Option<u64>,
    /// Facts that the running kernel counted itself.
    counted: BTreeMap<&'static str, CountedFact>,
    /// Settings of the machine that was profiled.
    settings: BTreeMap<String, String>,
    /// Only some functions were traced, so that a missing one may have run.
    selected: bool,
}

impl<'a> WorkloadFacts<'a> {
    /// Collects the facts of a profile and of its kernel.
    pub fn new(
        profile: &Profile,
        scope: &RegionScope,
        character: &'a WorkloadCharacter,
        config: RecordedConfig<'a>,
    ) -> Self {
        let tables = &profile.tables;
        let of_kernel = |at: usize| tables.symbols.get(at).filter(|symbol| !is_user(profile, symbol));
        let mut functions = Vec::new();
        for totals in tables.totals(|region| scope.contains(region)) {
            if let Some(symbol) = of_kernel(totals.function.get() as usize) {
                let calls = sampled::calls_of(profile, totals.calls);
                functions.push(KernelFunction {
                    name: symbol.name.clone(),
                    calls,
                    self_ticks: totals.self_ticks.get(),
                });
            }
        }
        let selected = tables.symbols.iter().any(|symbol| symbol.name == NOT_TRACED);
        let everywhere = tables.totals(|_| true).into_iter();
        let ran = everywhere.filter(|totals| totals.calls > 0 || totals.self_ticks.get() > 0);
        let ran =
            ran.filter_map(|totals| Some(of_kernel(totals.function.get() as usize)?.name.clone())).collect();
        let threads = tables.threads.iter().filter(|row| scope.contains(row.region));
        let threads = threads.filter(|row| row.kind == ThreadKind::Thread);
        let threads = threads.map(|row| (row.comm.clone(), row.self_ticks.get())).collect();
        let config = match config {
            RecordedConfig::Known(text) => Ok(lines(text)),
            RecordedConfig::Missing => Err(missing_config(profile)),
            RecordedConfig::Damaged => Err(DAMAGED_KERNEL.into()),
        };
        let sampled = profile.manifest.sampled.as_ref();
        let samples = sampled.map(|sampled| sampled.samples_in(Ticks(character.busy_ticks)));
        let settings = profile.manifest.host.as_ref().map(|host| host.settings.clone()).unwrap_or_default();
        let counted = counted_facts(profile);
        Self { character, functions, threads, ran, config, samples, counted, settings, selected }
    }

    /// Evaluates a condition.
    pub fn ask(&self, when: &RuleCondition) -> ConditionOutcome {
        match &when.fact {
            Some(name) => self.fact(name, when),
            None if !when.threads.is_empty() => self.threads(when),
            None if when.config.is_empty() => match self.functions(when) {
                ConditionOutcome::Fails(_) if self.selected && !when.never => {
                    ConditionOutcome::Unknown(UNTRACED.into())
                }
                ConditionOutcome::Holds { .. } if self.selected && when.never => {
                    ConditionOutcome::Unknown(UNTRACED.into())
                }
                answer => answer,
            },
            None => self.config(&when.config),
        }
    }

    fn fact(&self, name: &str, when: &RuleCondition) -> ConditionOutcome {
        let Some((_, words, of)) = FACTS.iter().find(|(known, ..)| *known == name) else {
            return ConditionOutcome::Unknown(format!("there is no fact {name}"));
        };
        let counted = self.counted.get(name);
        // An interrupt without a sample has not been counted as none.
        let is_of_counters = self.samples.is_some() && COUNTED.iter().any(|(known, ..)| *known == name);
        let value = match is_of_counters {
            true => counted.map(|counted| counted.per_second),
            false => of(self.character),
        };
        let Some(value) = value else {
            return ConditionOutcome::Unknown(format!("the profile does not say how many {words}"));
        };
        let everywhere = counted.is_some_and(|counted| counted.is_of_more);
        let evidence = match everywhere {
            true => format!("{} {words} on the whole machine", number(value)),
            false => format!("{} {words}", number(value)),
        };
        let holds =
            when.at_least.is_none_or(|min| value >= min) && when.at_most.is_none_or(|max| value <= max);
        match holds {
            // What was watched has an unknown part of them.
            _ if everywhere && (holds || when.at_most.is_some()) => ConditionOutcome::Unknown(format!(
                "{evidence}; those of what was watched are not counted apart"
            )),
            true => ConditionOutcome::Holds { evidence, percent_busy: None },
            false => {
                let min = when.at_least.map(|min| format!("at least {}", number(min)));
                let max = when.at_most.map(|max| format!("at most {}", number(max)));
                let asked: Vec<String> = min.into_iter().chain(max).collect();
                ConditionOutcome::Fails(format!("{evidence}; {} asked for", asked.join(" and ")))
            }
        }
    }

    /// Returns the words that a change of these settings is in force already on the machine that was
    /// profiled, or `None` if it is not, or if that is not known.
    pub fn in_force(&self, change: &Table) -> Option<String> {
        let mut named = Vec::new();
        for (kind, value) in change {
            match (kind.as_str(), value) {
                ("sysctl", Value::Table(all)) => {
                    for (name, value) in all {
                        let has = self.settings.get(&format!("sysctl {name}"))?;
                        if value.as_str() != Some(has) {
                            return None;
                        }
                        named.push(format!("{name} is {has}"));
                    }
                }
                ("command_line", Value::String(words)) => {
                    let given: Vec<&str> = self.settings.get("command_line")?.split_whitespace().collect();
                    for word in words.split_whitespace() {
                        // The setting may have been made later, without the command line.
                        let set = word
                            .split_once('=')
                            .filter(|(name, value)| self.settings.get(*name).is_some_and(|has| has == value));
                        if set.is_none() && !given.contains(&word) {
                            return None;
                        }
                        named.push(format!("{word} is set"));
                    }
                }
                _ => return None,
            }
        }
        (!named.is_empty()).then(|| format!("it is in force already: {}", named.join(", ")))
    }

    fn config(&self, asked: &[String]) -> ConditionOutcome {
        let config = match &self.config {
            Ok(config) => config,
            Err(why) => return ConditionOutcome::Unknown(why.clone()),
        };
        for line in asked {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let has = config.get(name).copied().unwrap_or("n");
            if has != value {
                return ConditionOutcome::Fails(format!("the kernel has {name}={has}"));
            }
        }
        ConditionOutcome::Holds {
            evidence: format!("the kernel has {}", asked.join(", ")),
            percent_busy: None,
        }
    }

    fn threads(&self, when: &RuleCondition) -> ConditionOutcome {
        if self.threads.is_empty() {
            return ConditionOutcome::Unknown("no threads were recorded".into());
        }
        let patterns: Vec<WildMatch> = when.threads.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let those = self.threads.iter().filter(|(name, _)| patterns.iter().any(|of| of.matches(name)));
        let self_ticks = those.fold(0u64, |sum, (_, self_ticks)| sum.saturating_add(*self_ticks));
        let (percent, min) = (share(self_ticks, self.character.busy_ticks), when.percent.unwrap_or(0.0));
        let named = when.threads.join(", ");
        // The threads identify the workload; their time is not what could be gained.
        match self_ticks > 0 && percent >= min {
            true => ConditionOutcome::Holds {
                evidence: format!("{named} executes {} % of the busy time", fixed(percent, 2)),
                percent_busy: None,
            },
            false => ConditionOutcome::Fails(match self_ticks {
                0 if self.samples.is_some() => format!("no thread {named} was sampled"),
                0 => format!("no thread {named} ran"),
                _ => format!(
                    "{named} executes {} % of the busy time; {} % asked for",
                    fixed(percent, 2),
                    number(min)
                ),
            }),
        }
    }

    fn functions(&self, when: &RuleCondition) -> ConditionOutcome {
        if !self.character.functions {
            return ConditionOutcome::Unknown("no functions were recorded".into());
        }
        let patterns: Vec<WildMatch> = when.functions.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let is_one = |name: &str| patterns.iter().any(|pattern| pattern.matches(name));
        let called = when.functions.join(", ");
        if when.never {
            return match (self.ran.iter().filter(|name| is_one(name)).min(), self.samples.is_some()) {
                (Some(name), _) => ConditionOutcome::Fails(format!("{name} ran")),
                (None, true) => ConditionOutcome::Unknown("samples do not say what never ran".into()),
                (None, false) => {
                    ConditionOutcome::Holds { evidence: format!("none of {called} ran"), percent_busy: None }
                }
            };
        }
        let mut those: Vec<&KernelFunction> =
            self.functions.iter().filter(|function| is_one(&function.name)).collect();
        those.sort_by(|a, b| b.self_ticks.cmp(&a.self_ticks).then_with(|| a.name.cmp(&b.name)));
        let self_ticks = those.iter().fold(0u64, |sum, function| sum.saturating_add(function.self_ticks));
        let percent = share(self_ticks, self.character.busy_ticks);
        let calls = those.iter().try_fold(0u64, |sum, function| Some(sum.saturating_add(function.calls?)));
        let named: Vec<&str> = those.iter().take(3).map(|function| function.name.as_str()).collect();
        let more = if those.len() > 3 { format!(" and {} more", those.len() - 3) } else { String::new() };
        if let Some(samples) = self.samples {
            let is_counted = !those.is_empty() && calls.is_some();
            if self_ticks == 0 && !is_counted {
                return unsampled(&called, samples, when.percent.unwrap_or(WORTH_PERCENT));
            }
            if when.percent.is_none() && calls.is_none() {
                let evidence =
                    format!("{}{more}: {} % of the busy time, sampled", named.join(", "), fixed(percent, 2));
                return match percent >= WORTH_PERCENT {
                    true => ConditionOutcome::Holds { evidence, percent_busy: Some(percent) },
                    false => ConditionOutcome::Fails(format!(
                        "{evidence}; calls were not counted, and less than {WORTH_PERCENT} % is not worth a change"
                    )),
                };
            }
        }
        let named = match named.is_empty() {
            true => format!("no function {called} ran"),
            false => format!("{}{more}: {} % of the busy time", named.join(", "), fixed(percent, 2)),
        };
        let (holds, evidence) = match (when.percent, when.calls_per_second) {
            (Some(min), _) => (percent >= min && self_ticks > 0, named),
            (None, min) => {
                let passed = self.character.passed_ns;
                let (Some(calls), true) = (calls, passed > 0) else {
                    return ConditionOutcome::Unknown(format!("calls of {called} were not counted"));
                };
                let per_second = calls as f64 * 1e9 / passed as f64;
                let rate = format!("{} calls, {} a second", grouped(calls), number(per_second));
                (calls > 0 && per_second >= min.unwrap_or(0.0), format!("{named}, {rate}"))
            }
        };
        match holds {
            true => ConditionOutcome::Holds { evidence, percent_busy: Some(percent) },
            false => {
                let asked = when.percent.map(|min| format!("{} % asked for", number(min)));
                let rate =
                    when.calls_per_second.map(|min| format!("{} calls a second asked for", number(min)));
                ConditionOutcome::Fails(format!("{evidence}; {}", asked.or(rate).unwrap_or_default()))
            }
        }
    }
}

/// Reason why the configuration is not known.
fn missing_config(profile: &Profile) -> String {
    let looked = profile.manifest.host.as_ref().map_or(&[][..], |host| &host.config_looked);
    match looked {
        [] => "the configuration of the recorded kernel is not at hand".into(),
        looked => format!("the kernel's configuration was in none of {}", looked.join(", ")),
    }
}

/// Outcome for functions without a sample. With none of n samples, a share of 3/n is refuted with
/// 95 % confidence (rule of three).
fn unsampled(called: &str, samples: u64, asked: f64) -> ConditionOutcome {
    let bound = 300.0 / samples.max(1) as f64;
    let none = format!("none of {} samples is in {called}", grouped(samples));
    match bound < asked {
        true => ConditionOutcome::Fails(format!(
            "{none}: less than {} % of the busy time; {} % asked for",
            fixed(bound, 2),
            number(asked)
        )),
        false => ConditionOutcome::Unknown(format!(
            "{none}, which are too few to rule out {} % of the busy time: record for longer",
            number(asked)
        )),
    }
}

/// Returns the facts that the kernel counted itself while it was profiled.
fn counted_facts(profile: &Profile) -> BTreeMap<&'static str, CountedFact> {
    let manifest = &profile.manifest;
    let Some(sampled) = &manifest.sampled else { return BTreeMap::new() };
    let seconds = sampled.wall_ns.get() as f64 / 1e9;
    let mut facts = BTreeMap::new();
    for (fact, kind, is_it) in COUNTED {
        let mut rows = manifest.counted.iter().filter(|row| row.kind == kind).peekable();
        if rows.peek().is_none() || seconds <= 0.0 {
            continue;
        }
        // perf counts what is watched, `/proc` the whole machine.
        let is_of_more =
            sampled.filter.is_some() && rows.peek().is_some_and(|row| row.source.starts_with("/proc"));
        let count = rows.filter(|row| is_it(&row.name)).fold(0_u64, |sum, row| sum.saturating_add(row.count));
        facts.insert(fact, CountedFact { per_second: count as f64 / seconds, is_of_more });
    }
    facts
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => grouped(value.round() as u64),
        value => figure(value),
    }
}

/// Parses the configuration; options that are not set become `n`.
fn lines(config: &str) -> BTreeMap<&str, &str> {
    let set = config.lines().filter(|line| line.starts_with("CONFIG_"));
    set.filter_map(|line| line.split_once('=')).map(|(name, value)| (name, value.trim())).collect()
}
