//! Access to tracefs. If it is not mounted, it is opened without mounting it anywhere, so the
//! system does not change.

use rustix::fs::{openat, Mode, OFlags};
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

/// Maximum size of a setting, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum size of one CPU's statistics, in bytes (200,000 functions).
const MAX_STATISTICS_BYTES: u64 = 32 << 20;

/// Open directory of tracefs.
#[derive(Debug)]
pub(crate) struct TracefsDir(OwnedFd);

impl TracefsDir {
    /// Opens tracefs at its mount point, or a new unattached instance.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for mounted in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            let directory = rustix::fs::open(mounted, flags, Mode::empty());
            if let Some(found) = directory.ok().map(Self).filter(|found| found.read("README").is_ok()) {
                return Ok(found);
            }
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        Ok(Self(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?))
    }

    /// Reads a file of up to 1 MiB.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let file = openat(&self.0, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Reads a long file, such as `trace_stat` with a line per function.
    pub fn read_all(&self, path: &str) -> io::Result<String> {
        let file = openat(&self.0, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).take(MAX_STATISTICS_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces the contents of a setting.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        File::from(openat(&self.0, path, flags, Mode::empty())?).write_all(text.as_bytes())
    }

    /// Appends a line to a setting. The kernel reports an error only at the end of the line.
    pub fn append(&self, path: &str, line: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        File::from(openat(&self.0, path, flags, Mode::empty())?).write_all(format!("{line}\n").as_bytes())
    }

    /// Returns the directory's path, for use by another process.
    ///
    /// # Errors
    /// Tracefs is not mounted.
    pub fn path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
            .ok()
            .filter(|path| path.join("README").exists())
            .ok_or_else(|| {
                io::Error::other("it is not mounted: `mount -t tracefs tracefs /sys/kernel/tracing`")
            })
    }

    /// Returns the id of a tracepoint, such as `sched/sched_switch`.
    pub fn event_id(&self, event: &str) -> io::Result<u64> {
        let text = self.read(&format!("events/{event}/id"))?;
        text.trim().parse().map_err(|_| io::Error::other(format!("events/{event}/id is not a number")))
    }
}

/// Returns offset and size of a tracepoint's field, from its `format` file.
pub(crate) fn field(format: &str, name: &str) -> Option<(usize, usize)> {
    let line = format.lines().find(|line| {
        let declared = line.trim().strip_prefix("field:").and_then(|line| line.split(';').next());
        let last = declared.and_then(|declared| declared.rsplit([' ', '*']).next());
        last.map(|last| last.split('[').next().unwrap_or(last)) == Some(name)
    })?;
    let number = |key: &str| {
        let part = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        part.trim().parse::<usize>().ok()
    };
    Some((number("offset:")?, number("size:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_format() {
        // Linux 6.18.
        let format = "name: sched_switch\nID: 372\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n";
        assert_eq!(field(format, "prev_comm"), Some((8, 16)));
        assert_eq!(field(format, "prev_state"), Some((32, 8)));
        assert_eq!(field(format, "comm"), None);
    }
}
