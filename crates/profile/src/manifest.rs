//! Manifest of a profile (`manifest.json`): origin, totals, anomalies and files.

use crate::{Anomaly, CounterTotal, HostState, RunPurpose, SamplingSummary, Ticks};
use kerntune_work::{checked_text, Hash, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Value of [`Manifest::schema`].
pub const SCHEMA_NAME: &str = "kerntune-profile/4";
/// Version of the tables; the number in [`SCHEMA_NAME`].
pub const SCHEMA_VERSION: u32 = 4;

/// Origin of a profile and list of its files: `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`SCHEMA_NAME`].
    pub schema: String,
    /// Name of the profile in the work directory.
    #[serde(deserialize_with = "checked_text::<_, Id>")]
    pub id: String,
    /// Kernel that ran.
    pub kernel: KernelId,
    /// Name of the workload, or the command that ran.
    pub workload: String,
    /// Purpose of the run.
    pub run: RunPurpose,
    /// Machine of the run: `emulator`, `kvm`, `uml`, `host`.
    pub machine: String,
    /// Version of the emulating program, and its firmware; `None` if nothing was emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// Name of the front-end model that counted misses; `None` without a model.
    pub model: Option<String>,
    /// End of the run: RFC 3339, UTC, as from [`rfc3339`].
    pub recorded: String,
    /// Time inside regions, idle time included.
    pub elapsed_ticks: Ticks,
    /// `elapsed_ticks - idle_ticks`.
    pub busy_ticks: Ticks,
    /// Time inside regions in which the CPU was halted.
    pub idle_ticks: Ticks,
    /// Number of recorded events behind this profile.
    pub events: u64,
    /// Number of events that the recorder saw but could not keep.
    pub lost_events: u64,
    /// Counts of anomalies, by [`Anomaly::name`]. Other versions have other names.
    pub health: BTreeMap<String, u64>,
    /// Kinds of events that were recorded.
    pub capture: CaptureSummary,
    /// True if the figures repeat to the instruction.
    pub exact: bool,
    /// Sources for a reader: files, commands, other profiles.
    pub sources: Vec<String>,
    /// Loss of counts that were transferred from another kernel; `None` without a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<TransferSummary>,
    /// Method of sampling; `None` if times were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SamplingSummary>,
    /// Totals of counters beside the tables, each with its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CounterTotal>,
    /// State of the machine; `None` if the profile is not of the running kernel, or was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostState>,
    /// Exit status of the command that ran, as a shell has it; `None` if it was 0, or of a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u8>,
    /// Files by table name; [`crate::Profile::save`] fills this in.
    #[serde(default)]
    pub tables: BTreeMap<String, TableFile>,
}

/// Identity of the profiled kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelId {
    /// Id in the work directory, or the build id.
    pub id: String,
    /// Label that the user gave the kernel.
    pub label: String,
    /// Kernel release, for example `6.12.90`.
    pub version: String,
}

/// Kinds of events in a profile. Instructions are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSummary {
    /// Entries and exits of functions: functions, arcs, threads, histograms.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// Sampled instructions: blocks of one instruction each, without branches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instructions: bool,
    /// Misses of a front-end model.
    pub model: bool,
    /// Branches and misses of each call path.
    #[serde(default)]
    pub weights: bool,
    /// Misses of data accesses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
    /// Requests to block devices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// Network packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

/// Origin and loss of counts that were recorded on another kernel and transferred to this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// Id of the transferred profile.
    pub profile: String,
    /// Kernel that was recorded.
    pub kernel: KernelId,
    /// Instructions that the recorded kernel executed in the profile's regions.
    pub executed: u64,
    /// Part of `executed` whose counts have a place in this kernel: `exact`, `loose` and `inferred`.
    pub carried: u64,
    /// Part of `carried` in blocks with the same instructions.
    #[serde(default)]
    pub exact: u64,
    /// Part of `carried` in blocks that match by their operations, calls or place.
    #[serde(default)]
    pub loose: u64,
    /// Part of `carried` in blocks without a counterpart, completed from their neighbors.
    #[serde(default)]
    pub inferred: u64,
    /// Required share of `carried` in `executed`, in percent.
    pub at_least_percent: u64,
}

/// Size and hash of one table's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// Number of rows.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of the file.
    pub blake3: Hash,
}

impl Manifest {
    /// Creates a manifest with nothing recorded yet.
    pub fn new(
        id: impl Into<String>,
        kernel: KernelId,
        workload: impl Into<String>,
        machine: impl Into<String>,
    ) -> Self {
        Self {
            schema: SCHEMA_NAME.into(),
            id: id.into(),
            kernel,
            workload: workload.into(),
            run: RunPurpose::Training,
            machine: machine.into(),
            emulator: None,
            model: None,
            recorded: rfc3339(UNIX_EPOCH),
            elapsed_ticks: Ticks::ZERO,
            busy_ticks: Ticks::ZERO,
            idle_ticks: Ticks::ZERO,
            events: 0,
            lost_events: 0,
            health: BTreeMap::new(),
            capture: CaptureSummary::default(),
            exact: false,
            sources: Vec::new(),
            carried: None,
            sampled: None,
            counted: Vec::new(),
            host: None,
            exit_status: None,
            tables: BTreeMap::new(),
        }
    }

    /// Returns the count of an anomaly; 0 if there is none.
    pub fn anomaly(&self, anomaly: Anomaly) -> u64 {
        self.health.get(anomaly.name()).copied().unwrap_or(0)
    }

    /// Sets the count of an anomaly.
    pub fn set_anomaly(&mut self, anomaly: Anomaly, count: u64) {
        self.health.insert(anomaly.name().to_owned(), count);
    }
}

/// Formats a time as RFC 3339 in UTC with milliseconds: `2025-06-01T12:00:00.000Z`. Texts sort by
/// time.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        // `date -u -d @N`
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59.000Z");
        assert_eq!(
            rfc3339(UNIX_EPOCH + Duration::from_millis(1_748_779_200_042)),
            "2025-06-01T12:00:00.042Z"
        );
    }
}
