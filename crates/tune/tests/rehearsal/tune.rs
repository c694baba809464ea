//! `tune`: once, again, and elsewhere.

use crate::support::{Bench, OPERATIONS};
use kerntune_compare::{Metric, TOTAL};
use kerntune_optimize::gcc_pgo::Proof;
use kerntune_profile::Profile;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_kernel_is_tuned_proved_and_measured_and_found_again() {
    let bench = Bench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let (tuned, there) = bench.tune(&session, &[]).unwrap();
    assert_eq!(there, 0);

    tuned.proof.verdict().unwrap();
    let proof = fs::read(tuned.directory.join("proof.json")).unwrap();
    let proof: Proof = serde_json::from_slice(&proof).unwrap();
    assert_eq!((proof.share_of_counts_matched, &proof.functions_mismatched[..]), (1.0, &[][..]), "{proof:?}");
    assert!(proof.tuned.cold_parts > proof.base.cold_parts, "{proof:?}");

    let comparison = &tuned.comparison;
    assert_eq!(comparison.operations().collect::<Vec<_>>(), OPERATIONS);
    for row in
        OPERATIONS.iter().chain([&TOTAL]).flat_map(|name| Metric::COUNTED.map(|m| comparison.row(name, m)))
    {
        let row = row.unwrap();
        assert_eq!(row.base, row.base_again, "{row:?}");
    }
    let path_length = comparison.row(TOTAL, Metric::PathLength).unwrap();
    assert!(path_length.tuned < path_length.base && path_length.base > 100_000.0, "{path_length:?}");

    // What the trace shows of each function is what the regions counted, and nothing is left over.
    let tables = Profile::load(&tuned.after.path).unwrap().tables;
    let kernel: u64 = tables.regions.iter().map(|region| region.kernel_instructions.get()).sum();
    let blocks: u64 = tables.blocks.iter().map(|block| block.count * block.instructions.get()).sum();
    assert_eq!((kernel, kernel as f64), (blocks, path_length.tuned));
    let threads: BTreeSet<_> =
        tables.threads.iter().map(|thread| (thread.pid, thread.comm.as_str())).collect();
    assert_eq!(threads, BTreeSet::from([(1, "init"), (2, "echo")]));

    let (again, there) = bench.tune(&session, &[]).unwrap();
    assert_eq!((there, again.comparison.to_json()), (again.steps.len(), comparison.to_json()));

    let elsewhere = bench.work("elsewhere");
    let (elsewhere, there) = bench.tune(&bench.session(&elsewhere), &[]).unwrap();
    assert_eq!((there, elsewhere.comparison.to_json()), (0, comparison.to_json()));
    assert_eq!(elsewhere.tuned.content().unwrap(), tuned.tuned.content().unwrap());
}
