//! List for `-fbasic-block-sections=list=` and `ld.lld --lto-basic-block-sections=` (out).
//!
//! The format is version 1 of `llvm/lib/CodeGen/BasicBlockSectionsProfileReader.cpp`. It begins
//! with a line `v1`. Each function has a line `m PATH` with its module (the name of the compilation
//! unit in its debug information), a line `f NAME ALIAS…`, and a line `c ID…` for each section,
//! with its blocks in order. Blocks in no section go to a section of the rest, whose symbol is the
//! function's with `.cold`.

/// Function with the order of its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFunction {
    module: String,
    names: Vec<String>,
    blocks: Vec<u64>,
}

impl ListedFunction {
    /// Creates an entry. `names` are all names of the function in the symbol table; the list need
    /// not say which one is its own. The first of `blocks` is the entry; all of them go into one
    /// section.
    ///
    /// `None` if the list cannot represent it: no name, no block, or white space in a name.
    pub fn new<'a>(module: &str, names: impl IntoIterator<Item = &'a str>, blocks: Vec<u64>) -> Option<Self> {
        let (module, names) = (module.to_string(), names.into_iter().map(str::to_string).collect::<Vec<_>>());
        let word = |text: &String| !text.is_empty() && !text.contains(char::is_whitespace);
        let usable = !blocks.is_empty() && !names.is_empty() && names.iter().chain([&module]).all(word);
        usable.then_some(Self { module, names, blocks })
    }

    /// Returns the path of the module.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Returns the names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Formats the lines of the function.
    pub fn text(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(u64::to_string).collect();
        format!("m {}\nf {}\nc {}\n", self.module, self.names.join(" "), blocks.join(" "))
    }
}

/// Formats the whole list. LLVM rejects a list that has a function twice.
pub fn list_text(functions: &[ListedFunction]) -> String {
    let lines = functions.iter().map(ListedFunction::text);
    std::iter::once("v1\n".to_string()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_list_cannot_say_is_left_out() {
        let of =
            |module: &str, name: &str, blocks: &[u64]| ListedFunction::new(module, [name], blocks.to_vec());
        let good = of("a.c", "f", &[0, 2, 1]).unwrap();
        assert_eq!(list_text(&[good.clone(), good]), "v1\nm a.c\nf f\nc 0 2 1\nm a.c\nf f\nc 0 2 1\n");
        for (module, name, blocks) in [
            ("a b.c", "f", &[0][..]),
            ("a.c", "f g", &[0]),
            ("a.c", "f", &[]),
            ("", "f", &[0]),
            ("a.c", "", &[0]),
        ] {
            assert_eq!(of(module, name, blocks), None, "{module} {name}");
        }
    }
}
