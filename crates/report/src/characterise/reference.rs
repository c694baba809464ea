//! Reference workloads that are built in: what main figures they have and where their time goes, by name, so that any profile can be
//! held against them. One file each in `references/`, which `characterise --save-reference` writes.

use super::beside::Column;
use super::event::Basis;
use super::facts::Character;
use super::similarity::{Shares, Similarity, Spent};
use crate::columns::{Side, Table};
use crate::html::Section;
use crate::{Error, Result};
use kerntune_compare::number::fixed;
use kerntune_profile::KernelId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the form, see `docs/json.md`.
pub const REFERENCE_SCHEMA: &str = "kerntune-reference/1";

const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/references.rs"));

/// Functions are kept until they have this share of the time of all, in thousandths.
const KEPT: u128 = 999;
/// What the others are together. It is no function's name, so that it is like nothing.
const OTHERS: &str = "[others]";

/// A workload that others are held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    schema: String,
    /// The file's name without `.toml`.
    #[serde(skip)]
    name: String,
    /// What kind of work it is: `web`, `OLTP`.
    kind: String,
    /// Version of the kerntune that wrote it.
    kerntune: String,
    workload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    machine: String,
    basis: Basis,
    recorded: String,
    /// The profile that it was made of, which need not be here.
    profile: String,
    kernel: KernelId,
    figures: BTreeMap<String, f64>,
    split: Shares,
    subsystems: Shares,
    syscalls: Shares,
    functions: Shares,
}

/// How alike a profile and a reference are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Likeness {
    pub reference: String,
    pub kind: String,
    pub kernel: String,
    pub similarity: Similarity,
}

/// Those that are built in, in the order of their names.
///
/// # Panics
/// One is none: a test reads all.
pub fn references() -> Vec<Reference> {
    let parse = |(name, text): &(&str, &str)| {
        Reference::parse(name, text).unwrap_or_else(|error| panic!("a reference that is built in: {error}"))
    };
    BUILT_IN.iter().map(parse).collect()
}

impl Reference {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`Error::Reference`]: which, and what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let refused = |why: String| Error::Reference { reference: name.into(), why };
        let found: Reference = toml::from_str(text).map_err(|error| refused(error.to_string()))?;
        if found.schema != REFERENCE_SCHEMA {
            return Err(refused(format!("its schema is {} instead of {REFERENCE_SCHEMA}", found.schema)));
        }
        if found.figures.values().any(|figure| !figure.is_finite()) {
            return Err(refused("a figure is not a number".into()));
        }
        Ok(Self { name: name.into(), ..found })
    }

    pub(super) fn of(character: &Character, spent: &Spent, kind: &str, kerntune: &str) -> Result<Self> {
        if spent.functions.is_empty() {
            let why = "the profile has no times of functions: record without --no-functions".into();
            return Err(Error::Reference { reference: character.profile.clone(), why });
        }
        let column = Column::new(character, spent.similarity(spent));
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

    /// The file's text.
    ///
    /// # Errors
    /// Figures that the form cannot hold.
    pub fn text(&self) -> Result<String> {
        let refused = |error: toml::ser::Error| Error::Reference {
            reference: self.profile.clone(),
            why: error.to_string(),
        };
        toml::to_string(self).map_err(refused)
    }

    /// Its name, by which it is asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What kind of work it is.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    fn spent(&self) -> Spent {
        Spent {
            functions: self.functions.clone(),
            syscalls: self.syscalls.clone(),
            subsystems: self.subsystems.clone(),
            split: self.split.clone(),
        }
    }

    /// A column beside a profile of this time.
    pub(super) fn column(&self, spent: &Spent) -> Column {
        Column {
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

    fn likeness(&self, spent: &Spent) -> Likeness {
        Likeness {
            reference: self.name.clone(),
            kind: self.kind.clone(),
            kernel: self.kernel.version.clone(),
            similarity: spent.similarity(&self.spent()),
        }
    }
}

/// The functions with the most time, and what the others have together.
fn largest(functions: &Shares) -> Shares {
    let sum = |shares: &mut dyn Iterator<Item = u64>| shares.map(u128::from).sum::<u128>();
    let all = sum(&mut functions.values().copied());
    let mut rows: Vec<(&String, u64)> = functions.iter().map(|(name, ns)| (name, *ns)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let (mut kept, mut so_far) = (Shares::new(), 0u128);
    for (name, ns) in rows {
        if ns == 0 || so_far * 1000 >= all * KEPT {
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

/// How alike a profile is to each of them, the most alike first; nothing without time of functions.
pub(super) fn likenesses(spent: &Spent, references: &[Reference]) -> Vec<Likeness> {
    let mut all: Vec<Likeness> = references.iter().map(|reference| reference.likeness(spent)).collect();
    all.retain(|likeness| likeness.similarity.functions.is_some());
    let by = |likeness: &Likeness| likeness.similarity.functions.unwrap_or(0.0);
    all.sort_by(|a, b| by(b).total_cmp(&by(a)).then_with(|| a.reference.cmp(&b.reference)));
    all
}

/// A sentence of the first.
pub(super) fn sentence(all: &[Likeness]) -> Option<String> {
    let first = all.first()?;
    let percent = fixed(first.similarity.functions?, 1);
    Some(format!(
        "Of the references it is most like {} ({}): {percent} % by kernel function.",
        first.reference, first.kind
    ))
}

/// References that a section shows; JSON has all.
const TOP: usize = 5;

pub(super) fn section(all: &[Likeness]) -> Option<Section> {
    if all.is_empty() {
        return None;
    }
    let right = |head| (head, Side::Right);
    let mut table = Table::new([
        right("by kernel\nfunction"),
        right("by system\ncall"),
        right("by part of\nthe kernel"),
        right("by user,\nkernel, …"),
        ("reference", Side::Left),
        ("kind", Side::Left),
    ]);
    for row in all.iter().take(TOP) {
        let Similarity { functions, syscalls, subsystems, split } = row.similarity;
        let mut cells: Vec<String> = [functions, syscalls, subsystems, split]
            .into_iter()
            .map(|percent| percent.map_or("-".into(), |percent| fixed(percent, 1)))
            .collect();
        cells.extend([row.reference.clone(), row.kind.clone()]);
        table.row(cells);
    }
    let mut section = Section::new("references", "Most like, of the reference workloads");
    section.about.push("Similarity in per cent; `--beside reference:NAME` puts one beside it.".into());
    section.table = Some(table);
    if all.len() > TOP {
        section.notes.push(format!("{} more (--json).", all.len() - TOP));
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
            let _ = Reference::parse("x", &text);
        }
    }

    fn shares(all: &[(&str, u64)]) -> Shares {
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
            assert_eq!(&Reference::parse(&reference.name, &text).unwrap(), reference);
            // It is what it is made of, but for what was not kept.
            let same = reference.spent().similarity(&reference.spent());
            assert_eq!(same.functions, Some(100.0), "{}", reference.name);
        }
    }

    #[test]
    fn small_functions_are_put_together_and_are_like_nothing() {
        let all = shares(&[("a", 990), ("b", 9), ("c", 1), ("d", 0)]);
        assert_eq!(largest(&all), shares(&[("a", 990), ("b", 9), (OTHERS, 1)]));
        let of = |functions| Spent { functions, ..Spent::default() };
        let like = of(all.clone()).similarity(&of(largest(&all))).functions.unwrap();
        assert!((like - 99.9).abs() < 1e-9, "{like}");
        assert_eq!(largest(&Shares::new()), Shares::new());
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let refused = |text: &str| Reference::parse("x", text).unwrap_err().to_string();
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
            let spent = Spent { functions: shares(functions), ..Spent::default() };
            (name.to_owned(), spent)
        };
        let (_, mine) = of("mine", &[("a", 8), ("b", 2)]);
        let likeness = |(name, its): (String, Spent)| Likeness {
            reference: name,
            kind: "web".into(),
            kernel: "6.12".into(),
            similarity: mine.similarity(&its),
        };
        let mut all: Vec<Likeness> =
            [of("far", &[("c", 1)]), of("near", &[("a", 1)])].into_iter().map(likeness).collect();
        all.sort_by(|a, b| b.similarity.functions.partial_cmp(&a.similarity.functions).unwrap());
        assert_eq!(
            sentence(&all).unwrap(),
            "Of the references it is most like near (web): 80.0 % by kernel function."
        );
        assert!(section(&all).is_some() && section(&[]).is_none() && sentence(&[]).is_none());
    }
}
