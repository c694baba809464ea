//! Gate for counters of an instrumented kernel, which count arcs instead of instructions.
//!
//! `gcc_pgo::prepare_profile` checks each file when reading it: it must be of this build, with the
//! object's functions and control flow. This module checks the counters as a whole.

use super::check::{CountUnit, ProfileQuality};
use super::findings::{dissimilar_halves, too_few_instructions};
use super::input::{kernel_id, SCHEMA};
use super::overlap::{FunctionWeights, HotOverlap};
use super::transfer::{ExecutedTotals, MatchedCode};
use crate::object_counts::ObjectCounts;
use crate::Result;
use kerntune_kernel::Kernel;
use kerntune_profile::source_name;
use std::collections::HashSet;
use std::path::Path;

/// Checks the counters that `gcov`, the instrumented kernel, exported in all `runs` (directories),
/// each given on its own if there are several.
///
/// # Errors
/// [`Error::Unfit`](crate::Error::Unfit); an image that cannot be read.
pub(crate) fn pass_counters(
    gcov: &Kernel,
    name: String,
    objects: &[ObjectCounts],
    runs: &[Vec<ObjectCounts>],
) -> Result<ProfileQuality> {
    let functions = || objects.iter().flat_map(|object| &object.functions);
    let ran = || functions().filter(|function| function.total > 0);
    let counted = objects.iter().fold(0u64, |sum, object| sum.saturating_add(object.total()));
    let all = ExecutedTotals { functions: ran().count() as u64, instructions: counted };
    let (overlap, whole) = match halves(runs) {
        Some(overlap) => (Some(overlap), None),
        None => (None, Some("it is of one run; give a second one to compare it with".into())),
    };
    let mut quality = ProfileQuality {
        schema: SCHEMA.into(),
        profile: name,
        recorded: kernel_id(gcov),
        kernel: kernel_id(gcov),
        recipe: None,
        unit: CountUnit::Arcs,
        executed: None,
        counted,
        code_bytes: code_bytes(gcov, objects)?,
        coverage: None,
        taken: None,
        matched: Some(MatchedCode {
            ran: all,
            same: all,
            matched_instructions: counted,
            ..MatchedCode::default()
        }),
        overlap,
        whole,
        left_out: Default::default(),
        findings: Vec::new(),
    };
    let findings = [too_few_instructions(&quality), dissimilar_halves(&quality, false)];
    quality.findings.extend(findings.into_iter().flatten());
    quality.verdict()?;
    Ok(quality)
}

/// Compares every other run with the rest.
fn halves(runs: &[Vec<ObjectCounts>]) -> Option<HotOverlap> {
    let mut weights = [FunctionWeights::new(), FunctionWeights::new()];
    for (run, at) in runs.iter().zip(0usize..) {
        for function in run.iter().flat_map(|object| &object.functions) {
            let sum = weights[at % 2].entry(source_name(&function.name).0.to_string()).or_default();
            *sum = sum.saturating_add(function.total);
        }
    }
    let [one, two] = &weights;
    HotOverlap::of("every other training run".into(), [one, two])
}

/// Returns the bytes of an image's functions, and of those whose source file has counters. `None`
/// if the sources of the build are not known, or its image was not kept.
fn code_bytes(gcov: &Kernel, objects: &[ObjectCounts]) -> Result<Option<[u64; 2]>> {
    if gcov.source_files()?.is_empty() || !gcov.vmlinux().is_file() {
        return Ok(None);
    }
    let stem = |path: &str| Path::new(path).with_extension("");
    let counted: HashSet<_> = objects.iter().map(|object| stem(&object.object)).collect();
    let symbols = gcov.symbols()?;
    let bytes = symbols.functions().iter().fold([0u64; 2], |[all, with], function| {
        let has = function.file.as_deref().is_some_and(|file| counted.contains(&stem(file)));
        [all.saturating_add(function.size), with.saturating_add(if has { function.size } else { 0 })]
    });
    Ok(Some(bytes))
}
