//! Proof that the linked image has the requested order.

use super::module_proof::{prove_modules, ModuleLayout};
use super::PreparedOrder;
use crate::{ProofRefusal, RecipeProof, Result};
use kerntune_kernel::{Kernel, Symbols, ORDER_END, ORDER_START};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

/// Least share of the ordered functions that must be in order. The others are in sections that the
/// kernel itself places (scheduler, entry code, locks) or that no compiler made.
pub const MIN_IN_PLACE: f64 = 0.75;

/// Least share of the functions with a place that must begin there. A function longer than its
/// symbol says moves those after it, up to the next gap.
pub const MIN_AT_PLACE: f64 = 0.75;

const PAGE: u64 = 4096;

/// Extent of the executed functions in one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageFootprint {
    /// Bytes of `.text` covered by functions.
    pub text_bytes: u64,
    /// 4-KiB pages with code of functions that ran.
    pub pages: u64,
}

/// Evidence about a kernel with its functions in an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutProof {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Label of the kernel.
    pub kernel: String,
    /// Id of the order.
    pub order: String,
    /// Algorithm that made the order.
    pub algorithm: String,
    /// Functions to be placed.
    pub ordered: u64,
    /// Functions of the order that are among the ordered ones in the image.
    pub in_place: u64,
    /// Functions in place that come before one that should precede them.
    pub out_of_order: u64,
    /// Functions that ran on the recorded kernel and that this kernel lacks by name; not among
    /// those to be placed. `None` unless another kernel of the same source was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<u64>,
    /// Functions that cache coloring gave a place.
    #[serde(default)]
    pub with_place: u64,
    /// Functions that begin at that place.
    #[serde(default)]
    pub at_place: u64,
    /// Predicted misses in overfull sets, over all rounds of the recording's regions, before and
    /// after.
    #[serde(default)]
    pub set_misses: [u64; 2],
    /// Bytes of the image from the first ordered function to the end of the last.
    pub ordered_bytes: u64,
    /// First functions of the order that are out of place.
    pub elsewhere: Vec<String>,
    /// Order of the functions of modules, by name; empty if none of them ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleLayout>,
    /// Image with the same objects before ordering.
    pub base: ImageFootprint,
    /// Image after ordering.
    pub tuned: ImageFootprint,
}

/// Compares the linked image with the order.
///
/// # Errors
/// Images that cannot be read.
pub fn prove(movable: &Kernel, order: &PreparedOrder, tuned: &Kernel) -> Result<LayoutProof> {
    const MAX_NAMED: usize = 20;
    let symbols = Symbols::load(&tuned.vmlinux())?;
    let mark = |name| symbols.address_of(name).unwrap_or_default();
    let (start, end) = (mark(ORDER_START), mark(ORDER_END));
    let mut addresses: HashMap<&str, Vec<u64>> = HashMap::new();
    for function in symbols.functions() {
        for name in function.aliases.iter().chain([&function.name]) {
            addresses.entry(name).or_default().push(function.address);
        }
    }
    let inside = |name: &String| -> Vec<u64> {
        let here = addresses.get(name.as_str()).into_iter().flatten().copied();
        here.filter(|address| (start..end).contains(address)).collect()
    };
    // GCC merges equal functions: the result has several names, and one section, named after one of
    // them.
    let mut names_at: HashMap<u64, u32> = HashMap::new();
    for address in order.order.names().iter().flat_map(inside) {
        *names_at.entry(address).or_default() += 1;
    }
    let (mut in_place, mut out_of_order, mut last) = (0, 0, 0);
    let (mut with_place, mut at_place) = (0, 0);
    let mut elsewhere = Vec::new();
    for name in order.order.names() {
        let here = inside(name);
        if let Some(offset) = order.order.offset(name) {
            with_place += 1;
            at_place += u64::from(here.contains(&(start + offset)));
        }
        match (here.iter().min(), here.iter().max()) {
            (Some(&first), Some(&until)) => {
                in_place += 1;
                if here.iter().all(|address| names_at[address] == 1) {
                    out_of_order += u64::from(first < last);
                    last = until.max(last);
                }
            }
            _ => elsewhere.push(name.clone()),
        }
    }
    elsewhere.truncate(MAX_NAMED);
    let ran: HashSet<&str> = order.order.names().iter().map(String::as_str).collect();
    Ok(LayoutProof {
        schema: "kerntune-proof-layout/1".into(),
        kernel: tuned.manifest.label.clone(),
        order: order.id.clone(),
        algorithm: order.summary.algorithm.clone(),
        ordered: order.order.names().len() as u64,
        in_place,
        out_of_order,
        absent: order.summary.absent,
        with_place,
        at_place,
        set_misses: order.summary.set_misses.unwrap_or_default().map(|misses| misses as u64),
        ordered_bytes: end.saturating_sub(start),
        elsewhere,
        modules: prove_modules(tuned, &order.order)?,
        base: evidence(&Symbols::load(&movable.vmlinux())?, &ran),
        tuned: evidence(&symbols, &ran),
    })
}

fn evidence(symbols: &Symbols, ran: &HashSet<&str>) -> ImageFootprint {
    let ran = symbols.functions().iter().filter(|f| f.size > 0 && ran.contains(f.name.as_str()));
    let pages: BTreeSet<u64> = ran.flat_map(|f| f.address / PAGE..=(f.end() - 1) / PAGE).collect();
    ImageFootprint { text_bytes: symbols.text_bytes(), pages: pages.len() as u64 }
}

impl RecipeProof for LayoutProof {
    /// Checks that the kernel's functions are in the order.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason.
    fn verdict(&self) -> Result<(), ProofRefusal> {
        let mut reasons = Vec::new();
        if (self.in_place as f64) < MIN_IN_PLACE * self.ordered as f64 {
            reasons.push(format!(
                "{} of {} functions are where the order says, fewer than {:.0} %: are they in sections of their own \
                 (-ffunction-sections)? Not there: {}",
                self.in_place,
                self.ordered,
                MIN_IN_PLACE * 100.0,
                self.elsewhere.join(", ")
            ));
        }
        if self.out_of_order > 0 {
            reasons.push(format!(
                "{} functions come before one that they should follow: the linker sorted them itself",
                self.out_of_order
            ));
        }
        if (self.at_place as f64) < MIN_AT_PLACE * self.with_place as f64 {
            reasons.push(format!(
                "{} of {} functions begin where the sets of the cache want them, fewer than {:.0} %",
                self.at_place,
                self.with_place,
                MIN_AT_PLACE * 100.0
            ));
        }
        for ModuleLayout { module, ordered, in_place, out_of_order } in &self.modules {
            if (*in_place as f64) < MIN_IN_PLACE * *ordered as f64 || *out_of_order > 0 {
                reasons.push(format!(
                    "module {module}: {in_place} of {ordered} functions begin its code, {out_of_order} of them before one that \
                     they should follow"
                ));
            }
        }
        ProofRefusal::unless_empty(&self.kernel, reasons)
    }
}

impl fmt::Display for LayoutProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Order {} ({}) in kernel {}", self.order, self.algorithm, self.kernel)?;
        let kib = self.ordered_bytes.div_ceil(1024);
        writeln!(
            f,
            "  functions   {} of {} that ran stand in order, in {kib} KiB",
            self.in_place, self.ordered
        )?;
        writeln!(
            f,
            "  elsewhere   {} in sections of the kernel's own or of assembly: {} …",
            self.ordered - self.in_place,
            self.elsewhere.iter().take(4).cloned().collect::<Vec<_>>().join(", ")
        )?;
        for ModuleLayout { module, ordered, in_place, .. } in &self.modules {
            writeln!(f, "  module      {module}: {in_place} of {ordered} that ran stand in order")?;
        }
        if let Some(absent) = self.absent {
            writeln!(
                f,
                "  not there   {absent} of the functions that ran in the kernel that was recorded: of its architecture, or \
                 inlined here"
            )?;
        }
        if self.with_place > 0 {
            writeln!(
                f,
                "  by sets     {} of {} begin where the sets of the cache want them; lines that miss each round {} → {} \
                 (model, all rounds)",
                self.at_place, self.with_place, self.set_misses[0], self.set_misses[1]
            )?;
        }
        write!(
            f,
            "  pages       {} → {} of 4 KiB have code of functions that ran",
            self.base.pages, self.tuned.pages
        )
    }
}
