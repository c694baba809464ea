//! From a recording to the list of blocks.

use super::choose::choose;
use super::flow::Executed;
use super::units::Image;
use crate::clang_autofdo::PreparedProfile;
use crate::quality::{self, Quality};
use crate::stored::{open, read_json, read_quality, QUALITY};
use crate::{Error, Result};
use kerntune_convert::propeller::{list_text, read_map, ListedFunction, MappedFunction};
use kerntune_kernel::{Function, Kernel, Symbols};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{write_atomic, write_json, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The list in the build directory, in which Kbuild runs the compiler.
pub(super) const LIST_FILE: &str = "kerntune-blocks.txt";

/// The kind of result in the work directory.
const KIND: &str = "blocks";
const MANIFEST: &str = "blocks.json";
const FUNCTIONS: &str = "functions.json";
const COUNTS: &str = "counts.tsv";
const TREE: &str = "tree";
const SCHEMA: &str = "kerntune-blocks/1";

/// Least share of the functions in the map that ran that must be in the list.
const MIN_LISTED: f64 = 0.9;

/// Code that the kernel has in sections of its own, by the symbols around it: all of a function stays there.
const OWN_SECTIONS: &[&str] =
    &["sched", "lock", "kprobes", "cpuidle", "entry", "noinstr", "irqentry", "softirqentry"];

/// A function whose blocks are in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedFunction {
    /// Its symbol.
    pub name: String,
    /// Its blocks, and of them those that stand together.
    pub blocks: [u64; 2],
    /// Bytes of the same.
    pub bytes: [u64; 2],
}

/// What a list was made of, and what is to come of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlocksSummary {
    /// Functions with a map that ran.
    pub ran: u64,
    /// Of them those in the list.
    pub listed: u64,
    /// Those that are not, as static functions of one name in one file cannot be told apart, or nobody knows their file.
    pub left_out: Vec<String>,
    /// Blocks of the functions in the list, and of them those that stand together.
    pub blocks: [u64; 2],
    /// Bytes of the same.
    pub bytes: [u64; 2],
    /// How often control did not go on to what lies behind, between blocks of one function in the recording: as it was
    /// recorded, and with the blocks in order.
    pub taken: [u64; 2],
}

impl fmt::Display for BlocksSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all, ordered] = self.blocks;
        let [from, to] = self.bytes.map(|bytes| bytes.div_ceil(1024));
        let [before, after] = self.taken;
        write!(
            f,
            "blocks: {ordered} of {all} in {} of the {} functions that ran, {to} of {from} KiB; {before} → {after} jumps \
             taken between them in the recording",
            self.listed, self.ran
        )
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    id: String,
    kernel: String,
    recording: String,
    /// Id of the profile that comes with it, a result of recipe `clang-autofdo`.
    profile: String,
    summary: BlocksSummary,
}

/// Blocks in order, in the work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedBlocks {
    /// The result directory, absolute: `blocks.json`, `functions.json`, `counts.tsv` (each block that was looked at), and the
    /// [`tree`](Self::tree).
    pub dir: PathBuf,
    /// 16 hex digits over the list, the profile and the kernel.
    pub id: String,
    /// Id of the kernel with the map, which was recorded.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// Id of the profile.
    pub profile: String,
    /// What it holds.
    pub summary: BlocksSummary,
}

impl PreparedBlocks {
    /// Loads the blocks in `dir`.
    ///
    /// # Errors
    /// Missing or damaged files, or of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, Manifest) = open(dir, "open order of blocks", MANIFEST, SCHEMA)?;
        let Manifest { id, kernel, recording, profile, summary, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, profile, summary })
    }

    /// The blocks of this id, if they are there.
    ///
    /// # Errors
    /// As [`PreparedBlocks::load`].
    pub fn find(work: &WorkDir, id: &str) -> Result<Option<Self>> {
        work.find(KIND, id).map(|dir| Self::load(&dir)).transpose()
    }

    /// What belongs into the build directory: the list and the profile.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// What the gate said of the recording.
    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }

    /// The functions in the list.
    pub fn functions(&self) -> Result<Vec<OrderedFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}

/// Orders the blocks of each function of `kernel` by a recording of it with edges, best of the training run. `kernel` was built
/// with `profile` and a map ([`super::mapped_request`]).
///
/// The result is named by its content; what is there already is not made again.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]); [`Error::NoBlockMap`], [`Error::BadBlockMap`];
/// [`Error::FewBlocks`].
pub fn prepare_blocks(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    profile: &PreparedProfile,
) -> Result<PreparedBlocks> {
    let label = &kernel.manifest.label;
    let quality = quality::pass(work, recording, kernel)?;
    let image = Image::load(kernel)?;
    let bad = |reason: String| Error::BadBlockMap { kernel: label.clone(), reason };
    let map = read_map(&image.map).map_err(|error| bad(error.to_string()))?;
    if map.is_empty() {
        return Err(Error::NoBlockMap { kernel: label.clone() });
    }
    let symbols = Symbols::load(&kernel.vmlinux())?;
    let Lists { listed, ordered, counts, summary } = lists(&map, &image, &symbols, &recording.tables)?;
    if summary.listed == 0 || (summary.listed as f64) < MIN_LISTED * summary.ran as f64 {
        let left_out = summary.left_out.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let (listed, ran) = (summary.listed, summary.ran);
        return Err(Error::FewBlocks { kernel: label.clone(), listed, ran, left_out });
    }
    let list = list_text(&listed);
    let key = Key::new("blocks/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("profile", &profile.id)
        .field("list", &list);
    let id = key.id();
    if let Some(done) = work.find(KIND, &id).and_then(|dir| PreparedBlocks::load(&dir).ok()) {
        return Ok(done);
    }
    let staged = work.stage(KIND, &key)?;
    staged.clear()?;
    let at = |name: &str| staged.path().join(name);
    fs::create_dir(at(TREE)).at("create", at(TREE))?;
    let from = profile.tree();
    for entry in fs::read_dir(&from).at("list", &from)? {
        let path = entry.at("list", &from)?.path();
        let to = at(TREE).join(path.file_name().unwrap_or_default());
        fs::copy(&path, &to).at("copy", &path)?;
    }
    write_atomic(&at(TREE).join(LIST_FILE), list.as_bytes())?;
    write_atomic(&at(COUNTS), counts.as_bytes())?;
    write_json(&at(FUNCTIONS), &ordered)?;
    write_json(&at(QUALITY), &quality)?;
    let (kernel, recording) = (kernel.manifest.id.clone(), recording.manifest.id.clone());
    let profile = profile.id.clone();
    write_json(&at(MANIFEST), &Manifest { schema: SCHEMA.into(), id, kernel, recording, profile, summary })?;
    PreparedBlocks::load(&staged.publish()?)
}

/// What comes of the functions that ran.
#[derive(Default)]
struct Lists {
    listed: Vec<ListedFunction>,
    ordered: Vec<OrderedFunction>,
    /// A line for each block: function, number, bytes, how often it ran, its place or `-`.
    counts: String,
    summary: BlocksSummary,
}

fn lists(map: &[MappedFunction], image: &Image, symbols: &Symbols, tables: &Tables) -> Result<Lists> {
    let (executed, rounds) = (Executed::of(tables), Executed::rounds(tables));
    let own: Vec<Range<u64>> = OWN_SECTIONS
        .iter()
        .filter_map(|name| {
            let mark = |end| symbols.address_of(&format!("__{name}_text_{end}"));
            Some(mark("start")?..mark("end")?)
        })
        .collect();
    let of: HashMap<u64, &Function> = symbols.functions().iter().map(|f| (f.address, f)).collect();
    let mut lists = Lists { counts: "function\tblock\tbytes\tcount\tplace\n".into(), ..Lists::default() };
    // What two functions have in common, the list could not tell apart.
    let mut times: HashMap<(&str, &str), u32> = HashMap::new();
    for mapped in map {
        if let (Some(unit), Some(function)) = (image.unit(mapped.address), of.get(&mapped.address)) {
            names(function).for_each(|name| *times.entry((unit, name)).or_default() += 1);
        }
    }
    for mapped in map {
        let splits = !own.iter().any(|section| section.contains(&mapped.address));
        let flow = executed.flow(mapped);
        let Some(chosen) = choose(mapped, &flow, splits, rounds(mapped.address))? else { continue };
        let summary = &mut lists.summary;
        summary.ran += 1;
        let function = of.get(&mapped.address);
        let listed = function.zip(image.unit(mapped.address)).and_then(|(function, unit)| {
            let alone = names(function).all(|name| times.get(&(unit, name)) == Some(&1));
            let ids = chosen.order.iter().map(|&at| mapped.blocks[at].id).collect();
            ListedFunction::new(unit, names(function), ids).filter(|_| alone)
        });
        let name =
            function.map_or_else(|| format!("{:#x}", mapped.address), |function| function.name.clone());
        let Some(listed) = listed else {
            summary.left_out.push(name);
            continue;
        };
        let bytes = |at: usize| mapped.blocks[at].bytes;
        let ordered = OrderedFunction {
            blocks: [mapped.blocks.len() as u64, chosen.order.len() as u64],
            bytes: [(0..mapped.blocks.len()).map(bytes).sum(), chosen.order.iter().copied().map(bytes).sum()],
            name,
        };
        summary.listed += 1;
        for which in [0, 1] {
            summary.blocks[which] += ordered.blocks[which];
            summary.bytes[which] += ordered.bytes[which];
            summary.taken[which] = summary.taken[which].saturating_add(chosen.taken[which]);
        }
        for (at, block) in mapped.blocks.iter().enumerate() {
            let place = chosen.order.iter().position(|&other| other == at);
            let place = place.map_or("-".to_string(), |place| place.to_string());
            let (name, count) = (&ordered.name, flow.counts[at]);
            let _ = writeln!(lists.counts, "{name}\t{}\t{}\t{count}\t{place}", block.id, block.bytes);
        }
        lists.listed.push(listed);
        lists.ordered.push(ordered);
    }
    Ok(lists)
}

fn names(function: &Function) -> impl Iterator<Item = &str> {
    std::iter::once(&function.name).chain(&function.aliases).map(String::as_str)
}
