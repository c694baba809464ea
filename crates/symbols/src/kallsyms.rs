//! `/proc/kallsyms`: the kernel's own list of its symbols, with modules and BPF programs.
//!
//! A line is `ADDRESS TYPE NAME`, outside of the kernel's image followed by a tab and `[MODULE]`
//! (`kernel/kallsyms.c`, `s_show`). Without permission to see addresses (`kptr_restrict`, no
//! `CAP_SYSLOG`) all addresses are zero: such a list is refused, as it would name every address
//! wrongly.

use crate::{Error, Result};

/// Maximum length of a name; the kernel's own limit is 512 (`KSYM_NAME_LEN`).
const NAME_MAX: usize = 512;
/// Maximum number of lines; a kernel with all its symbols has 300,000.
const LINES_MAX: usize = 4_000_000;

/// A symbol of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Address at which the kernel runs it.
    pub address: u64,
    /// Name of the symbol.
    pub name: String,
    /// True if the symbol is visible to other files of the kernel.
    pub is_global: bool,
    /// Module of the symbol (`bpf` for BPF programs, `__builtin__ftrace` and the like for generated
    /// code); `None` for the kernel's image.
    pub module: Option<String>,
}

/// Symbols from a list of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kallsyms {
    /// Symbols of code, in the order of the list.
    pub symbols: Vec<KernelSymbol>,
    /// Number of malformed lines.
    pub malformed_lines: u64,
}

impl Kallsyms {
    /// Parses the list. `System.map` has the same format, without modules.
    ///
    /// # Errors
    /// [`Error::Hidden`] if every address is 0, [`Error::NoSymbols`] if there is no symbol of code.
    pub fn parse(text: &[u8], origin: &str) -> Result<Self> {
        let mut found = Self::default();
        let (mut lines, mut zeros) = (0_u64, 0_u64);
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(LINES_MAX) {
            lines += 1;
            match symbol(line) {
                None => found.malformed_lines += 1,
                Some((0, ..)) => zeros += 1,
                Some((address, kind, name, module)) => {
                    if matches!(kind, b't' | b'T' | b'w' | b'W') {
                        found.symbols.push(KernelSymbol {
                            address,
                            name: name.into(),
                            is_global: kind != b't',
                            module: module.map(Into::into),
                        });
                    }
                }
            }
        }
        match found.symbols.is_empty() {
            // Offsets of per-CPU data are zero in any list.
            true if zeros > 0 && zeros + found.malformed_lines == lines => {
                Err(Error::Hidden { origin: origin.into() })
            }
            true => Err(Error::NoSymbols { origin: origin.into() }),
            false => Ok(found),
        }
    }
}

/// Parses address, type, name and module of a line.
fn symbol(line: &[u8]) -> Option<(u64, u8, &str, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?;
    let (symbol, module) = match line.split_once('\t') {
        Some((symbol, module)) => (symbol, Some(module.trim_end().strip_prefix('[')?.strip_suffix(']')?)),
        None => (line, None),
    };
    let mut words = symbol.split(' ');
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let plain =
        |text: &str| !text.is_empty() && text.len() <= NAME_MAX && !text.chars().any(char::is_control);
    // `from_str_radix` would accept a sign.
    let is_number = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits =
        is_number && kind.len() == 1 && plain(name) && module.is_none_or(plain) && words.next().is_none();
    let address = u64::from_str_radix(address, 16).ok().filter(|_| fits)?;
    Some((address, *kind.as_bytes().first()?, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_image_of_modules_and_of_bpf_is_told_apart() {
        let text = b"0000000000000000 A fixed_percpu_data\n\
            ffffffff81000000 T _text\n\
            ffffffff81000010 t do_one_initcall\n\
            ffffffff82000000 D jiffies\n\
            ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n\
            ffffffffc0b02000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]\n\
            nonsense\n\
            +fffffff81000000 T signed\n";
        let all = Kallsyms::parse(text, "x").unwrap();
        let named: Vec<_> = all.symbols.iter().map(|s| (s.name.as_str(), s.module.as_deref())).collect();
        let bpf = "bpf_prog_6deef7357e7b4530_sd_fw_egress";
        let expected = [
            ("_text", None),
            ("do_one_initcall", None),
            ("nft_do_chain", Some("nf_tables")),
            (bpf, Some("bpf")),
        ];
        assert_eq!(named, expected);
        assert_eq!(
            (all.malformed_lines, all.symbols[0].is_global, all.symbols[1].is_global),
            (2, true, false)
        );
    }

    #[test]
    fn hidden_addresses_are_refused() {
        let text = b"0000000000000000 T _text\n0000000000000000 t x\t[m]\n";
        assert!(matches!(Kallsyms::parse(text, "x"), Err(Error::Hidden { .. })));
        assert!(matches!(Kallsyms::parse(b"", "x"), Err(Error::NoSymbols { .. })));
        assert!(matches!(Kallsyms::parse(b"\xff\xfe", "x"), Err(Error::NoSymbols { .. })));
    }

    #[test]
    fn this_kernels_list_reads_or_says_that_it_is_hidden() {
        let text = std::fs::read("/proc/kallsyms").unwrap();
        match Kallsyms::parse(&text, "/proc/kallsyms") {
            Ok(all) => assert!(
                all.symbols.len() > 1000 && all.malformed_lines == 0,
                "{} strange",
                all.malformed_lines
            ),
            Err(error) => assert!(matches!(error, Error::Hidden { .. }), "{error}"),
        }
    }
}
