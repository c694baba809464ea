//! The gate itself: from a recording and a kernel to figures and a verdict, and the way through for a recording of
//! another kernel.

use super::carry::{self, Matched};
use super::check::{left_out, named, percent, share, Finding, Quality, Unit};
use super::findings::{
    branches_left_out, little, little_covered, misplaced, no_counts, overflowed, silent_cpus, strange_runs,
    unsteady,
};
use super::overlap::{by_blocks, halves, Overlap};
use super::Image;
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::{Capture, Carried, KernelId, Manifest, Profile, RegionStats, Tables};
use kerntune_work::{Key, WorkDir};

pub(crate) const SCHEMA: &str = "kerntune-quality/1";

/// A recipe that is to take a recording.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Its name.
    pub recipe: &'a str,
    /// Why it would not take a recording of this kernel, given its name.
    pub asks: Asks,
}

/// See [`Asking::asks`].
pub type Asks = fn(&str, &Kernel) -> Option<Finding>;

/// What is asked of the gate.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The recording.
    pub recording: &'a Profile,
    /// The kernel that was recorded, if it is at hand.
    pub recorded: Option<&'a Kernel>,
    /// The kernel that it is to be used for.
    pub kernel: &'a Kernel,
    /// What for, if that is known.
    pub recipe: Option<Asking<'a>>,
    /// Two recordings that are the halves of the training, and what they are; otherwise the recording itself is halved.
    pub halves: Option<(&'a str, [&'a Profile; 2])>,
}

/// Asks everything and answers with figures: what is refused is in [`Quality::findings`].
///
/// # Errors
/// Images that cannot be read.
pub fn check(question: &Question) -> Result<Quality> {
    let Question { recording, recorded, kernel, recipe, .. } = *question;
    let (manifest, tables) = (&recording.manifest, &recording.tables);
    let same_kernel = manifest.kernel.id == kernel.manifest.id;
    let recorded = if same_kernel { Some(kernel) } else { recorded };
    let matched = match recorded {
        Some(recorded) => carried(tables, recorded, kernel)?.map(|(_, matched)| matched),
        None => None,
    };
    let counted = instructions(tables);
    let (executed, coverage) = match (&manifest.carried, executed(tables)) {
        (Some(carried), _) => (Some(carried.executed), Some(share(carried.carried, carried.executed))),
        (None, executed) => (executed, executed.map(|executed| share(counted, executed))),
    };
    let (overlap, whole) = overlap(question);
    let mut quality = Quality {
        schema: SCHEMA.into(),
        profile: manifest.id.clone(),
        recorded: manifest.kernel.clone(),
        kernel: kernel_id(kernel),
        recipe: recipe.map(|asking| asking.recipe.to_owned()),
        unit: Unit::Instructions,
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
        no_counts(tables),
        little(&quality),
        overflowed(tables),
        little_covered(&quality, manifest),
        branches_left_out(&quality),
        silent_cpus(manifest),
        strange_runs(manifest, tables),
        unsteady(&quality, question.halves.is_some()),
    ];
    quality.findings.extend(findings.into_iter().flatten());
    // Of nothing there is nothing else to say.
    if counted > 0 {
        quality.findings.extend(misplaced(&quality, same_kernel));
    }
    if let Some(Asking { recipe, asks }) = recipe {
        quality.findings.extend(asks(recipe, kernel));
    }
    Ok(quality)
}

/// The gate that a recipe has its recording pass.
///
/// # Errors
/// [`Error::Unfit`] with every reason; images that cannot be read.
pub(crate) fn pass(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<Quality> {
    let recorded = &recording.manifest.kernel.id;
    let other = match *recorded != kernel.manifest.id {
        true => kerntune_kernel::find_recorded(work, recorded)?,
        false => None,
    };
    let quality =
        check(&Question { recording, recorded: other.as_ref(), kernel, recipe: None, halves: None })?;
    quality.verdict()?;
    Ok(quality)
}

/// The recording of `recorded` as one of `kernel`: the counts of the functions that are the same there.
///
/// Its regions stay, so that what was lost can be told from the profile alone: they say how much was executed.
/// Whatever is not counts (calls, threads, paths) is left out.
///
/// # Errors
/// [`Error::LittleCarried`] if less than `at_least` percent of the executed instructions have a place in `kernel`,
/// a recording without counts, images that cannot be read.
pub fn carry(
    recording: &Profile,
    recorded: &Kernel,
    kernel: &Kernel,
    at_least: u64,
) -> Result<(Profile, Quality)> {
    if recording.manifest.kernel.id == kernel.manifest.id {
        let (profile, kernel) = (recording.manifest.id.clone(), named(&recording.manifest.kernel));
        return Err(Error::NothingToCarry { profile, kernel });
    }
    let question = Question { recording, recorded: Some(recorded), kernel, recipe: None, halves: None };
    let mut quality = check(&question)?;
    // That it is of another kernel is no news here.
    quality.findings.retain(|finding| finding.check != "kernel");
    quality.verdict()?;
    let usable = quality.usable();
    if usable * 100.0 < at_least as f64 {
        let lost = quality.matched.iter().flat_map(|matched| &matched.lost).take(5);
        return Err(Error::LittleCarried {
            profile: format!("profile {} of kernel {}", recording.manifest.id, named(&quality.recorded)),
            kernel: named(&quality.kernel),
            usable: percent(usable),
            at_least,
            lost: lost.map(|lost| lost.name.clone()).collect::<Vec<_>>().join(", "),
        });
    }
    let old = &recording.manifest;
    let tables = carried(&recording.tables, recorded, kernel)?.map(|(tables, _)| tables).unwrap_or_default();
    let id = Key::new("carried-profile/2", crate::CODE)
        .field("profile", &old.id)
        .field("kernel", &kernel.manifest.id)
        .field("at least", at_least.to_le_bytes())
        .id();
    let executed = quality.executed.unwrap_or(quality.counted);
    let manifest = Manifest {
        id,
        kernel: quality.kernel.clone(),
        capture: Capture { edges: true, ..Capture::default() },
        model: None,
        carried: Some(Carried {
            profile: old.id.clone(),
            kernel: old.kernel.clone(),
            executed,
            carried: quality.matched.as_ref().map_or(0, |matched| matched.matched_instructions),
            at_least_percent: at_least,
        }),
        sources: vec![format!(
            "profile {} of kernel {}, {} of its instructions carried to kernel {}",
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

pub(super) fn kernel_id(kernel: &Kernel) -> KernelId {
    let manifest = &kernel.manifest;
    let (id, label, version) = (manifest.id.clone(), manifest.label.clone(), manifest.version.clone());
    KernelId { id, label, version }
}

/// None if the code of one of them cannot be taken apart.
fn carried(tables: &Tables, from: &Kernel, to: &Kernel) -> Result<Option<(Tables, Matched)>> {
    let from_image = Image::load(from)?;
    let other = if from.manifest.id == to.manifest.id { None } else { Some(Image::load(to)?) };
    let to_image = other.as_ref().unwrap_or(&from_image);
    let readable = from_image.has_code() && to_image.has_code();
    Ok(readable.then(|| carry::carry(tables, &from_image, to_image)))
}

/// All that have counts.
fn instructions(tables: &Tables) -> u64 {
    tables
        .blocks
        .iter()
        .fold(0, |sum: u64, block| sum.saturating_add(block.instructions.get().saturating_mul(block.count)))
}

/// What the kernel executed in all regions: counted by the regions themselves and not by the blocks, so that
/// what is missing there shows.
fn executed(tables: &Tables) -> Option<u64> {
    of_regions(tables, |region| region.kernel_instructions.get())
}

/// Branches taken, by the regions and by the edges. A carried profile's regions are of another kernel.
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

fn overlap(question: &Question) -> (Option<Overlap>, Option<String>) {
    let halved = match question.halves {
        Some((what, [one, two])) => {
            Overlap::of(what.into(), [&by_blocks(&one.tables), &by_blocks(&two.tables)])
                .ok_or_else(|| "one of the recordings has no counts".to_string())
        }
        None => halves(&question.recording.tables)
            .map_err(|whole| {
                format!("{whole}; record the training once more with another seed and give it with --against")
            })
            .and_then(|[one, two]| {
                let what = "every other occurrence of its regions";
                Overlap::of(what.into(), [&one, &two]).ok_or_else(|| "nothing ran in one of them".into())
            }),
    };
    match halved {
        Ok(overlap) => (Some(overlap), None),
        Err(whole) => (None, Some(whole)),
    }
}
