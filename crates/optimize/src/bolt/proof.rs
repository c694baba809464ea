//! Compares both images: executed functions that BOLT changed, and the reasons for the others.

use super::image::ElfImage;
use super::{BoltPass, BoltRewrite, FunctionFate};
use crate::{ProofRefusal, RecipeProof, Result};
use kerntune_kernel::{Kernel, Symbols};
use kerntune_work::hash_file;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// Least share of the executed instructions that must be in rewritten functions.
pub const MIN_SHARE: f64 = 0.1;

/// Most functions named for each result.
const MAX_NAMED: usize = 5;

/// Functions with the same result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateShare {
    /// Result of BOLT for these functions.
    pub fate: FunctionFate,
    /// Number of functions that ran.
    pub functions: u64,
    /// Their executed instructions in the training.
    pub instructions: u64,
    /// Names of the functions with the most instructions, five at most.
    pub first: Vec<String>,
}

/// Evidence about a rewritten kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoltProof {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Label of the kernel.
    pub kernel: String,
    /// Id of the rewriting that the kernel should have.
    pub rewrite: String,
    /// Id of the rewriting that the kernel has.
    pub carries: Option<String>,
    /// Version, as BOLT prints it.
    pub bolt: String,
    /// Runs of BOLT.
    pub passes: Vec<BoltPass>,
    /// Functions that ran in the training.
    pub functions: u64,
    /// Their executed instructions.
    pub instructions: u64,
    /// Functions by result.
    pub parts: Vec<FateShare>,
    /// Bytes of code that differ.
    pub changed_bytes: u64,
    /// Differing bytes outside of functions that were to be rewritten; must be 0.
    pub stray_bytes: u64,
}

/// Compares the images of `base` and `tuned`.
///
/// # Errors
/// Images that cannot be read.
pub fn prove(base: &Kernel, rewrite: &BoltRewrite, tuned: &Kernel) -> Result<BoltProof> {
    let label = tuned.manifest.label.clone();
    let before = ElfImage::load(&base.vmlinux(), &base.manifest.label)?;
    let after = ElfImage::load(&tuned.vmlinux(), &label)?;
    let symbols = Symbols::load(&base.vmlinux())?;
    let functions = symbols.functions();
    let ran = rewrite.functions()?;
    let fates: HashMap<u64, FunctionFate> = ran.iter().map(|f| (f.address, f.otherwise)).collect();
    let (mut changed, mut changed_bytes, mut stray_bytes) = (HashSet::new(), 0, 0);
    for address in before.changed_code(&after) {
        changed_bytes += 1;
        let at = functions.partition_point(|function| function.address <= address).checked_sub(1);
        let function = at.map(|index| &functions[index]);
        match function.map(|function| (function, fates.get(&function.address))) {
            Some((function, Some(FunctionFate::TooLong | FunctionFate::AsItWas))) => {
                // A function may grow into the padding behind it, where BOLT writes other NOPs.
                if address < function.end() {
                    changed.insert(function.address);
                }
            }
            _ => stray_bytes += 1,
        }
    }
    let mut parts: BTreeMap<FunctionFate, FateShare> = BTreeMap::new();
    for function in &ran {
        let fate =
            if changed.contains(&function.address) { FunctionFate::Rewritten } else { function.otherwise };
        let none = || FateShare { fate, functions: 0, instructions: 0, first: Vec::new() };
        let part = parts.entry(fate).or_insert_with(none);
        part.functions += 1;
        part.instructions = part.instructions.saturating_add(function.instructions);
        if part.first.len() < MAX_NAMED {
            let because = function.because.as_ref().filter(|_| fate != FunctionFate::Rewritten);
            let because = because.map(|because| format!(" ({because})")).unwrap_or_default();
            part.first.push(format!("{}{because}", function.name));
        }
    }
    Ok(BoltProof {
        schema: "kerntune-proof-bolt/1".into(),
        kernel: label,
        rewrite: rewrite.id.clone(),
        carries: carries(rewrite, tuned)?,
        bolt: rewrite.summary.bolt.clone(),
        passes: rewrite.summary.passes.clone(),
        functions: ran.len() as u64,
        instructions: ran.iter().fold(0, |sum, function| sum.saturating_add(function.instructions)),
        parts: parts.into_values().collect(),
        changed_bytes,
        stray_bytes,
    })
}

/// Returns the id of the rewriting in a kernel: that of `rewrite` if the images are equal. Kernels
/// are named by their contents, so the kernel's manifest may have the id of an earlier rewriting
/// with the same result.
fn carries(rewrite: &BoltRewrite, tuned: &Kernel) -> Result<Option<String>> {
    let recorded = tuned.manifest.rewrite_id.clone();
    let same = recorded.is_some() && hash_file(&tuned.vmlinux())? == hash_file(&rewrite.vmlinux())?;
    Ok(if same { Some(rewrite.id.clone()) } else { recorded })
}

impl BoltProof {
    /// Returns the functions with that result, and their share of the executed instructions (0 to
    /// 1).
    pub fn share(&self, fate: FunctionFate) -> (u64, f64) {
        let part = self.parts.iter().find(|part| part.fate == fate);
        part.map_or((0, 0.0), |part| {
            (part.functions, part.instructions as f64 / self.instructions.max(1) as f64)
        })
    }
}

impl RecipeProof for BoltProof {
    /// Checks that the kernel was rewritten, and nothing else in it changed.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason.
    fn verdict(&self) -> Result<(), ProofRefusal> {
        let mut reasons = Vec::new();
        let carries = self.carries.as_deref().unwrap_or("none");
        if carries != self.rewrite {
            reasons.push(format!("it carries the rewriting {carries}, not {}: make it again", self.rewrite));
        }
        let (functions, share) = self.share(FunctionFate::Rewritten);
        if share < MIN_SHARE {
            let others = self.parts.iter().filter(|part| part.fate != FunctionFate::Rewritten);
            let others = others.map(|part| format!("{} {}", part.functions, part.fate.text()));
            reasons.push(format!(
                "BOLT rewrote {functions} of the {} functions that ran, with {:.1} % of the executed instructions ({:.0} % are \
                 needed); of the others {}",
                self.functions,
                share * 100.0,
                MIN_SHARE * 100.0,
                others.collect::<Vec<_>>().join(", ")
            ));
        }
        if self.stray_bytes > 0 {
            reasons.push(format!(
                "{} bytes of code are different where nothing was to be rewritten: its symbols do not say where its \
                 functions are",
                self.stray_bytes
            ));
        }
        ProofRefusal::unless_empty(&self.kernel, reasons)
    }
}

impl fmt::Display for BoltProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Rewriting {} in kernel {} ({})", self.rewrite, self.kernel, self.bolt)?;
        for (number, pass) in (1..).zip(&self.passes) {
            let BoltPass { order, written, too_long, .. } = pass;
            writeln!(f, "  run {number}       {order}: {written} functions written, {too_long} too long for their place")?;
        }
        writeln!(f, "  {:>9}  {:>12}  of what ran", "functions", "instructions")?;
        for part in &self.parts {
            let share = 100.0 * part.instructions as f64 / self.instructions.max(1) as f64;
            let first = part.first.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            writeln!(f, "  {:>9}  {share:>10.1} %  {}: {first} …", part.functions, part.fate.text())?;
        }
        write!(
            f,
            "  {} bytes of code are different, {} of them elsewhere",
            self.changed_bytes, self.stray_bytes
        )
    }
}
