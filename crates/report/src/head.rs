//! How every report of a profile begins, as text and as JSON.

use crate::style::printable;
use kerntune_profile::{KernelId, Manifest, Profile};
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

/// The line before a report that says what it is of: profile, workload or command, kernel, machine, what its figures are, when.
pub fn of_profile(profile: &Profile) -> String {
    let Manifest { id, workload, run, machine, exact, sampled, recorded, .. } = &profile.manifest;
    let KernelId { label, version, id: kernel } = &profile.manifest.kernel;
    let figures = match (exact, sampled) {
        (true, _) => "exact",
        (false, Some(_)) => "sampled",
        (false, None) => "timed",
    };
    let kernel = if kernel.is_empty() { String::new() } else { format!(", {kernel}") };
    let second = recorded.get(..19).unwrap_or(recorded);
    printable(&format!(
        "profile {id}: {workload}, {run} run, on kernel {label} (Linux {version}{kernel}); {machine}, {figures}; {second}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::Tables;

    #[test]
    fn a_line_says_what_a_report_is_of() {
        let kernel = KernelId { id: "fba9".into(), label: "base".into(), version: "6.12".into() };
        let mut manifest = Manifest::new("p1", kernel, "ls -l\u{1b}[2J", "emulator");
        manifest.recorded = "2025-06-01T12:00:00.000Z".into();
        let line = of_profile(&Profile { manifest, tables: Tables::default() });
        assert!(line.starts_with("profile p1: ls -l"), "{line}");
        assert!(
            line.ends_with(
                ", training run, on kernel base (Linux 6.12, fba9); emulator, timed; 2025-06-01T12:00:00"
            ),
            "{line}"
        );
        assert!(!line.contains('\u{1b}'));
    }
}
