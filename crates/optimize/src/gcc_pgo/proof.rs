//! Proof that the tuned kernel uses the profile, from the compiler's messages joined with the
//! counts, and from the image.

use super::build_log::{DiagnosticLocation, GccLog};
use super::promoted_calls::{DirectSite, TargetComparisons};
use super::request::PARTIAL_TRAINING;
use super::{ColdCodeEvidence, GccPgoProfile, ObjectCounts, ValueSummary, ValueTransforms};
use crate::proof::{build_log, write_text_bytes};
use crate::share::percent;
use crate::Result;
use kerntune_convert::gcda::Gcda;
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::{Kernel, ObjectGroup, Symbols};
use kerntune_work::IoContext;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::Path;

const SCHEMA: &str = "kerntune-proof/1";
/// Most lost functions named.
const MAX_NAMED: usize = 50;

/// Evidence about a tuned kernel. Its [verdict](crate::RecipeProof::verdict) judges it, `Display`
/// writes it as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GccPgoProof {
    /// Schema, `kerntune-proof/1`.
    pub schema: String,
    /// Label of the tuned kernel.
    pub kernel: String,
    /// Id of the profile that the kernel should be built with.
    pub profile: String,
    /// Id of the profile that the kernel was built with.
    pub built_with: Option<String>,
    /// `.gcda` files of the profile that the kernel is to be compiled with.
    pub objects_with_profile: u64,
    /// `.gcda` files without the summary, which GCC ignores silently.
    pub objects_without_summary: u64,
    /// Objects that were compiled with their file found and read.
    pub objects_matched: u64,
    /// Functions that ran in the training.
    pub functions_with_counts: u64,
    /// Functions that ran and whose counts GCC did not refuse.
    pub functions_matched: u64,
    /// Functions whose counts GCC refused, the largest counts first, 50 at most.
    pub functions_mismatched: Vec<LostFunction>,
    /// Share of all counts that belongs to the matched functions, 0 to 1.
    pub share_of_counts_matched: f64,
    /// Functions compiled without counts of their own in a file that was found; nothing is lost
    /// with them.
    pub functions_not_in_profile: u64,
    /// Functions matched though GCC found their source at another place than in the gcov build.
    pub functions_moved: u64,
    /// True if functions without counts were compiled as in the base kernel, not for size.
    #[serde(default)]
    pub untrained_as_base: bool,
    /// Image of the base kernel.
    pub base: ColdCodeEvidence,
    /// Image of the tuned kernel.
    pub tuned: ColdCodeEvidence,
    /// Sections of the tuned kernel's objects; `None` if they were not kept.
    pub sections: Option<SectionEvidence>,
    /// Evidence of the value counters; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueEvidence>,
}

/// Value counters and their effects in the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueEvidence {
    /// Totals of the counters.
    pub counted: ValueSummary,
    /// Transformations that GCC reported.
    pub transformed: ValueTransforms,
    /// Promoted calls in the tuned image: comparisons with a function that the base kernel compares
    /// with nowhere, followed by a direct call or its body. `None` for architectures other than
    /// x86-64.
    pub direct: Option<Vec<DirectSite>>,
}

/// Function whose counts were lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostFunction {
    /// Name of the function.
    pub name: String,
    /// Object of the function: `kernel/fork.o`.
    pub object: String,
    /// Sum of its arc counters.
    pub counts: u64,
}

/// Sections of the tuned kernel's objects that have a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SectionEvidence {
    /// Number of objects.
    pub objects: u64,
    /// Objects with code in `.text.hot`.
    pub with_hot: u64,
    /// Objects with code in `.text.unlikely`.
    pub with_unlikely: u64,
}

/// Compares the tuned kernel with its profile and with the base kernel.
///
/// There are three sources of evidence. Each file needs the program summary. GCC reports in the log
/// what it refused, and the counts of exactly these functions are subtracted (if a function of a
/// header was refused in some objects and the log does not tell which, those with the largest
/// counts are assumed). In the image, functions that ran must have moved before those that never
/// did, which only a compiler that uses the profile does; those that never ran to the cold code if
/// they are compiled for size.
///
/// # Errors
/// Files that cannot be read; a bad result is no error here but in the
/// [verdict](crate::RecipeProof::verdict).
pub fn prove(base: &Kernel, profile: &GccPgoProfile, tuned: &Kernel) -> Result<GccPgoProof> {
    let log = GccLog::parse(&build_log(tuned)?, &tuned.manifest.build_path.to_string_lossy());
    let counts = compiled_with(profile.counts()?, tuned);
    let matched = MatchedCounts::of(&counts, &log);
    let (base_symbols, tuned_symbols) = (Symbols::load(&base.vmlinux())?, Symbols::load(&tuned.vmlinux())?);
    let values = match &profile.values {
        None => None,
        Some(counted) => {
            let base = TargetComparisons::of(&base.vmlinux(), &base_symbols)?;
            let tuned = TargetComparisons::of(&tuned.vmlinux(), &tuned_symbols)?;
            let direct = base.zip(tuned).map(|(base, tuned)| tuned.not_in(&base));
            Some(ValueEvidence { counted: counted.clone(), transformed: log.transformed, direct })
        }
    };
    Ok(GccPgoProof {
        schema: SCHEMA.into(),
        kernel: tuned.manifest.label.clone(),
        profile: profile.id.clone(),
        built_with: tuned.built_with(&profile.id, &profile.tree())?,
        objects_with_profile: counts.len() as u64,
        objects_without_summary: without_summary(profile, &counts)?,
        objects_matched: matched.objects,
        functions_with_counts: matched.functions + matched.lost.len() as u64,
        functions_matched: matched.functions,
        share_of_counts_matched: matched.share(),
        functions_mismatched: matched.lost.into_iter().take(MAX_NAMED).collect(),
        functions_not_in_profile: log.not_in_profile,
        functions_moved: log.moved,
        untrained_as_base: profiled(tuned).is_some(),
        base: ColdCodeEvidence::of(&base_symbols, &counts),
        tuned: ColdCodeEvidence::of(&tuned_symbols, &counts),
        sections: tuned.build_dir().map(|dir| SectionEvidence::of(&dir, &counts)).transpose()?,
        values,
    })
}

/// Returns the group of objects that were compiled with the profile; `None` if all were.
fn profiled(tuned: &Kernel) -> Option<&ObjectGroup> {
    let groups = &tuned.manifest.object_groups;
    groups.iter().find(|group| group.flags.iter().any(|flag| flag == PARTIAL_TRAINING))
}

/// Returns the counts of objects that were compiled with the profile; the others cannot use theirs.
fn compiled_with(counts: Vec<ObjectCounts>, tuned: &Kernel) -> Vec<ObjectCounts> {
    let excluded = |object: &ObjectCounts| {
        let flags = tuned.manifest.object_flags.iter().filter(|flags| flags.applies_to(&object.object));
        flags.flat_map(|flags| &flags.leave_out).any(|flag| flag.starts_with("-fprofile-use"))
    };
    match profiled(tuned) {
        Some(group) => counts.into_iter().filter(|object| group.objects.contains(&object.object)).collect(),
        None => counts.into_iter().filter(|object| !excluded(object)).collect(),
    }
}

/// Counts that GCC used, and counts that it refused.
struct MatchedCounts {
    objects: u64,
    functions: u64,
    counts: u128,
    lost_counts: u128,
    /// Functions with refused counts, the largest first.
    lost: Vec<LostFunction>,
}

impl MatchedCounts {
    fn of(counts: &[ObjectCounts], log: &GccLog) -> Self {
        let lost = lost(counts, log);
        let mut matched = Self { objects: 0, functions: 0, counts: 0, lost_counts: 0, lost: Vec::new() };
        for (o, object) in counts.iter().enumerate() {
            matched.objects += u64::from(is_read(object, log));
            for (f, function) in object.functions.iter().enumerate().filter(|(_, f)| f.total > 0) {
                if lost.contains(&(o, f)) {
                    matched.lost_counts += u128::from(function.total);
                    let (name, object) = (function.name.clone(), object.object.clone());
                    matched.lost.push(LostFunction { name, object, counts: function.total });
                } else {
                    matched.functions += 1;
                    matched.counts += u128::from(function.total);
                }
            }
        }
        matched.lost.sort_by(|a, b| (b.counts, &a.object, &a.name).cmp(&(a.counts, &b.object, &b.name)));
        matched
    }

    fn share(&self) -> f64 {
        match self.counts + self.lost_counts {
            0 => 0.0,
            all => self.counts as f64 / all as f64,
        }
    }
}

/// Checks whether GCC compiled the object and read its file.
fn is_read(object: &ObjectCounts, log: &GccLog) -> bool {
    log.compiled.contains(&object.object) && !log.without_profile.contains(&object.object)
}

/// Returns the indices of object and function for every function whose counts were lost.
fn lost(counts: &[ObjectCounts], log: &GccLog) -> BTreeSet<(usize, usize)> {
    let mut lost = BTreeSet::new();
    let mut by_name: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (o, object) in counts.iter().enumerate() {
        let unread = !is_read(object, log);
        for (f, function) in object.functions.iter().enumerate() {
            by_name.entry(&function.name).or_default().push((o, f));
            if unread || log.corrupted.contains(&function.ident) {
                lost.insert((o, f));
            }
        }
    }
    for (place, times) in &log.refused {
        let total = |at: &(usize, usize)| counts[at.0].functions[at.1].total;
        let mut candidates = by_name.get(place.name.as_str()).cloned().unwrap_or_default();
        let is_there = |at: &(usize, usize)| is_at(&counts[at.0].functions[at.1], place);
        if candidates.iter().any(is_there) {
            candidates.retain(is_there);
        }
        candidates.sort_by_key(|at| std::cmp::Reverse(total(at)));
        lost.extend(candidates.into_iter().take(*times as usize));
    }
    lost
}

fn is_at(function: &super::FunctionCounts, place: &DiagnosticLocation) -> bool {
    function.line == place.line && function.file == place.file
}

fn without_summary(profile: &GccPgoProfile, counts: &[ObjectCounts]) -> Result<u64> {
    let mut missing = 0;
    for object in counts {
        let file = profile.tree().join(&object.object).with_extension("gcda");
        let bytes = fs::read(&file).at("read", &file)?;
        let gcda = Gcda::parse(&bytes).map_err(|source| crate::Error::BadFile { file, source })?;
        missing += u64::from(gcda.summary.is_none());
    }
    Ok(missing)
}

impl SectionEvidence {
    fn of(build: &Path, counts: &[ObjectCounts]) -> Result<Self> {
        let mut evidence = Self::default();
        for path in counts.iter().map(|o| build.join(&o.object)).filter(|p| p.is_file()) {
            let bytes = MappedFile::open(&path).at("read object", &path)?;
            let Ok(elf) = Elf::parse_any(&bytes) else { continue };
            evidence.objects += 1;
            evidence.with_hot += u64::from(elf.has_section(".text.hot"));
            evidence.with_unlikely += u64::from(elf.has_section(".text.unlikely"));
        }
        Ok(evidence)
    }
}

impl fmt::Display for GccPgoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Profile {} in kernel {}", self.profile, self.kernel)?;
        writeln!(
            f,
            "  objects     {} of {} with a profile were compiled with it",
            self.objects_matched, self.objects_with_profile
        )?;
        writeln!(
            f,
            "  functions   {} of {} that ran kept their counts",
            self.functions_matched, self.functions_with_counts
        )?;
        writeln!(f, "  counts      {} matched", percent(self.share_of_counts_matched))?;
        for lost in self.functions_mismatched.iter().take(5) {
            writeln!(f, "              lost: {} in {} ({} counts)", lost.name, lost.object, lost.counts)?;
        }
        let (base, tuned) = (&self.base, &self.tuned);
        write_text_bytes(f, base.text_bytes, tuned.text_bytes)?;
        writeln!(f, "  .cold parts {} → {}", base.cold_parts, tuned.cold_parts)?;
        writeln!(
            f,
            "  in front    {} → {} of all pairs, what ran often comes before what never ran",
            percent(base.ran_in_front),
            percent(tuned.ran_in_front)
        )?;
        writeln!(
            f,
            "  never ran   {} → {} of these functions are in the cold code",
            percent(base.never_ran.share()),
            percent(tuned.never_ran.share())
        )?;
        write!(
            f,
            "  ran         {} → {} of these functions are in the cold code",
            percent(base.ran.share()),
            percent(tuned.ran.share())
        )?;
        if let Some(s) = &self.sections {
            let SectionEvidence { objects, with_hot, with_unlikely } = s;
            write!(
                f,
                "\n  objects     {with_hot} with .text.hot, {with_unlikely} with .text.unlikely of {objects}"
            )?;
        }
        if let Some(values) = &self.values {
            write!(f, "\n{values}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ValueEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counted, transformed, direct } = self;
        let percent = |calls: u64| 100.0 * calls as f64 / counted.indirect_calls.max(1) as f64;
        write!(
            f,
            "  indirect    {} calls, {:.1} % to their site's usual target, {:.1} % to one in the caller's own file \
             ({} sites)",
            counted.indirect_calls,
            percent(counted.usual_calls),
            percent(counted.promotable_calls),
            counted.promotable_sites
        )?;
        if let Some(direct) = direct {
            write!(f, "\n  direct      {} places test for the usual target of a call", direct.len())?;
            for place in direct.iter().take(5) {
                write!(f, "\n              {} in {} ({})", place.target, place.function, place.then)?;
            }
        }
        write!(
            f,
            "\n  values      GCC specialized {} divisions and {} sizes, of {} values listed",
            transformed.divisions,
            transformed.sizes,
            counted.used("topn")
        )?;
        for health in &counted.health {
            write!(
                f,
                "\n  lists       {} of {} nodes taken, {} values found none, {} a full list",
                health.nodes, health.nodes_of, health.unlisted, health.crowded
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
