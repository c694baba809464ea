//! Training on several workloads, and `cross`: kernels of each workload running all of them.

use crate::support::{build_request, recipe, TestBench, WORKLOAD};
use kerntune_guest::Workload;
use kerntune_kernel::build;
use kerntune_tune::cross::{cross, CrossRequest, TOGETHER};
use kerntune_tune::optimize::{optimize, OptimizeRequest};
use kerntune_tune::TuningSettings;
use kerntune_work::NoProgress;
use std::path::Path;

/// The same programs with other numbers, under another name.
fn other() -> Workload {
    let text = WORKLOAD.replace("stand-in", "other").replace("\"20\"", "\"7\"");
    Workload::parse(&text, Path::new("other.toml")).unwrap()
}

#[test]
fn trainings_of_several_workloads_are_added_up() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let kernel = build(&work, &build_request("base"), &NoProgress).unwrap();
    for name in ["gcc-pgo", "layout"] {
        let made = |also_trained_on: &[(Workload, u32)]| {
            let settings = TuningSettings { also_trained_on, ..TuningSettings::new(&bench.model) };
            let (workload, recipe) = (&bench.workload, recipe(name));
            let request = OptimizeRequest { workload, recipe, settings, jobs: None };
            let optimized = optimize(&session, kernel.clone(), &request).unwrap();
            optimized.proof.verdict().unwrap();
            optimized
        };
        let (alone, both) = (made(&[]), made(&[(other(), 3)]));
        assert_ne!(alone.profile, both.profile, "{name}");
        // Equal orders give one kernel, which keeps its first label.
        if name == "gcc-pgo" {
            assert_eq!(both.tuned.manifest.label, "base-gcc-pgo-stand-in+other-3");
            let manifest = std::fs::read_to_string(both.profile.join("profile.json")).unwrap();
            let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            assert_eq!(manifest["runs"], 4, "{manifest}");
        }
    }
}

#[test]
fn a_matrix_has_a_kernel_for_each_and_one_for_all() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let kernel = build(&work, &build_request("base"), &NoProgress).unwrap();
    let request = CrossRequest {
        recipe: recipe("gcc-pgo"),
        settings: TuningSettings::new(&bench.model),
        together: true,
        jobs: None,
    };
    let matrix = cross(&session, &kernel, &[bench.workload.clone(), other()], &request).unwrap();
    let names: Vec<&str> = matrix.rows.iter().map(|row| row.tuned_for.as_str()).collect();
    assert_eq!(names, ["stand-in", "other", TOGETHER]);
    for row in &matrix.rows {
        assert_eq!(row.cells.len(), 2);
        assert!(row.cells.iter().all(|cell| cell.score < 1.0), "{row:?}");
    }
}
