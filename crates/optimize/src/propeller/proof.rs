//! Proof that the kernel's image has its blocks in order.

use super::PreparedBlocks;
use crate::{layout, ProofRefusal, RecipeProof, Result};
use kerntune_kernel::{Kernel, KernelFunction, Symbols};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// Least share of the functions whose first piece must be as long as their blocks in the list. If
/// blocks were confused (another source, compiler or flags), sizes would differ, too.
pub const MIN_FITTING: f64 = 0.9;

/// Bytes by which each block in order may be longer or shorter: one jump added or removed, and
/// another encoding of an existing one. Each is 2 to 6 bytes long.
const JUMP_TOLERANCE: u64 = 8;

/// Most non-fitting functions named.
const MAX_NAMED: usize = 20;

/// Evidence about a kernel with its blocks in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropellerProof {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Label of the kernel.
    pub kernel: String,
    /// Id of the list that the kernel should be built with.
    pub blocks: String,
    /// Id of the list that the kernel was built with.
    pub built_with: Option<String>,
    /// Functions in the list.
    pub listed: u64,
    /// Listed functions with a unique name in the image.
    pub asked: u64,
    /// Functions of `asked` whose first piece has the size of their blocks in the list, and whose
    /// remainder, if any, is elsewhere.
    pub fitting: u64,
    /// Functions of `fitting` with a remainder.
    pub split: u64,
    /// First functions that do not fit.
    pub others: Vec<String>,
    /// Bytes of the `asked` functions' first pieces: in the kernel with the map, and in this one.
    pub bytes: [u64; 2],
    /// Blocks of the listed functions, and those of them that stand together.
    pub listed_blocks: [u64; 2],
    /// Transfers of control between blocks of one function in the recording that are not
    /// fall-throughs: as recorded, and with the blocks in order.
    pub taken: [u64; 2],
    /// Order of the functions, if they were ordered after their blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<layout::LayoutProof>,
}

/// Examines the image of `tuned`.
///
/// # Errors
/// Images that cannot be read; a bad result is no error here but in [`RecipeProof::verdict`].
pub fn prove(blocks: &PreparedBlocks, tuned: &Kernel) -> Result<PropellerProof> {
    let symbols = Symbols::load(&tuned.vmlinux())?;
    let mut named: HashMap<&str, Vec<&KernelFunction>> = HashMap::new();
    for function in symbols.functions() {
        for name in function.aliases.iter().chain([&function.name]) {
            named.entry(name).or_default().push(function);
        }
    }
    let summary = &blocks.summary;
    let mut proof = PropellerProof {
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
        if here.size.abs_diff(function.bytes[1]) <= JUMP_TOLERANCE * ordered && (apart || !rest) {
            proof.fitting += 1;
            proof.split += u64::from(rest);
        } else {
            proof.others.push(function.name);
        }
    }
    proof.others.truncate(MAX_NAMED);
    Ok(proof)
}

impl RecipeProof for PropellerProof {
    /// Checks that the kernel has its blocks in order, and its functions if they were ordered.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason.
    fn verdict(&self) -> Result<(), ProofRefusal> {
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
                 read the list, or numbered the blocks of the kernel with the map differently; build both again. Not so: {}",
                self.fitting,
                self.asked,
                MIN_FITTING * 100.0,
                self.others.join(", ")
            ));
        }
        let order = self.order.as_ref().and_then(|order| order.verdict().err());
        reasons.extend(order.into_iter().flat_map(|refused| refused.reasons));
        ProofRefusal::unless_empty(&self.kernel, reasons)
    }
}

impl fmt::Display for PropellerProof {
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
