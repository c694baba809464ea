//! Source and machine code of a profile's functions, with execution counts. Start from
//! [`KernelCode`], which reads the kernel's vmlinux and source tree.

use kerntune_command::Failure;
use kerntune_kernel::{find_recorded, ImportedSource, Kernel, KernelSource, Symbols};
use kerntune_profile::{Profile, Symbol};
use kerntune_report::html::profile::{
    function_code, packed, BlockCounts, FunctionCode, PageCode, PlacedInstruction,
};
use kerntune_symbols::MachineCode;
use kerntune_work::{checked, hash_file, NoProgress, WorkDir, SUMS_FILE};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Code gets 1 / `CODE_SHARE` of the bytes that a page may have.
const CODE_SHARE: u64 = 8;

/// Code of a profile's kernel: instructions, line tables, sources, and the profile's execution
/// counts.
pub struct KernelCode<'a> {
    profile: &'a Profile,
    image: MachineCode,
    symbols: Symbols,
    counts: BlockCounts,
    /// By function index, the indices of its parts, such as `.cold` parts that the compiler split
    /// off.
    parts: HashMap<usize, Vec<usize>>,
    sources: Result<SourceTree, String>,
    kernel: String,
}

/// The source tree that a kernel was built from.
struct SourceTree {
    dir: PathBuf,
    /// Hashes of the files when the tree was stored, for a tree in the work directory. `None` for a
    /// tree elsewhere, whose overall hash was compared instead.
    sums: Option<HashMap<String, String>>,
    /// Cache of the lines of files; `None` for a file that cannot be shown.
    read: Mutex<HashMap<String, Option<Vec<String>>>>,
}

/// The reason that a profile has no code to show.
#[derive(Debug)]
pub struct CodeUnavailable {
    /// The reason, as a sentence for the user.
    pub why: String,
    /// The error, if the kernel exists but cannot be read.
    pub damage: Option<Failure>,
}

impl From<String> for CodeUnavailable {
    fn from(why: String) -> Self {
        Self { why, damage: None }
    }
}

impl<'a> KernelCode<'a> {
    /// Opens the code of a profile's kernel.
    ///
    /// # Errors
    /// The profile has no counts, or its kernel is missing or damaged; with a sentence for the
    /// user.
    pub fn open(work: &WorkDir, profile: &'a Profile) -> Result<Self, CodeUnavailable> {
        let manifest = &profile.manifest;
        if manifest.sampled.is_some() {
            return Err("Source and code have no counts here: this profile was sampled, and samples do not say how often \
                        an instruction ran."
                .to_owned()
                .into());
        }
        let counts = BlockCounts::new(&profile.tables);
        if counts.is_empty() {
            return Err(
                "There are no counts by line and instruction: this profile was recorded without branches \
                 (--no-edges), or is of a kind that has none."
                    .to_owned()
                    .into(),
            );
        }
        let label = &manifest.kernel.label;
        let read = |error: String| format!("Source and code cannot be shown: kernel {label}: {error}.");
        let found = find_recorded(work, &manifest.kernel.id).map_err(|error| {
            let why = read(error.to_string());
            CodeUnavailable { why, damage: Some(error.into()) }
        })?;
        let kernel = found.ok_or_else(|| {
            format!(
                "Source and code cannot be shown: kernel {label} ({}) is not in the work directory.",
                manifest.kernel.id
            )
        })?;
        let image = MachineCode::open(&kernel.vmlinux()).map_err(|error| read(error.to_string()))?;
        let symbols = kernel.symbols().map_err(|error| read(error.to_string()))?;
        let mut parts: HashMap<usize, Vec<usize>> = HashMap::new();
        for at in 0..symbols.functions().len() {
            parts.entry(symbols.whole(at)).or_default().push(at);
        }
        // Without line tables the sources are never used.
        let sources = match image.has_lines() {
            true => SourceTree::of(work, &kernel),
            false => Err(String::new()),
        };
        Ok(Self { profile, image, symbols, counts, parts, sources, kernel: label.clone() })
    }

    /// Returns the code of the function in this row of the symbols table.
    ///
    /// # Errors
    /// The reason that it has no code, as a sentence for the user.
    pub fn function(&self, row: u32) -> Result<FunctionCode, String> {
        let symbol = self.profile.tables.symbols.get(row as usize).ok_or("There is no such function.")?;
        let name = &symbol.name;
        if let Some(module) = &symbol.module {
            return Err(format!("{name} is in {module}: its code is not part of the kernel's vmlinux."));
        }
        let ranges = self
            .ranges(symbol)
            .ok_or_else(|| format!("vmlinux of kernel {} has no code of {name}.", self.kernel))?;
        let mut failed = None;
        let mut decode = |range: Range<u64>| self.decode(range, &mut failed);
        let mut code = function_code(&ranges, &self.counts, &mut decode, &mut |file| self.text(file));
        if code.code.is_empty() {
            return Err(format!("vmlinux of kernel {} has no code of {name}.", self.kernel));
        }
        code.note = match (&self.sources, self.image.has_lines(), failed) {
            (_, _, Some(error)) => format!("Source lines cannot be shown: {error}."),
            (_, false, _) => format!(
                "Source lines cannot be shown: kernel {} was built without line tables. With them: kerntune kernel build \
                 --set CONFIG_DEBUG_INFO_NONE=n --set CONFIG_DEBUG_INFO_DWARF5=y.",
                self.kernel
            ),
            _ if code.lines.is_empty() => format!(
                "Source lines cannot be shown: vmlinux of kernel {} has no source lines for this code, as \
                 for most assembly.",
                self.kernel
            ),
            (Err(why), true, _) => why.clone(),
            (Ok(_), true, _) => String::new(),
        };
        Ok(code)
    }

    /// Returns the address ranges of a function and its parts, without other functions that lie
    /// inside.
    fn ranges(&self, symbol: &Symbol) -> Option<Vec<Range<u64>>> {
        let functions = self.symbols.functions();
        let whole =
            functions.binary_search_by_key(&symbol.address.get(), |function| function.address).ok()?;
        let mut ranges = Vec::new();
        let parts = self.parts.get(&whole).map_or(&[][..], Vec::as_slice);
        for at in std::iter::once(&whole).chain(parts.iter().filter(|part| **part != whole)) {
            let part = functions.get(*at)?;
            let mut from = part.address;
            for (within, other) in functions.iter().enumerate().skip(at + 1) {
                if other.address >= part.end() {
                    break;
                }
                if self.symbols.whole(within) != whole && other.end() > from {
                    ranges.push(from..other.address);
                    from = other.end();
                }
            }
            ranges.push(from..part.end());
        }
        ranges.retain(|range| range.start < range.end);
        Some(ranges)
    }

    fn decode(&self, range: Range<u64>, failed: &mut Option<String>) -> Vec<PlacedInstruction> {
        let lines = self.image.lines(range.clone()).unwrap_or_else(|error| {
            failed.get_or_insert(error.to_string());
            Vec::new()
        });
        let place = |address: u64| {
            let after = lines.partition_point(|line| line.code.start <= address);
            let line = lines.get(after.checked_sub(1)?)?;
            line.code.contains(&address).then(|| (line.file.clone(), line.line))
        };
        let instructions = self.image.instructions(range).into_iter();
        instructions
            .map(|one| PlacedInstruction {
                address: one.address,
                end: one.end,
                place: place(one.address),
                text: match one.target.and_then(|target| self.named(target)) {
                    Some(name) => format!("{} <{name}>", one.text),
                    None => one.text,
                },
            })
            .collect()
    }

    /// Formats an address as `tcp_ack` or `tcp_ack+0x1f`.
    fn named(&self, address: u64) -> Option<String> {
        let function = self.symbols.functions().get(self.symbols.lookup(address)?)?;
        Some(match address - function.address {
            0 => function.name.clone(),
            offset => format!("{}+{offset:#x}", function.name),
        })
    }

    fn text(&self, file: &str) -> Option<Vec<String>> {
        self.sources.as_ref().ok()?.lines(file)
    }

    /// Returns the code of the functions with most self instructions, as much as fits into the
    /// code's share of `limit` bytes, and the message for the other functions.
    pub fn heaviest(&self, limit: u64) -> kerntune_report::Result<PageCode> {
        let room = limit / CODE_SHARE;
        let mut own: HashMap<u32, u64> = HashMap::new();
        for row in &self.profile.tables.functions {
            *own.entry(row.function.get()).or_default() += row.self_ticks.get();
        }
        let all: u64 = own.values().sum();
        let mut order: Vec<(u32, u64)> = own.into_iter().filter(|(_, net)| *net > 0).collect();
        order.sort_by_key(|(function, net)| (std::cmp::Reverse(*net), *function));
        let (mut functions, mut bytes, mut shown) = (Vec::new(), 0, 0);
        let count = order.len();
        for (function, net) in order {
            let Ok(code) = self.function(function) else { continue };
            let code = packed(&code)?;
            bytes += code.len() as u64;
            if bytes > room {
                break;
            }
            shown += net;
            functions.push((function, code));
        }
        let share = if all > 0 { shown as f64 * 100.0 / all as f64 } else { 0.0 };
        let rest = format!(
            "This page has the code of {} of {count} functions, those with {share:.1} % of all self instructions; this one is not \
             among them. All: kerntune view {}.",
            functions.len(),
            self.profile.manifest.id
        );
        Ok(PageCode { functions, rest })
    }
}

impl SourceTree {
    /// Opens the tree that a kernel was built from, if it still exists unchanged.
    ///
    /// # Errors
    /// The reason that sources have no text, as a sentence for the user.
    fn of(work: &WorkDir, kernel: &Kernel) -> Result<Self, String> {
        let record = &kernel.manifest.source;
        if let Some(dir) = work.find("sources", &record.hash) {
            let sums = sums(&dir).map_err(|error| format!("Source lines have no text: {error}."))?;
            return Ok(Self { dir, sums: Some(sums), read: Mutex::default() });
        }
        let gone =
            || format!("Source lines have no text: the kernel's source {} is not there.", record.origin);
        let path = Path::new(&record.origin);
        if !path.is_dir() {
            return Err(gone());
        }
        let source = KernelSource::Directory(path.to_owned());
        let found = ImportedSource::import(work, &source, &NoProgress).map_err(|_| gone())?;
        match found.hash() == record.hash {
            true => Ok(Self { dir: found.dir().to_owned(), sums: None, read: Mutex::default() }),
            false => Err(format!(
                "Source lines have no text: the kernel's source {} has changed since it was built.",
                record.origin
            )),
        }
    }

    /// Returns the lines of a file of the tree; `None` if it cannot be shown.
    fn lines(&self, file: &str) -> Option<Vec<String>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(file.to_owned()).or_insert_with(|| self.text(file)).clone()
    }

    /// Reads a file of the tree. Paths come from the image's line tables and are not trusted: a
    /// path out of the tree gives `None`.
    fn text(&self, file: &str) -> Option<Vec<String>> {
        let path = Path::new(file);
        if file.is_empty() || !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let whole = self.dir.join(path).canonicalize().ok()?;
        if !whole.starts_with(self.dir.canonicalize().ok()?) || !whole.is_file() {
            return None;
        }
        if let Some(sums) = &self.sums {
            hash_file(&whole).ok().filter(|hash| sums.get(file) == Some(hash))?;
        }
        let bytes = std::fs::read(whole).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }
}

/// Reads the hashes, by path, of the files of a stored tree.
fn sums(dir: &Path) -> Result<HashMap<String, String>, String> {
    checked(dir, &["Makefile"]).map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(dir.join(SUMS_FILE)).map_err(|error| error.to_string())?;
    let rows = text.lines().filter_map(|line| line.split_once("  "));
    Ok(rows.map(|(hash, path)| (path.to_owned(), hash.to_owned())).collect())
}
