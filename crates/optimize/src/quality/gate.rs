//! The gate: figures and verdict for a recording and a kernel, and the transfer of a recording to
//! another kernel.

use super::calls::check_calls;
use super::check::{left_out, named, CountUnit, ProfileQuality};
use super::findings::{
    branches_left_out, dissimilar_halves, instructions_alone, low_coverage, no_counts, overflowed,
    silent_cpus, strange_runs, too_few_instructions, without_branches, wrong_kernel,
};
use super::input::{kernel_id, GateInput, SCHEMA};
use super::overlap::{halves, HotOverlap};
use super::transfer::{self, MatchedCode};
use super::LinkedCode;
use crate::call_counts::CallCounts;
use crate::share::{percent, share};
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::{
    lacking, recipes_fed_by, CaptureSummary, CountKind, Manifest, Profile, RegionStats, Tables,
    TransferSummary,
};
use kerntune_work::{Key, WorkDir};

/// Runs all checks that fit the profile: for blocks and branches, or else for calls. Refusals are in
/// [`ProfileQuality::findings`].
///
/// A profile without blocks is checked as one of calls if the recipe takes such, or if there is no
/// recipe.
///
/// # Errors
/// Images that cannot be read.
pub fn check(input: &GateInput) -> Result<ProfileQuality> {
    let kinds = input.recording.count_kinds();
    let refused = input.recipe.and_then(|answer| lacking(answer.recipe, &kinds));
    let has_blocks = kinds.iter().any(|kind| matches!(kind, CountKind::Blocks | CountKind::Instructions));
    if refused.is_some() || has_blocks {
        return check_blocks(input);
    }
    match CallCounts::best(input.recording) {
        Some(counts) => check_calls(input, &counts),
        None => check_blocks(input),
    }
}

/// Runs the checks of a profile with blocks and branches.
fn check_blocks(input: &GateInput) -> Result<ProfileQuality> {
    Ok(check_with_tables(input)?.0)
}

/// As [`check_blocks`]. Returns also the counts at the addresses of the kernel.
fn check_with_tables(input: &GateInput) -> Result<(ProfileQuality, Tables)> {
    let GateInput { recording, recorded, kernel, recipe, .. } = *input;
    let (manifest, tables) = (&recording.manifest, &recording.tables);
    let same_kernel = manifest.kernel.id == kernel.manifest.id;
    let recorded = if same_kernel { Some(kernel) } else { recorded };
    let (transferred, matched) = match recorded {
        Some(recorded) => transferred_tables(tables, recorded, kernel)?.unzip(),
        None => (None, None),
    };
    let counted = instructions(tables);
    let (executed, coverage) = match (&manifest.carried, executed(tables)) {
        (Some(carried), _) => (Some(carried.executed), Some(share(carried.carried, carried.executed))),
        (None, executed) => (executed, executed.map(|executed| share(counted, executed))),
    };
    let (overlap, whole) = overlap(input);
    let mut quality = ProfileQuality {
        schema: SCHEMA.into(),
        profile: manifest.id.clone(),
        recorded: manifest.kernel.clone(),
        kernel: kernel_id(kernel),
        recipe: recipe.map(|answer| answer.recipe.to_owned()),
        unit: CountUnit::Instructions,
        executed,
        counted,
        code_bytes: None,
        coverage,
        taken: taken(recording),
        matched,
        overlap,
        whole,
        left_out: left_out(manifest),
        findings: Vec::new(),
    };
    let findings = [
        no_counts(recording, recipe.map(|answer| answer.recipe)),
        too_few_instructions(&quality),
        instructions_alone(recording),
        overflowed(tables),
        low_coverage(&quality, manifest),
        branches_left_out(&quality),
        silent_cpus(manifest),
        strange_runs(manifest, tables),
        dissimilar_halves(&quality, input.halves.is_some()),
    ];
    quality.findings.extend(findings.into_iter().flatten());
    // Without counts the other findings are meaningless.
    if counted > 0 {
        quality.findings.extend(wrong_kernel(&quality, same_kernel));
    }
    quality.findings.extend(recipe.and_then(|answer| answer.refusal).cloned());
    Ok((quality, transferred.unwrap_or_default()))
}

/// Runs the gate for a recipe that needs blocks and branches, and refuses unfit recordings.
///
/// # Errors
/// [`Error::Unfit`] with every reason; images that cannot be read.
pub(crate) fn pass(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<ProfileQuality> {
    pass_as(work, recording, kernel, |input| with_branches(input, check_blocks(input)?))
}

/// Runs the gate for a recipe to which counts of instructions are enough.
///
/// # Errors
/// As [`pass`].
pub(crate) fn pass_instructions(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
) -> Result<ProfileQuality> {
    pass_as(work, recording, kernel, check_blocks)
}

/// Adds the refusal of a profile that has instructions and no branches.
fn with_branches(input: &GateInput, mut quality: ProfileQuality) -> Result<ProfileQuality> {
    quality.findings.extend(without_branches(input.recording));
    Ok(quality)
}

/// Runs the gate for an order of functions, to which calls are enough.
///
/// # Errors
/// As [`pass`].
pub(crate) fn pass_order(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<ProfileQuality> {
    pass_as(work, recording, kernel, |input| with_branches(input, check(input)?))
}

fn pass_as(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    check: impl Fn(&GateInput) -> Result<ProfileQuality>,
) -> Result<ProfileQuality> {
    let recorded = &recording.manifest.kernel.id;
    let other = match *recorded != kernel.manifest.id {
        true => kerntune_kernel::find_recorded(work, recorded)?,
        false => None,
    };
    let quality =
        check(&GateInput { recording, recorded: other.as_ref(), kernel, recipe: None, halves: None })?;
    quality.verdict()?;
    Ok(quality)
}

/// Transfers the recording of `recorded` to `kernel`: keeps the counts of functions and blocks that
/// match there, and completes those of functions that changed.
///
/// The regions are kept: they tell how much was executed, so that the loss can be seen from the
/// profile alone. Everything other than counts (calls, threads, paths) is left out.
///
/// # Errors
/// [`Error::TooLittleTransferred`] if less than `at_least` per cent of the executed instructions
/// have a place in `kernel`, a recording without counts, images that cannot be read.
pub fn transfer(
    recording: &Profile,
    recorded: &Kernel,
    kernel: &Kernel,
    at_least: u64,
) -> Result<(Profile, ProfileQuality)> {
    if recording.manifest.kernel.id == kernel.manifest.id {
        let (profile, kernel) = (recording.manifest.id.clone(), named(&recording.manifest.kernel));
        return Err(Error::NothingToTransfer { profile, kernel });
    }
    let kinds = recording.count_kinds();
    if !kinds.is_empty() && !kinds.contains(&CountKind::Blocks) {
        let recipes = recipes_fed_by(&kinds).join(", ");
        return Err(Error::FoundByName { profile: recording.manifest.id.clone(), recipes });
    }
    let input = GateInput { recording, recorded: Some(recorded), kernel, recipe: None, halves: None };
    let (mut quality, tables) = check_with_tables(&input)?;
    // A recording of another kernel is expected here.
    quality.findings.retain(|finding| finding.check != "kernel");
    quality.verdict()?;
    let usable = quality.usable();
    if usable * 100.0 < at_least as f64 {
        let lost = quality.matched.iter().flat_map(|matched| &matched.lost).take(5);
        return Err(Error::TooLittleTransferred {
            profile: format!("profile {} of kernel {}", recording.manifest.id, named(&quality.recorded)),
            kernel: named(&quality.kernel),
            usable: percent(usable),
            at_least,
            lost: lost.map(|lost| lost.name.clone()).collect::<Vec<_>>().join(", "),
        });
    }
    let old = &recording.manifest;
    let id = Key::new("carried-profile/3", crate::CODE)
        .field("profile", &old.id)
        .field("kernel", &kernel.manifest.id)
        .field("at least", at_least.to_le_bytes())
        .id();
    let executed = quality.executed.unwrap_or(quality.counted);
    let found = quality.matched.as_ref().map(|matched| matched.score).unwrap_or_default();
    let manifest = Manifest {
        id,
        kernel: quality.kernel.clone(),
        capture: CaptureSummary { edges: true, ..CaptureSummary::default() },
        model: None,
        carried: Some(TransferSummary {
            profile: old.id.clone(),
            kernel: old.kernel.clone(),
            executed,
            carried: found.carried(),
            exact: found.exact,
            loose: found.loose,
            inferred: found.inferred,
            at_least_percent: at_least,
        }),
        sources: vec![format!(
            "profile {} of kernel {}, {} of its instructions transferred to kernel {}",
            old.id,
            named(&old.kernel),
            percent(usable),
            named(&quality.kernel)
        )],
        tables: Default::default(),
        ..old.clone()
    };
    Ok((Profile { manifest, tables }, quality))
}

/// Transfers tables; `None` if the code of one of the kernels cannot be disassembled.
fn transferred_tables(tables: &Tables, from: &Kernel, to: &Kernel) -> Result<Option<(Tables, MatchedCode)>> {
    let from_image = LinkedCode::load(from)?;
    let other = if from.manifest.id == to.manifest.id { None } else { Some(LinkedCode::load(to)?) };
    let to_image = other.as_ref().unwrap_or(&from_image);
    let readable = from_image.has_code() && to_image.has_code();
    Ok(readable.then(|| transfer::transfer(tables, &from_image, to_image)))
}

/// Returns the executed instructions with counts.
fn instructions(tables: &Tables) -> u64 {
    tables
        .blocks
        .iter()
        .fold(0, |sum: u64, block| sum.saturating_add(block.instructions.get().saturating_mul(block.count)))
}

/// Returns the instructions that the kernel executed in all regions. The regions count them apart
/// from the blocks, so that missing blocks are noticed.
fn executed(tables: &Tables) -> Option<u64> {
    of_regions(tables, |region| region.kernel_instructions.get())
}

/// Returns the branches taken according to the regions, and according to the edges. `None` for a
/// transferred profile, whose regions are of another kernel.
fn taken(recording: &Profile) -> Option<[u64; 2]> {
    let Profile { manifest, tables } = recording;
    if manifest.carried.is_some() {
        return None;
    }
    let counted = tables.edges.iter().fold(0u64, |sum, edge| sum.saturating_add(edge.count));
    Some([of_regions(tables, |region| region.kernel_taken_branches)?, counted])
}

fn of_regions(tables: &Tables, of: impl Fn(&RegionStats) -> u64) -> Option<u64> {
    let outermost = tables.regions.iter().filter(|region| region.depth == 0);
    let sum = outermost.fold(0u64, |sum, region| sum.saturating_add(of(region)));
    (sum > 0).then_some(sum)
}

fn overlap(input: &GateInput) -> (Option<HotOverlap>, Option<String>) {
    let halved = match input.halves {
        Some((what, halves)) => HotOverlap::of_recordings(what.into(), halves)
            .ok_or_else(|| "one of the recordings has no counts".to_string()),
        None => halves(&input.recording.tables)
            .map_err(|whole| {
                format!("{whole}; record the training once more with another seed and give it with --against")
            })
            .and_then(|[one, two]| {
                let what = "every other occurrence of its regions";
                HotOverlap::of(what.into(), [&one, &two]).ok_or_else(|| "nothing ran in one of them".into())
            }),
    };
    match halved {
        Ok(overlap) => (Some(overlap), None),
        Err(whole) => (None, Some(whole)),
    }
}
