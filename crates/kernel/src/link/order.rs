//! Order of functions for the linker.

use crate::{Error, Result};
use kerntune_work::ContentHash;
use std::collections::{HashMap, HashSet};

/// Function symbols, first to last, each once. Other functions follow in the linker's own order. A
/// function may have an offset in bytes from the start of the first function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionOrder {
    names: Vec<String>,
    offsets: HashMap<String, u64>,
}

impl FunctionOrder {
    /// Creates an order. Repeated names are dropped, because static functions of one name are
    /// placed together.
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

    /// Checks whether a linker script can name a function. Interrupt stubs
    /// (`asm_common_interrupt:0x23`) are parts of a table, which cannot be moved.
    pub fn takes(name: &str) -> bool {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
    }

    /// Sets offsets of some functions. A function that does not fit before the next offset moves
    /// the next function on.
    pub fn with_offsets(mut self, offsets: impl IntoIterator<Item = (String, u64)>) -> Self {
        self.offsets = offsets.into_iter().collect();
        self
    }

    /// Parses one name per line, optionally followed by `@` and the offset. Empty lines and `#`
    /// comments are ignored.
    ///
    /// # Errors
    /// Those of [`FunctionOrder::new`]; an offset that is no number.
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

    /// Returns the names, first to last.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the offset of a function, if it has one.
    pub fn offset(&self, name: &str) -> Option<u64> {
        self.offsets.get(name).copied()
    }

    /// Formats the order for [`FunctionOrder::parse`].
    pub fn text(&self) -> String {
        let line = |name: &String| match self.offset(name) {
            Some(offset) => format!("{name} @ {offset}\n"),
            None => format!("{name}\n"),
        };
        self.names.iter().map(line).collect()
    }

    /// Returns a hash over names and offsets, 16 hex digits.
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
