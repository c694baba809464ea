//! Description of notable figures in sentences. Each sentence states figures of the page; one table
//! of thresholds decides what is notable.

use super::event::FigureBasis;
use super::facts::WorkloadCharacter;
use super::scheduler::IDLE_TASK;
use super::split::PartGroup;
use crate::groups::NO_SOURCE;
use crate::unit::readable;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::printable;
use kerntune_table::share;

/// Thresholds from which a figure is mentioned.
struct NotableThresholds {
    /// Idle, per cent of the elapsed time.
    idle: f64,
    /// Subsystem, per cent of the kernel functions' time.
    area: f64,
    /// Share of the first subsystem from which the time is "mostly" there.
    mostly: f64,
    /// System call, per cent of the busy time.
    syscall: f64,
    /// Hard interrupts and softirqs together, per cent of the busy time.
    interrupts: f64,
    /// Exceptions of all kinds, per cent of the busy time.
    exceptions: f64,
    /// Functions that wait for locks, per cent of the busy time; or waits, per cent of the elapsed
    /// time.
    locks: f64,
    /// Context switches per operation.
    switches_per_operation: f64,
    /// Context switches, interrupts or block requests per second. Chen's OLTP workloads (2006) have
    /// 40,000 to 180,000 switches and 40,000 to 150,000 interrupts.
    per_second: f64,
    /// L1I misses of kernel code, per 1,000 instructions.
    l1i_misses: f64,
}

const NOTABLE: NotableThresholds = NotableThresholds {
    idle: 50.0,
    area: 10.0,
    mostly: 40.0,
    syscall: 5.0,
    interrupts: 10.0,
    exceptions: 5.0,
    locks: 1.0,
    switches_per_operation: 0.5,
    per_second: 10_000.0,
    l1i_misses: 20.0,
};

const MAX_SENTENCES: usize = 5;

/// Source directories and their names in sentences; the first matching prefix decides.
const AREAS: [(&str, &str); 14] = [
    ("net", "the network"),
    ("fs", "file systems"),
    ("mm", "memory management"),
    ("block", "the block layer"),
    ("drivers", "drivers"),
    ("kernel/sched", "the scheduler"),
    ("kernel/locking", "locks"),
    ("kernel/rcu", "RCU"),
    ("kernel/time", "timers and clocks"),
    ("kernel/futex", "futexes"),
    ("kernel", "the core of the kernel"),
    ("arch", "entry and architecture code"),
    ("lib", "library code"),
    ("security", "security checks"),
];

/// Shares in words: smallest percentage and phrase.
const PORTIONS: [(f64, &str); 12] = [
    (97.5, "Nearly all"),
    (85.0, "Nine tenths"),
    (77.5, "Four fifths"),
    (71.0, "Three quarters"),
    (62.0, "Two thirds"),
    (55.0, "More than half"),
    (45.0, "Half"),
    (37.5, "Two fifths"),
    (29.0, "A third"),
    (22.5, "A quarter"),
    (15.0, "A fifth"),
    (0.0, "A part"),
];

fn portion(percent: f64) -> &'static str {
    PORTIONS.iter().find(|(from, _)| percent >= *from).map_or("A part", |(_, word)| word)
}

fn percent(value: f64) -> String {
    format!("{} %", fixed(value, 1))
}

/// Writes two to five sentences; one if little is notable.
pub(crate) fn words(of: &WorkloadCharacter) -> Vec<String> {
    if of.elapsed_ns == 0 {
        return vec!["No description: no time passed in the recording.".into()];
    }
    let candidates = [
        idle(of),
        busy(of),
        areas(of),
        syscalls(of),
        interrupts(of),
        switches(of),
        exceptions(of),
        locks(of),
        block(of),
        l1i(of),
    ];
    candidates.into_iter().flatten().take(MAX_SENTENCES).collect()
}

fn idle(of: &WorkloadCharacter) -> Option<String> {
    let idle = share(of.idle_ns, of.elapsed_ns);
    (idle >= NOTABLE.idle)
        .then(|| format!("It mostly waits: the CPU is idle for {} of the time.", percent(idle)))
}

fn busy(of: &WorkloadCharacter) -> Option<String> {
    if of.busy_ticks == 0 {
        return None;
    }
    let [user, kernel, hard, soft, unknown] =
        [PartGroup::User, PartGroup::Kernel, PartGroup::Interrupt, PartGroup::Softirq, PartGroup::Unknown]
            .map(|group| of.percent_of_busy(group));
    let interrupts = hard + soft;
    let parts = [(user, "user code"), (kernel, "kernel code"), (interrupts, "interrupts and softirqs")];
    let (max, what) = parts.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    if unknown > max {
        return Some(format!(
            "{} of its busy time is not told apart ({}).",
            portion(unknown),
            percent(unknown)
        ));
    }
    let others: Vec<String> = parts
        .iter()
        .filter(|(share, other)| *other != what && *share > 0.0)
        .map(|(share, other)| format!("{other} {}", percent(*share)))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    Some(format!("{} of its busy time is {what} ({}){others}.", portion(max), percent(max)))
}

fn area(directory: &str) -> Option<&'static str> {
    let is_in = |name: &str| {
        directory.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    AREAS.iter().find(|(name, _)| is_in(name)).map(|(_, words)| *words)
}

fn areas(of: &WorkloadCharacter) -> Option<String> {
    // Each area with its largest directory.
    let mut areas: Vec<(&str, f64, &str)> = Vec::new();
    for row in of.subsystems.iter().filter(|row| row.group != NO_SOURCE) {
        let words = area(&row.group).unwrap_or(&row.group);
        match areas.iter_mut().find(|(known, ..)| *known == words) {
            Some((_, sum, _)) => *sum += row.percent_kernel,
            None => areas.push((words, row.percent_kernel, &row.group)),
        }
    }
    areas.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
    areas.retain(|(_, share, _)| *share >= NOTABLE.area);
    areas.truncate(3);
    let mostly =
        if areas.first()?.1 >= NOTABLE.mostly { "mostly" } else { "spread over several parts, first" };
    let named: Vec<String> = areas
        .iter()
        .map(|(words, share, directory)| match directory.contains('/') {
            true => format!("{} ({}, {} first)", printable(words), percent(*share), printable(directory)),
            false => format!("{} ({})", printable(words), percent(*share)),
        })
        .collect();
    Some(format!("What the kernel executes is {mostly} {}.", list(&named)))
}

/// Joins names: `a, b and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Describes a rate per operation and per second.
fn how_often(per_operation: Option<f64>, per_second: Option<f64>) -> String {
    match (per_operation, per_second) {
        (Some(one), Some(other)) => {
            format!("{} times per operation, {} a second", figure(one), figure(other))
        }
        (None, Some(rate)) => format!("{} times a second", figure(rate)),
        _ => "as often as the table says".into(),
    }
}

fn syscalls(of: &WorkloadCharacter) -> Option<String> {
    let calls = &of.syscalls;
    let heavy: Vec<String> = calls
        .calls
        .iter()
        .filter(|call| call.percent_busy >= NOTABLE.syscall)
        .take(3)
        .map(|call| format!("{} {}", printable(&call.name), percent(call.percent_busy)))
        .collect();
    let takes = match heavy.is_empty() {
        true => String::new(),
        false => format!("; of the busy time, {}", list(&heavy)),
    };
    match calls.count() {
        Some(0) => None,
        Some(count) => {
            let per_operation = of.operations.map(|operations| count as f64 / operations as f64);
            let per_second = (of.passed_ns > 0).then(|| count as f64 * 1e9 / of.passed_ns as f64);
            Some(format!("It makes system calls {}{takes}.", how_often(per_operation, per_second)))
        }
        None if heavy.is_empty() => None,
        None => Some(format!("System calls that take most of the busy time are {}.", list(&heavy))),
    }
}

fn interrupts(of: &WorkloadCharacter) -> Option<String> {
    let [hard, soft] = [PartGroup::Interrupt, PartGroup::Softirq].map(|group| of.percent_of_busy(group));
    let rate = of.interrupts().filter(|_| of.passed_ns > 0).map(|n| n as f64 * 1e9 / of.passed_ns as f64);
    let often = rate.filter(|rate| *rate >= NOTABLE.per_second);
    if hard + soft < NOTABLE.interrupts && often.is_none() {
        return None;
    }
    let rate = rate.map_or(String::new(), |rate| format!(" ({} interrupts a second)", figure(rate)));
    Some(format!(
        "Of the busy time, hard interrupts take {} and softirqs {}{rate}.",
        percent(hard),
        percent(soft)
    ))
}

fn switches(of: &WorkloadCharacter) -> Option<String> {
    let switches = &of.switches;
    let all = &switches.all;
    let is_often = all.per_second.is_some_and(|rate| rate >= NOTABLE.per_second)
        || all.per_operation.is_some_and(|rate| rate >= NOTABLE.switches_per_operation);
    let first = switches.reasons.iter().find(|row| row.name != IDLE_TASK).filter(|_| is_often)?;
    // Switches that a thread causes; the idle task only gives way.
    let of_threads = all.count.saturating_sub(switches.from_idle.count);
    let waits = switches.voluntary.count.saturating_sub(switches.from_idle.count);
    let waits = share(waits, of_threads);
    let (share, why) = match waits >= 50.0 {
        true => (waits, "because a thread waits or ends"),
        false => (100.0 - waits, "because a thread is preempted"),
    };
    let idle = match switches.from_idle.count {
        0 => "",
        _ => ", those from the idle task not counted",
    };
    Some(format!(
        "It switches threads {}, {} of it {why}{idle}; the first reason is {}.",
        how_often(all.per_operation, all.per_second),
        percent(share),
        printable(&first.name)
    ))
}

fn exceptions(of: &WorkloadCharacter) -> Option<String> {
    let share: f64 = of.exceptions.iter().map(|event| event.percent_busy).sum();
    let first = of.exceptions.first().filter(|_| share >= NOTABLE.exceptions)?;
    let often = match (first.per_operation, first.per_second) {
        (None, None) => String::new(),
        (one, other) => format!(", {}", how_often(one, other)),
    };
    Some(format!("Exceptions take {} of the busy time: {}{often}.", percent(share), printable(&first.name)))
}

fn locks(of: &WorkloadCharacter) -> Option<String> {
    let locks = &of.locks;
    let first = locks.locks.first().map(|lock| {
        let name = lock.name.as_deref().or(lock.caller.as_deref()).unwrap_or("a lock without a name");
        format!(", first for a {} ({})", lock.kind, printable(name))
    });
    let waited = share(locks.wait_ns, of.elapsed_ns);
    if locks.percent_busy < NOTABLE.locks && waited < NOTABLE.locks {
        return None;
    }
    let waits = match locks.waits {
        Some(waits) if waits > 0 => {
            format!("{} times, {} in all; ", grouped(waits), readable(locks.wait_ns))
        }
        _ => String::new(),
    };
    Some(format!(
        "It waits for locks{}: {waits}{} of the busy time is in functions that do.",
        first.unwrap_or_default(),
        percent(locks.percent_busy)
    ))
}

fn block(of: &WorkloadCharacter) -> Option<String> {
    let bios = of.item("bios")?;
    let rate = bios.per_second.filter(|rate| *rate >= NOTABLE.per_second)?;
    Some(format!("It submits {} block I/Os a second.", figure(rate)))
}

fn l1i(of: &WorkloadCharacter) -> Option<String> {
    let misses = of.figure("l1i_misses", "kernel")?;
    let model = of.model.as_deref().filter(|_| misses.basis == FigureBasis::Model)?;
    (misses.per_thousand >= NOTABLE.l1i_misses).then(|| {
        format!(
            "Its kernel code misses the first-level instruction cache {} times per 1,000 instructions (model {}).",
            figure(misses.per_thousand),
            printable(model)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_words_and_directories_areas() {
        for (percent, word) in [
            (99.6, "Nearly all"),
            (75.0, "Three quarters"),
            (50.0, "Half"),
            (30.0, "A third"),
            (1.0, "A part"),
        ] {
            assert_eq!(portion(percent), word);
        }
        for (directory, words) in [
            ("net/ipv4", Some("the network")),
            ("kernel/sched", Some("the scheduler")),
            ("kernel/bpf", Some("the core of the kernel")),
            ("fs", Some("file systems")),
            ("fsx", None),
            ("[no source known]", None),
        ] {
            assert_eq!(area(directory), words, "{directory}");
        }
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        let names = ["a", "b", "c"].map(String::from);
        assert_eq!([0, 1, 2, 3].map(|n| list(&names[..n])), ["", "a", "a and b", "a, b and c"]);
    }
}
