//! Preparation of the list of blocks from a recording.

use super::choose::choose;
use super::flow::RecordedCounts;
use super::units::BlockMapImage;
use crate::clang_autofdo::AutofdoProfile;
use crate::fixed_sections::fixed_sections;
use crate::quality::{self, ProfileQuality};
use crate::stored::{read_json, store, PreparedResult};
use crate::{Error, Result};
use kerntune_convert::propeller::{list_text, read_map, ListedFunction, MappedFunction};
use kerntune_kernel::{Kernel, KernelFunction, Symbols};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{write_atomic, write_json, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the list in the build directory, in which Kbuild runs the compiler.
pub(super) const LIST_FILE: &str = "kerntune-blocks.txt";

const FUNCTIONS: &str = "functions.json";
const COUNTS: &str = "counts.tsv";
const TREE: &str = "tree";

/// Least share of the executed functions in the map that must be in the list.
const MIN_LISTED: f64 = 0.9;

/// Function whose blocks are in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedFunction {
    /// Symbol of the function.
    pub name: String,
    /// Number of blocks, and of those that stand together.
    pub blocks: [u64; 2],
    /// Bytes of all blocks, and of those that stand together.
    pub bytes: [u64; 2],
}

/// Sizes of a list and its expected effect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlocksSummary {
    /// Functions in the map that ran.
    pub ran: u64,
    /// Functions that ran and are in the list.
    pub listed: u64,
    /// Functions that ran and are not in the list: static functions of one name in one file, or
    /// without a known file.
    pub left_out: Vec<String>,
    /// Blocks of the listed functions, and those of them that stand together.
    pub blocks: [u64; 2],
    /// Bytes of all these blocks, and of those that stand together.
    pub bytes: [u64; 2],
    /// Transfers of control between blocks of one function in the recording that are not
    /// fall-throughs: as recorded, and with the blocks in order.
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

/// Ordered blocks in the work directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedBlocks {
    /// Absolute result directory: `blocks.json`, `functions.json`, `counts.tsv` (each examined
    /// block), and the [`tree`](Self::tree).
    #[serde(skip)]
    pub dir: PathBuf,
    /// 16 hex digits: hash of the list, the profile and the kernel.
    pub id: String,
    /// Id of the recorded kernel with the map.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// Id of the profile to use with the list, a result of recipe `clang-autofdo`.
    pub profile: String,
    /// Sizes of the list and its expected effect.
    pub summary: BlocksSummary,
}

impl PreparedResult for PreparedBlocks {
    const KIND: &'static str = "blocks";
    const MANIFEST: &'static str = "blocks.json";
    const SCHEMA: &'static str = "kerntune-blocks/1";
    const OPEN: &'static str = "open order of blocks";

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn in_dir(self, dir: PathBuf) -> Result<Self> {
        Ok(Self { dir, ..self })
    }
}

impl PreparedBlocks {
    /// Returns the directory with list and profile, to be copied into the build directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// Reads the functions in the list.
    pub fn functions(&self) -> Result<Vec<OrderedFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}

/// Orders the blocks of each function of `kernel` by a recording of it with edges, ideally of the
/// training run. `kernel` was built with `profile` and a map ([`super::mapped_request`]).
///
/// The result is named by its content; an existing result is reused.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]); [`Error::NoBlockMap`],
/// [`Error::BadBlockMap`]; [`Error::FewBlocks`].
pub fn prepare_blocks(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    profile: &AutofdoProfile,
) -> Result<PreparedBlocks> {
    let (quality, lists) = block_lists(work, recording, kernel)?;
    let BlockLists { listed, ordered, counts, summary } = lists;
    let list = list_text(&listed);
    let key = Key::new("blocks/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("profile", &profile.id)
        .field("list", &list);
    store(work, &key, Some(&quality), |dir| {
        let at = |name: &str| dir.join(name);
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
        let (kernel, recording) = (kernel.manifest.id.clone(), recording.manifest.id.clone());
        let (dir, id, profile) = (dir.into(), key.id(), profile.id.clone());
        Ok(PreparedBlocks { dir, id, kernel, recording, profile, summary })
    })
}

/// Returns the list of blocks of `kernel` by a recording of it with edges, for a build of the user's
/// own; `kernel` has a map and may have no profile.
///
/// # Errors
/// As [`prepare_blocks`].
pub fn block_list(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<(String, BlocksSummary)> {
    let (_, lists) = block_lists(work, recording, kernel)?;
    Ok((list_text(&lists.listed), lists.summary))
}

fn block_lists(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<(ProfileQuality, BlockLists)> {
    let label = &kernel.manifest.label;
    let quality = quality::pass(work, recording, kernel)?;
    let image = BlockMapImage::load(kernel)?;
    let bad = |reason: String| Error::BadBlockMap { kernel: label.clone(), reason };
    let map = read_map(&image.map).map_err(|error| bad(error.to_string()))?;
    if map.is_empty() {
        return Err(Error::NoBlockMap { kernel: label.clone() });
    }
    let symbols = Symbols::load(&kernel.vmlinux())?;
    let lists = lists(&map, &image, &symbols, &recording.tables)?;
    let summary = &lists.summary;
    if summary.listed == 0 || (summary.listed as f64) < MIN_LISTED * summary.ran as f64 {
        let left_out = summary.left_out.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let (listed, ran) = (summary.listed, summary.ran);
        return Err(Error::FewBlocks { kernel: label.clone(), listed, ran, left_out });
    }
    Ok((quality, lists))
}

/// Lists of the functions that ran.
#[derive(Default)]
struct BlockLists {
    listed: Vec<ListedFunction>,
    ordered: Vec<OrderedFunction>,
    /// One line for each block: function, number, bytes, count, position or `-`.
    counts: String,
    summary: BlocksSummary,
}

fn lists(
    map: &[MappedFunction],
    image: &BlockMapImage,
    symbols: &Symbols,
    tables: &Tables,
) -> Result<BlockLists> {
    let (executed, rounds) = (RecordedCounts::of(tables), RecordedCounts::rounds(tables));
    // Functions of these sections must not be split.
    let own = fixed_sections(symbols);
    let of: HashMap<u64, &KernelFunction> = symbols.functions().iter().map(|f| (f.address, f)).collect();
    let mut lists =
        BlockLists { counts: "function\tblock\tbytes\tcount\tplace\n".into(), ..BlockLists::default() };
    // A list cannot tell functions apart that share unit and name.
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

fn names(function: &KernelFunction) -> impl Iterator<Item = &str> {
    std::iter::once(&function.name).chain(&function.aliases).map(String::as_str)
}
