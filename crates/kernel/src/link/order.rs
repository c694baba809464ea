//! Order of functions for the linker.

use crate::{Error, Result};
use kerntune_work::ContentHash;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Function symbols, first to last, each once. Other functions follow in the linker's own order. A
/// function may have an offset in bytes from the start of the first function. Functions of modules
/// are ordered within their module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionOrder {
    names: Vec<String>,
    offsets: HashMap<String, u64>,
    modules: BTreeMap<String, Vec<String>>,
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
            None => Ok(Self { names, ..Self::default() }),
        }
    }

    /// Sets the functions of modules, by the module's name as in `/proc/modules`. Repeated names are
    /// dropped, and modules without functions.
    ///
    /// # Errors
    /// [`Error::UnusableName`]: a name of a function or module that would mean something else in a
    /// linker script or in a list of functions.
    pub fn with_modules(mut self, modules: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Self> {
        self.modules.clear();
        for (module, names) in modules {
            if !Self::takes(&module) {
                return Err(Error::UnusableName { name: module });
            }
            let names = Self::new(names)?.names;
            if !names.is_empty() {
                self.modules.insert(module, names);
            }
        }
        Ok(self)
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

    /// Parses one name per line, optionally followed by `@` and the offset, or by the module in
    /// brackets: `ext4_iget [ext4]`. Empty lines and `#` comments are ignored.
    ///
    /// # Errors
    /// Those of [`FunctionOrder::new`]; an offset that is no number.
    pub fn parse(text: &str) -> Result<Self> {
        let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_string();
        let (mut names, mut offsets) = (Vec::new(), HashMap::new());
        let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in text.lines().map(line).filter(|line| !line.is_empty()) {
            if let Some((name, module)) = line.strip_suffix(']').and_then(|line| line.split_once('[')) {
                let name = name.trim_end();
                if !Self::takes(name) || !Self::takes(module) {
                    return Err(Error::UnusableName { name: line });
                }
                modules.entry(module.to_string()).or_default().push(name.to_string());
                continue;
            }
            let Some((name, offset)) = line.split_once('@') else {
                names.push(line);
                continue;
            };
            let offset = offset.trim().parse().map_err(|_| Error::UnusableName { name: line.clone() })?;
            names.push(name.trim().to_string());
            offsets.entry(name.trim().to_string()).or_insert(offset);
        }
        Self { offsets, ..Self::new(names)? }.with_modules(modules)
    }

    /// Returns the names in the kernel's image, first to last.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the names in each module that has any, first to last.
    pub fn modules(&self) -> &BTreeMap<String, Vec<String>> {
        &self.modules
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
        let in_module = |(module, names): (&String, &Vec<String>)| {
            names.iter().map(|name| format!("{name} [{module}]\n")).collect::<String>()
        };
        self.names.iter().map(line).chain(self.modules.iter().map(in_module)).collect()
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
        let modules = "a\next4_b [ext4]\next4_a [ext4]\nveth_xmit [veth]\n";
        let ordered = FunctionOrder::parse(modules).unwrap();
        assert_eq!((ordered.names(), ordered.text().as_str()), (&["a".to_string()][..], modules));
        assert_eq!(ordered.modules()["ext4"], ["ext4_b", "ext4_a"]);
        assert_ne!(ordered.id(), FunctionOrder::parse("a\n").unwrap().id());
        for bad in ["a @ x", "a b", "a)", "*", "a/b", "a [b/c]", "a) [b]", "[b]", "a [b [c]"] {
            let error = FunctionOrder::parse(bad).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }
}
