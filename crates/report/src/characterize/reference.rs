//! Built-in reference workloads: main figures and division of time, by name, for comparison with
//! any profile. One file each in `data/reference-profiles/`, which `characterize --save-reference` writes.

use super::beside::ComparedProfile;
use super::event::FigureBasis;
use super::facts::WorkloadCharacter;
use super::similarity::{Similarity, TimeByName, TimeDivision};
use crate::html::PageSection;
use crate::{Error, Result};
use kerntune_profile::KernelId;
use kerntune_table::number::fixed;
use kerntune_table::{Columns, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the reference file format, see `docs/json.md`.
pub const REFERENCE_SCHEMA: &str = "kerntune-reference/1";

const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/reference-profiles.rs"));

/// Share of the time that the kept functions must cover, in thousandths.
const KEPT_PER_MILLE: u128 = 999;
/// Sum of the functions that are not kept. No function has this name, so that it never counts as
/// similar.
const OTHERS: &str = "[others]";

/// Reference workload that other profiles are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceWorkload {
    schema: String,
    /// File name without `.toml`.
    #[serde(skip)]
    name: String,
    /// Kind of work: `web`, `OLTP`.
    kind: String,
    /// Version of the kerntune that wrote the file.
    kerntune: String,
    workload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    machine: String,
    basis: FigureBasis,
    recorded: String,
    /// Id of the source profile, which need not be available.
    profile: String,
    kernel: KernelId,
    figures: BTreeMap<String, f64>,
    split: TimeByName,
    subsystems: TimeByName,
    syscalls: TimeByName,
    functions: TimeByName,
}

/// Similarity of a profile to a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReferenceSimilarity {
    pub reference: String,
    pub kind: String,
    pub kernel: String,
    pub similarity: Similarity,
}

/// Returns the built-in references, by name.
///
/// # Panics
/// If a built-in file is invalid; a test parses all.
pub fn references() -> Vec<ReferenceWorkload> {
    let parse = |(name, text): &(&str, &str)| {
        ReferenceWorkload::parse(name, text)
            .unwrap_or_else(|error| panic!("a reference that is built in: {error}"))
    };
    BUILT_IN.iter().map(parse).collect()
}

impl ReferenceWorkload {
    /// Parses the text of a reference file.
    ///
    /// # Errors
    /// [`Error::Reference`] with the name and the reason.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let refused = |why: String| Error::Reference { reference: name.into(), why };
        let found: ReferenceWorkload = toml::from_str(text).map_err(|error| refused(error.to_string()))?;
        if found.schema != REFERENCE_SCHEMA {
            return Err(refused(format!("its schema is {} instead of {REFERENCE_SCHEMA}", found.schema)));
        }
        if found.figures.values().any(|figure| !figure.is_finite()) {
            return Err(refused("a figure is not a number".into()));
        }
        Ok(Self { name: name.into(), ..found })
    }

    pub(super) fn of(
        character: &WorkloadCharacter,
        spent: &TimeDivision,
        kind: &str,
        kerntune: &str,
    ) -> Result<Self> {
        if spent.functions.is_empty() {
            let why = "the profile has no times of functions: record without --no-functions".into();
            return Err(Error::Reference { reference: character.profile.clone(), why });
        }
        let column = ComparedProfile::new(character, spent.similarity(spent));
        let figures = column.figures.into_iter().filter_map(|(name, figure)| Some((name, figure?)));
        Ok(Self {
            schema: REFERENCE_SCHEMA.into(),
            name: kind.into(),
            kind: kind.into(),
            kerntune: kerntune.into(),
            workload: character.workload.clone(),
            region: character.region.clone(),
            machine: character.machine.clone(),
            basis: character.basis,
            recorded: character.recorded.clone(),
            profile: character.profile.clone(),
            kernel: character.kernel.clone(),
            figures: figures.collect(),
            split: spent.split.clone(),
            subsystems: spent.subsystems.clone(),
            syscalls: spent.syscalls.clone(),
            functions: largest(&spent.functions),
        })
    }

    /// Renders the reference file's text.
    ///
    /// # Errors
    /// Figures that TOML cannot represent.
    pub fn text(&self) -> Result<String> {
        let refused = |error: toml::ser::Error| Error::Reference {
            reference: self.profile.clone(),
            why: error.to_string(),
        };
        toml::to_string(self).map_err(refused)
    }

    /// Returns the name, by which users select the reference.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of work.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    fn spent(&self) -> TimeDivision {
        TimeDivision {
            functions: self.functions.clone(),
            syscalls: self.syscalls.clone(),
            subsystems: self.subsystems.clone(),
            split: self.split.clone(),
        }
    }

    /// Converts the reference to a column beside a profile with this division of time.
    pub(super) fn column(&self, spent: &TimeDivision) -> ComparedProfile {
        ComparedProfile {
            profile: self.profile.clone(),
            reference: Some(self.name.clone()),
            region: self.region.clone(),
            workload: self.workload.clone(),
            kernel: self.kernel.label.clone(),
            recorded: self.recorded.clone(),
            basis: self.basis,
            figures: self.figures.iter().map(|(name, figure)| (name.clone(), Some(*figure))).collect(),
            similarity: spent.similarity(&self.spent()),
        }
    }

    fn likeness(&self, spent: &TimeDivision) -> ReferenceSimilarity {
        ReferenceSimilarity {
            reference: self.name.clone(),
            kind: self.kind.clone(),
            kernel: self.kernel.version.clone(),
            similarity: spent.similarity(&self.spent()),
        }
    }
}

/// Returns the functions with the most time, and the sum of the others.
fn largest(functions: &TimeByName) -> TimeByName {
    let sum = |shares: &mut dyn Iterator<Item = u64>| shares.map(u128::from).sum::<u128>();
    let all = sum(&mut functions.values().copied());
    let mut rows: Vec<(&String, u64)> = functions.iter().map(|(name, ns)| (name, *ns)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let (mut kept, mut so_far) = (TimeByName::new(), 0u128);
    for (name, ns) in rows {
        if ns == 0 || so_far * 1000 >= all * KEPT_PER_MILLE {
            break;
        }
        so_far += u128::from(ns);
        kept.insert(name.clone(), ns);
    }
    let rest = u64::try_from(all - so_far).unwrap_or(u64::MAX);
    if rest > 0 {
        kept.insert(OTHERS.into(), rest);
    }
    kept
}

/// Compares a profile with each reference, most similar first; empty without function times.
pub(super) fn likenesses(spent: &TimeDivision, references: &[ReferenceWorkload]) -> Vec<ReferenceSimilarity> {
    let mut all: Vec<ReferenceSimilarity> =
        references.iter().map(|reference| reference.likeness(spent)).collect();
    all.retain(|likeness| likeness.similarity.functions.is_some());
    let by = |likeness: &ReferenceSimilarity| likeness.similarity.functions.unwrap_or(0.0);
    all.sort_by(|a, b| by(b).total_cmp(&by(a)).then_with(|| a.reference.cmp(&b.reference)));
    all
}

/// Describes the most similar reference in a sentence.
pub(super) fn sentence(all: &[ReferenceSimilarity]) -> Option<String> {
    let first = all.first()?;
    let percent = fixed(first.similarity.functions?, 1);
    Some(format!(
        "Of the references it is most like {} ({}): {percent} % by kernel function.",
        first.reference, first.kind
    ))
}

/// Number of references that a section shows; JSON has all.
const MAX_ROWS: usize = 5;

pub(super) fn section(all: &[ReferenceSimilarity]) -> Option<PageSection> {
    if all.is_empty() {
        return None;
    }
    let mut columns = Columns::<&ReferenceSimilarity>::new();
    let mut similarity = |head: &str, get: fn(&Similarity) -> Option<f64>| {
        columns.text_only(head, move |row| get(&row.similarity)).decimals(1).null("-");
    };
    similarity("by kernel\nfunction", |of| of.functions);
    similarity("by system\ncall", |of| of.syscalls);
    similarity("by part of\nthe kernel", |of| of.subsystems);
    similarity("by user,\nkernel, …", |of| of.split);
    columns.text_only("reference", |row| row.reference.clone());
    columns.text_only("kind", |row| row.kind.clone());
    let mut section = PageSection::new("references", "Most like, of the reference workloads");
    section.about.push("Similarity in per cent; `--against reference:NAME` puts one beside it.".into());
    section.table = Some(Table::new("", all, columns).top(Some(MAX_ROWS)).into());
    if all.len() > MAX_ROWS {
        section.notes.push(format!("{} more (--json).", all.len() - MAX_ROWS));
    }
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_reference_or_refused(text in "(([a-z]{1,9}|schema|figures|[functions]) ?= ?[^\n]{0,9}\n|.{0,9}\n){0,12}") {
            let _ = ReferenceWorkload::parse("x", &text);
        }
    }

    fn shares(all: &[(&str, u64)]) -> TimeByName {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    #[test]
    fn those_that_are_built_in_are_read_and_small() {
        let all = references();
        assert_eq!(all.len(), BUILT_IN.len());
        for reference in &all {
            assert!(!reference.kind.is_empty() && !reference.functions.is_empty(), "{}", reference.name);
            let text = reference.text().unwrap();
            assert!(text.len() < 100 * 1024, "{}: {}", reference.name, text.len());
            assert_eq!(&ReferenceWorkload::parse(&reference.name, &text).unwrap(), reference);
            // A reference equals its source, except for the functions that were not kept.
            let same = reference.spent().similarity(&reference.spent());
            assert_eq!(same.functions, Some(100.0), "{}", reference.name);
        }
    }

    #[test]
    fn small_functions_are_put_together_and_are_like_nothing() {
        let all = shares(&[("a", 990), ("b", 9), ("c", 1), ("d", 0)]);
        assert_eq!(largest(&all), shares(&[("a", 990), ("b", 9), (OTHERS, 1)]));
        let of = |functions| TimeDivision { functions, ..TimeDivision::default() };
        let like = of(all.clone()).similarity(&of(largest(&all))).functions.unwrap();
        assert!((like - 99.9).abs() < 1e-9, "{like}");
        assert_eq!(largest(&TimeByName::new()), TimeByName::new());
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let refused = |text: &str| ReferenceWorkload::parse("x", text).unwrap_err().to_string();
        assert!(refused("schema = 1").contains("reference x"));
        let some = references();
        let Some(first) = some.first() else { return };
        let text = first.text().unwrap();
        assert!(refused(&text.replacen(REFERENCE_SCHEMA, "kerntune-reference/9", 1))
            .contains("kerntune-reference/9"));
        assert!(refused(&format!("more = 1\n{text}")).contains("more"));
    }

    #[test]
    fn the_most_alike_comes_first() {
        let of = |name: &str, functions: &[(&str, u64)]| {
            let spent = TimeDivision { functions: shares(functions), ..TimeDivision::default() };
            (name.to_owned(), spent)
        };
        let (_, mine) = of("mine", &[("a", 8), ("b", 2)]);
        let likeness = |(name, its): (String, TimeDivision)| ReferenceSimilarity {
            reference: name,
            kind: "web".into(),
            kernel: "6.12".into(),
            similarity: mine.similarity(&its),
        };
        let mut all: Vec<ReferenceSimilarity> =
            [of("far", &[("c", 1)]), of("near", &[("a", 1)])].into_iter().map(likeness).collect();
        all.sort_by(|a, b| b.similarity.functions.partial_cmp(&a.similarity.functions).unwrap());
        assert_eq!(
            sentence(&all).unwrap(),
            "Of the references it is most like near (web): 80.0 % by kernel function."
        );
        assert!(section(&all).is_some() && section(&[]).is_none() && sentence(&[]).is_none());
    }
}
