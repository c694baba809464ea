//! Rewriting of a kernel's code from a recording of the training run.

use super::guard::{pattern, referred_by, withheld, WithholdingReason};
use super::image::ElfImage;
use super::log::{BoltLog, OversizedFunction};
use super::program::{
    lacks_symbol_sections, with_symbol_sections, Bolt, FunctionSelection, PassFiles, ORDERS,
};
use super::{tables, FunctionFate};
use crate::quality;
use crate::stored::{read_json, store, PreparedResult};
use crate::{Error, Result};
use kerntune_convert::bolt::PreAggregated;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{write_json, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

const FUNCTIONS: &str = "functions.json";
const VMLINUX: &str = "vmlinux";
const COUNTS: &str = "counts.txt";
const SKIP: &str = "skip.txt";

/// Configuration line of kernels that move to a random address at boot. They have a table, made by
/// the linker, of all places in the code to change then.
const MOVED_AT_BOOT: &str = "CONFIG_X86_NEED_RELOCS=y";

/// One run of BOLT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoltPass {
    /// Order of blocks (`--reorder-blocks`).
    pub order: String,
    /// Functions with counts, according to BOLT.
    pub with_counts: u64,
    /// Functions with counts that BOLT could not optimize, including those that it was not asked
    /// to.
    pub not_optimized: u64,
    /// Functions that BOLT wrote.
    pub written: u64,
    /// Functions that were not written because they would be longer than their place.
    pub too_long: u64,
}

/// Inputs and results of all runs of BOLT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteSummary {
    /// Version, as BOLT prints it.
    pub bolt: String,
    /// Taken branches of the training within the kernel's image, each once.
    pub branches: u64,
    /// Functions that ran and were withheld from BOLT.
    pub withheld: u64,
    /// Runs of BOLT, each on the output of the previous one.
    pub passes: Vec<BoltPass>,
}

/// Function that ran in the training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoltFunction {
    /// Name of the function.
    pub name: String,
    /// Address of its first byte.
    pub address: u64,
    /// Executed instructions of the function.
    pub instructions: u64,
    /// Result of BOLT for it.
    pub otherwise: FunctionFate,
    /// Detail of the result: name of a section, or number of bytes too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Rewritten kernel image in the work directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoltRewrite {
    /// Absolute result directory: `rewrite.json`, `functions.json`, `vmlinux`, BOLT's inputs
    /// (`counts.txt`, `skip.txt`) and logs (`bolt-1.log`, `bolt-2.log`).
    #[serde(skip)]
    pub dir: PathBuf,
    /// 16 hex digits: hash of the kernel, the counts and BOLT's arguments.
    pub id: String,
    /// Id of the kernel that was recorded and rewritten.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// Inputs and results of BOLT.
    pub summary: RewriteSummary,
}

impl PreparedResult for BoltRewrite {
    const KIND: &'static str = "bolt";
    const MANIFEST: &'static str = "rewrite.json";
    const SCHEMA: &'static str = "kerntune-rewrite/1";
    const OPEN: &'static str = "open rewritten kernel";

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn in_dir(self, dir: PathBuf) -> Result<Self> {
        Ok(Self { dir, ..self })
    }
}

impl BoltRewrite {
    /// Returns the path of the ELF image.
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join(VMLINUX)
    }

    /// Reads the functions that ran in the training, by executed instructions, most first.
    pub fn functions(&self) -> Result<Vec<BoltFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}

/// Rewrites the code of `kernel` by a recording of it with edges, ideally of the training run.
///
/// The result is named by its inputs; an existing result is reused.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]) or has no edges;
/// [`Error::NotRewritable`]; BOLT missing or failing.
pub fn rewrite(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<BoltRewrite> {
    let (recorded, label) = (&recording.manifest, kernel.manifest.label.as_str());
    let quality = quality::pass(work, recording, kernel)?;
    let mut image = check_kernel(kernel)?;
    let bolt = Bolt::find(&kernel.manifest.cc.parse()?)?;
    let counts = PreAggregated::of(&recording.tables)
        .map_err(|reason| Error::NoCounts { profile: recorded.id.clone(), reason })?;
    let mut text = Vec::new();
    let written = counts.write(&mut text).at("write", "counts")?;
    let symbols = kernel.symbols()?;
    let ran = executed(&symbols, &recording.tables);
    let mut excluded = withheld(&image, &symbols);
    excluded.retain(|index, _| ran.contains_key(index));
    let skip = skip_list(&symbols, &excluded);
    let arguments = ORDERS.map(|order| Bolt::arguments(order).join(" ")).join("\n");
    let key = Key::new("bolt/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("bolt", &bolt.version)
        .field("told", arguments)
        .field("skip", &skip)
        .field("counts", &text);
    store(work, &key, Some(&quality), |dir| {
        let at = |name: &str| dir.join(name);
        fs::write(at(COUNTS), &text).at("write", at(COUNTS))?;
        fs::write(at(SKIP), &skip).at("write", at(SKIP))?;
        let done = passes(&bolt, &mut image, dir, label)?;
        fs::write(at(VMLINUX), image.bytes()).at("write", at(VMLINUX))?;
        let reasons = SkipReasons {
            exceptions: referred_by(&image, &symbols, "__ex_table", 12, &[0, 4]).collect(),
            alternatives: done
                .alternative_bytes
                .map(|bytes| referred_by(&image, &symbols, ".altinstructions", bytes, &[0]).collect())
                .unwrap_or_default(),
            too_long: done.too_long.iter().map(|f| (f.symbol().to_string(), f.bytes)).collect(),
            excluded: &excluded,
        };
        write_json(&at(FUNCTIONS), &reasons.functions(&symbols, &ran))?;
        let branches = u64::try_from(written.branches).unwrap_or(u64::MAX);
        let (bolt, withheld) = (bolt.version.clone(), excluded.len() as u64);
        let summary = RewriteSummary { bolt, branches, withheld, passes: done.passes };
        let (kernel, recording) = (kernel.manifest.id.clone(), recorded.id.clone());
        Ok(BoltRewrite { dir: dir.into(), id: key.id(), kernel, recording, summary })
    })
}

/// Input for a run of BOLT by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoltInput {
    /// Functions that BOLT must not rewrite, for `--skip-funcs-file`.
    pub skip: String,
    /// True if the image was written: BOLT crashes on the kernel's own.
    pub has_image: bool,
}

/// Prepares a run of BOLT by hand on `kernel`, with the counts of a recording of it. Writes an image
/// that BOLT can read to `image` if the kernel's own is none.
///
/// # Errors
/// An image that cannot be read; objcopy missing or failing.
pub fn prepare_input(recording: &Profile, kernel: &Kernel, image: &Path) -> Result<BoltInput> {
    let label = kernel.manifest.label.as_str();
    let vmlinux = ElfImage::load(&kernel.vmlinux(), label)?;
    let symbols = kernel.symbols()?;
    let ran = executed(&symbols, &recording.tables);
    let mut excluded = withheld(&vmlinux, &symbols);
    excluded.retain(|index, _| ran.contains_key(index));
    let has_image = lacks_symbol_sections(|name| vmlinux.has(name));
    if has_image {
        with_symbol_sections(&kernel.vmlinux(), image, |name| vmlinux.has(name), label)?;
    }
    Ok(BoltInput { skip: skip_list(&symbols, &excluded), has_image })
}

/// Results of all runs of BOLT.
#[derive(Default)]
struct PassResults {
    passes: Vec<BoltPass>,
    /// Functions too long for their place in the last run.
    too_long: Vec<OversizedFunction>,
    /// Size of an entry of `.altinstructions`.
    alternative_bytes: Option<usize>,
}

/// Rewrites `image`. Each further order of blocks is tried on the functions that were too long with
/// the previous one. Works in `directory`, which has the counts.
fn passes(bolt: &Bolt, image: &mut ElfImage, directory: &Path, kernel: &str) -> Result<PassResults> {
    let at = |name: &str| directory.join(name);
    let (plain, input, only, output) = (at("plain"), at("input"), at("only"), at("output"));
    let skip = at(SKIP);
    let mut done = PassResults::default();
    for (number, order) in (1..).zip(ORDERS) {
        if number > 1 && done.too_long.is_empty() {
            break;
        }
        let names: String = done.too_long.iter().map(|function| format!("{}\n", function.name)).collect();
        fs::write(&only, names).at("write", &only)?;
        fs::write(&plain, image.bytes()).at("write", &plain)?;
        with_symbol_sections(&plain, &input, |name| image.has(name), kernel)?;
        let files = PassFiles {
            vmlinux: &input,
            counts: &at(COUNTS),
            functions: if number > 1 {
                FunctionSelection::Only(&only)
            } else {
                FunctionSelection::But(&skip)
            },
            output: &output,
            log: &at(&format!("bolt-{number}.log")),
        };
        let log = BoltLog::parse(&bolt.run(order, &files, kernel)?);
        image.take(&ElfImage::load(&output, kernel)?).map_err(|reason| {
            let reason = format!("what came of it has other sections: {reason}");
            Error::NotRewritable { kernel: kernel.to_string(), reason }
        })?;
        done.passes.push(BoltPass {
            order: order.into(),
            with_counts: log.with_counts,
            not_optimized: log.not_optimized,
            written: log.written,
            too_long: log.too_long.len() as u64,
        });
        done.alternative_bytes = done.alternative_bytes.or(log.alternative_bytes);
        done.too_long = log.too_long;
    }
    for left in [&plain, &input, &only, &output] {
        fs::remove_file(left).at("remove", left)?;
    }
    Ok(done)
}

/// Refuses a kernel that BOLT cannot rewrite, whatever was recorded.
///
/// # Errors
/// [`Error::NotRewritable`]; files that cannot be read.
pub fn check(kernel: &Kernel) -> Result<()> {
    check_kernel(kernel).map(drop)
}

fn check_kernel(kernel: &Kernel) -> Result<ElfImage> {
    let (path, label) = (kernel.config(), &kernel.manifest.label);
    let config = fs::read_to_string(&path).at("read", &path)?;
    let reason = if kernel.manifest.rewrite_id.is_some() {
        "its code was rewritten already; start from its base kernel".to_owned()
    } else if config.lines().any(|line| line == MOVED_AT_BOOT) {
        "it is moved to a random address at boot (CONFIG_RANDOMIZE_BASE), by a table of places in its code that would no \
         longer be there; build it without"
            .to_owned()
    } else {
        let image = ElfImage::load(&kernel.vmlinux(), label)?;
        match tables::problem(&image) {
            None => return Ok(image),
            Some(reason) => reason,
        }
    };
    Err(Error::NotRewritable { kernel: label.clone(), reason })
}

/// Returns the executed instructions of each function, by index.
fn executed(symbols: &Symbols, tables: &Tables) -> HashMap<usize, u64> {
    let mut executed = HashMap::new();
    for block in tables.blocks.iter().filter(|block| block.count > 0) {
        if let Some(index) = symbols.lookup(block.start.get()) {
            let sum: &mut u64 = executed.entry(index).or_default();
            *sum = sum.saturating_add(block.count.saturating_mul(block.instructions.get()));
        }
    }
    executed
}

/// Returns the patterns of functions to skip, sorted, so that the same functions make the same
/// text.
fn skip_list(symbols: &Symbols, excluded: &HashMap<usize, WithholdingReason>) -> String {
    let functions = excluded.keys().map(|&index| &symbols.functions()[index]);
    let named = functions.flat_map(|f| f.aliases.iter().chain([&f.name]));
    let mut names: BTreeSet<&str> = named.map(String::as_str).collect();
    // BOLT takes the stubs of interrupts, by their label, as one function, and would move them in
    // their table.
    for label in symbols.stub_labels() {
        names.insert(label);
    }
    names.into_iter().map(|name| pattern(name) + "\n").collect()
}

/// Reasons that keep functions from being rewritten.
struct SkipReasons<'a> {
    excluded: &'a HashMap<usize, WithholdingReason>,
    exceptions: HashSet<usize>,
    alternatives: HashSet<usize>,
    /// Missing bytes by name; functions of one name cannot be told apart.
    too_long: HashMap<String, u64>,
}

impl SkipReasons<'_> {
    fn functions(&self, symbols: &Symbols, ran: &HashMap<usize, u64>) -> Vec<BoltFunction> {
        let mut functions: Vec<BoltFunction> = ran
            .iter()
            .map(|(&index, &instructions)| {
                let function = &symbols.functions()[index];
                let (otherwise, because) = self.of(index, &function.name, &function.aliases);
                let (name, address) = (function.name.clone(), function.address);
                BoltFunction { name, address, instructions, otherwise, because }
            })
            .collect();
        functions.sort_by(|a, b| (b.instructions, a.address).cmp(&(a.instructions, b.address)));
        functions
    }

    fn of(&self, index: usize, name: &str, aliases: &[String]) -> (FunctionFate, Option<String>) {
        let names = || aliases.iter().map(String::as_str).chain([name]);
        match self.excluded.get(&index) {
            Some(WithholdingReason::Assembly) => (FunctionFate::Assembly, None),
            Some(WithholdingReason::Referred(table)) => (FunctionFate::Referred, Some(table.clone())),
            None if self.exceptions.contains(&index) => (FunctionFate::Exceptions, None),
            None if self.alternatives.contains(&index) => (FunctionFate::Alternatives, None),
            None => match names().find_map(|name| self.too_long.get(name)) {
                Some(bytes) => (FunctionFate::TooLong, Some(format!("{bytes} bytes"))),
                None => (FunctionFate::AsItWas, None),
            },
        }
    }
}
