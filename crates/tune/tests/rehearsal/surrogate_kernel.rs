//! Surrogate kernels: another kernel of the same source is recorded in place of one that no machine
//! records.

use crate::support::{recipe, TestBench};
use kerntune_kernel::{build, Arch, BuildRequest, Compiler, Kernel, KernelSource};
use kerntune_optimize::{clang_autofdo, layout};
use kerntune_rehearsal::Rehearsal;
use kerntune_tune::optimize::{optimize, OptimizeRequest, OptimizeResult};
use kerntune_tune::{Session, SuppliedProfile, TuningSettings};
use kerntune_work::NoProgress;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies the stand-in kernel's source as a series without patches in `embedded/kernel/patches/SERIES/uml`.
fn source(bench: &TestBench) -> KernelSource {
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../rehearsal/kernel"), bench.path("source"));
    assert!(Command::new("cp").arg("-r").arg(from).arg(&to).status().unwrap().success());
    let makefile = to.join("Makefile");
    let text = fs::read_to_string(&makefile).unwrap().replace("PATCHLEVEL = 12", "PATCHLEVEL = 11");
    fs::write(makefile, text).unwrap();
    KernelSource::Directory(to)
}

fn um(session: &Session, source: &KernelSource, compiler: Compiler) -> Kernel {
    let request = BuildRequest { arch: Arch::Um, compiler, ..BuildRequest::new(source.clone(), "a-process") };
    build(session.work, &request, &NoProgress).unwrap()
}

fn tuned(
    bench: &TestBench,
    session: &Session,
    kernel: &Kernel,
    name: &str,
    supplied: Option<&SuppliedProfile>,
) -> kerntune_tune::Result<OptimizeResult> {
    let settings = TuningSettings { supplied, ..TuningSettings::new(&bench.model) };
    let request = OptimizeRequest { workload: &bench.workload, recipe: recipe(name), settings, jobs: None };
    optimize(session, kernel.clone(), &request)
}

/// Reads a proof back from JSON.
fn proof<T: serde::de::DeserializeOwned>(optimized: &OptimizeResult) -> T {
    optimized.proof.verdict().unwrap();
    serde_json::from_value(serde_json::to_value(&optimized.proof).unwrap()).unwrap()
}

#[test]
fn functions_are_ordered_by_the_calls_of_a_kernel_for_a_pc() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let directory = bench.path("recorder");
    fs::create_dir(&directory).unwrap();
    let session =
        bench.session(&work).recorded_on(move || Ok(Box::new(Rehearsal::new(&directory)?) as Box<_>));
    let source = source(&bench);
    let kernel = um(&session, &source, Compiler::default());

    let ordered = tuned(&bench, &session, &kernel, "layout", None).unwrap();
    assert_eq!(ordered.tuned.manifest.arch, Arch::Um);
    let proof: layout::LayoutProof = proof(&ordered);
    assert!(proof.in_place > 10 && proof.absent.is_some(), "{proof:?}");
    let recorded = kerntune_kernel::find(&work, "a-process-x86-64").unwrap();
    assert_eq!(
        (recorded.manifest.arch, &recorded.manifest.version),
        (Arch::X86_64, &kernel.manifest.version)
    );

    // Recipes that need a recording of this kernel are refused before anything is built.
    let error = tuned(&bench, &session, &kernel, "bolt", None).unwrap_err().to_string();
    assert!(error.contains("--arch um") && error.contains("no machine records"), "{error}");
}

#[test]
fn counts_of_a_kernel_for_a_pc_are_compiled_into_another() {
    let clang = clang_autofdo::default_compiler();
    if clang_autofdo::check_compiler(&clang).is_err() {
        // Clang is missing; other tests check the recipe's requirements.
        return;
    }
    let bench = TestBench::new();
    let work = bench.work("work");
    let directory = bench.path("recorder");
    fs::create_dir(&directory).unwrap();
    let session =
        bench.session(&work).recorded_on(move || Ok(Box::new(Rehearsal::new(&directory)?) as Box<_>));
    let source = source(&bench);
    let kernel = um(&session, &source, clang);

    let optimized = tuned(&bench, &session, &kernel, "clang-autofdo", None).unwrap();
    let proof: clang_autofdo::AutofdoProof = proof(&optimized);
    let elsewhere = proof.elsewhere.as_ref().unwrap();
    let recorded = kerntune_kernel::find(&work, &elsewhere.recorded).unwrap();
    assert_eq!(recorded.manifest.arch, Arch::X86_64);
    assert_eq!((optimized.base.manifest.arch, optimized.tuned.manifest.arch), (Arch::Um, Arch::Um));
    assert!(proof.functions_applied >= 10, "{proof:?}");
}
