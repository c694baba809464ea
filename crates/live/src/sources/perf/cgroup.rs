//! Directories of cgroups that perf events can follow: those of version 2, or of version 1's
//! `perf_event` hierarchy.

use crate::{Error, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Opens a cgroup by its directory, or by its name in `/proc/PID/cgroup`.
pub(super) fn open(named: &Path) -> Result<File> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let exists = |path: &Path| path.join("cgroup.procs").exists();
    let directory = find(named, &CgroupHierarchies::of(&mounts), &exists).map_err(Error::Filter)?;
    let opened = File::open(&directory).map_err(Error::io("open the cgroup", &directory))?;
    let kind =
        rustix::fs::fstatfs(&opened).map_err(|error| Error::io("look at", &directory)(error.into()))?.f_type;
    match [CGROUP_MAGIC, CGROUP2_MAGIC].contains(&(kind as u64)) {
        true => Ok(opened),
        false => Err(Error::Filter(format!(
            "{} is not a cgroup: it is on another file system. Mount cgroup2 (`mount -t cgroup2 none DIR`), and give a directory below it",
            directory.display()
        ))),
    }
}

/// Types of file systems in which perf events follow cgroups (`linux/magic.h`).
const CGROUP_MAGIC: u64 = 0x0027_e0eb;
const CGROUP2_MAGIC: u64 = 0x6367_7270;

/// Mounted cgroup hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct CgroupHierarchy {
    at: PathBuf,
    /// Controllers (`cpu,cpuacct`) or name of a version 1 hierarchy; `None` for version 2.
    controllers: Option<String>,
}

/// All mounted hierarchies.
struct CgroupHierarchies(Vec<CgroupHierarchy>);

impl CgroupHierarchies {
    /// Parses `/proc/self/mounts`.
    fn of(mounts: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ').skip(1);
            let (at, kind, options) = (words.next()?, words.next()?, words.next()?);
            // Options that mount(8) prints for every mount.
            const COMMON: [&str; 8] =
                ["rw", "ro", "nosuid", "nodev", "noexec", "relatime", "noatime", "xattr"];
            let own = || {
                let own = options
                    .split(',')
                    .filter(|word| !COMMON.contains(word) && !word.starts_with("release_agent"));
                own.map(|word| word.strip_prefix("name=").unwrap_or(word)).collect::<Vec<_>>().join(",")
            };
            let controllers = match kind {
                "cgroup" => Some(own()),
                "cgroup2" => None,
                _ => return None,
            };
            Some(CgroupHierarchy { at: PathBuf::from(at.replace("\\040", " ")), controllers })
        };
        Self(mounts.lines().filter_map(line).collect())
    }

    /// Returns the hierarchies in which perf events follow cgroups. The kernel uses one of them:
    /// version 1's once that is mounted.
    fn of_perf(&self) -> Vec<&CgroupHierarchy> {
        let of_perf = |one: &&CgroupHierarchy| {
            one.controllers.as_ref().is_some_and(|names| names.split(',').any(|name| name == "perf_event"))
        };
        let first: Vec<&CgroupHierarchy> = self.0.iter().filter(of_perf).collect();
        match first.is_empty() {
            true => self.0.iter().filter(|one| one.controllers.is_none()).collect(),
            false => first,
        }
    }

    /// Returns the hierarchy that contains a directory.
    fn around(&self, directory: &Path) -> Option<&CgroupHierarchy> {
        let around = self.0.iter().filter(|one| directory.starts_with(&one.at));
        around.max_by_key(|one| one.at.components().count())
    }
}

/// Returns the directory of a cgroup, or a message with the reason and the remedy.
fn find(named: &Path, all: &CgroupHierarchies, exists: &dyn Fn(&Path) -> bool) -> Result<PathBuf, String> {
    let good = all.of_perf();
    let name = named.strip_prefix("/").unwrap_or(named);
    let below = |one: &CgroupHierarchy| Some(one.at.join(name)).filter(|path| exists(path));
    if let Some(found) = good.iter().find_map(|one| below(one)) {
        return Ok(found);
    }
    let other = match exists(named) {
        true => match all.around(named) {
            Some(around) if !good.contains(&around) => Some(around),
            _ => return Ok(named.to_owned()),
        },
        false => all.0.iter().find(|one| below(one).is_some()),
    };
    let Some(other) = other else {
        return Err(format!(
            "{} is not a cgroup: give its directory below /sys/fs/cgroup, or its name as in /proc/PID/cgroup",
            named.display()
        ));
    };
    let which = match &other.controllers {
        Some(names) => format!("version 1's hierarchy {names}"),
        None => "version 2, while perf events use version 1's hierarchy here".to_owned(),
    };
    let instead = match good.first() {
        Some(good) => format!("give a cgroup below {}", good.at.display()),
        None => "none is mounted here: `mkdir /sys/fs/cgroup/perf_event; mount -t cgroup -o perf_event none \
                 /sys/fs/cgroup/perf_event`, and put the processes into a cgroup there"
            .to_owned(),
    };
    Err(format!(
        "{} is a cgroup of {which}; perf events follow cgroups of version 2, or of version 1's hierarchy perf_event: {instead}",
        named.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with version 1 but without `perf_event`, as many containers have.
    const HYBRID: &str = "cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,nodev,noexec,relatime,memory 0 0\n\
        systemd /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,release_agent=/x,name=systemd 0 0\n\
        proc /proc proc rw 0 0\n";
    const PERF: &str = "cgroup /sys/fs/cgroup/perf_event cgroup rw,relatime,perf_event 0 0\n";
    const SECOND: &str = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    fn found(mounts: &str, named: &str, there: &[&str]) -> Result<String, String> {
        let exists = |path: &Path| there.iter().any(|there| path == Path::new(there));
        let found = find(Path::new(named), &CgroupHierarchies::of(mounts), &exists);
        found.map(|path| path.display().to_string())
    }

    #[test]
    fn a_plain_directory_is_no_cgroup() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.procs"), "").unwrap();
        let said = open(dir.path()).unwrap_err().to_string();
        assert!(said.contains("is not a cgroup: it is on another file system"), "{said}");
    }

    #[test]
    fn hierarchies_are_read() {
        let of = |mounts| {
            CgroupHierarchies::of(mounts).0.into_iter().map(|one| one.controllers).collect::<Vec<_>>()
        };
        assert_eq!(of(HYBRID), [Some("memory".into()), Some("systemd".into())]);
        assert_eq!(of(SECOND), [None]);
    }

    #[test]
    fn version_2_and_perf_event_are_taken() {
        let unified = "/sys/fs/cgroup/unified/a b.slice";
        assert_eq!(found(SECOND, "/a b.slice", &[unified]).as_deref(), Ok(unified));
        assert_eq!(found(SECOND, unified, &[unified]).as_deref(), Ok(unified));
        let perf = "/sys/fs/cgroup/perf_event/job";
        let all = [HYBRID, SECOND, PERF].concat();
        assert_eq!(found(&all, "/job", &[perf, "/sys/fs/cgroup/unified/job"]).as_deref(), Ok(perf));
        // A mount that is not in /proc/mounts, such as one of another namespace.
        assert_eq!(found("", "/host/cgroup/x", &["/host/cgroup/x"]).as_deref(), Ok("/host/cgroup/x"));
    }

    #[test]
    fn a_cgroup_of_another_hierarchy_is_called_that() {
        let memory = "/sys/fs/cgroup/memory/job";
        for named in ["/job", memory] {
            let said = found(HYBRID, named, &[memory]).unwrap_err();
            assert!(
                said.starts_with(&format!("{named} is a cgroup of version 1's hierarchy memory;")),
                "{said}"
            );
            assert!(
                said.contains("none is mounted here: `mkdir") && said.contains("-o perf_event"),
                "{said}"
            );
        }
        let said = found(&[HYBRID, PERF].concat(), memory, &[memory]).unwrap_err();
        assert!(said.ends_with("give a cgroup below /sys/fs/cgroup/perf_event"), "{said}");
        let said = found(&[SECOND, PERF].concat(), "/x", &["/sys/fs/cgroup/unified/x"]).unwrap_err();
        assert!(said.contains("version 2, while perf events use version 1's"), "{said}");
        assert!(found(HYBRID, "/none", &[memory]).unwrap_err().contains("is not a cgroup"));
    }
}
