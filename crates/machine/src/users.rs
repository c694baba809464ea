//! Maps user ids for the processes of a workload under the running kernel.

use kerntune_work::{IoContext, Result};
use std::fs;
use std::path::Path;

/// Number of ids to map, enough for a system's users including `nobody`.
const COUNT: u64 = 65536;
/// First id that root maps, in a range that systemd neither uses for containers nor reserves.
const FIRST: u64 = 2_135_621_632;
/// Programs that map ids of /etc/subuid and /etc/subgid.
const TOOLS: [&str; 2] = ["/usr/bin/newuidmap", "/usr/bin/newgidmap"];

/// Host ids for the workload's ids from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserIdMap {
    /// A range from this id on; only root can map it.
    Range(u64),
    /// Ranges of users and groups from these ids on, which the administrator has granted to the
    /// caller.
    Subids(u64, u64),
    /// A single id: the workload's root is the caller.
    One,
    /// All ids as they are here; only root can map them.
    Same,
}

impl UserIdMap {
    /// Returns the best mapping that the caller may use.
    pub fn best_available() -> Result<Self> {
        let path = "/proc/self/status";
        let status = fs::read_to_string(path).at("read", path)?;
        // A missing file grants nothing.
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let tools = TOOLS.iter().all(|tool| Path::new(tool).exists());
        let files = [text("/etc/passwd"), text("/etc/subuid"), text("/etc/subgid")];
        Ok(Self::choose(effective_uid(&status), &files, tools))
    }

    /// Returns the mapping that root may use on any machine.
    pub fn of_root() -> Self {
        Self::Range(FIRST)
    }

    /// Returns the mapping under which the caller sees its files as they are.
    pub fn caller() -> Result<Self> {
        let path = "/proc/self/status";
        match effective_uid(&fs::read_to_string(path).at("read", path)?) {
            0 => Ok(Self::Same),
            _ => Ok(Self::One),
        }
    }

    /// Chooses a mapping; `files` are /etc/passwd, /etc/subuid and /etc/subgid.
    fn choose(uid: u64, [passwd, subuid, subgid]: &[String; 3], tools: bool) -> Self {
        if uid == 0 {
            return Self::Range(FIRST);
        }
        let name = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
        });
        let range = |text: &str| text.lines().find_map(|line| range(line, uid, name));
        match (range(subuid), range(subgid)) {
            (Some(uid), Some(gid)) if tools => Self::Subids(uid, gid),
            _ => Self::One,
        }
    }

    /// Returns the argument for `embedded/guest/contain`.
    pub fn argument(self) -> String {
        match self {
            Self::Range(first) => format!("range:{first}"),
            Self::Subids(uid, gid) => format!("subids:{uid}:{gid}"),
            Self::One => "one".into(),
            Self::Same => "same".into(),
        }
    }
}

/// Parses `USER:FIRST:COUNT`; returns the first id if the line is for this user and grants enough
/// ids.
fn range(line: &str, uid: u64, name: Option<&str>) -> Option<u64> {
    let mut fields = line.split(':');
    let user = fields.next()?;
    let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse::<u64>().ok()?);
    let ours = Some(user) == name || user.parse() == Ok(uid);
    (ours && count >= COUNT).then_some(first)
}

/// Parses `/proc/PID/status`; defaults to a user without rights.
fn effective_uid(status: &str) -> u64 {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()).unwrap_or(65534)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_range_and_others_what_the_administrator_allows() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        let subuid = "bob:100000:65536\nann:165536:1000\nann:231072:65536\n";
        let files = |subgid: &str| [passwd.to_owned(), subuid.to_owned(), subgid.to_owned()];
        let by_number = "1000:300000:65536\n";
        assert_eq!(UserIdMap::choose(0, &files(by_number), false), UserIdMap::Range(FIRST));
        assert_eq!(UserIdMap::choose(1000, &files(by_number), true), UserIdMap::Subids(231_072, 300_000));
        assert_eq!(UserIdMap::choose(1000, &files(by_number), false), UserIdMap::One);
        assert_eq!(UserIdMap::choose(1000, &files("ann:1:10\nann:x\n"), true), UserIdMap::One);
        assert_eq!(UserIdMap::choose(1001, &files(by_number), true), UserIdMap::One);
        assert_eq!(UserIdMap::Subids(1, 2).argument(), "subids:1:2");
    }

    #[test]
    fn who_we_are_is_the_effective_user() {
        assert_eq!(effective_uid("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t6\t7\t8\n"), 0);
        assert_eq!(effective_uid(""), 65534);
    }
}
