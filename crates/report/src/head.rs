//! How every report of a profile begins, as text and as JSON.

use crate::style::printable;
use crate::unit::Measure;
use crate::who::Who;
use kerntune_profile::{KernelId, Manifest, Profile};
use serde::Serialize;

/// The document's schema, and what it is about.
#[derive(Serialize)]
pub(crate) struct Head<'a> {
    schema: &'static str,
    /// The profile's id.
    profile: &'a str,
    /// What code took is in: `instructions` of the exact machine, or `ns`.
    unit: &'static str,
    /// `None` for all of the profile.
    region: Option<&'a str>,
    /// The threads that it is of; nothing for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<String>,
}

impl<'a> Head<'a> {
    pub fn new(schema: &'static str, profile: &'a Profile, region: &'a Option<String>) -> Self {
        let unit = Measure::of(profile).word();
        let region = region.as_deref();
        Self { schema, profile: &profile.manifest.id, unit, region, threads: Vec::new() }
    }

    /// The same of these threads alone.
    pub fn of(self, who: &Who) -> Self {
        Self { threads: who.names(), ..self }
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

/// The line that says which threads a report is of; nothing for all.
pub(crate) fn of_threads(who: &Who) -> String {
    match who.is_everybody() {
        true => String::new(),
        false => format!("Threads {}, without what others did\n", who.names().join(", ")),
    }
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
