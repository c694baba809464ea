//! What of the code that ran is another now, and why the rest is not: asked of the image itself.

use super::image::Image;
use super::{Fate, Pass, Rewrite};
use crate::{Refused, Result};
use kerntune_kernel::{Kernel, Symbols};
use kerntune_work::hash_file;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// Least share of the executed instructions that must be in functions that were rewritten.
pub const MIN_SHARE: f64 = 0.1;

/// How many functions are named.
const NAMED: usize = 5;

/// The functions with one fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which.
    pub fate: Fate,
    /// How many of the functions that ran.
    pub functions: u64,
    /// Their instructions, each as often as it was executed in the training.
    pub instructions: u64,
    /// Those with the most instructions, five at most.
    pub first: Vec<String>,
}

/// What was found out about a rewritten kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Label of the kernel.
    pub kernel: String,
    /// Id of the rewriting that it should carry.
    pub rewrite: String,
    /// Id of the one that it carries.
    pub carries: Option<String>,
    /// BOLT's version, in its words.
    pub bolt: String,
    /// Its runs.
    pub passes: Vec<Pass>,
    /// Functions that ran in the training.
    pub functions: u64,
    /// Their instructions, each as often as it was executed.
    pub instructions: u64,
    /// By what became of them.
    pub parts: Vec<Part>,
    /// Bytes of code that are different.
    pub changed_bytes: u64,
    /// Of them those that are in no function that was to be rewritten: nothing may have been changed there.
    pub stray_bytes: u64,
}

/// Compares the images.
///
/// # Errors
/// Images that cannot be read.
pub fn prove(base: &Kernel, rewrite: &Rewrite, tuned: &Kernel) -> Result<Proof> {
    let label = tuned.manifest.label.clone();
    let before = Image::load(&base.vmlinux(), &base.manifest.label)?;
    let after = Image::load(&tuned.vmlinux(), &label)?;
    let symbols = Symbols::load(&base.vmlinux())?;
    let functions = symbols.functions();
    let ran = rewrite.functions()?;
    let fates: HashMap<u64, Fate> = ran.iter().map(|f| (f.address, f.otherwise)).collect();
    let (mut changed, mut changed_bytes, mut stray_bytes) = (HashSet::new(), 0, 0);
    for address in before.changed_code(&after) {
        changed_bytes += 1;
        let at = functions.partition_point(|function| function.address <= address).checked_sub(1);
        let function = at.map(|index| &functions[index]);
        match function.map(|function| (function, fates.get(&function.address))) {
            Some((function, Some(Fate::TooLong | Fate::AsItWas))) => {
                // Padding behind it is its own to grow into; BOLT writes NOPs of another kind there.
                if address < function.end() {
                    changed.insert(function.address);
                }
            }
            _ => stray_bytes += 1,
        }
    }
    let mut parts: BTreeMap<Fate, Part> = BTreeMap::new();
    for function in &ran {
        let fate = if changed.contains(&function.address) { Fate::Rewritten } else { function.otherwise };
        let none = || Part { fate, functions: 0, instructions: 0, first: Vec::new() };
        let part = parts.entry(fate).or_insert_with(none);
        part.functions += 1;
        part.instructions = part.instructions.saturating_add(function.instructions);
        if part.first.len() < NAMED {
            let because = function.because.as_ref().filter(|_| fate != Fate::Rewritten);
            let because = because.map(|because| format!(" ({because})")).unwrap_or_default();
            part.first.push(format!("{}{because}", function.name));
        }
    }
    Ok(Proof {
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

/// The id of the rewriting in a kernel: this one's, if it came to the same image. A kernel is found by its contents, so the
/// rewriting that it was made of first may have another id.
fn carries(rewrite: &Rewrite, tuned: &Kernel) -> Result<Option<String>> {
    let recorded = tuned.manifest.rewrite_id.clone();
    let same = recorded.is_some() && hash_file(&tuned.vmlinux())? == hash_file(&rewrite.vmlinux())?;
    Ok(if same { Some(rewrite.id.clone()) } else { recorded })
}

impl Proof {
    /// The functions with that fate, and their share of the executed instructions (0 to 1).
    pub fn share(&self, fate: Fate) -> (u64, f64) {
        let part = self.parts.iter().find(|part| part.fate == fate);
        part.map_or((0, 0.0), |part| {
            (part.functions, part.instructions as f64 / self.instructions.max(1) as f64)
        })
    }

    /// Whether the kernel was rewritten, and nothing else in it.
    ///
    /// # Errors
    /// [`Refused`] with every reason.
    pub fn verdict(&self) -> Result<(), Refused> {
        let mut reasons = Vec::new();
        let carries = self.carries.as_deref().unwrap_or("none");
        if carries != self.rewrite {
            reasons.push(format!("it carries the rewriting {carries}, not {}: make it again", self.rewrite));
        }
        let (functions, share) = self.share(Fate::Rewritten);
        if share < MIN_SHARE {
            let others = self.parts.iter().filter(|part| part.fate != Fate::Rewritten);
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
        Refused::unless_empty(&self.kernel, reasons)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Rewriting {} in kernel {} ({})", self.rewrite, self.kernel, self.bolt)?;
        for (number, pass) in (1..).zip(&self.passes) {
            let Pass { order, written, too_long, .. } = pass;
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
