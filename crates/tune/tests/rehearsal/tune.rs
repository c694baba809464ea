//! `tune`: once, again, and in another work directory.

use crate::support::{build_request, recipe, TestBench, OPERATIONS};
use kerntune_compare::{Metric, TOTAL};
use kerntune_kernel::{BuildRequest, KernelSource};
use kerntune_optimize::gcc_pgo::GccPgoProof;
use kerntune_profile::Profile;
use kerntune_tune::dry_run::{DryRun, PlannedStep};
use kerntune_tune::package::package;
use kerntune_tune::{TuneRequest, TuningSettings};
use kerntune_work::WorkDir;
use std::collections::BTreeSet;
use std::fs;

/// A plan's inputs are checked and its cost is estimated before anything is built.
#[test]
fn a_plan_is_checked_and_estimated() {
    let bench = TestBench::new();
    let work = WorkDir::open_for_dry_run(bench.path("work")).unwrap();
    let session = bench.session(&work);
    let (workload, recipe) = (&bench.workload, recipe("gcc-pgo+layout"));
    let settings = TuningSettings::new(&bench.model);
    let estimate = |build: &BuildRequest| {
        let mut dry = DryRun::new(&session);
        TuneRequest { build, workload, recipe, settings }.dry_run(&mut dry).map(|()| dry.into_steps())
    };
    let steps = estimate(&build_request("base")).unwrap();
    assert!(steps.iter().all(|step| step.result.is_none()), "{steps:?}");
    let compiled =
        |step: &PlannedStep| Some((step.step, step.estimate.clone().filter(|of| of.objects.is_some())?));
    let found: Vec<_> = steps.iter().filter_map(compiled).collect();
    let names: Vec<&str> = found.iter().map(|(step, _)| *step).collect();
    assert_eq!(names, ["base-kernel", "instrumented-kernel", "movable-kernel"]);
    assert!(
        found.iter().all(|(_, of)| of.objects > Some(0) && of.minutes > Some(0.0) && !of.rests_on.is_empty()),
        "{found:?}"
    );
    let runs: Vec<&str> = steps
        .iter()
        .filter(|step| step.estimate.as_ref().is_some_and(|of| of.runs.is_some()))
        .map(|step| step.step)
        .collect();
    let measured = ["check", "measure-base", "measure-base-again", "measure-tuned"];
    assert_eq!(runs, [&["record-training", "training", "record-movable"], &measured[..]].concat());
    // Nothing was made, not even the directory.
    assert!(!bench.path("work").exists());
    let missing = BuildRequest { source: KernelSource::Debian("0.99".into()), ..build_request("base") };
    let error = estimate(&missing).unwrap_err().to_string();
    assert!(error.contains("linux-source-0.99.tar.xz is not there"), "{error}");
    let elsewhere = BuildRequest { source: KernelSource::Directory("/usr".into()), ..build_request("base") };
    let error = estimate(&elsewhere).unwrap_err().to_string();
    assert!(error.contains("/usr is not a kernel source: no Makefile/Kconfig"), "{error}");
    assert!(work.list("kernels").unwrap().is_empty());
}

#[test]
fn a_kernel_is_tuned_proved_and_measured_and_found_again() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let (tuned, there) = bench.tune(&session, &[]).unwrap();
    assert_eq!(there, 0);

    tuned.proof.verdict().unwrap();
    let proof = fs::read(tuned.directory.join("proof.json")).unwrap();
    let proof: GccPgoProof = serde_json::from_slice(&proof).unwrap();
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

    // The sums of all blocks equal the counters of the regions.
    let tables = Profile::load(&tuned.after.path).unwrap().tables;
    let kernel: u64 = tables.regions.iter().map(|region| region.kernel_instructions.get()).sum();
    let blocks: u64 = tables.blocks.iter().map(|block| block.count * block.instructions.get()).sum();
    assert_eq!((kernel, kernel as f64), (blocks, path_length.tuned));
    let threads: BTreeSet<_> =
        tables.threads.iter().map(|thread| (thread.pid, thread.comm.as_str())).collect();
    assert_eq!(threads, BTreeSet::from([(1, "init"), (2, "echo")]));

    // The package contains exactly the files that the tuning wrote.
    let file = tuned.directory.join("comparison.json");
    let written = fs::read_to_string(&file).unwrap();
    let state = || {
        let seen = kerntune_work::survey(&work, true, &mut |_| {}).unwrap();
        seen.found.into_iter().find(|found| found.kind == "tunes").unwrap().reason
    };
    assert_eq!(state(), None);
    fs::write(&file, written.replacen("\"change_percent\": -", "\"change_percent\": -1", 1)).unwrap();
    assert!(format!("{:?}", state()).contains("comparison.json is not the file that was written"));
    let error = package(&work, &tuned.tuned, &kerntune_work::NoProgress).unwrap_err().to_string();
    assert!(error.contains("comparison.json is not the file that was written"), "{error}");

    let (again, there) = bench.tune(&session, &[]).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap(), state()), (written, None));
    assert_eq!((there, again.comparison.to_json()), (again.steps.len(), comparison.to_json()));

    let elsewhere = bench.work("elsewhere");
    let (elsewhere, there) = bench.tune(&bench.session(&elsewhere), &[]).unwrap();
    assert_eq!((there, elsewhere.comparison.to_json()), (0, comparison.to_json()));
    assert_eq!(elsewhere.tuned.content().unwrap(), tuned.tuned.content().unwrap());
}
