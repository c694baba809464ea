//! Proof that the functions of modules are in their order.

use crate::Result;
use kerntune_debuginfo::Elf;
use kerntune_kernel::{FunctionOrder, Kernel, KernelModule};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Section with the functions that the linker script orders.
const TEXT: &str = ".text";

/// Evidence about the order of a module's functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLayout {
    /// Name as in `/proc/modules`.
    pub module: String,
    /// Functions to be placed.
    pub ordered: u64,
    /// Functions of the order that begin the module's code.
    pub in_place: u64,
    /// Functions in place that come before one that should precede them.
    pub out_of_order: u64,
}

/// Compares the modules of a linked kernel with the order, in the order of their names.
///
/// # Errors
/// A module of the order that the kernel lacks, or that cannot be read.
pub(super) fn prove_modules(tuned: &Kernel, order: &FunctionOrder) -> Result<Vec<ModuleLayout>> {
    if order.modules().is_empty() {
        return Ok(Vec::new());
    }
    let modules = tuned.modules()?;
    // All modules are linked by one script, in which a name has the place of its first module.
    let mut ranks: HashMap<&str, usize> = HashMap::new();
    let mut shared: HashSet<&str> = HashSet::new();
    for name in order.modules().values().flatten() {
        let rank = ranks.len();
        if *ranks.entry(name).or_insert(rank) != rank {
            shared.insert(name);
        }
    }
    let mut proofs = Vec::new();
    for (module, names) in order.modules() {
        let loaded = modules.load([module.as_str()])?;
        let of = loaded.iter().find(|of| of.name == *module);
        let code = match of {
            Some(of) => code(of).map_err(|error| kerntune_kernel::Error::BadModule {
                path: of.path.clone(),
                reason: error.to_string(),
            })?,
            None => BTreeMap::new(),
        };
        let places = |names: &[String]| names.iter().any(|name| ranks.contains_key(name.as_str()));
        let front: Vec<&[String]> = code.values().map(Vec::as_slice).take_while(|all| places(all)).collect();
        let there: HashSet<&str> = front.iter().copied().flatten().map(String::as_str).collect();
        let in_place = names.iter().filter(|name| there.contains(name.as_str())).count() as u64;
        let rank = |names: &[String]| match names {
            [name] if !shared.contains(name.as_str()) => ranks.get(name.as_str()).copied(),
            _ => None,
        };
        let ranked: Vec<usize> = front.iter().filter_map(|names| rank(names)).collect();
        let out_of_order = ranked.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        let ordered = names.len() as u64;
        proofs.push(ModuleLayout { module: module.clone(), ordered, in_place, out_of_order });
    }
    Ok(proofs)
}

/// Returns the names of the functions in a module's [`TEXT`], by offset.
fn code(module: &KernelModule) -> kerntune_debuginfo::Result<BTreeMap<u64, Vec<String>>> {
    let elf = Elf::parse(&module.bytes)?;
    let sections = elf.code_sections()?;
    let text = sections.iter().find(|section| section.name == TEXT).map(|section| section.index);
    let mut functions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for symbol in elf.symbols() {
        let symbol = symbol?;
        // Code alone has a size; labels and sections have none.
        if text.is_some() && symbol.section == text && symbol.size > 0 && FunctionOrder::takes(&symbol.name) {
            functions.entry(symbol.address).or_default().push(symbol.name.into_owned());
        }
    }
    Ok(functions)
}
