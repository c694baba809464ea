//! Whether the kernel has its blocks in order: asked of the image.

use super::PreparedBlocks;
use crate::{layout, Refused, Result};
use kerntune_kernel::{Function, Kernel, Symbols};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// Least share of the functions that must have the size in one piece that their blocks in the list have together. Were
/// blocks taken for others (another source, another compiler, other flags), sizes would be others, too.
pub const MIN_FITTING: f64 = 0.9;

/// Bytes by which each block in order may be longer or shorter: one jump more or less, and another form of the one that is
/// there. Each is 2 to 6 bytes long.
const JUMPS: u64 = 8;

/// How many functions are named.
const NAMED: usize = 20;

/// What was found out about a kernel with its blocks in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Label of the kernel.
    pub kernel: String,
    /// Id of the list that it should be built with.
    pub blocks: String,
    /// Id of what it was built with.
    pub built_with: Option<String>,
    /// Functions in the list.
    pub listed: u64,
    /// Of them those that can be told from namesakes in the image.
    pub asked: u64,
    /// Of these the ones whose code in one piece is as long as their blocks in the list, and that have the rest elsewhere
    /// if there is one.
    pub fitting: u64,
    /// Of these the ones that have a rest.
    pub split: u64,
    /// The first functions that do not fit.
    pub others: Vec<String>,
    /// Bytes of the functions that were asked, where they begin: in the kernel with the map, and in this one.
    pub bytes: [u64; 2],
    /// Blocks of the functions in the list, and of them those that stand together.
    pub listed_blocks: [u64; 2],
    /// How often control did not go on to what lies behind, between blocks of one function in the recording: as it was
    /// recorded, and with the blocks in order.
    pub taken: [u64; 2],
    /// Where the functions are, of a kernel in which these were put in order after their blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<layout::Proof>,
}

/// Asks the image of `tuned`.
///
/// # Errors
/// Images that cannot be read; a bad result is no error here but in [`Proof::verdict`].
pub fn prove(blocks: &PreparedBlocks, tuned: &Kernel) -> Result<Proof> {
    let symbols = Symbols::load(&tuned.vmlinux())?;
    let mut named: HashMap<&str, Vec<&Function>> = HashMap::new();
    for function in symbols.functions() {
        for name in function.aliases.iter().chain([&function.name]) {
            named.entry(name).or_default().push(function);
        }
    }
    let summary = &blocks.summary;
    let mut proof = Proof {
        schema: "kerntune-proof-propeller/1".into(),
        kernel: tuned.manifest.label.clone(),
        blocks: blocks.id.clone(),
        built_with: tuned.built_with(&blocks.id, &blocks.tree())?,
        listed: summary.listed,
        asked: 0,
        fitting: 0,
        split: 0,
        others: Vec::new(),
        bytes: [0; 2],
        listed_blocks: summary.blocks,
        taken: summary.taken,
        order: None,
    };
    for function in blocks.functions()? {
        let Some(&[here]) = named.get(function.name.as_str()).map(Vec::as_slice) else { continue };
        proof.asked += 1;
        proof.bytes[0] += function.bytes[0];
        proof.bytes[1] += here.size;
        let [all, ordered] = function.blocks;
        let rest = ordered < all;
        let apart = named.contains_key(format!("{}.cold", function.name).as_str());
        if here.size.abs_diff(function.bytes[1]) <= JUMPS * ordered && (apart || !rest) {
            proof.fitting += 1;
            proof.split += u64::from(rest);
        } else {
            proof.others.push(function.name);
        }
    }
    proof.others.truncate(NAMED);
    Ok(proof)
}

impl Proof {
    /// Whether the kernel has its blocks in order, and then its functions.
    ///
    /// # Errors
    /// [`Refused`] with every reason.
    pub fn verdict(&self) -> Result<(), Refused> {
        let mut reasons = Vec::new();
        let built_with = self.built_with.as_deref().unwrap_or("none");
        if built_with != self.blocks {
            reasons.push(format!(
                "it was built with {built_with}, not with the blocks of {}: build it again",
                self.blocks
            ));
        }
        if self.asked == 0 || (self.fitting as f64) < MIN_FITTING * self.asked as f64 {
            reasons.push(format!(
                "{} of {} functions have the blocks together that the list names, {:.0} % are needed: the compiler did not \
                 read the list, or numbered the blocks of the kernel with the map in another way; build both again. Not so: {}",
                self.fitting,
                self.asked,
                MIN_FITTING * 100.0,
                self.others.join(", ")
            ));
        }
        let order = self.order.as_ref().and_then(|order| order.verdict().err());
        reasons.extend(order.into_iter().flat_map(|refused| refused.reasons));
        Refused::unless_empty(&self.kernel, reasons)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Blocks {} in kernel {}", self.blocks, self.kernel)?;
        writeln!(
            f,
            "  functions   {} of {} that can be told from namesakes have their blocks together, {} with the rest apart",
            self.fitting, self.asked, self.split
        )?;
        let [all, ordered] = self.listed_blocks;
        writeln!(f, "  blocks      {ordered} of {all} of {} functions stand in order", self.listed)?;
        let [before, after] = self.bytes.map(|bytes| bytes.div_ceil(1024));
        writeln!(f, "  code        {before} → {after} KiB where these functions begin")?;
        let [before, after] = self.taken;
        write!(
            f,
            "  jumps       {before} → {after} taken between blocks of one function, by the counts of the recording"
        )?;
        self.order.as_ref().map_or(Ok(()), |order| write!(f, "\n{order}"))
    }
}
