//! What a profile says of itself.

use crate::{Counted, Nanoseconds, Run, Sampled};
use kerntune_work::{checked_text, Hash, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Value of [`Manifest::schema`].
pub const SCHEMA_NAME: &str = "kerntune-profile/3";
/// Version of the tables; the number in [`SCHEMA_NAME`].
pub const SCHEMA_VERSION: u32 = 3;

/// `manifest.json`: where a profile comes from and what its files hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_NAME`].
    pub schema: String,
    /// The profile's name in the work directory.
    #[serde(deserialize_with = "checked_text::<_, Id>")]
    pub id: String,
    /// The kernel that ran.
    pub kernel: KernelId,
    /// Name of the workload.
    pub workload: String,
    /// What the run was for.
    pub run: Run,
    /// What it ran on: `emulator`, `kvm`, `uml`, `host`.
    pub machine: String,
    /// Name of the front-end model that counted misses, if one did.
    pub model: Option<String>,
    /// When the run ended: RFC 3339, UTC, as [`rfc3339`] makes it.
    pub recorded: String,
    /// Time inside regions.
    pub elapsed_ns: Nanoseconds,
    /// `elapsed_ns - idle_ns`.
    pub busy_ns: Nanoseconds,
    /// Time inside regions in which the CPU was halted.
    pub idle_ns: Nanoseconds,
    /// Events that the profile was made from.
    pub events: u64,
    /// Events that were seen and could not be kept.
    pub lost_events: u64,
    /// How well it went: counts of anomalies, by name.
    pub health: BTreeMap<String, u64>,
    /// What was captured.
    pub capture: Capture,
    /// Whether the figures repeat to the instruction.
    pub exact: bool,
    /// What the profile was made from, in words: files, commands, other profiles.
    pub sources: Vec<String>,
    /// What was lost where the counts are those of another kernel, carried to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// How the times came about where they were sampled and not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// What was counted beside the tables, each by its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
    /// The files; filled in by [`crate::Profile::save`].
    #[serde(default)]
    pub tables: BTreeMap<String, TableFile>,
}

/// The kernel that a profile was taken of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelId {
    /// Its id in the work directory, or its build id.
    pub id: String,
    /// What the user calls it.
    pub label: String,
    /// Its release, for example `6.12.90`.
    pub version: String,
}

/// What was captured. Instructions always are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Entry and exit of functions: functions, arcs, threads, histograms.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// Misses of a front-end model.
    pub model: bool,
    /// Branches and misses of each call path.
    #[serde(default)]
    pub weights: bool,
    /// Misses of accesses to data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
    /// Requests to block devices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// Network packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packets: bool,
}

/// Where counts come from that were recorded on another kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Id of the recording.
    pub profile: String,
    /// The kernel that was recorded.
    pub kernel: KernelId,
    /// Instructions that it executed in the recording's regions.
    pub executed: u64,
    /// Of them those whose counts have a place in this kernel.
    pub carried: u64,
    /// The least share of them, in percent, that was asked for.
    pub at_least_percent: u64,
}

/// One file of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// Number of rows.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: Hash,
}

impl Manifest {
    /// A manifest with nothing recorded yet, to be filled in.
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
            run: Run::Training,
            machine: machine.into(),
            model: None,
            recorded: rfc3339(UNIX_EPOCH),
            elapsed_ns: Nanoseconds::ZERO,
            busy_ns: Nanoseconds::ZERO,
            idle_ns: Nanoseconds::ZERO,
            events: 0,
            lost_events: 0,
            health: BTreeMap::new(),
            capture: Capture::default(),
            exact: false,
            sources: Vec::new(),
            carried: None,
            sampled: None,
            counted: Vec::new(),
            tables: BTreeMap::new(),
        }
    }
}

/// A time as RFC 3339 in UTC with milliseconds: `2025-06-01T12:00:00.000Z`. Sorts as text.
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
