//! Evidence of the profile in the modules: hot functions come first.

use super::{ExecutedFunction, ModuleSamples};
use crate::module_code::{functions, module};
use crate::share::{share, share_in_front};
use crate::Result;
use kerntune_kernel::Kernel;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Begin of the names of sections that the compiler has for hot functions.
const HOT: &str = ".text.hot";

/// Profile of a module, and the placement of its hot functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HotModuleCode {
    /// Name as in `/proc/modules`.
    pub module: String,
    /// Share of the executed bytes that the profile has, 0 to 1.
    pub attributed: f64,
    /// Functions that ran.
    pub functions: u64,
    /// Functions that ran and are in the profile.
    pub matched: u64,
    /// Functions that are hot in the profile, with a unique name in the module's file.
    pub hot: u64,
    /// Share of the pairs of a hot function and one that never ran in which the hot one comes
    /// first, in the module of the base kernel and in that of the tuned one. 0 without such pairs.
    pub hot_in_front: [f64; 2],
}

/// Examines the modules of both kernels, given the functions that ran in the training.
///
/// # Errors
/// Modules that cannot be read.
pub(super) fn hot_modules(
    (base, tuned): (&Kernel, &Kernel),
    samples: &[ModuleSamples],
    ran: &[ExecutedFunction],
) -> Result<Vec<HotModuleCode>> {
    samples.iter().map(|samples| hot_module([base, tuned], samples, ran)).collect()
}

fn hot_module(
    kernels: [&Kernel; 2],
    samples: &ModuleSamples,
    ran: &[ExecutedFunction],
) -> Result<HotModuleCode> {
    let of_module = || ran.iter().filter(|function| function.module.as_deref() == Some(&samples.module));
    let names: HashSet<&str> = of_module().map(|function| function.name.as_str()).collect();
    let hot: HashSet<&str> =
        of_module().filter(|function| function.hot).map(|function| function.name.as_str()).collect();
    let mut evidence = HotModuleCode {
        module: samples.module.clone(),
        attributed: share(samples.attributed_bytes, samples.executed_bytes),
        functions: samples.functions,
        matched: samples.matched_functions,
        hot: 0,
        hot_in_front: [0.0; 2],
    };
    for (kernel, in_front) in kernels.into_iter().zip(&mut evidence.hot_in_front) {
        let places = places(kernel, &samples.module)?;
        let never = places.iter().filter(|(name, _)| !names.contains(name.as_str()));
        let never: Vec<u64> = never.map(|(_, place)| *place).collect();
        let hot: Vec<u64> = hot.iter().filter_map(|name| places.get(*name).copied()).collect();
        evidence.hot = hot.len() as u64;
        *in_front = share_in_front(&hot, never);
    }
    Ok(evidence)
}

/// Returns the ranks of a module's functions with a unique name, those in sections for hot code first.
fn places(kernel: &Kernel, name: &str) -> Result<HashMap<String, u64>> {
    let Some(module) = module(&kernel.modules()?, name)? else { return Ok(HashMap::new()) };
    let mut functions = functions(&module)?;
    functions.retain(|function| function.section.starts_with(".text"));
    functions.sort_by_key(|function| !function.section.starts_with(HOT));
    let mut places: HashMap<String, Option<u64>> = HashMap::new();
    for (rank, function) in (0..).zip(functions) {
        places.entry(function.name).and_modify(|place| *place = None).or_insert(Some(rank));
    }
    Ok(places.into_iter().filter_map(|(name, place)| Some((name, place?))).collect())
}
