//! What the kernel puts off: work that falls into this row or that one, whichever happens to run when its time has come.
//!
//! Ticks of the clock, callbacks of RCU, timers, kernel threads and the idle task run when they are due, and not when the
//! operation runs that caused them. In a kernel that differs elsewhere they are due a few instructions earlier or later, so that
//! a row which nobody touched gets longer or shorter by them. So they are taken out of rows, by the functions that do them
//! (`put_off.tsv`), and are a row of their own: nothing is lost, and a callback that gets longer is still seen.

use kerntune_profile::source_name;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// Why something is no part of the operation during which it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The clock's interrupt, and timers that are due.
    Timer,
    /// Callbacks after a grace period.
    Rcu,
    /// A kernel thread.
    Thread,
    /// A switch to another thread that the one which ran did not ask for.
    Preempted,
    /// The idle task, while it does not halt.
    Idle,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] = [Class::Timer, Class::Rcu, Class::Thread, Class::Preempted, Class::Idle];

    /// As it stands in files: `timer`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Timer => "timer",
            Class::Rcu => "rcu",
            Class::Thread => "thread",
            Class::Preempted => "preempted",
            Class::Idle => "idle",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The table, which decides figures as code does.
pub(crate) const TABLE: &str = include_str!("put_off.tsv");

/// For a function's name in the source the classes that it begins, and below which caller.
type Beginnings = HashMap<&'static str, Vec<(Class, Option<&'static str>)>>;

fn beginnings() -> &'static Beginnings {
    static FOUND: OnceLock<Beginnings> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut all = Beginnings::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let (Some(class), Some(function)) = (fields.next().and_then(Class::named), fields.next()) else {
                continue;
            };
            let caller = fields.next().filter(|caller| *caller != "-");
            all.entry(function).or_default().push((class, caller));
        }
        all
    })
}

/// The class of a function that is called where nothing was put off so far.
pub fn begins(function: &str, caller: Option<&str>) -> Option<Class> {
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
        assert!(Class::ALL.iter().all(|class| Class::named(class.name()) == Some(*class)));
    }

    #[test]
    fn a_caller_counts_where_the_table_names_one() {
        assert_eq!(begins("rcu_core", Some("handle_softirqs")), Some(Class::Rcu));
        assert_eq!(begins("kthread", None), Some(Class::Thread));
        assert_eq!(begins("schedule", Some("pipe_read")), None);
        assert_eq!(begins("schedule", Some("syscall_exit_to_user_mode.constprop.0")), Some(Class::Preempted));
        assert_eq!(begins("net_rx_action", Some("handle_softirqs")), None, "a packet is the operation's");
    }
}
