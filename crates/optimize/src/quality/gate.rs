//! The gate itself: from a recording and a kernel to figures and a verdict, and the way through for a recording of
//! another kernel.

use super::carry::{self, Matched};
use super::check::{
    percent, share, Finding, Quality, Unit, FEW_INSTRUCTIONS, MIN_CARRIED_PERCENT, MIN_COVERAGE, MIN_OVERLAP,
};
use super::overlap::{by_blocks, halves, Overlap};
use super::Image;
use crate::{clang_autofdo, Error, Recipe, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::{Capture, Carried, KernelId, Manifest, Profile, Tables};
use kerntune_work::{ContentHash, WorkDir};

pub(super) const SCHEMA: &str = "kerntune-quality/1";

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
    pub recipe: Option<Recipe>,
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
        recipe,
        unit: Unit::Instructions,
        executed,
        counted,
        code_bytes: None,
        coverage,
        matched,
        overlap,
        whole,
        findings: Vec::new(),
    };
    let findings = [
        no_counts(tables),
        little(&quality),
        overflowed(tables),
        little_covered(&quality, manifest),
        unsteady(&quality, question.halves.is_some()),
    ];
    quality.findings.extend(findings.into_iter().flatten());
    // Of nothing there is nothing else to say.
    if counted > 0 {
        quality.findings.extend(misplaced(&quality, same_kernel));
    }
    if let Some(recipe) = recipe {
        quality.findings.extend(of_recipe(recipe, kernel));
    }
    Ok(quality)
}

/// The gate that a recipe has its recording pass.
///
/// # Errors
/// [`Error::Unfit`] with every reason; images that cannot be read.
pub(crate) fn pass(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<Quality> {
    let other = (recording.manifest.kernel.id != kernel.manifest.id)
        .then(|| kerntune_kernel::find(work, &recording.manifest.kernel.id).ok())
        .flatten();
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
            profile: recording.manifest.id.clone(),
            recorded: named(&quality.recorded),
            kernel: named(&quality.kernel),
            usable: percent(usable),
            at_least,
            lost: lost.map(|lost| lost.name.clone()).collect::<Vec<_>>().join(", "),
        });
    }
    let old = &recording.manifest;
    let tables = carried(&recording.tables, recorded, kernel)?.map(|(tables, _)| tables).unwrap_or_default();
    let id = ContentHash::new("carried-profile/1")
        .field("profile", &old.id)
        .field("kernel", &kernel.manifest.id)
        .field("at least", at_least.to_le_bytes())
        .finish();
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

fn named(kernel: &KernelId) -> String {
    format!("{} ({})", kernel.label, kernel.id)
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
    tables.blocks.iter().fold(0, |sum: u64, block| {
        sum.saturating_add(block.instructions.get().saturating_mul(block.count))
    })
}

/// What the kernel executed in all regions.
fn executed(tables: &Tables) -> Option<u64> {
    let outermost = tables.regions.iter().filter(|region| region.depth == 0);
    let sum = outermost.fold(0u64, |sum, region| sum.saturating_add(region.kernel_instructions.get()));
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

fn no_counts(tables: &Tables) -> Option<Finding> {
    (!tables.blocks.iter().any(|block| block.count > 0)).then(|| {
        Finding::refused(
            "counts",
            "it has no executed blocks of the kernel".into(),
            "record again without --no-edges, with a workload whose steps mark regions".into(),
        )
    })
}

pub(super) fn little(quality: &Quality) -> Option<Finding> {
    (1..FEW_INSTRUCTIONS).contains(&quality.counted).then(|| {
        Finding::warning(
            "training",
            format!("only {} {} were counted in it", quality.counted, quality.unit),
            "is that the training? Let the workload's training run do more".into(),
        )
    })
}

fn overflowed(tables: &Tables) -> Option<Finding> {
    let blocks = tables.blocks.iter().filter(|block| block.count == u64::MAX).count();
    let edges = tables.edges.iter().filter(|edge| edge.count == u64::MAX).count();
    (blocks + edges > 0).then(|| {
        Finding::refused(
            "overflow",
            format!("{} of its counters overflowed, so that what is hot cannot be told any more", blocks + edges),
            "merge with smaller weights".into(),
        )
    })
}

fn little_covered(quality: &Quality, manifest: &Manifest) -> Option<Finding> {
    let coverage = quality.coverage?;
    let (least, mend) = match &manifest.carried {
        Some(carried) => (
            carried.at_least_percent as f64 / 100.0,
            "record the training run on this kernel instead of carrying an older one on",
        ),
        None => (MIN_COVERAGE, "counts were left out on the way; record again"),
    };
    (quality.counted > 0 && coverage < least).then(|| {
        Finding::refused(
            "coverage",
            format!(
                "{} of the instructions that the kernel executed have counts, {} are needed",
                percent(coverage),
                percent(least)
            ),
            mend.to_string(),
        )
    })
}

/// Refused only where the halves were `given`: regions of one name may be of different work.
pub(super) fn unsteady(quality: &Quality, given: bool) -> Option<Finding> {
    let hot = &quality.overlap.as_ref()?.hot[0];
    let finding = if given { Finding::refused } else { Finding::warning };
    (hot.overlap < MIN_OVERLAP).then(|| {
        finding(
            "halves",
            format!(
                "of the functions that hold {:.0} % of its two halves {} are common by weight, {} are needed: what \
                 is hot in the one is not in the other",
                hot.cut * 100.0,
                percent(hot.overlap),
                percent(MIN_OVERLAP)
            ),
            "train for longer, or with the work of both (`kerntune profile merge`)".to_string(),
        )
    })
}

/// Counts of another kernel, or of other code than this kernel's.
fn misplaced(quality: &Quality, same_kernel: bool) -> Option<Finding> {
    let usable = quality.usable();
    if same_kernel {
        let matched = quality.matched.as_ref()?;
        let fitting = share(matched.matched_instructions, matched.ran.instructions);
        return (fitting < MIN_COVERAGE).then(|| {
            Finding::refused(
                "blocks",
                format!(
                    "{} of what ran is code of the kernel's image, {} are needed",
                    percent(fitting),
                    percent(MIN_COVERAGE)
                ),
                "was vmlinux stripped or built again after the recording? Record again".into(),
            )
        });
    }
    let profile = &quality.profile;
    let found = format!(
        "it is of kernel {}, not of {}: its addresses mean other code here",
        named(&quality.recorded),
        named(&quality.kernel)
    );
    let record = format!("record the training run on kernel {}", quality.kernel.label);
    let mend = if quality.matched.is_none() {
        format!(
            "{record}. Nothing of it can be carried over, as its kernel is not in the work directory any more, or not for \
             x86-64"
        )
    } else if usable * 100.0 < MIN_CARRIED_PERCENT as f64 {
        format!(
            "{record}. Only {} of what it executed is the same here, and {MIN_CARRIED_PERCENT} % are needed to carry it over",
            percent(usable)
        )
    } else {
        format!(
            "{record}, or `kerntune profile carry {profile} --to {}`: {} of what it executed is the same here, {} is lost",
            quality.kernel.id,
            percent(usable),
            percent(1.0 - usable)
        )
    };
    Some(Finding::refused("kernel", found, mend))
}

/// What a recipe asks of the kernel before it takes a recording.
fn of_recipe(recipe: Recipe, kernel: &Kernel) -> Option<Finding> {
    let (found, mend) = match recipe {
        Recipe::GccPgo | Recipe::GccPgoLayout | Recipe::StockGcov => (
            format!("recipe {recipe} takes counters of an instrumented kernel and no recording"),
            "leave the training to it, or give counters with --gcda".to_string(),
        ),
        Recipe::Layout => {
            if kernel.manifest.movable {
                return None;
            }
            let label = &kernel.manifest.label;
            (
                format!("recipe {recipe} moves functions, and those of kernel {label} cannot be moved"),
                "build it with `kerntune kernel build --movable`, and record that kernel".into(),
            )
        }
        Recipe::ClangAutofdo | Recipe::ClangAutofdoLayout | Recipe::StockAutofdo | Recipe::StockLldOrder => {
            let reason = clang_autofdo::takes(kernel).err()?;
            (format!("recipe {recipe} cannot use counts of this kernel"), reason.to_string())
        }
    };
    Some(Finding::refused("recipe", found, mend))
}
