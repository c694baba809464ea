//! The order in which functions are to be placed.

use crate::{Error, Result};
use kerntune_work::ContentHash;
use std::collections::{HashMap, HashSet};

/// Functions by their symbols, first to last, each once. Functions that are not in it follow in the linker's
/// own order. Some may have a place of their own, bytes from the first one's first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionOrder {
    names: Vec<String>,
    offsets: HashMap<String, u64>,
}

impl FunctionOrder {
    /// Takes names; what comes a second time is left out, as static functions of one name are placed
    /// together.
    ///
    /// # Errors
    /// [`Error::UnusableName`]: a name that would mean something else in a linker script.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut seen = HashSet::new();
        let names: Vec<String> = names.into_iter().filter(|name| seen.insert(name.clone())).collect();
        match names.iter().find(|name| !Self::takes(name)) {
            Some(name) => Err(Error::UnusableName { name: name.clone() }),
            None => Ok(Self { names, offsets: HashMap::new() }),
        }
    }

    /// Whether a linker script can name such a function. The stubs of interrupts (`asm_common_interrupt:0x23`) are parts of a
    /// table, which stays where it is.
    pub fn takes(name: &str) -> bool {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
    }

    /// The same order, with places for some of its functions. A function that does not fit before the next one's
    /// place moves that one on.
    pub fn with_offsets(mut self, offsets: impl IntoIterator<Item = (String, u64)>) -> Self {
        self.offsets = offsets.into_iter().collect();
        self
    }

    /// One name a line, and after an `@` the place if it has one; empty lines and what follows a `#` do not count.
    ///
    /// # Errors
    /// As [`FunctionOrder::new`]; a place that is no number.
    pub fn parse(text: &str) -> Result<Self> {
        let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_string();
        let (mut names, mut offsets) = (Vec::new(), HashMap::new());
        for line in text.lines().map(line).filter(|line| !line.is_empty()) {
            let Some((name, offset)) = line.split_once('@') else {
                names.push(line);
                continue;
            };
            let offset = offset.trim().parse().map_err(|_| Error::UnusableName { name: line.clone() })?;
            names.push(name.trim().to_string());
            offsets.entry(name.trim().to_string()).or_insert(offset);
        }
        Ok(Self { offsets, ..Self::new(names)? })
    }

    /// The names, first to last.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of a function, if it has one.
    pub fn offset(&self, name: &str) -> Option<u64> {
        self.offsets.get(name).copied()
    }

    /// What [`FunctionOrder::parse`] reads.
    pub fn text(&self) -> String {
        let line = |name: &String| match self.offset(name) {
            Some(offset) => format!("{name} @ {offset}\n"),
            None => format!("{name}\n"),
        };
        self.names.iter().map(line).collect()
    }

    /// 16 hex digits over the names and places.
    pub fn id(&self) -> String {
        ContentHash::new("order/1").field("names", self.text()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stub_of_an_interrupt_is_no_function_that_a_linker_can_place() {
        assert!(FunctionOrder::takes("asm_common_interrupt") && FunctionOrder::takes("kfree.part.0"));
        assert!(!FunctionOrder::takes("asm_common_interrupt:0x23") && !FunctionOrder::takes(""));
    }

    #[test]
    fn an_order_is_read_back_and_bad_names_are_refused() {
        let order = FunctionOrder::parse("tcp_ack # hot\n\nfoo.isra.0\ntcp_ack\n").unwrap();
        assert_eq!(order.names(), ["tcp_ack", "foo.isra.0"]);
        assert_eq!(FunctionOrder::parse(&order.text()).unwrap(), order);
        let placed = FunctionOrder::parse("a @ 4096\nb\n").unwrap();
        assert_eq!((placed.offset("a"), placed.offset("b"), placed.names().len()), (Some(4096), None, 2));
        assert_eq!(FunctionOrder::parse(&placed.text()).unwrap(), placed);
        assert_ne!(placed.id(), FunctionOrder::parse("a\nb\n").unwrap().id());
        for bad in ["a @ x", "a b", "a)", "*", "a/b"] {
            let error = FunctionOrder::parse(bad).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }
}
