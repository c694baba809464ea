//! The kernel's functions by address, from the text of `/proc/kallsyms`.

use kerntune_profile::{Address, Symbol};

/// Functions of a kernel, sorted by address.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    text: String,
    /// Address, and begin and end of name and module in the text.
    functions: Vec<(u64, u32, u32)>,
}

impl KernelSymbols {
    pub fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text).into_owned();
        let mut functions = Vec::new();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let begin = name.as_ptr() as usize - text.as_ptr() as usize;
            let (Ok(begin), Ok(end)) = (u32::try_from(begin), u32::try_from(begin + name.len())) else {
                break;
            };
            functions.push((address, begin, end));
        }
        functions.sort_by_key(|function| function.0);
        // Without the right to see addresses, all of them are 0.
        functions.retain(|function| function.0 != 0);
        Self { text, functions }
    }

    /// Returns the function at an address.
    pub fn find(&self, address: u64) -> Option<Symbol> {
        let at = self.functions.partition_point(|function| function.0 <= address).checked_sub(1)?;
        let (begin, ..) = self.functions[at];
        // Of several names of an address, the first one is taken.
        let first = self.functions.partition_point(|function| function.0 < begin);
        let (_, from, to) = self.functions[first];
        let next = self.functions.get(at + 1).map_or(begin, |next| next.0);
        let line = self.text.get(from as usize..to as usize)?;
        let (name, module) = match line.split_once('\t') {
            Some((name, module)) => (name, Some(module.trim_matches(['[', ']', ' ']).to_string())),
            None => (line, None),
        };
        Some(Symbol {
            name: name.trim().into(),
            address: Address(begin),
            size: next - begin,
            module,
            ..Symbol::default()
        })
    }
}
