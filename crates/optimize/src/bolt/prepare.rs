//! From a recording of the training run to a kernel with other code.

use super::guard::{pattern, referred_by, withheld, Withheld};
use super::image::Image;
use super::log::{Log, TooLong};
use super::program::{with_symbol_sections, Bolt, Choice, Files, ORDERS};
use super::Fate;
use crate::quality::{self, Quality};
use crate::stored::{open, read_json, read_quality, QUALITY};
use crate::{Error, Result};
use kerntune_convert::bolt::PreAggregated;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{write_json, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The kind of result in the work directory.
const KIND: &str = "bolt";
const MANIFEST: &str = "rewrite.json";
const FUNCTIONS: &str = "functions.json";
const VMLINUX: &str = "vmlinux";
const COUNTS: &str = "counts.txt";
const SKIP: &str = "skip.txt";
const SCHEMA: &str = "kerntune-rewrite/1";

/// A kernel that is moved to a random address has a table of all places in its code that must then be changed, made
/// when it was linked.
const MOVED_AT_BOOT: &str = "CONFIG_X86_NEED_RELOCS=y";

/// One run of BOLT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// How blocks were ordered (`--reorder-blocks`).
    pub order: String,
    /// Functions with counts, as BOLT found them.
    pub with_counts: u64,
    /// Of them those that BOLT said it could not optimize. Those that it was not asked for are among them.
    pub not_optimized: u64,
    /// Functions that BOLT wrote.
    pub written: u64,
    /// Functions that it made longer than their place, and did not write.
    pub too_long: u64,
}

/// What was asked of BOLT and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteSummary {
    /// BOLT's version, in its words.
    pub bolt: String,
    /// Taken branches of the training in the kernel's image.
    pub branches: u64,
    /// Functions that ran and were not given to BOLT.
    pub withheld: u64,
    /// Its runs, each on what the one before made.
    pub passes: Vec<Pass>,
}

/// A function that ran in the training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanFunction {
    /// Its name.
    pub name: String,
    /// Address of its first byte.
    pub address: u64,
    /// Its instructions, each as often as it was executed.
    pub instructions: u64,
    /// Why it is as it was, if it is.
    pub otherwise: Fate,
    /// More of that: a section's name, or how many bytes too long it came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    id: String,
    kernel: String,
    recording: String,
    summary: RewriteSummary,
}

/// A rewritten kernel image in the work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The result directory, absolute: `rewrite.json`, `functions.json`, `vmlinux`, what BOLT was given (`counts.txt`,
    /// `skip.txt`) and what it said (`bolt-1.log`, `bolt-2.log`).
    pub dir: PathBuf,
    /// 16 hex digits over the kernel, the counts and what BOLT was told.
    pub id: String,
    /// Id of the kernel that was recorded and rewritten.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// What BOLT did.
    pub summary: RewriteSummary,
}

impl Rewrite {
    /// Loads the result in `dir`.
    ///
    /// # Errors
    /// Missing or damaged files, or of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, Manifest) = open(dir, "open rewritten kernel", MANIFEST, SCHEMA)?;
        let Manifest { id, kernel, recording, summary, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, summary })
    }

    /// The ELF image.
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join(VMLINUX)
    }

    /// What the gate said of the recording.
    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }

    /// What ran in the training, the most first.
    pub fn functions(&self) -> Result<Vec<RanFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}

/// Rewrites the code of `kernel` by a recording of it with edges, best of the training run.
///
/// The result is named by what it is made of; what is there already is not made again.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]) or has no edges; [`Error::NotRewritable`]; an absent or failing BOLT.
pub fn rewrite(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<Rewrite> {
    let (recorded, label) = (&recording.manifest, kernel.manifest.label.as_str());
    let quality = quality::pass(work, recording, kernel)?;
    check_kernel(kernel)?;
    let bolt = Bolt::find()?;
    let counts = PreAggregated::of(&recording.tables)
        .map_err(|reason| Error::NoCounts { profile: recorded.id.clone(), reason })?;
    let mut text = Vec::new();
    let written = counts.write(&mut text).at("write", "counts")?;
    let mut image = Image::load(&kernel.vmlinux(), label)?;
    let symbols = kernel.symbols()?;
    let ran = executed(&symbols, &recording.tables);
    let mut held = withheld(&image, &symbols);
    held.retain(|index, _| ran.contains_key(index));
    let skip = skip_list(&symbols, &held);
    let told = ORDERS.map(|order| Bolt::arguments(order).join(" ")).join("\n");
    let key = Key::new("bolt/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("bolt", &bolt.version)
        .field("told", told)
        .field("skip", &skip)
        .field("counts", &text);
    let id = key.id();
    let staged = work.stage(KIND, &key)?;
    if let Some(done) = staged.already().and_then(|dir| Rewrite::load(&dir).ok()) {
        return Ok(done);
    }
    staged.clear()?;
    let at = |name: &str| staged.path().join(name);
    fs::write(at(COUNTS), &text).at("write", at(COUNTS))?;
    fs::write(at(SKIP), &skip).at("write", at(SKIP))?;
    let done = passes(&bolt, &mut image, staged.path(), label)?;
    fs::write(at(VMLINUX), image.bytes()).at("write", at(VMLINUX))?;
    let reasons = Reasons {
        exceptions: referred_by(&image, &symbols, "__ex_table", 12, &[0, 4]).collect(),
        alternatives: done
            .alternative_bytes
            .map(|bytes| referred_by(&image, &symbols, ".altinstructions", bytes, &[0]).collect())
            .unwrap_or_default(),
        too_long: done.too_long.iter().map(|f| (f.symbol().to_string(), f.bytes)).collect(),
        held: &held,
    };
    write_json(&at(FUNCTIONS), &reasons.functions(&symbols, &ran))?;
    let branches = u64::try_from(written.branches).unwrap_or(u64::MAX);
    let (bolt, withheld) = (bolt.version, held.len() as u64);
    let summary = RewriteSummary { bolt, branches, withheld, passes: done.passes };
    let (kernel, recording) = (kernel.manifest.id.clone(), recorded.id.clone());
    write_json(&at(QUALITY), &quality)?;
    write_json(&at(MANIFEST), &Manifest { schema: SCHEMA.into(), id, kernel, recording, summary })?;
    Rewrite::load(&staged.publish()?)
}

/// What came of all runs of BOLT.
#[derive(Default)]
struct Passes {
    passes: Vec<Pass>,
    /// What was too long for its place in the last of them.
    too_long: Vec<TooLong>,
    /// Bytes of an entry of `.altinstructions`.
    alternative_bytes: Option<usize>,
}

/// Rewrites `image`: each order of blocks is tried on the functions that the one before made too long. Works in
/// `directory`, where the counts are.
fn passes(bolt: &Bolt, image: &mut Image, directory: &Path, kernel: &str) -> Result<Passes> {
    let at = |name: &str| directory.join(name);
    let (plain, input, only, output) = (at("plain"), at("input"), at("only"), at("output"));
    let skip = at(SKIP);
    let mut done = Passes::default();
    for (number, order) in (1..).zip(ORDERS) {
        if number > 1 && done.too_long.is_empty() {
            break;
        }
        let names: String = done.too_long.iter().map(|function| format!("{}\n", function.name)).collect();
        fs::write(&only, names).at("write", &only)?;
        fs::write(&plain, image.bytes()).at("write", &plain)?;
        with_symbol_sections(&plain, &input, |name| image.has(name), kernel)?;
        let files = Files {
            vmlinux: &input,
            counts: &at(COUNTS),
            functions: if number > 1 { Choice::Only(&only) } else { Choice::But(&skip) },
            output: &output,
            log: &at(&format!("bolt-{number}.log")),
        };
        let log = Log::parse(&bolt.run(order, &files, kernel)?);
        image.take(&Image::load(&output, kernel)?).map_err(|reason| {
            let reason = format!("what came of it has other sections: {reason}");
            Error::NotRewritable { kernel: kernel.to_string(), reason }
        })?;
        done.passes.push(Pass {
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

fn check_kernel(kernel: &Kernel) -> Result<()> {
    let (path, label) = (kernel.config(), &kernel.manifest.label);
    let config = fs::read_to_string(&path).at("read", &path)?;
    let reason = if kernel.manifest.rewrite_id.is_some() {
        "its code was rewritten already; start from its base kernel"
    } else if config.lines().any(|line| line == MOVED_AT_BOOT) {
        "it is moved to a random address at boot (CONFIG_RANDOMIZE_BASE), by a table of places in its code that would no \
         longer be there; build it without"
    } else {
        return Ok(());
    };
    Err(Error::NotRewritable { kernel: label.clone(), reason: reason.into() })
}

/// How many instructions of each function were executed, by its index.
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

/// Sorted, so that the same functions make the same text.
fn skip_list(symbols: &Symbols, held: &HashMap<usize, Withheld>) -> String {
    let functions = held.keys().map(|&index| &symbols.functions()[index]);
    let named = functions.flat_map(|f| f.aliases.iter().chain([&f.name]));
    let mut names: BTreeSet<&str> = named.map(String::as_str).collect();
    // BOLT knows the stubs of interrupts by their label, as one function, and would move them in their table.
    for label in symbols.stub_labels() {
        names.insert(label);
    }
    names.into_iter().map(|name| pattern(name) + "\n").collect()
}

/// What keeps functions from being rewritten.
struct Reasons<'a> {
    held: &'a HashMap<usize, Withheld>,
    exceptions: HashSet<usize>,
    alternatives: HashSet<usize>,
    /// By name; namesakes are not told apart.
    too_long: HashMap<String, u64>,
}

impl Reasons<'_> {
    fn functions(&self, symbols: &Symbols, ran: &HashMap<usize, u64>) -> Vec<RanFunction> {
        let mut functions: Vec<RanFunction> = ran
            .iter()
            .map(|(&index, &instructions)| {
                let function = &symbols.functions()[index];
                let (otherwise, because) = self.of(index, &function.name, &function.aliases);
                let (name, address) = (function.name.clone(), function.address);
                RanFunction { name, address, instructions, otherwise, because }
            })
            .collect();
        functions.sort_by(|a, b| (b.instructions, a.address).cmp(&(a.instructions, b.address)));
        functions
    }

    fn of(&self, index: usize, name: &str, aliases: &[String]) -> (Fate, Option<String>) {
        let names = || aliases.iter().map(String::as_str).chain([name]);
        match self.held.get(&index) {
            Some(Withheld::Assembly) => (Fate::Assembly, None),
            Some(Withheld::Referred(table)) => (Fate::Referred, Some(table.clone())),
            None if self.exceptions.contains(&index) => (Fate::Exceptions, None),
            None if self.alternatives.contains(&index) => (Fate::Alternatives, None),
            None => match names().find_map(|name| self.too_long.get(name)) {
                Some(bytes) => (Fate::TooLong, Some(format!("{bytes} bytes"))),
                None => (Fate::AsItWas, None),
            },
        }
    }
}
