//! Deferred work: what the kernel does later, during whichever operation runs then.
//!
//! Ticks of the clock, RCU callbacks, timers, kernel threads and the idle task run when they are
//! due, not during the operation that caused them. An unrelated change of the kernel makes them due
//! a few instructions earlier or later, which would change rows that nobody touched. So this work
//! is subtracted from rows, according to the functions that do it (`deferred.tsv`), and reported
//! separately. A callback that gets longer is still seen there.

use kerntune_profile::source_name;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// Class of deferred work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeferralClass {
    /// The clock's interrupt, and timers that are due.
    Timer,
    /// RCU callbacks, after a grace period.
    Rcu,
    /// A kernel thread.
    Thread,
    /// A switch to another thread that the running one did not ask for.
    Preempted,
    /// The idle task, while it does not halt.
    Idle,
}

impl DeferralClass {
    /// All classes, in the order of reports.
    pub const ALL: [DeferralClass; 5] = [
        DeferralClass::Timer,
        DeferralClass::Rcu,
        DeferralClass::Thread,
        DeferralClass::Preempted,
        DeferralClass::Idle,
    ];

    /// Returns the class's name in files: `timer`.
    pub fn name(self) -> &'static str {
        match self {
            DeferralClass::Timer => "timer",
            DeferralClass::Rcu => "rcu",
            DeferralClass::Thread => "thread",
            DeferralClass::Preempted => "preempted",
            DeferralClass::Idle => "idle",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for DeferralClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The table of functions that do deferred work. It decides figures, so its text is part of their
/// key.
pub(crate) const TABLE: &str = include_str!("deferred.tsv");

/// Classes that a function begins, by its name in the source; with a caller if only calls by that
/// one count.
type DeferralRoots = HashMap<&'static str, Vec<(DeferralClass, Option<&'static str>)>>;

fn beginnings() -> &'static DeferralRoots {
    static FOUND: OnceLock<DeferralRoots> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut all = DeferralRoots::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let (Some(class), Some(function)) = (fields.next().and_then(DeferralClass::named), fields.next())
            else {
                continue;
            };
            let caller = fields.next().filter(|caller| *caller != "-");
            all.entry(function).or_default().push((class, caller));
        }
        all
    })
}

/// Returns the class of deferred work that a call begins, outside other deferred work.
pub fn begins(function: &str, caller: Option<&str>) -> Option<DeferralClass> {
    let caller = caller.map(|caller| source_name(caller).0);
    let of = beginnings().get(source_name(function).0)?;
    of.iter().find(|(_, wanted)| wanted.is_none() || *wanted == caller).map(|(class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(beginnings().values().map(Vec::len).sum::<usize>(), lines);
        assert!(DeferralClass::ALL.iter().all(|class| DeferralClass::named(class.name()) == Some(*class)));
    }

    #[test]
    fn a_caller_counts_where_the_table_names_one() {
        assert_eq!(begins("rcu_core", Some("handle_softirqs")), Some(DeferralClass::Rcu));
        assert_eq!(begins("kthread", None), Some(DeferralClass::Thread));
        assert_eq!(begins("schedule", Some("pipe_read")), None);
        assert_eq!(
            begins("schedule", Some("syscall_exit_to_user_mode.constprop.0")),
            Some(DeferralClass::Preempted)
        );
        assert_eq!(begins("net_rx_action", Some("handle_softirqs")), None, "a packet is the operation's");
    }
}
