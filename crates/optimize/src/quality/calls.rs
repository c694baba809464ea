//! Gate for profiles without blocks: counted calls and sampled call chains, which can order
//! functions.
//!
//! Functions are matched by name, because an order consists of names. So the profile may be of
//! another build, even of one that is not in the work directory.

use super::check::{left_out, named, CountUnit, GateFinding, ProfileQuality, MIN_TRANSFERRED_PERCENT};
use super::findings::too_few_instructions;
use super::input::{kernel_id, GateInput, SCHEMA};
use super::overlap::{FunctionWeights, HotOverlap};
use super::transfer::{ExecutedTotals, LossReason, MatchedCode, UnmatchedFunction};
use crate::call_counts::{CallCounts, NamedFunctions};
use crate::share::{percent, share};
use crate::Result;
use kerntune_kernel::Symbols;
use kerntune_profile::{source_name, CountKind, Profile};

/// Fewest samples of which an order is made: a second of a CPU at the default rate. A judgment, not
/// a measured limit.
pub const MIN_SAMPLES: u64 = 1_000;

/// Least share of the time in functions with counts; below it the rest of the kernel would be placed
/// as if it did not run.
pub const MIN_CALL_COVERAGE: f64 = 0.5;

/// Largest share of lost samples.
pub const MAX_LOST: f64 = 0.5;

/// Share of lost samples above which the gate warns.
const NOTABLE_LOSS: f64 = 0.1;

/// Share of calls or samples in functions of the kernel below which the gate warns.
const FAMILIAR: f64 = 0.9;

/// Runs the checks of a profile of calls. Refusals are in [`ProfileQuality::findings`].
///
/// # Errors
/// An image that cannot be read.
pub(super) fn check_calls(input: &GateInput, counts: &CallCounts) -> Result<ProfileQuality> {
    let GateInput { recording, kernel, recipe, .. } = *input;
    let manifest = &recording.manifest;
    let same_kernel = manifest.kernel.id == kernel.manifest.id;
    let symbols = Symbols::load(&kernel.vmlinux())?;
    let functions = NamedFunctions::new(&recording.tables.symbols, &symbols, same_kernel);
    let matched = matched(recording, counts, &functions);
    let overlap = input.halves.and_then(|(what, [one, two])| {
        HotOverlap::of(what.into(), [&by_function(one, counts.kind)?, &by_function(two, counts.kind)?])
    });
    let whole =
        overlap.is_none().then(|| "its counts are of one run; give another one with --against".into());
    let mut quality = ProfileQuality {
        schema: SCHEMA.into(),
        profile: manifest.id.clone(),
        recorded: manifest.kernel.clone(),
        kernel: kernel_id(kernel),
        recipe: recipe.map(|answer| answer.recipe.to_owned()),
        unit: unit(counts.kind),
        executed: None,
        counted: counts.total(),
        code_bytes: None,
        coverage: counts.coverage,
        taken: None,
        matched: Some(matched),
        overlap,
        whole,
        left_out: left_out(manifest),
        findings: Vec::new(),
    };
    let findings = [
        no_calls(counts),
        overflowed(counts),
        match counts.kind {
            CountKind::CallChains => Some(samples_alone(recording)),
            _ => too_few_instructions(&quality),
        },
        low_coverage(counts),
        lost(recording),
        unfamiliar(&quality),
        super::findings::dissimilar_halves(&quality, true),
    ];
    quality.findings.extend(findings.into_iter().flatten());
    quality.findings.extend(recipe.and_then(|answer| answer.refusal).cloned());
    Ok(quality)
}

fn unit(kind: CountKind) -> CountUnit {
    match kind {
        CountKind::CallChains => CountUnit::Samples,
        _ => CountUnit::Calls,
    }
}

/// Returns the functions of the profile that the kernel has by name, and those that it lacks.
fn matched(recording: &Profile, counts: &CallCounts, functions: &NamedFunctions) -> MatchedCode {
    let mut matched = MatchedCode { outside: counts.outside, ..MatchedCode::default() };
    let add = |totals: &mut ExecutedTotals, weight: u64| {
        totals.functions += 1;
        totals.instructions = totals.instructions.saturating_add(weight);
    };
    for (&function, &weight) in &counts.entries {
        add(&mut matched.ran, weight);
        if functions.find(function).is_some() {
            add(&mut matched.same, weight);
            continue;
        }
        add(&mut matched.gone, weight);
        let symbol = recording.tables.symbols.get(function.0 as usize);
        let (name, file) =
            symbol.map(|symbol| (symbol.name.clone(), symbol.file.clone())).unwrap_or_default();
        matched.lost.push(UnmatchedFunction { name, file, fate: LossReason::Gone, instructions: weight });
    }
    matched.matched_instructions = matched.same.instructions;
    matched.lost.sort_by(|a, b| (b.instructions, &a.name).cmp(&(a.instructions, &b.name)));
    matched
}

/// Returns the weights of a profile's functions by their name in the source.
fn by_function(profile: &Profile, kind: CountKind) -> Option<FunctionWeights> {
    let counts = CallCounts::best(profile).filter(|counts| counts.kind == kind)?;
    let mut weights = FunctionWeights::new();
    for (function, weight) in &counts.entries {
        let name = &profile.tables.symbols.get(function.0 as usize)?.name;
        let sum = weights.entry(source_name(name).0.to_owned()).or_default();
        *sum = sum.saturating_add(*weight);
    }
    Some(weights)
}

fn no_calls(counts: &CallCounts) -> Option<GateFinding> {
    counts.arcs.is_empty().then(|| {
        GateFinding::refused(
            "counts",
            "it has no call between two functions of the kernel's image".into(),
            "record the workload for longer, and the whole kernel".into(),
        )
    })
}

fn overflowed(counts: &CallCounts) -> Option<GateFinding> {
    let all = counts.entries.values().chain(counts.arcs.values());
    let full = all.filter(|weight| **weight == u64::MAX).count();
    (full > 0).then(|| {
        let found = format!("{full} of its counters overflowed, so that hot code cannot be identified");
        GateFinding::refused("overflow", found, "merge with smaller weights".into())
    })
}

/// Judges the number of samples. Even many of them know less than counted calls.
fn samples_alone(recording: &Profile) -> GateFinding {
    let samples = recording.manifest.sampled.as_ref().map_or(0, |sampled| sampled.samples);
    if samples < MIN_SAMPLES {
        let found = format!("it has {samples} samples, {MIN_SAMPLES} are needed");
        let fix = "record for longer, or with a higher --rate";
        return GateFinding::refused("training", found, fix.into());
    }
    let found = format!(
        "it has {samples} samples and no counted calls: functions that ran and were never sampled have no place in an order"
    );
    GateFinding::warning("training", found, "count calls where the kernel can (`--calls all`)".into())
}

fn low_coverage(counts: &CallCounts) -> Option<GateFinding> {
    let covered = counts.coverage?;
    let found = |what: &str, fix: &str| {
        let found = format!(
            "{} of the time in the kernel's image is in functions {what}, {} are needed",
            percent(covered),
            percent(MIN_CALL_COVERAGE)
        );
        GateFinding::refused("coverage", found, fix.into())
    };
    (covered < MIN_CALL_COVERAGE).then(|| match counts.kind {
        CountKind::CallChains => found("whose samples have a caller", "record call chains (`record --live`)"),
        _ => found("whose calls were counted", "count the calls of all functions (`--calls all`)"),
    })
}

fn lost(recording: &Profile) -> Option<GateFinding> {
    let manifest = &recording.manifest;
    let sampled = manifest.sampled.as_ref()?;
    let lost = share(manifest.lost_events, sampled.samples.saturating_add(manifest.lost_events));
    (lost > NOTABLE_LOSS).then(|| {
        let found = format!("{} of its samples were lost", percent(lost));
        let refused = lost > MAX_LOST;
        GateFinding { refused, ..GateFinding::warning("cpus", found, "use a lower --rate".into()) }
    })
}

/// Finds profiles most of whose functions the kernel does not have by name.
fn unfamiliar(quality: &ProfileQuality) -> Option<GateFinding> {
    let matched = quality.matched.as_ref()?;
    let known = share(matched.same.instructions, matched.ran.instructions);
    (matched.ran.instructions > 0 && known < FAMILIAR).then(|| {
        let found = format!(
            "{} of its {} are of functions that kernel {} has by name; it is of kernel {}",
            percent(known),
            quality.unit,
            quality.kernel.label,
            named(&quality.recorded)
        );
        let refused = known * 100.0 < MIN_TRANSFERRED_PERCENT as f64;
        let fix = "record a kernel of the same version and configuration".into();
        GateFinding { refused, ..GateFinding::warning("kernel", found, fix) }
    })
}
