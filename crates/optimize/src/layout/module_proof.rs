//! Proof that the functions of modules are in their order.

use crate::module_code::{functions, module, TEXT};
use crate::Result;
use kerntune_kernel::{FunctionOrder, Kernel};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

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
    for (name, names) in order.modules() {
        let mut code: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        if let Some(module) = module(&modules, name)? {
            for function in functions(&module)?.into_iter().filter(|function| function.section == TEXT) {
                code.entry(function.offset).or_default().push(function.name);
            }
        }
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
        proofs.push(ModuleLayout { module: name.clone(), ordered, in_place, out_of_order });
    }
    Ok(proofs)
}
