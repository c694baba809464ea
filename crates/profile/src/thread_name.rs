//! Names of threads as people read them.

use crate::PathKind;
use std::borrow::Cow;

impl PathKind {
    /// What stands for a path that is no function and no thread with a name.
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

/// A thread's name as it is shown. Any program can give itself any name: one that could be taken for one of ours, for none, or for
/// another one's in quotes, is in quotes.
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
