//! By what a page calls functions, threads and regions.

use super::groups::Groups;
use std::collections::HashMap;

/// No function: nothing called it.
pub(super) const NONE: i64 = -1;

/// Functions and their numbers on the page: those that are there, by net time.
pub(super) struct Numbers(HashMap<u32, i64>);

impl Numbers {
    /// Those of functions in this order.
    pub fn new(order: &[u32]) -> Self {
        Self(order.iter().enumerate().map(|(at, function)| (*function, at as i64)).collect())
    }

    pub fn of(&self, function: u32) -> i64 {
        self.0.get(&function).copied().unwrap_or(NONE)
    }
}

/// What a node or a caller stands for that is no function.
pub(super) mod code {
    pub const USER: i64 = -2;
    pub const INTERRUPT: i64 = -3;
    pub const IDLE: i64 = -4;
    pub const UNATTRIBUTED: i64 = -5;
    pub const SMALLER: i64 = -6;
    /// Callers that are not told apart.
    pub const OTHERS: i64 = -7;
    /// Threads of the name `THREAD - code`.
    pub const THREAD: i64 = -16;
}

/// Texts that are named by number.
#[derive(Default)]
pub(super) struct Strings {
    pub all: Vec<String>,
    known: HashMap<String, i64>,
}

impl Strings {
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

/// By what a page calls functions, regions and threads: what its server has to know to answer it.
pub(super) struct Index {
    pub numbers: Numbers,
    pub groups: Groups,
    pub comms: Strings,
    /// Whether paths carry branches and misses.
    pub weights: bool,
}
