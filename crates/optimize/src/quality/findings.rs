//! Checks of the gate: each function checks one property of the figures.

use super::check::{
    named, GateFinding, ProfileQuality, MAX_STRANGE_RUNS, MIN_COVERAGE, MIN_INSTRUCTIONS,
    MIN_INSTRUCTION_SAMPLES, MIN_OVERLAP, MIN_TRANSFERRED_PERCENT, STEADY_OVERLAP,
};
use crate::share::{percent, share};
use kerntune_profile::{lacking, recipes_fed_by, Anomaly, CountKind, Manifest, Profile, Tables};

/// Finds a recording without blocks. One with other counts is named by what it can feed.
pub(super) fn no_counts(recording: &Profile, recipe: Option<&str>) -> Option<GateFinding> {
    let none = !recording.tables.blocks.iter().any(|block| block.count > 0);
    let kinds = recording.count_kinds();
    // Any recipe that needs blocks stands for the one that is not named.
    if let Some(lacks) =
        lacking(recipe.unwrap_or("clang-autofdo"), &kinds).filter(|_| none && !kinds.is_empty())
    {
        let fix = "record the workload in the emulator with edges (`kerntune record`)".into();
        return Some(GateFinding::refused("counts", lacks, fix));
    }
    none.then(|| {
        GateFinding::refused(
            "counts",
            "it has no executed blocks of the kernel".into(),
            "record again without --no-edges, with a workload whose steps mark regions".into(),
        )
    })
}

pub(super) fn too_few_instructions(quality: &ProfileQuality) -> Option<GateFinding> {
    (1..MIN_INSTRUCTIONS).contains(&quality.counted).then(|| {
        GateFinding::warning(
            "training",
            format!("only {} {} were counted in it", quality.counted, quality.unit),
            "is that the training? Let the workload's training run do more".into(),
        )
    })
}

/// Finds a profile of sampled instructions. It is refused with too few samples, and always a warning,
/// since such counts are rough.
pub(super) fn instructions_alone(recording: &Profile) -> Option<GateFinding> {
    let manifest = &recording.manifest;
    if !manifest.capture.instructions {
        return None;
    }
    let (samples, needed) = (manifest.events, MIN_INSTRUCTION_SAMPLES);
    if samples < needed {
        return Some(GateFinding::refused(
            "training",
            format!("it has {samples} samples of the kernel's instructions, {needed} are needed"),
            "record for longer, or with a smaller period (`perf record -c`)".into(),
        ));
    }
    Some(GateFinding::warning(
        "branches",
        format!("it has {samples} samples of instructions and no branches: code that was never sampled has no count"),
        "record the last branches where the CPU has them (`perf record -b`, `record --live --branches`)".into(),
    ))
}

/// Finds a profile of sampled instructions, for a recipe that needs branches.
pub(super) fn without_branches(recording: &Profile) -> Option<GateFinding> {
    let kinds = recording.count_kinds();
    let needed = [CountKind::Blocks, CountKind::CallArcs, CountKind::CallChains];
    let alone = kinds.contains(&CountKind::Instructions) && !needed.iter().any(|kind| kinds.contains(kind));
    alone.then(|| {
        GateFinding::refused(
            "counts",
            format!("it has {} and neither branches nor calls", CountKind::Instructions),
            format!("give it to {}", recipes_fed_by(&[CountKind::Instructions]).join(", ")),
        )
    })
}

pub(super) fn overflowed(tables: &Tables) -> Option<GateFinding> {
    let blocks = tables.blocks.iter().filter(|block| block.count == u64::MAX).count();
    let edges = tables.edges.iter().filter(|edge| edge.count == u64::MAX).count();
    (blocks + edges > 0).then(|| {
        GateFinding::refused(
            "overflow",
            format!("{} of its counters overflowed, so that hot code cannot be identified", blocks + edges),
            "merge with smaller weights".into(),
        )
    })
}

/// Finds CPUs without samples, in recordings that have the CPU of samples: such a CPU ran nothing,
/// or was not sampled.
pub(super) fn silent_cpus(manifest: &Manifest) -> Option<GateFinding> {
    let silent = manifest.anomaly(Anomaly::SilentCpus);
    (silent > 0).then(|| {
        GateFinding::refused(
            "cpus",
            format!("the counts of {silent} CPUs are missing: there is not one sample of them"),
            "sample all of them (`perf record -a`), or import with --idle-cpus if they had nothing to do"
                .into(),
        )
    })
}

/// Finds sampled runs that are not straight code of the image: branches are missing in between, or
/// they belong to another image.
pub(super) fn strange_runs(manifest: &Manifest, tables: &Tables) -> Option<GateFinding> {
    let strange = manifest.anomaly(Anomaly::StrangeRuns);
    let counted = tables.blocks.iter().fold(0u64, |sum, block| sum.saturating_add(block.count));
    let found = share(strange, counted.saturating_add(strange));
    (found > MAX_STRANGE_RUNS).then(|| {
        GateFinding::refused(
            "runs",
            format!(
                "{} of the runs between two branches do not begin and end at instructions of the kernel, {} are allowed",
                percent(found),
                percent(MAX_STRANGE_RUNS)
            ),
            "is it of this kernel, and does every stack have all branches that were taken? Record again".into(),
        )
    })
}

/// Advice if the regions have counts that the tables lack.
const LEFT_OUT: &str = "counts were left out on the way, as where those of one CPU or of one part of the run are missing; record again";

/// Checks branches, which are counted apart from instructions and are the only input of `layout`.
pub(super) fn branches_left_out(quality: &ProfileQuality) -> Option<GateFinding> {
    let [taken, counted] = quality.taken?;
    let covered = share(counted, taken);
    (quality.counted > 0 && covered < MIN_COVERAGE).then(|| {
        GateFinding::refused(
            "branches",
            format!(
                "{} of the branches that the kernel took have counts, {} are needed",
                percent(covered),
                percent(MIN_COVERAGE)
            ),
            LEFT_OUT.into(),
        )
    })
}

pub(super) fn low_coverage(quality: &ProfileQuality, manifest: &Manifest) -> Option<GateFinding> {
    let coverage = quality.coverage?;
    let (min, fix) = match &manifest.carried {
        Some(carried) => (
            carried.at_least_percent as f64 / 100.0,
            "record the training run on this kernel instead of transferring an older one",
        ),
        None => (MIN_COVERAGE, LEFT_OUT),
    };
    (quality.counted > 0 && coverage < min).then(|| {
        GateFinding::refused(
            "coverage",
            format!(
                "{} of the instructions that the kernel executed have counts, {} are needed",
                percent(coverage),
                percent(min)
            ),
            fix.to_string(),
        )
    })
}

/// Checks the overlap of the halves. Refuses only halves that were `given`: regions of one name,
/// and added-up runs, may well do different work.
pub(super) fn dissimilar_halves(quality: &ProfileQuality, given: bool) -> Option<GateFinding> {
    let hot = &quality.overlap.as_ref()?.hot[0];
    let refused = given && hot.overlap < MIN_OVERLAP;
    let wanted = if refused { MIN_OVERLAP } else { STEADY_OVERLAP };
    (hot.overlap < wanted).then(|| {
        let found = format!(
            "of the functions that hold {:.0} % of its two halves {} are common by weight, {} are wanted: what is hot \
             in the one is not in the other",
            hot.cut * 100.0,
            percent(hot.overlap),
            percent(wanted)
        );
        let fix = "train for longer, or with the work of both (`kerntune profile merge`)";
        GateFinding { refused, ..GateFinding::warning("halves", found, fix.into()) }
    })
}

/// Finds counts of another kernel, or of other code than this kernel's.
pub(super) fn wrong_kernel(quality: &ProfileQuality, same_kernel: bool) -> Option<GateFinding> {
    let usable = quality.usable();
    if same_kernel {
        let matched = quality.matched.as_ref()?;
        let fitting = share(matched.matched_instructions, matched.ran.instructions);
        return (fitting < MIN_COVERAGE).then(|| {
            GateFinding::refused(
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
    let fix = if quality.matched.is_none() {
        format!(
            "{record}. Nothing of it can be transferred, as its kernel is not in the work directory any more, or not for \
             x86-64"
        )
    } else if usable * 100.0 < MIN_TRANSFERRED_PERCENT as f64 {
        format!(
            "{record}. Only {} of what it executed is the same here, and {MIN_TRANSFERRED_PERCENT} % are needed to transfer it",
            percent(usable)
        )
    } else {
        format!(
            "{record}, or `kerntune profile transfer {profile} --to {}`: {} of what it executed is the same here, {} is lost",
            quality.kernel.id,
            percent(usable),
            percent(1.0 - usable)
        )
    };
    Some(GateFinding::refused("kernel", found, fix))
}
