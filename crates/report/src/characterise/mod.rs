//! What a workload is like: what dominates it, what it does how often, what that costs, and how alike two are.
//!
//! `docs/characterise.md` defines every figure. Start from [`Wanted`]; [`characterise`] gathers everything, and a
//! [`Characterisation`] is text, JSON (`docs/json.md`) or a page.
//!
//! - `facts` gathers a value from a profile's tables, with `split` (time), `path` (counters), `scheduler`, `syscalls` and
//!   `counters` (work);
//! - `words` says in sentences what stands out of it;
//! - `marks` tells what is measured from what was read for `proc`;
//! - `proc` holds counts against what the guest's kernel counted of itself;
//! - `reference` has workloads that are built in, to hold others against;
//! - `similarity` holds two against each other, `beside` puts several side by side;
//! - `sections` is the page for text and HTML alike.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::characterise::{characterise, Wanted};
//! use kerntune_report::Style;
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let found = characterise(&Wanted { profile: &profile, region: None, costs: None }, &[])?;
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

use crate::html::{character_page, Section};
use crate::style::{printable, Role};
use crate::{Result, Style};
pub use proc::{ProcStep, PROC_FILES};
pub use reference::{references, Reference, REFERENCE_SCHEMA};

use beside::Column;
use facts::Character;
use kerntune_compare::Costs;
use kerntune_profile::Profile;
use reference::Likeness;
use sections::{head, sections};
use serde::Serialize;
use similarity::Spent;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-character/2";

/// A profile, and what of it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The regions of this name and those within them; all if none.
    pub region: Option<&'a str>,
    /// What events of the profile's front-end model cost, if that is known: without it there is no CPI.
    pub costs: Option<Costs>,
}

/// What a workload is like, and those beside it.
#[derive(Debug, Clone)]
pub struct Characterisation {
    character: Character,
    /// Where its time goes.
    spent: Spent,
    words: Vec<String>,
    /// The first is the workload itself; nothing if there is nothing beside it.
    beside: Vec<Column>,
    /// Counts, held against the guest's own.
    proc: Vec<proc::Held>,
    /// How alike it is to each reference, the most alike first.
    references: Vec<Likeness>,
}

/// Gathers what `wanted` is like, and how alike those beside it are.
///
/// # Errors
/// A region that a profile does not have; a profile that was carried to another kernel.
pub fn characterise(wanted: &Wanted, beside: &[Wanted]) -> Result<Characterisation> {
    let gather = |wanted: &Wanted| -> Result<(Character, Spent)> {
        let character = Character::of(wanted.profile, wanted.region, wanted.costs)?;
        let spent = Spent::of(wanted.profile, &marks::measured(wanted.profile, wanted.region)?, &character);
        Ok((character, spent))
    };
    let (character, spent) = gather(wanted)?;
    let mut columns = Vec::new();
    if !beside.is_empty() {
        columns.push(Column::new(&character, spent.similarity(&spent)));
    }
    for other in beside {
        let (other, its) = gather(other)?;
        columns.push(Column::new(&other, spent.similarity(&its)));
    }
    let references = reference::likenesses(&spent, &references());
    let mut words = words::words(&character);
    words.extend(reference::sentence(&references));
    Ok(Characterisation { character, spent, words, beside: columns, proc: Vec::new(), references })
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    #[serde(flatten)]
    character: &'a Character,
    words: &'a [String],
    beside: &'a [Column],
    proc: &'a [proc::Held],
    references: &'a [Likeness],
}

impl Characterisation {
    /// Holds counts against what was read of the guest's /proc, of all steps together: only where the whole profile is looked at.
    pub fn held_against(mut self, profile: &Profile, steps: &[ProcStep]) -> Self {
        self.proc = proc::hold(profile, steps);
        self
    }

    /// Puts a reference beside it, after what is there.
    pub fn beside_reference(mut self, reference: &Reference) -> Self {
        if self.beside.is_empty() {
            self.beside.push(Column::new(&self.character, self.spent.similarity(&self.spent)));
        }
        self.beside.push(reference.column(&self.spent));
        self
    }

    /// Makes a reference of it: of this kind of work, by this version of kerntune.
    ///
    /// # Errors
    /// [`Error::Reference`](crate::Error::Reference): functions were not recorded.
    pub fn reference(&self, kind: &str, kerntune: &str) -> Result<Reference> {
        Reference::of(&self.character, &self.spent, kind, kerntune)
    }

    fn sections(&self) -> Vec<Section> {
        let mut all: Vec<Section> = beside::section(&self.beside).into_iter().collect();
        all.extend(reference::section(&self.references));
        all.extend(sections(&self.character));
        let last = all.len().saturating_sub(1);
        // Before what the profile does not have.
        proc::section(&self.proc).into_iter().for_each(|section| all.insert(last, section));
        all
    }

    /// For people, with a newline at its end.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for line in head(&self.character) {
            out += &style.paint(Role::Head, &printable(&line));
            out.push('\n');
        }
        out.push('\n');
        for sentence in &self.words {
            out += &format!("{sentence}\n");
        }
        let line = |text: &String| style.paint(Role::Faint, &printable(text)) + "\n";
        for section in self.sections() {
            out += &format!("\n{}\n", style.paint(Role::Head, &section.title));
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
            out += &format!("{}  {}\n", style.paint(Role::Bad, "note"), printable(note));
        }
        out
    }

    /// For scripts (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// Figures that JSON cannot hold.
    pub fn json(&self) -> Result<String> {
        let Self { character, words, beside, proc, references, spent: _ } = self;
        crate::to_json(&Json { schema: SCHEMA, character, words, beside, proc, references })
    }

    /// A self-contained page; `written` says who wrote it.
    pub fn html(&self, written: &str) -> String {
        let mut lines = head(&self.character).into_iter();
        let title = lines.next().unwrap_or_default();
        let lines: Vec<String> = lines.collect();
        character_page(&title, &lines, &self.words, &self.sections(), &self.character.notes, written)
    }
}
