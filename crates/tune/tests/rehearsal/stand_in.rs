//! A kernel that no machine records: another one of the same source is recorded in its place.

use crate::support::{recipe, Bench};
use kerntune_kernel::{build, Arch, BuildRequest, Compiler, Kernel, Source};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::{clang_autofdo, layout};
use kerntune_rehearsal::Rehearsal;
use kerntune_tune::optimize::{optimize, OptimizeRequest, Optimized};
use kerntune_tune::{Given, Session};
use kerntune_work::NoProgress;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The stand-in kernel's source as that of a series for which there are no patches of `kernel/patches/SERIES/uml`.
fn source(bench: &Bench) -> Source {
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../rehearsal/kernel"), bench.path("source"));
    assert!(Command::new("cp").arg("-r").arg(from).arg(&to).status().unwrap().success());
    let makefile = to.join("Makefile");
    let text = fs::read_to_string(&makefile).unwrap().replace("PATCHLEVEL = 12", "PATCHLEVEL = 11");
    fs::write(makefile, text).unwrap();
    Source::Directory(to)
}

fn um(session: &Session, source: &Source, compiler: Compiler) -> Kernel {
    let request = BuildRequest { arch: Arch::Um, compiler, ..BuildRequest::new(source.clone(), "a-process") };
    build(session.work, &request, &NoProgress).unwrap()
}

fn tuned(
    bench: &Bench,
    session: &Session,
    kernel: &Kernel,
    name: &str,
    given: Option<&Given>,
) -> kerntune_tune::Result<Optimized> {
    let exclusions = Exclusions::default();
    let request = OptimizeRequest {
        workload: &bench.workload,
        recipe: recipe(name),
        options: Default::default(),
        model: &bench.model,
        given,
        also: &[],
        exclusions: &exclusions,
        jobs: None,
    };
    optimize(session, kernel.clone(), &request)
}

/// A proof as its JSON says.
fn proof<T: serde::de::DeserializeOwned>(optimized: &Optimized) -> T {
    optimized.proof.verdict().unwrap();
    serde_json::from_value(serde_json::to_value(&optimized.proof).unwrap()).unwrap()
}

#[test]
fn functions_are_ordered_by_the_calls_of_a_kernel_for_a_pc() {
    let bench = Bench::new();
    let work = bench.work("work");
    let directory = bench.path("recorder");
    fs::create_dir(&directory).unwrap();
    let session =
        bench.session(&work).recorded_on(move || Ok(Box::new(Rehearsal::new(&directory)?) as Box<_>));
    let source = source(&bench);
    let kernel = um(&session, &source, Compiler::default());

    let ordered = tuned(&bench, &session, &kernel, "layout", None).unwrap();
    assert_eq!(ordered.tuned.manifest.arch, Arch::Um);
    let proof: layout::Proof = proof(&ordered);
    assert!(proof.in_place > 10 && proof.absent.is_some(), "{proof:?}");
    let recorded = kerntune_kernel::find(&work, "a-process-x86-64").unwrap();
    assert_eq!(
        (recorded.manifest.arch, &recorded.manifest.version),
        (Arch::X86_64, &kernel.manifest.version)
    );

    // What no machine can show is refused before anything is built.
    let error = tuned(&bench, &session, &kernel, "bolt", None).unwrap_err().to_string();
    assert!(error.contains("--arch um") && error.contains("no machine records"), "{error}");
}

#[test]
fn counts_of_a_kernel_for_a_pc_are_compiled_into_another() {
    let clang = clang_autofdo::default_compiler();
    if clang_autofdo::check_compiler(&clang).is_err() {
        // As on a machine without Clang; what its recipe needs is checked elsewhere.
        return;
    }
    let bench = Bench::new();
    let work = bench.work("work");
    let directory = bench.path("recorder");
    fs::create_dir(&directory).unwrap();
    let session =
        bench.session(&work).recorded_on(move || Ok(Box::new(Rehearsal::new(&directory)?) as Box<_>));
    let source = source(&bench);
    let kernel = um(&session, &source, clang);

    let optimized = tuned(&bench, &session, &kernel, "clang-autofdo", None).unwrap();
    let proof: clang_autofdo::Proof = proof(&optimized);
    let elsewhere = proof.elsewhere.as_ref().unwrap();
    let recorded = kerntune_kernel::find(&work, &elsewhere.recorded).unwrap();
    assert_eq!(recorded.manifest.arch, Arch::X86_64);
    assert_eq!((optimized.base.manifest.arch, optimized.tuned.manifest.arch), (Arch::Um, Arch::Um));
    assert!(proof.functions_applied >= 10, "{proof:?}");
}
