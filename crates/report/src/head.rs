//! Common head of all reports of a profile, as text and as JSON.

use crate::thread_filter::ThreadFilter;
use crate::unit::TickUnit;
use kerntune_profile::{KernelId, Manifest, Profile};
use kerntune_table::{printable, Columns, Document};

/// Begins the document of a report on a profile with its common first fields: profile, unit,
/// selected region and threads.
pub(crate) fn document<'a>(
    schema: &'static str,
    about: &'static str,
    profile: &Profile,
    region: Option<&str>,
    threads: Option<&ThreadFilter>,
) -> Document<'a> {
    let mut document = Document::new(schema, about);
    document.field("profile", "Id of the profile.", &profile.manifest.id);
    document.field(
        "unit",
        "Unit of figures of code: `instructions` on the exact machine, else `ns`.",
        TickUnit::of(profile).name(),
    );
    document.field(
        "region",
        "Name of the regions that everything is restricted to, with those within them; null for all.",
        region,
    );
    if let Some(threads) = threads {
        let names = (!threads.is_everybody()).then(|| threads.names());
        document.optional("threads", "Threads that everything is restricted to, as they were given.", names);
    }
    document
}

/// Declares the members that identify one of several profiles: id, kernel, workload.
pub(crate) fn of_profile<'a>() -> Columns<'a, &'a Profile> {
    let mut columns = Columns::<&'a Profile>::new();
    columns.add("profile", "Id of the profile.", |row| row.manifest.id.clone());
    columns.part(of_kernel(), |row| row);
    columns
}

/// Declares the members that identify what was recorded: kernel and workload.
pub(crate) fn of_kernel<'a>() -> Columns<'a, &'a Profile> {
    let mut kernel = Columns::<KernelId>::new();
    kernel.add("id", "Id in the work directory, or the build id.", |row| row.id.clone());
    kernel.add("label", "Label that the user gave the kernel.", |row| row.label.clone());
    kernel.add("version", "Kernel release.", |row| row.version.clone());
    let mut columns = Columns::<&'a Profile>::new();
    columns.object("kernel", "Kernel that ran.", kernel, |row| &row.manifest.kernel);
    columns.add("workload", "Workload that it ran.", |row| row.manifest.workload.clone());
    columns
}

/// Returns the line before a report that identifies the profile: id, workload or command, kernel,
/// machine, kind of figures, date.
pub fn profile_line(profile: &Profile) -> String {
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

/// Returns the line that names the selected threads; empty for all.
pub(crate) fn threads_line(thread_filter: &ThreadFilter) -> String {
    match thread_filter.is_everybody() {
        true => String::new(),
        false => format!("Threads {}, without what others did\n", thread_filter.names().join(", ")),
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
        let line = profile_line(&Profile { manifest, tables: Tables::default() });
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
