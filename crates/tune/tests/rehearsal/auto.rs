//! `auto`: several recipes against one base kernel.

use crate::support::{build_request, recipe, TestBench};
use kerntune_tune::auto::{auto, AutoRequest};
use kerntune_tune::TuningSettings;
use std::slice::from_ref;

#[test]
fn recipes_are_ranked_and_held_against_the_upstream_baseline() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let build = build_request("base");
    let recipes = ["gcc-pgo", "gcc-pgo+layout", "stock-gcov"].map(recipe);
    let request = AutoRequest {
        build: &build,
        workload: &bench.workload,
        held_out: from_ref(&bench.workload),
        recipes: &recipes,
        settings: TuningSettings::new(&bench.model),
        budget: None,
    };
    let found = auto(&session, &request, &|_, _, _| {}).unwrap();
    assert!(found.not_made.is_empty(), "{:?}", found.not_made);
    let base = &found.measured[0];
    assert_eq!((base.recipe, base.score, base.changes), (None, 1.0, [0.0; 4]));
    assert!(found.measured[1..].is_sorted_by(|one, next| one.score <= next.score), "{found:?}");
    let line = |recipe| found.measured.iter().find(|line| line.recipe == Some(recipe)).unwrap();
    let [tuned, placed, stock] = recipes.map(line);
    assert!(tuned.changes[0] < 0.0, "{tuned:?}");
    // Another order of functions executes the same instructions and takes the same branches.
    assert_eq!(placed.totals[..2], tuned.totals[..2]);
    // Without the summary GCC ignores the counts; the other effects of `-fprofile-use` (unrolling)
    // remain.
    assert!(tuned.score < stock.score && tuned.totals[0] < stock.totals[0], "{tuned:?} {stock:?}");

    let best = found.measured[1..].iter().find(|line| line.recipe != Some(recipes[2])).unwrap();
    assert_eq!(found.best.as_ref(), Some(&best.kernel));
    let [against] = &found.against_stock[..] else { panic!("{:?}", found.against_stock) };
    assert_eq!((against.recipe, against.beaten), (recipes[2], true));
    let [held_out] = &found.held_out[..] else { panic!("{:?}", found.held_out) };
    assert_eq!(held_out.changes, best.changes, "it is the same workload");
}
