//! Characterization of a workload: dominant parts, rates of events, their cost, and similarity to
//! other workloads.
//!
//! `docs/characterize.md` defines every figure. Start from [`CharacterSubject`]; [`characterize`]
//! gathers everything, and a [`Characterization`] renders text, JSON (`docs/json.md`) or a page.
//!
//! - `facts` gathers the figures from a profile's tables, with `split` (time), `path` (counters),
//!   `scheduler`, `syscalls` and `counters` (work);
//! - `words` describes the notable figures in sentences;
//! - `marks` separates the workload from readings for `proc`;
//! - `proc` checks counts against the guest kernel's own;
//! - `reference` has built-in workloads for comparison;
//! - `similarity` compares two profiles, `beside` shows several side by side;
//! - `sections` lays out the page for text and HTML.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::characterize::{characterize, CharacterSubject};
//! use kerntune_report::Style;
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let found = characterize(&CharacterSubject { profile: &profile, region: None, costs: None }, &[])?;
//! assert!(found.text(Style::PLAIN).contains("No description"));
//! # Ok::<(), kerntune_report::Error>(())
//! ```

mod beside;
pub(crate) mod counters;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod marks;
mod path;
mod proc;
mod reference;
mod scheduler;
mod sections;
mod similarity;
pub(crate) mod split;
mod syscalls;
mod traffic;
mod words;

use crate::html::{character_page, PageSection};
use crate::{Result, Style};
use kerntune_table::{printable, TextRole};
pub use proc::{ProcStep, PROC_FILES};
pub use reference::{references, ReferenceWorkload, REFERENCE_SCHEMA};

use beside::ComparedProfile;
use facts::WorkloadCharacter;
use kerntune_compare::ModelCosts;
use kerntune_profile::Profile;
use reference::ReferenceSimilarity;
use sections::{head, sections};
use serde::Serialize;
use similarity::TimeDivision;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-character/2";

/// Profile to characterize, with its region and its model's costs.
#[derive(Debug, Clone, Copy)]
pub struct CharacterSubject<'a> {
    /// Profile of the workload.
    pub profile: &'a Profile,
    /// Restricts figures to the regions of this name and those within them; `None` for the whole
    /// profile.
    pub region: Option<&'a str>,
    /// Costs of the front-end model's events; without them no CPI is computed.
    pub costs: Option<ModelCosts>,
}

/// Characterization of a workload, with those of workloads beside it.
#[derive(Debug, Clone)]
pub struct Characterization {
    character: WorkloadCharacter,
    /// Division of the workload's time, for similarities.
    spent: TimeDivision,
    words: Vec<String>,
    /// Columns of the comparison, the workload itself first; empty without others.
    beside: Vec<ComparedProfile>,
    /// Counts checked against the guest kernel's.
    proc: Vec<proc::ProcCheck>,
    /// Similarity to each reference, most similar first.
    references: Vec<ReferenceSimilarity>,
}

/// Characterizes `wanted`, and computes the similarity of each profile in `beside`.
///
/// # Errors
/// An unknown region; a profile that was transferred to another kernel.
pub fn characterize(wanted: &CharacterSubject, beside: &[CharacterSubject]) -> Result<Characterization> {
    let gather = |wanted: &CharacterSubject| -> Result<(WorkloadCharacter, TimeDivision)> {
        let character = WorkloadCharacter::of(wanted.profile, wanted.region, wanted.costs)?;
        let spent =
            TimeDivision::of(wanted.profile, &marks::measured(wanted.profile, wanted.region)?, &character);
        Ok((character, spent))
    };
    let (character, spent) = gather(wanted)?;
    let mut columns = Vec::new();
    if !beside.is_empty() {
        columns.push(ComparedProfile::new(&character, spent.similarity(&spent)));
    }
    for other in beside {
        let (other, its) = gather(other)?;
        columns.push(ComparedProfile::new(&other, spent.similarity(&its)));
    }
    let references = reference::likenesses(&spent, &references());
    let mut words = words::words(&character);
    words.extend(reference::sentence(&references));
    Ok(Characterization { character, spent, words, beside: columns, proc: Vec::new(), references })
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct CharacterReport<'a> {
    schema: &'static str,
    #[serde(flatten)]
    character: &'a WorkloadCharacter,
    words: &'a [String],
    beside: &'a [ComparedProfile],
    proc: &'a [proc::ProcCheck],
    references: &'a [ReferenceSimilarity],
}

impl Characterization {
    /// Checks counts against the guest's /proc, summed over all steps. Does nothing if only a
    /// region is characterized.
    pub fn with_proc_checks(mut self, profile: &Profile, steps: &[ProcStep]) -> Self {
        self.proc = proc::check_counts(profile, steps);
        self
    }

    /// Adds a reference as the last column.
    pub fn beside_reference(mut self, reference: &ReferenceWorkload) -> Self {
        if self.beside.is_empty() {
            self.beside.push(ComparedProfile::new(&self.character, self.spent.similarity(&self.spent)));
        }
        self.beside.push(reference.column(&self.spent));
        self
    }

    /// Converts the characterization to a reference for this kind of work, written by this version
    /// of kerntune.
    ///
    /// # Errors
    /// [`Error::Reference`](crate::Error::Reference): functions were not recorded.
    pub fn reference(&self, kind: &str, kerntune: &str) -> Result<ReferenceWorkload> {
        ReferenceWorkload::of(&self.character, &self.spent, kind, kerntune)
    }

    fn sections(&self) -> Vec<PageSection> {
        let mut all: Vec<PageSection> = beside::section(&self.beside).into_iter().collect();
        all.extend(reference::section(&self.references));
        all.extend(sections(&self.character));
        let last = all.len().saturating_sub(1);
        // The section on missing figures stays last.
        proc::section(&self.proc).into_iter().for_each(|section| all.insert(last, section));
        all
    }

    /// Renders the characterization as text, with a newline at its end.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for line in head(&self.character) {
            out += &style.paint(TextRole::Head, &printable(&line));
            out.push('\n');
        }
        out.push('\n');
        for sentence in &self.words {
            out += &format!("{sentence}\n");
        }
        let line = |text: &String| style.paint(TextRole::Faint, &printable(text)) + "\n";
        for section in self.sections() {
            out += &format!("\n{}\n", style.paint(TextRole::Head, &section.title));
            section.about.iter().for_each(|text| out += &line(text));
            if let Some(table) = &section.table {
                out += &table.columns().render(style);
            }
            section.notes.iter().for_each(|text| out += &line(text));
        }
        if !self.character.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.character.notes {
            out += &format!("{}  {}\n", style.paint(TextRole::Bad, "note"), printable(note));
        }
        out
    }

    /// Renders the JSON document (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// Figures that JSON cannot represent.
    pub fn json(&self) -> Result<String> {
        let Self { character, words, beside, proc, references, spent: _ } = self;
        crate::to_json(&CharacterReport { schema: SCHEMA, character, words, beside, proc, references })
    }

    /// Renders a self-contained page; `written` names the writer.
    pub fn html(&self, written: &str) -> String {
        let mut lines = head(&self.character).into_iter();
        let title = lines.next().unwrap_or_default();
        let lines: Vec<String> = lines.collect();
        character_page(&title, &lines, &self.words, &self.sections(), &self.character.notes, written)
    }
}
