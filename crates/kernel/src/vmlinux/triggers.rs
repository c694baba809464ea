//! McRae's event tags, placed by the compiler (`embedded/kernel/patches/6.12/mcrae-compiler`): the tags of
//! each function.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile, SymbolKind};
use kerntune_work::IoContext;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Prefix of the symbols at the two bytes that a function's triggers read.
const PREFIX: &str = "__kt_tag.";
/// Symbol where the bytes of all functions begin.
const START: &str = "__kt_tags_start";
/// Symbol where they end.
const END: &str = "__kt_tags_end";
/// Greatest tag.
const MAX_TAG: u64 = u32::MAX as u64;
/// Functions that switch the processor between threads.
const SWITCHES: [&str; 1] = ["__schedule"];
/// Functions in which the idle thread waits.
const WAITS: [&str; 4] = ["pv_native_safe_halt", "native_safe_halt", "default_idle", "acpi_safe_halt"];

/// Meaning of a function for the analysis of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    /// Ordinary function.
    Function,
    /// Function that switches between threads.
    ContextSwitch,
    /// Function whose self time is idle time.
    Idle,
}

/// Function with triggers at entry and exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Function name; `foo@file.c` if several static functions have the name.
    pub name: String,
    /// Tag of the entry; the exit has the next one.
    pub tag: u32,
    /// Meaning of the function.
    pub kind: TriggerKind,
}

/// All triggers of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggers {
    /// Virtual address of the byte that tag 0 reads.
    pub base: u64,
    /// Bytes from there to the end of the last function's.
    pub size: u64,
    /// Triggers, sorted by tag.
    pub all: Vec<Trigger>,
}

impl Triggers {
    /// Reads the triggers of an image; `None` if it has none.
    ///
    /// # Errors
    /// A file that cannot be read or is no ELF file; a byte outside of the range of tags.
    pub fn load(vmlinux: &Path) -> Result<Option<Self>> {
        Self::parse(&MappedFile::open(vmlinux).at("open", vmlinux)?, vmlinux)
    }

    /// Reads the triggers from bytes in memory; `path` is for error messages.
    ///
    /// # Errors
    /// Those of [`Triggers::load`].
    pub fn parse(data: &[u8], path: &Path) -> Result<Option<Self>> {
        let refuse = |reason: String| Error::Elf { path: path.to_owned(), reason };
        let TagSymbols { base, end, found } = read(data).map_err(|error| refuse(error.to_string()))?;
        let (Some(base), false) = (base, found.is_empty()) else { return Ok(None) };
        let mut names: HashMap<&str, usize> = HashMap::new();
        found.iter().for_each(|raw| *names.entry(&raw.name).or_default() += 1);
        let mut taken = HashSet::new();
        let mut all = Vec::with_capacity(found.len());
        for raw in &found {
            let offset = raw.address.checked_sub(base).filter(|offset| *offset < MAX_TAG && offset % 2 == 0);
            let Some(offset) = offset else {
                return Err(refuse(format!(
                    "the trigger of {} reads address {:#x}, which is no tag above {base:#x}",
                    raw.name, raw.address
                )));
            };
            let mut name = raw.name.clone();
            if names.get(name.as_str()).is_some_and(|count| *count > 1) {
                name = format!("{name}@{}", raw.file);
            }
            let mut unique = name.clone();
            let mut number = 2;
            while !taken.insert(unique.clone()) {
                unique = format!("{name}.{number}");
                number += 1;
            }
            let is = |set: &[&str]| set.contains(&raw.name.as_str());
            let kind = match () {
                () if is(&SWITCHES) => TriggerKind::ContextSwitch,
                () if is(&WAITS) => TriggerKind::Idle,
                () => TriggerKind::Function,
            };
            all.push(Trigger { name: unique, tag: offset as u32, kind });
        }
        all.sort_by_key(|trigger| trigger.tag);
        if let Some(pair) = all.windows(2).find(|pair| pair[0].tag == pair[1].tag) {
            return Err(refuse(format!("{} and {} have one tag", pair[0].name, pair[1].name)));
        }
        let last = all.last().map_or(0, |trigger| u64::from(trigger.tag));
        // Kernels of older patches say no end, or one that is before the last byte is padded.
        let size = end.and_then(|end| end.checked_sub(base)).unwrap_or(0).max(last + 2);
        Ok(Some(Self { base, size, all }))
    }

    /// Returns the greatest tag: the exit of the last function.
    pub fn last_tag(&self) -> u64 {
        self.all.last().map_or(0, |trigger| u64::from(trigger.tag) + 1)
    }
}

/// Symbol at the two bytes of a function.
struct TagSymbol {
    name: String,
    address: u64,
    /// Source file without its directory.
    file: String,
}

/// Symbols of an image that belong to triggers.
#[derive(Default)]
struct TagSymbols {
    base: Option<u64>,
    end: Option<u64>,
    found: Vec<TagSymbol>,
}

fn read(data: &[u8]) -> kerntune_debuginfo::Result<TagSymbols> {
    let elf = Elf::parse(data)?;
    let (mut symbols, mut file) = (TagSymbols::default(), String::new());
    for symbol in elf.symbols() {
        let symbol = symbol?;
        let name = symbol.name;
        if symbol.kind == SymbolKind::File {
            // Characters that a names file cannot contain.
            file = name.rsplit('/').next().unwrap_or_default().replace(['#', ' ', '\t'], "_");
        } else if name == START {
            symbols.base = Some(symbol.address);
        } else if name == END {
            symbols.end = Some(symbol.address);
        } else if let Some(function) = name.strip_prefix(PREFIX) {
            let is_name = !function.is_empty() && !function.contains(['/', '#']);
            if is_name && !function.contains(char::is_whitespace) {
                symbols.found.push(TagSymbol {
                    name: function.into(),
                    address: symbol.address,
                    file: file.clone(),
                });
            }
        }
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Two objects as the compiler and `scripts/kt-tags.awk` leave them, linked like the kernel.
    fn linked(script: &str) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(dir.path()).output().unwrap();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        let patch = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../embedded/kernel/patches/6.12/mcrae-compiler/0001-triggers.patch"
        );
        let patch = std::fs::read_to_string(patch).unwrap();
        let part =
            patch.split("\ndiff --git ").find(|part| part.contains("+++ b/scripts/kt-tags.awk")).unwrap();
        let added = part.split_once("\n@@ ").unwrap().1.lines().filter_map(|line| line.strip_prefix('+'));
        std::fs::write(
            dir.path().join("tags.awk"),
            added.map(|line| format!("{line}\n")).collect::<String>(),
        )
        .unwrap();
        std::fs::write(dir.path().join("set"), "# all\n*\n").unwrap();
        std::fs::write(dir.path().join("kernel.ld"), script).unwrap();
        for (file, text) in [
            ("one.c", "int g(int); static int same(int x) { return g(x) + 1; } int __schedule(int x) { return same(x); }"),
            ("two.c", "static __attribute__((noinline)) int same(int x) { return x * 3; } int g(int x) { return same(x) - 1; } int _start(void) { return g(1); }"),
        ] {
            std::fs::write(dir.path().join(file), text).unwrap();
            run("gcc", &["-O1", "-fno-inline", "-fno-pic", "-mcmodel=kernel", "-S", file, "-o", "plain.s"]);
            let tagged = run("awk", &["-v", "only=set", "-f", "tags.awk", "plain.s"]);
            std::fs::write(dir.path().join("tagged.s"), tagged).unwrap();
            run("gcc", &["-c", "tagged.s", "-o", &format!("{file}.o")]);
        }
        run("ld", &["-static", "-T", "kernel.ld", "one.c.o", "two.c.o", "-o", "vmlinux"]);
        std::fs::read(dir.path().join("vmlinux")).unwrap()
    }

    const SCRIPT: &str = "SECTIONS { . = 0xffffffff81000000; .text : { *(.text) } \
        kt_tags : { . = ALIGN(4096); __kt_tags_start = .; KEEP(*(kt_tags)) __kt_tags_end = .; } .data : { *(.data) } }";

    #[test]
    fn each_function_has_its_tag() {
        let bytes = linked(SCRIPT);
        let triggers = Triggers::parse(bytes.as_slice(), Path::new("x")).unwrap().unwrap();
        let names: Vec<(&str, u32)> = triggers.all.iter().map(|t| (t.name.as_str(), t.tag)).collect();
        assert_eq!(
            names,
            [("same@one.c", 0), ("__schedule", 2), ("same@two.c", 4), ("g", 6), ("_start", 8)],
            "{triggers:?}"
        );
        assert_eq!(triggers.all[1].kind, TriggerKind::ContextSwitch);
        assert_eq!((triggers.base % 4096, triggers.size, triggers.last_tag()), (0, 10, 9));
        // The code reads these bytes, one at the entry and one at the exit.
        let symbols = crate::Symbols::parse(bytes.as_slice(), Path::new("x")).unwrap();
        assert_eq!(symbols.functions().len(), 5);
    }

    #[test]
    fn an_image_without_triggers_has_none() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(Triggers::load(&program).unwrap(), None);
    }

    #[test]
    fn bytes_where_no_tag_is_are_refused() {
        let moved = SCRIPT.replace("__kt_tags_start = .;", "__kt_tags_start = . + 4;");
        let error = Triggers::parse(linked(&moved).as_slice(), Path::new("x")).unwrap_err().to_string();
        assert!(error.contains("the trigger of") && error.contains("no tag"), "{error}");
    }
}
