//! Users of another root: its `/etc/passwd` and `/etc/group`.

use crate::{ProcessUser, SourceRoot};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest part of a file of accounts to read, in bytes.
const ACCOUNTS_MAX: u64 = 4 << 20;

/// A user, and where it is at home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub user: ProcessUser,
    pub home: String,
}

/// Finds `USER[:GROUP]`, each a name or a number, among the accounts of a root; empty means root.
/// `None` for a name that is not there.
pub(crate) fn find(root: &SourceRoot, named: &str) -> Option<Account> {
    find_in(&text(root, "/etc/passwd"), &text(root, "/etc/group"), named)
}

/// A missing or odd file has no accounts.
fn text(root: &SourceRoot, path: &str) -> String {
    let open = || -> io::Result<File> {
        let at = root.locate(&root.resolve(Path::new(path))?)?;
        match at.metadata()?.is_file() {
            true => File::open(at),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    };
    let mut bytes = Vec::new();
    if let Ok(file) = open() {
        let _ = file.take(ACCOUNTS_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn find_in(passwd: &str, group: &str, named: &str) -> Option<Account> {
    let (user, in_group) = named.split_once(':').map_or((named, None), |(user, group)| (user, Some(group)));
    let user = if user.is_empty() { "0" } else { user };
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = user.parse::<u32>().ok();
    let entry = passwd.lines().map(fields).find(|entry| match number {
        Some(number) => entry.get(2).and_then(|id| id.parse().ok()) == Some(number),
        None => entry.first().is_some_and(|name| name == user),
    });
    let id = |at: usize| entry.as_ref()?.get(at)?.parse::<u32>().ok();
    let uid = number.or_else(|| id(2))?;
    let groups: Vec<Vec<String>> = group.lines().map(fields).collect();
    let gid_of = |entry: &Vec<String>| entry.get(2)?.parse::<u32>().ok();
    let gid = match in_group.filter(|group| !group.is_empty()) {
        Some(group) => group.parse().ok().or_else(|| {
            groups.iter().find(|entry| entry.first().is_some_and(|name| name == group)).and_then(gid_of)
        })?,
        None => id(3).unwrap_or(0),
    };
    let name = entry.as_ref().and_then(|entry| entry.first());
    let is_member = |entry: &&Vec<String>| {
        entry
            .get(3)
            .is_some_and(|list| list.split(',').any(|member| Some(member) == name.map(String::as_str)))
    };
    // As container engines have it: a group that is named stands alone.
    let more = if in_group.is_some() {
        Vec::new()
    } else {
        groups.iter().filter(is_member).filter_map(gid_of).collect()
    };
    let home = entry.as_ref().and_then(|entry| entry.get(5)).filter(|home| home.starts_with('/')).cloned();
    let home = home.unwrap_or_else(|| if uid == 0 { "/root".into() } else { "/".into() });
    // For the kernel the last number is no id.
    if uid == u32::MAX || gid == u32::MAX {
        return None;
    }
    Some(Account { user: ProcessUser { uid, gid, groups: more }, home })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:www:/var/www:/bin/sh\nodd\nbad:x:q:1::\n";
    const GROUP: &str = "root:x:0:\nweb:x:34:\nlog:x:4:web,other\nstaff:x:50:web\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        let ids = |named: &str| {
            find_in(PASSWD, GROUP, named)
                .map(|account| (account.user.ids().collect::<Vec<_>>(), account.home))
        };
        assert_eq!(ids(""), Some((vec![0, 0], "/root".into())));
        assert_eq!(ids("web"), Some((vec![33, 34, 4, 50], "/var/www".into())));
        assert_eq!(ids("33"), ids("web"));
        assert_eq!(ids("web:log"), Some((vec![33, 4], "/var/www".into())));
        assert_eq!(ids("1000:7"), Some((vec![1000, 7], "/".into())));
        for missing in ["nobody", "web:none", "bad", "-1", "4294967295", "0:4294967295"] {
            assert_eq!(ids(missing), None, "{missing}");
        }
    }

    #[test]
    fn nothing_is_read_outside_of_the_root() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("root/etc")).unwrap();
        std::fs::write(dir.path().join("passwd"), "leak:x:7:7::/:\n").unwrap();
        std::os::unix::fs::symlink("../../passwd", dir.path().join("root/etc/passwd")).unwrap();
        let root = SourceRoot::of(&dir.path().join("root")).unwrap();
        assert_eq!(find(&root, "leak"), None);
        assert_eq!(find(&root, "7").unwrap().home, "/");
    }
}
