//! The numbers by which a page calls functions.

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
