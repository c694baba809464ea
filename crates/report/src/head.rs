//! How every report of a profile begins as JSON.

use kerntune_profile::Profile;
use serde::Serialize;

/// The document's schema, and what it is about.
#[derive(Serialize)]
pub(crate) struct Head<'a> {
    schema: &'static str,
    /// The profile's id.
    profile: &'a str,
    /// `None` for all of the profile.
    region: Option<&'a str>,
}

impl<'a> Head<'a> {
    pub fn new(schema: &'static str, profile: &'a Profile, region: &'a Option<String>) -> Self {
        Self { schema, profile: &profile.manifest.id, region: region.as_deref() }
    }
}
