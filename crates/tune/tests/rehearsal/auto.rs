//! `auto`: several recipes against one base kernel.

use crate::support::{build_request, recipe, Bench};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_tune::auto::{auto, AutoRequest};
use std::slice::from_ref;

#[test]
fn the_best_recipe_is_held_against_the_upstream_baseline() {
    let bench = Bench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let (build, exclusions) = (build_request("base"), Exclusions::default());
    let recipes = ["gcc-pgo", "stock-gcov"].map(recipe);
    let request = AutoRequest {
        build: &build,
        workload: &bench.workload,
        held_out: from_ref(&bench.workload),
        model: &bench.model,
        recipes: &recipes,
        options: Default::default(),
        budget: None,
        object_flags: &[],
        exclusions: &exclusions,
    };
    let found = auto(&session, &request, &|_, _, _| {}).unwrap();
    assert!(found.not_made.is_empty(), "{:?}", found.not_made);
    let lines: Vec<_> = found.measured.iter().map(|line| line.recipe).collect();
    assert_eq!(lines, [None, Some(recipes[0]), Some(recipes[1])]);
    let [base, tuned, stock] = &found.measured[..] else { panic!("{lines:?}") };
    assert_eq!((base.score, base.changes), (1.0, [0.0; 4]));
    // Without the summary GCC ignores the counts; what `-fprofile-use` turns on besides (unrolling) is left.
    assert!(tuned.score < stock.score && tuned.totals[0] < stock.totals[0], "{tuned:?} {stock:?}");
    assert!(tuned.changes[0] < 0.0, "{tuned:?}");
    assert_eq!(found.best.as_ref(), Some(&tuned.kernel));
    let [against] = &found.against_stock[..] else { panic!("{:?}", found.against_stock) };
    assert_eq!((against.recipe, against.beaten), (recipes[1], true));
    let [held_out] = &found.held_out[..] else { panic!("{:?}", found.held_out) };
    assert_eq!(held_out.changes, tuned.changes, "it is the same workload");
}
