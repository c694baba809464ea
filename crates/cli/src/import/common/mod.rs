//! Parts that imports of foreign traces and samples share.

use super::keep;
use kerntune_command::{print_summary, CliOutput, Exit, Failure, FormatOptions};
use kerntune_profile::{
    rfc3339, Anomaly, KernelId, Manifest, Profile, RunPurpose, SamplingSummary, Tables, Ticks,
};
use kerntune_work::{Key, WorkDir};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// Largest number of kinds that a note names.
const NAMED: usize = 8;

/// Profile that an import makes.
pub struct ImportedProfile<'a> {
    /// File or directory that was read.
    pub path: &'a Path,
    /// Tool that wrote it.
    pub tool: &'a str,
    /// Name for the workload.
    pub workload: String,
    /// Release of the kernel, if known.
    pub release: Option<String>,
    pub tables: Tables,
    /// Number of events or samples.
    pub events: u64,
    pub lost: u64,
    pub health: Vec<(Anomaly, u64)>,
    pub sampled: Option<SamplingSummary>,
    /// Sentences on what was used and left out.
    pub notes: Vec<String>,
}

impl ImportedProfile<'_> {
    /// Stores the profile and prints its summary, with the notes on standard error.
    pub fn publish(
        self,
        work: &WorkDir,
        key: &Key,
        format: FormatOptions,
        output: &CliOutput,
    ) -> Result<Exit, Failure> {
        let file = self.path.display().to_string();
        for note in &self.notes {
            output.note(&format!("kerntune: {file}: {note}"));
        }
        let path = keep(work, key, |id| {
            let label = self.release.unwrap_or_default();
            let kernel = KernelId { id: String::new(), label: label.clone(), version: label };
            let mut manifest = Manifest::new(id, kernel, self.workload, "host");
            let modified = std::fs::metadata(self.path).and_then(|file| file.modified());
            manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
            let sum = |of: fn(&kerntune_profile::RegionStats) -> Ticks| {
                self.tables.regions.iter().map(of).sum::<Ticks>()
            };
            manifest.elapsed_ticks = sum(|region| region.elapsed_ticks);
            manifest.busy_ticks = sum(|region| region.busy_ticks);
            manifest.idle_ticks = sum(|region| region.idle_ticks);
            manifest.events = self.events;
            manifest.lost_events = self.lost;
            manifest.capture.functions = true;
            manifest.exact = false;
            manifest.run = RunPurpose::Measured;
            manifest.sampled = self.sampled;
            for (anomaly, count) in self.health.into_iter().filter(|(_, count)| *count > 0) {
                manifest.set_anomaly(anomaly, count);
            }
            manifest.sources = vec![format!("{}: {file}", self.tool)];
            manifest.sources.extend(self.notes.iter().map(|note| format!("note: {note}")));
            Ok(Profile { manifest, tables: self.tables })
        })?;
        let profile = Profile::load(&path)?;
        let id = &profile.manifest.id;
        let next = format!("\nprofile {}\n`kerntune report {id} graph` shows the call graph", path.display());
        print_summary(&profile, format, &next, output)?;
        Ok(Exit::Ok)
    }
}

/// Describes samples that another tool took, each of which stands for `each` ns.
pub fn sampling(source: String, samples: u64, each: u64, cpus: u64, wall_ns: Ticks) -> SamplingSummary {
    SamplingSummary {
        source,
        samples,
        sample_ns: Ticks(each),
        cpus,
        wall_ns,
        period: "as another tool chose it".into(),
        bias: None,
        filter: None,
        calls: None,
        bound_bytes: 0,
    }
}

/// Lists kinds with their counts, greatest first.
pub fn counts(kinds: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<(&String, &u64)> = kinds.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut words: Vec<String> =
        sorted.iter().take(NAMED).map(|(name, count)| format!("{count} {name}")).collect();
    if let Some(rest) = sorted.get(NAMED..).filter(|rest| !rest.is_empty()) {
        let sum = rest.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(**count));
        words.push(format!("{sum} of {} other kinds", rest.len()));
    }
    words.join(", ")
}

/// Returns the last part of a path, for a name.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
