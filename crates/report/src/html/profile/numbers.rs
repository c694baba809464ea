//! Numbering of functions, threads and regions on a page.

use super::groups::RegionGroups;
use std::collections::HashMap;

/// Number for a missing caller.
pub(super) const NONE: i64 = -1;

/// Numbers of functions on the page, in order of their self time.
pub(super) struct FunctionNumbers(HashMap<u32, i64>);

impl FunctionNumbers {
    /// Numbers the functions in this order.
    pub fn new(order: &[u32]) -> Self {
        Self(order.iter().enumerate().map(|(at, function)| (*function, at as i64)).collect())
    }

    pub fn of(&self, function: u32) -> i64 {
        self.0.get(&function).copied().unwrap_or(NONE)
    }
}

/// Codes of nodes and callers that are not functions; `scripts/core/codes.js` has the same.
pub(super) mod code {
    pub const USER: i64 = -2;
    pub const INTERRUPT: i64 = -3;
    pub const IDLE: i64 = -4;
    pub const UNATTRIBUTED: i64 = -5;
    pub const SMALLER: i64 = -6;
    /// Callers that are merged.
    pub const OTHERS: i64 = -7;
    /// Code `THREAD - n` stands for the threads with name number n.
    pub const THREAD: i64 = -16;
}

/// Table of texts, each with a number.
#[derive(Default)]
pub(super) struct StringTable {
    pub all: Vec<String>,
    known: HashMap<String, i64>,
}

impl StringTable {
    /// Numbers different texts in this order.
    pub fn of(all: Vec<String>) -> Self {
        let known = all.iter().cloned().zip(0..).collect();
        Self { all, known }
    }

    pub fn at(&mut self, text: &str) -> i64 {
        if let Some(&at) = self.known.get(text) {
            return at;
        }
        let at = self.all.len() as i64;
        self.all.push(text.into());
        self.known.insert(text.into(), at);
        at
    }
}

/// Numbering of a page, which its server needs for answers.
pub(super) struct PageIndex {
    pub numbers: FunctionNumbers,
    pub groups: RegionGroups,
    pub comms: StringTable,
    /// Paths have taken branches and cache misses.
    pub weights: bool,
}

#[cfg(test)]
mod tests {
    use super::{code, NONE};

    #[test]
    fn scripts_have_the_same_codes() {
        let script = include_str!("../scripts/core/codes.js");
        for (name, code) in [
            ("NONE", NONE),
            ("USER", code::USER),
            ("INTERRUPT", code::INTERRUPT),
            ("IDLE", code::IDLE),
            ("UNATTRIBUTED", code::UNATTRIBUTED),
            ("SMALLER", code::SMALLER),
            ("OTHERS", code::OTHERS),
            ("THREAD", code::THREAD),
        ] {
            assert!(script.contains(&format!("export const {name} = {code};\n")), "{name}");
        }
    }
}
