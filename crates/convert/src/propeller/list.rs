//! The list of `-fbasic-block-sections=list=` and `ld.lld --lto-basic-block-sections=` (out).
//!
//! The form is version 1 of `llvm/lib/CodeGen/BasicBlockSectionsProfileReader.cpp`: a line `v1`; for each function, if it is
//! of the module of a line `m PATH` (the name of the compilation unit in its debug information), `f NAME ALIAS…`,
//! and `c ID…` for each section that blocks are to stand in, in order. Blocks that are in none of them go to a section
//! of the rest, whose symbol is the function's with `.cold`.

/// A function whose blocks are to be in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFunction {
    module: String,
    names: Vec<String>,
    blocks: Vec<u64>,
}

impl ListedFunction {
    /// The function of these names in the module of this path: its own name is among those of the symbol table, and which of
    /// them it is the list need not say. The entry is the first of `blocks`, which are to stand together.
    ///
    /// None where the list has no form for it: without a name or a block, or with white space in a name.
    pub fn new<'a>(module: &str, names: impl IntoIterator<Item = &'a str>, blocks: Vec<u64>) -> Option<Self> {
        let (module, names) = (module.to_string(), names.into_iter().map(str::to_string).collect::<Vec<_>>());
        let word = |text: &String| !text.is_empty() && !text.contains(char::is_whitespace);
        let usable = !blocks.is_empty() && !names.is_empty() && names.iter().chain([&module]).all(word);
        usable.then_some(Self { module, names, blocks })
    }

    /// The path of its module.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Its names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its lines.
    pub fn text(&self) -> String {
        let blocks: Vec<String> = self.blocks.iter().map(u64::to_string).collect();
        format!("m {}\nf {}\nc {}\n", self.module, self.names.join(" "), blocks.join(" "))
    }
}

/// The whole list. LLVM takes a function that is in it twice for an error.
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
