//! Answers of a page's server: the page, its timeline, tables of a selected stretch of time.

use super::data::{document, stretch, PageDocument};
use super::numbers::PageIndex;
use super::sums::{SelectionTables, TraceSums};
use super::{finish, moments, pack, ProfilePage, TraceTimeline};
use crate::Result;
use kerntune_profile::{Profile, Tables};
use kerntune_trace::Recording;
use serde::Serialize;

/// Renderer of a page and of answers in the page's numbering. Answers other than the page are JSON,
/// packed with zlib.
pub struct PageAnswers {
    index: PageIndex,
    page: String,
}

impl PageAnswers {
    /// Renders a page. `recording` is that of its trace; the timeline is computed later, on
    /// request.
    ///
    /// # Errors
    /// [`crate::Error::NoRegion`]; nothing else is expected.
    pub fn new(page: &ProfilePage, recording: Option<&Recording>) -> Result<Self> {
        let threads = recording.map_or(&[][..], |recording| &recording.threads);
        let (mut document, index): (PageDocument, PageIndex) =
            document(page.profile, page.region, None, threads)?;
        document.traced = recording.is_some();
        Ok(Self { index, page: finish(page, document, true)? })
    }

    /// Returns the HTML page.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// Renders the timeline of `profile`, which must be the page's.
    ///
    /// # Errors
    /// None is expected.
    pub fn timeline(&mut self, profile: &Profile, timeline: &TraceTimeline) -> Result<Vec<u8>> {
        bytes(&moments::columns(timeline, profile, &mut self.index))
    }

    /// Renders the tables of a selection.
    ///
    /// # Errors
    /// None is expected.
    pub fn selected(&mut self, sums: &TraceSums, selected: &SelectionTables) -> Result<Vec<u8>> {
        bytes(&sums.tables(&mut self.index, selected))
    }

    /// Renders the same tables from an analysis of the trace, cut to the selected stretch.
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
