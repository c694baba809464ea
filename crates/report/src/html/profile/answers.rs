//! What the server of a page answers: the page, its timeline, what a stretch of time comes to.

use super::data::{document, stretch, Document};
use super::numbers::Index;
use super::sums::{Selected, Sums};
use super::{finish, moments, pack, ProfilePage, Timeline};
use crate::Result;
use kerntune_profile::{Profile, Tables};
use kerntune_trace::Recording;
use serde::Serialize;

/// Answers in the page's own numbers. All but the page are JSON, packed with zlib.
pub struct Answers {
    index: Index,
    page: String,
}

impl Answers {
    /// Those of a page. `recording` is that of its trace; the page's timeline is asked for when the page is there.
    ///
    /// # Errors
    /// [`crate::Error::NoRegion`]; nothing else is expected.
    pub fn new(page: &ProfilePage, recording: Option<&Recording>) -> Result<Self> {
        let threads = recording.map_or(&[][..], |recording| &recording.threads);
        let (mut document, index): (Document, Index) = document(page.profile, page.region, None, threads)?;
        document.traced = recording.is_some();
        Ok(Self { index, page: finish(page, document, true)? })
    }

    /// The page.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// The timeline of `profile`, which is the page's.
    ///
    /// # Errors
    /// None is expected.
    pub fn timeline(&mut self, profile: &Profile, timeline: &Timeline) -> Result<Vec<u8>> {
        bytes(&moments::columns(timeline, profile, &mut self.index))
    }

    /// What a selection came to.
    ///
    /// # Errors
    /// None is expected.
    pub fn selected(&mut self, sums: &Sums, selected: &Selected) -> Result<Vec<u8>> {
        bytes(&sums.tables(&mut self.index, selected))
    }

    /// The same by way of the analysis: the tables of the trace that was cut out of the profile's.
    ///
    /// # Errors
    /// None is expected.
    pub fn stretch(&mut self, tables: &Tables) -> Result<Vec<u8>> {
        bytes(&stretch(&mut self.index, tables))
    }
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>> {
    Ok(pack::bytes(value, 1).map_err(serde_json::Error::io)?)
}
