//! Which user ids of the host the processes of a workload get that runs under the kernel that is booted.

use kerntune_work::{IoContext, Result};
use std::fs;
use std::path::Path;

/// As many as a system's own users, `nobody` included, need.
const COUNT: u64 = 65536;
/// The first of those that root hands out: between the ids that systemd gives to containers and those that it keeps for
/// others, so nobody's.
const FIRST: u64 = 2_135_621_632;
/// What hands out ids of /etc/subuid and /etc/subgid.
const TOOLS: [&str; 2] = ["/usr/bin/newuidmap", "/usr/bin/newgidmap"];

/// The ids outside of those from 0 on inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// From this one on; only root can.
    Range(u64),
    /// From these on, of users and groups, as the system's administrator allows the caller.
    Subids(u64, u64),
    /// Root inside is the caller, and there is no other user.
    One,
}

impl Users {
    /// The best that whoever runs us may have.
    pub fn here() -> Result<Self> {
        let path = "/proc/self/status";
        let status = fs::read_to_string(path).at("read", path)?;
        // A file that is not there allows nothing.
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let tools = TOOLS.iter().all(|tool| Path::new(tool).exists());
        let files = [text("/etc/passwd"), text("/etc/subuid"), text("/etc/subgid")];
        Ok(Self::choose(effective_uid(&status), &files, tools))
    }

    /// `files` are /etc/passwd, /etc/subuid and /etc/subgid.
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

    /// For `guest/contain`.
    pub fn argument(self) -> String {
        match self {
            Self::Range(first) => format!("range:{first}"),
            Self::Subids(uid, gid) => format!("subids:{uid}:{gid}"),
            Self::One => "one".into(),
        }
    }
}

/// The first id of `USER:FIRST:COUNT`, if it is this user's and enough.
fn range(line: &str, uid: u64, name: Option<&str>) -> Option<u64> {
    let mut fields = line.split(':');
    let user = fields.next()?;
    let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse::<u64>().ok()?);
    let ours = Some(user) == name || user.parse() == Ok(uid);
    (ours && count >= COUNT).then_some(first)
}

/// From the text of `/proc/PID/status`; somebody without rights if it says nothing.
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
        assert_eq!(Users::choose(0, &files(by_number), false), Users::Range(FIRST));
        assert_eq!(Users::choose(1000, &files(by_number), true), Users::Subids(231_072, 300_000));
        assert_eq!(Users::choose(1000, &files(by_number), false), Users::One);
        assert_eq!(Users::choose(1000, &files("ann:1:10\nann:x\n"), true), Users::One);
        assert_eq!(Users::choose(1001, &files(by_number), true), Users::One);
        assert_eq!(Users::Subids(1, 2).argument(), "subids:1:2");
    }

    #[test]
    fn who_we_are_is_the_effective_user() {
        assert_eq!(effective_uid("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t6\t7\t8\n"), 0);
        assert_eq!(effective_uid(""), 65534);
    }
}
