//! Locations of profiles, as directories named like Hive partitions, and filters on them.

use crate::{Error, Result};
use std::fmt::Write as _;

/// A directory level of a fleet, in the order of the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionKey {
    /// Id of the kernel's build.
    BuildId,
    /// Day on which the run ended, UTC.
    Date,
    /// Name of the machine.
    Host,
    /// Name of the workload.
    Workload,
}

impl PartitionKey {
    /// All levels, outermost first.
    pub const ALL: [Self; 4] = [Self::BuildId, Self::Date, Self::Host, Self::Workload];

    /// Returns the name of the SQL column.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuildId => "build_id",
            Self::Date => "date",
            Self::Host => "host",
            Self::Workload => "workload",
        }
    }

    /// Returns the level with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// Kernel, day, machine and workload of a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfileLocation {
    /// Values in the order of [`PartitionKey::ALL`].
    values: [String; 4],
}

impl ProfileLocation {
    /// Creates the location of a profile of this kernel, day, machine and workload.
    pub fn new(build_id: &str, date: &str, host: &str, workload: &str) -> Self {
        Self { values: [build_id, date, host, workload].map(str::to_owned) }
    }

    /// Returns the value of a level.
    pub fn get(&self, key: PartitionKey) -> &str {
        &self.values[key as usize]
    }

    /// Returns the names of the directories, outermost first.
    pub fn directories(&self) -> [String; 4] {
        PartitionKey::ALL.map(|key| directory(key.name(), self.get(key)))
    }

    pub(crate) fn of_values(values: [String; 4]) -> Self {
        Self { values }
    }
}

/// Value that Hive's readers take for NULL.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Formats `key=value` with special characters as `%XX`, as Hive writes it and DuckDB reads it.
pub(crate) fn directory(key: &str, value: &str) -> String {
    let mut name = format!("{key}=");
    let is_null = value == HIVE_NULL;
    for byte in value.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b".-".contains(&byte) || byte == b'_' && !is_null;
        if plain {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    // File names have at most 255 bytes. A hash replaces the rest of a longer one.
    if name.len() > 200 {
        let hash = blake3::hash(value.as_bytes()).to_hex();
        let mut end = 180;
        // Do not cut within %XX.
        while name[end - 2..end].contains('%') {
            end -= 1;
        }
        name.truncate(end);
        name.push('~');
        name.push_str(&hash[..16]);
    }
    name
}

/// Parses the value of a directory `key=value`.
pub(crate) fn value(directory: &str, key: &str) -> Option<String> {
    let mut rest = directory.strip_prefix(key)?.strip_prefix('=')?.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|value| !value.is_empty())
}

/// Selection of profiles; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileFilter {
    /// Beginning of the build id.
    pub build_id: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Name of the workload.
    pub workload: Option<String>,
    /// First day, `2026-11-25`.
    pub since: Option<String>,
    /// Last day.
    pub until: Option<String>,
}

impl ProfileFilter {
    /// Returns whether the filter accepts a level's value.
    pub(crate) fn takes(&self, key: PartitionKey, value: &str) -> bool {
        let is = |wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| wanted == value);
        match key {
            PartitionKey::BuildId => self.build_id.as_deref().is_none_or(|start| value.starts_with(start)),
            PartitionKey::Host => is(&self.host),
            PartitionKey::Workload => is(&self.workload),
            PartitionKey::Date => {
                self.since.as_deref().is_none_or(|since| since <= value)
                    && self.until.as_deref().is_none_or(|until| value <= until)
            }
        }
    }
}

/// Checks that this is a day as manifests write it.
pub(crate) fn check_date(given: &str) -> Result<()> {
    let is = given.len() == 10
        && given.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let what = "write a day as 2026-11-25".to_owned();
    is.then_some(()).ok_or_else(|| Error::Words { given: given.to_owned(), what })
}

impl ProfileFilter {
    /// Checks the days.
    ///
    /// # Errors
    /// A day that is not written as manifests write it.
    pub fn check(&self) -> Result<()> {
        self.since.iter().chain(&self.until).try_for_each(|day| check_date(day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_hive() {
        assert_eq!(directory("workload", "ls -lR /usr"), "workload=ls%20-lR%20%2Fusr");
        assert_eq!(value("workload=ls%20-lR%20%2Fusr", "workload").unwrap(), "ls -lR /usr");
        assert_eq!(value("host=a", "date"), None);
        for bad in ["host=", "host=%2", "host=%zz", "host=%ff"] {
            assert_eq!(value(bad, "host"), None, "{bad}");
        }
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let long = "é".repeat(300);
        let (one, other) = (directory("workload", &long), directory("workload", &format!("{long}x")));
        assert!(one.len() < 220 && other.len() < 220 && one != other);
    }

    #[test]
    fn days() {
        let filter = ProfileFilter {
            since: Some("2026-11-02".into()),
            until: Some("2026-11-03".into()),
            ..ProfileFilter::default()
        };
        let days = ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"];
        assert_eq!(days.map(|day| filter.takes(PartitionKey::Date, day)), [false, true, true, false]);
        assert!(filter.check().is_ok());
        assert!(ProfileFilter { since: Some("yesterday".into()), ..ProfileFilter::default() }
            .check()
            .is_err());
    }

    proptest! {
        #[test]
        fn every_value_comes_back(text in "[^\u{0}]{1,40}") {
            let name = directory("host", &text);
            prop_assert!(!name.contains('/'));
            if !name.contains('~') {
                prop_assert_eq!(value(&name, "host"), Some(text));
            }
        }
    }
}
