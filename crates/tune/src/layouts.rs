//! Luck of layout: the base kernel with its functions in random orders, each under the same workload.
//!
//! A modelled miss depends on which functions share a set of the cache, and who links a kernel does not choose that. So a
//! figure of a layout is held against what a layout is worth that nobody chose. The orders are of all functions that can be
//! moved, each as likely as any other, and come from a fixed number: the same call makes the same kernels.

use crate::model::Model;
use crate::record::{counted, record};
use crate::together::together;
use crate::{Result, Session};
use kerntune_compare::{Comparison, Layouts, Measurement};
use kerntune_guest::Workload;
use kerntune_kernel::{build, relink, BuildRequest, FunctionOrder, Kernel};
use kerntune_stats::Rng;

/// What the random orders come from.
pub const LAYOUT_SEED: u64 = 1;

/// Most random layouts of a comparison: each is 60 MB of the work directory, and more than a hundred say nothing new.
pub const MOST_LAYOUTS: u32 = 200;

/// Links the base kernel `count` times with its functions in a random order, and runs the workload on each. A base kernel whose functions
/// cannot be moved is built once more so that they can.
pub(crate) fn layouts(
    session: &Session,
    base: &Kernel,
    workload: &Workload,
    model: &Model,
    comparison: &Comparison,
    count: u32,
) -> Result<Layouts> {
    let movable = movable(session, base)?;
    let names = functions(&movable)?;
    let mut rng = Rng::new(LAYOUT_SEED);
    let orders: Vec<(u32, FunctionOrder)> = (1..=count)
        .map(|number| Ok((number, FunctionOrder::new(shuffled(&names, &mut rng))?)))
        .collect::<Result<_>>()?;
    // Links wait for each other, since they borrow the same objects; runs go on beside them.
    let made = together(session, workload.memory_mb, &orders, |session, (number, order)| {
        let label = format!("{}-random-{number}", base.manifest.label);
        let kernel = relink(session.work, &movable, order, (&label, RECIPE), session.progress)?;
        let run = record(session, &counted(&kernel, workload, model))?.measurement()?;
        Ok((kernel.manifest.id, run))
    })?;
    let (kernels, runs): (Vec<String>, Vec<Measurement>) = made.into_iter().unzip();
    Ok(comparison.among(&runs, kernels, LAYOUT_SEED, model.costs.as_ref()))
}

/// What the kernels are listed as made by.
const RECIPE: &str = "random-order";

/// The kernel itself, or the same built so that its functions can be moved.
fn movable(session: &Session, base: &Kernel) -> Result<Kernel> {
    if base.manifest.movable {
        return Ok(base.clone());
    }
    let label = format!("{}-movable", base.manifest.label);
    let request = BuildRequest { movable: true, label, ..BuildRequest::of(session.work, base)? };
    Ok(build(session.work, &request, session.progress)?)
}

/// The names of all functions, in the order of their addresses; the linker leaves where they are what has no section of its own.
fn functions(kernel: &Kernel) -> Result<Vec<String>> {
    let symbols = kernel.symbols()?;
    let names = symbols.functions().iter().map(|function| function.name.clone());
    // Cold parts go where the compiler wants them; `relink` takes a name once.
    let names = names.filter(|name| !name.ends_with(".cold") && FunctionOrder::takes(name));
    Ok(names.collect())
}

/// Each order is as likely as any other (Fisher and Yates).
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

    /// Of three names, six orders, each about as often as any other.
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
