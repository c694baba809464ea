//! Cgroups of sampled tasks: by the id that the kernel puts into a sample, where it is of version 2
//! and not the root, or else from `/proc/PID/cgroup` at the first sample of a task.

use crate::aggregate::CgroupTable;
use crate::Aggregate;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Limit of directories that are read.
const MAX_CGROUPS: usize = 4096;

/// Adds the ids of all cgroups of version 2 that are there. A cgroup's id is the inode of its
/// directory.
pub(super) fn read_ids(into: &mut Aggregate) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let Some(root) = unified(&mounts) else { return };
    let mut stack = vec![root.clone()];
    let mut count = 0;
    while let Some(directory) = stack.pop() {
        let Ok(found) = fs::metadata(&directory) else { continue };
        let path = directory.strip_prefix(&root).unwrap_or(&directory);
        into.cgroups.identified(found.ino(), &format!("/{}", path.to_string_lossy()));
        count += 1;
        if count >= MAX_CGROUPS {
            return;
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        stack.extend(entries.filter(is_directory).map(|entry| entry.path()));
    }
}

/// Returns where the hierarchy of version 2 is mounted.
fn unified(mounts: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    Some(Path::new(&line.split(' ').nth(1)?.replace("\\040", " ")).to_owned())
}

/// Returns the path of a task's cgroup from the text of `/proc/PID/cgroup`: that of version 2, or
/// where that is the root, of version 1's systemd, or else the longest one.
///
/// ```
/// use kerntune_live::parse_cgroup;
/// assert_eq!(parse_cgroup("0::/system.slice/nginx.service\n"), Some("/system.slice/nginx.service"));
/// assert_eq!(parse_cgroup("4:memory:/job\n1:name=systemd:/\n0::/\n"), Some("/job"));
/// assert_eq!(parse_cgroup("0::/\n"), Some("/"));
/// ```
pub fn parse_cgroup(text: &str) -> Option<&str> {
    let line = |line: &'static str| text.lines().find_map(|found| found.strip_prefix(line));
    let systemd = || {
        let of = |line: &str| line.split_once(':').is_some_and(|(_, rest)| rest.starts_with("name=systemd:"));
        path_of(text.lines().find(|line| of(line))?)
    };
    let longest = || text.lines().filter_map(path_of).max_by_key(|path| path.len());
    let is_below = |path: &&str| path.len() > 1 && path.starts_with('/');
    line("0::").filter(is_below).or_else(|| systemd().filter(is_below)).or_else(longest)
}

/// Returns the path of a line `ID:CONTROLLERS:PATH`.
fn path_of(line: &str) -> Option<&str> {
    line.splitn(3, ':').nth(2).filter(|path| path.starts_with('/'))
}

/// Sets the cgroup of a task at a sample, whose last field is the id of the cgroup if the kernel
/// samples it.
pub(super) fn take(tid: u32, tgid: u32, id: Option<u64>, into: &mut Aggregate) {
    if tid == 0 {
        return;
    }
    let by_id = id.and_then(|id| into.cgroups.by_id(id)).filter(|number| !into.cgroups.is_root(*number));
    let known = into.threads.cgroup_of(tid);
    let cgroup = match (by_id, known) {
        (Some(cgroup), _) => cgroup,
        (None, Some(_)) => return,
        (None, None) => read(&format!("/proc/{tgid}/task/{tid}/cgroup"), into),
    };
    if known != Some(cgroup) {
        into.threads.set_cgroup(tid, tgid, cgroup);
    }
}

/// Returns the index of the cgroup that a file below `/proc` names, or [`CgroupTable::NONE`].
pub(crate) fn read(file: &str, into: &mut Aggregate) -> u32 {
    let text = fs::read_to_string(file).unwrap_or_default();
    parse_cgroup(&text).map_or(CgroupTable::NONE, |path| into.cgroups.number(path))
}

/// Handles the body of a record of a new cgroup: id, then path up to a zero. Returns `None` if it is
/// damaged.
pub(super) fn named(body: &[u8], into: &mut Aggregate) -> Option<()> {
    let (id, path) = parse_cgroup_record(body)?;
    into.cgroups.identified(id, &String::from_utf8_lossy(path));
    Some(())
}

/// Parses the body of a record of a new cgroup (`PERF_RECORD_CGROUP`): id and path.
///
/// ```
/// let body = [&7_u64.to_ne_bytes()[..], b"/job\0\0\0\0"].concat();
/// assert_eq!(kerntune_live::parse_cgroup_record(&body), Some((7, &b"/job"[..])));
/// assert_eq!(kerntune_live::parse_cgroup_record(&body[..7]), None);
/// ```
pub fn parse_cgroup_record(body: &[u8]) -> Option<(u64, &[u8])> {
    let (id, path) = body.split_first_chunk()?;
    Some((u64::from_ne_bytes(*id), path.split(|byte| *byte == 0).next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_version_2_is_found_where_it_is_mounted() {
        let hybrid = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/two\\040words cgroup2 rw 0 0\n";
        assert_eq!(unified(hybrid), Some(PathBuf::from("/sys/fs/cgroup/two words")));
        assert_eq!(unified("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn systemd_comes_before_the_longest_path_of_version_1() {
        let text = "12:memory:/a/very/long/path\n1:name=systemd:/user.slice\n";
        assert_eq!(parse_cgroup(text), Some("/user.slice"));
        assert_eq!([parse_cgroup(""), parse_cgroup("x:y"), parse_cgroup("0::\n")], [None; 3]);
    }
}
