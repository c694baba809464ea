//! The order in which functions are to be placed.

use crate::{Error, Result};
use kerntune_work::ContentHash;
use std::collections::HashSet;

/// Functions by their symbols, first to last, each once. Functions that are not in it follow in the linker's
/// own order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionOrder(Vec<String>);

impl FunctionOrder {
    /// Takes names; what comes a second time is left out, as static functions of one name are placed
    /// together.
    ///
    /// # Errors
    /// [`Error::UnusableName`]: a name that would mean something else in a linker script.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut seen = HashSet::new();
        let names: Vec<String> = names.into_iter().filter(|name| seen.insert(name.clone())).collect();
        let usable = |name: &&String| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
        };
        match names.iter().find(|name| !usable(name)) {
            Some(name) => Err(Error::UnusableName { name: name.clone() }),
            None => Ok(Self(names)),
        }
    }

    /// One name a line; empty lines and what follows a `#` do not count.
    ///
    /// # Errors
    /// As [`FunctionOrder::new`].
    pub fn parse(text: &str) -> Result<Self> {
        let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_string();
        Self::new(text.lines().map(line).filter(|name| !name.is_empty()))
    }

    /// The names, first to last.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// What [`FunctionOrder::parse`] reads.
    pub fn text(&self) -> String {
        self.0.iter().map(|name| format!("{name}\n")).collect()
    }

    /// 16 hex digits over the names.
    pub fn id(&self) -> String {
        ContentHash::new("order/1").field("names", self.text()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_back_and_bad_names_are_refused() {
        let order = FunctionOrder::parse("tcp_ack # hot\n\nfoo.isra.0\ntcp_ack\n").unwrap();
        assert_eq!(order.names(), ["tcp_ack", "foo.isra.0"]);
        assert_eq!(FunctionOrder::parse(&order.text()).unwrap(), order);
        for bad in ["a b", "a)", "*", "a/b"] {
            let error = FunctionOrder::parse(bad).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }
}
