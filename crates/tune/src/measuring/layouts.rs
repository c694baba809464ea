//! Layout sensitivity: the base kernel with its functions in random orders, all under the same
//! workload.
//!
//! Modeled misses depend on which functions share a set of the cache, which nobody chooses when a
//! kernel is linked. Random layouts show how much of a difference layout alone can make. Orders
//! contain all functions that can be moved, every order is equally likely, and the seed is fixed:
//! the same call makes the same kernels.

use crate::parallel::run_parallel;
use crate::runs::model::Model;
use crate::runs::record::{counters_request, record};
use crate::{Result, Session};
use kerntune_compare::{Comparison, Measurement, RandomLayouts};
use kerntune_guest::Workload;
use kerntune_kernel::{build, relink, BuildRequest, FunctionOrder, Kernel};
use kerntune_stats::Rng;

/// Seed of the random orders.
pub const LAYOUT_SEED: u64 = 1;

/// Maximum number of random layouts: each takes 60 MB of the work directory, and more than a
/// hundred add no information.
pub const MAX_LAYOUTS: u32 = 200;

/// Links the base kernel `count` times with its functions in a random order, and runs the workload
/// on each. If the functions of the base kernel cannot be moved, a movable kernel is built first.
pub(crate) fn layouts(
    session: &Session,
    base: &Kernel,
    workload: &Workload,
    model: &Model,
    comparison: &Comparison,
    count: u32,
) -> Result<RandomLayouts> {
    let movable = movable(session, base)?;
    let names = functions(&movable)?;
    let mut rng = Rng::new(LAYOUT_SEED);
    let orders: Vec<(u32, FunctionOrder)> = (1..=count)
        .map(|number| Ok((number, FunctionOrder::new(shuffled(&names, &mut rng))?)))
        .collect::<Result<_>>()?;
    // Links wait for each other because they borrow the same objects; runs go on meanwhile.
    let made = run_parallel(session, workload.memory_mb, &orders, |session, (number, order)| {
        let label = format!("{}-random-{number}", base.manifest.label);
        let kernel = relink(session.work, &movable, order, (&label, RECIPE), session.progress)?;
        let run = record(session, &counters_request(&kernel, workload, model))?.measurement()?;
        Ok((kernel.manifest.id, run))
    })?;
    let (kernels, runs): (Vec<String>, Vec<Measurement>) = made.into_iter().unzip();
    Ok(comparison.place_among(&runs, kernels, LAYOUT_SEED, model.costs.as_ref()))
}

/// Recipe name of these kernels in lists.
const RECIPE: &str = "random-order";

/// Returns `base`, or the same kernel built with movable functions.
fn movable(session: &Session, base: &Kernel) -> Result<Kernel> {
    if base.manifest.movable {
        return Ok(base.clone());
    }
    Ok(build(session.work, &movable_request(session, base)?, session.progress)?)
}

/// Returns the request that builds `base` with movable functions.
pub(crate) fn movable_request(session: &Session, base: &Kernel) -> Result<BuildRequest> {
    let label = format!("{}-movable", base.manifest.label);
    Ok(BuildRequest { movable: true, label, ..BuildRequest::of(session.work, base)? })
}

/// Returns the names of all functions by address. The linker ignores functions without a section of
/// their own.
fn functions(kernel: &Kernel) -> Result<Vec<String>> {
    let symbols = kernel.symbols()?;
    let names = symbols.functions().iter().map(|function| function.name.clone());
    // Cold parts are placed by the compiler; `relink` takes a name once.
    let names = names.filter(|name| !name.ends_with(".cold") && FunctionOrder::takes(name));
    Ok(names.collect())
}

/// Shuffles names; every order is equally likely (Fisher and Yates).
fn shuffled(names: &[String], rng: &mut Rng) -> Vec<String> {
    let mut names = names.to_vec();
    for at in (1..names.len()).rev() {
        names.swap(at, rng.index(at + 1));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_repeat_and_differ_from_each_other() {
        let names: Vec<String> = (0..50).map(|at| format!("f{at}")).collect();
        let mut rng = Rng::new(LAYOUT_SEED);
        let (one, two) = (shuffled(&names, &mut rng), shuffled(&names, &mut rng));
        assert!(one != two && one != names);
        assert_eq!(shuffled(&names, &mut Rng::new(LAYOUT_SEED)), one);
        let mut sorted = one.clone();
        sorted.sort_by_key(|name| name[1..].parse::<u32>().unwrap_or_default());
        assert_eq!(sorted, names);
        assert!(shuffled(&[], &mut rng).is_empty());
    }

    /// Three names have six orders, each about equally frequent.
    #[test]
    fn each_order_is_as_likely_as_any_other() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let mut rng = Rng::new(3);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *seen.entry(shuffled(&names, &mut rng).concat()).or_insert(0) += 1;
        }
        assert!(seen.len() == 6 && seen.values().all(|count| (900..1100).contains(count)), "{seen:?}");
    }
}
