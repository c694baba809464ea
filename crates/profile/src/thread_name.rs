//! Display names of threads.

use crate::PathKind;
use std::borrow::Cow;

impl PathKind {
    /// Returns the display name of a path node that is neither a function nor a named thread.
    pub const fn stand_in(self) -> &'static str {
        match self {
            Self::Thread => "[thread]",
            Self::Interrupt => "[interrupt]",
            Self::Idle => "[idle task]",
            Self::Function => "[function]",
            Self::User => "[user]",
            Self::Unattributed => "[unattributed]",
        }
    }
}

/// Returns a thread's display name. A program can give itself any name, so this quotes names that
/// could be mistaken for one of ours, for an empty one, or for another quoted name.
pub fn thread_name(comm: &str) -> Cow<'_, str> {
    let is_ours = PathKind::ALL.iter().any(|kind| kind.stand_in() == comm);
    match comm {
        "" => PathKind::Thread.stand_in().into(),
        _ if is_ours || comm.trim() != comm || comm.starts_with('"') => format!("\"{comm}\"").into(),
        _ => comm.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_of_a_thread_is_one_of_ours() {
        for plain in ["rr", "a;b", "x,y \"q\"", "[kworker]", "worker [7]"] {
            assert_eq!(thread_name(plain), plain);
        }
        let odd = [
            "",
            " ",
            "   ",
            " a",
            "a",
            "[interrupt]",
            "\"[interrupt]\"",
            "[idle task]",
            "[user]",
            "[thread]",
        ];
        let names: BTreeSet<_> = odd.iter().map(|comm| thread_name(comm)).collect();
        assert_eq!(names.len(), odd.len(), "{names:?}");
        assert!(!names.contains("[interrupt]") && !names.contains("[idle task]"), "{names:?}");
        assert!(names.iter().all(|name| !name.trim().is_empty()));
    }
}
