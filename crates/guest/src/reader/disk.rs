//! Parses `[disk]` of a workload.

use super::{HostNeedKind, WorkloadReader, HIDDEN, TMP};
use crate::disk::{Disk, DiskKind, Filesystem};
use crate::fields::{Located, TableFields};
use std::path::{Component, Path, PathBuf};

/// Directories of packed programs, which a mount would hide.
const OF_PROGRAMS: [&str; 7] = ["/", "/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc"];
/// Smallest size of each file system, in MiB. XFS: the limit of mkfs.xfs since 5.19.
const MIN_MB: [(Filesystem, u32); 2] = [(Filesystem::Ext4, 16), (Filesystem::Xfs, 300)];
/// Largest persistent memory that fits between the kernel and the initial RAM disk, in MiB.
const PMEM_MAX_MB: u32 = 1024;
/// Guest memory needed for the kernel below persistent memory, and for the initial RAM disk above
/// it, in MiB.
const PMEM_MEMORY_MB: u32 = 512;

impl WorkloadReader<'_> {
    pub(super) fn disk(&mut self, top: &mut TableFields, memory_mb: u32) -> Option<Disk> {
        let mut fields = top.table(&mut self.source, "disk")?;
        let kind = self.kind(&mut fields);
        let size = fields.required_integer(&mut self.source, "size_mb", 1..=1 << 20);
        let scheduler = self.scheduler(&mut fields);
        let filesystem = self.filesystem(&mut fields);
        let options = self.words_of(&mut fields, "mkfs_options");
        let mount = self.mount(&mut fields);
        let mount_options = fields.optional_string(&mut self.source, "mount_options");
        let listed = fields.strings(&mut self.source, "files");
        let files = self.host_files("disk.files", &listed);
        fields.finish(&mut self.source);
        if filesystem == Some(Filesystem::None) {
            for key in ["mkfs_options", "mount", "mount_options", "files"] {
                if fields.has(key) {
                    let message = "is given, and there is no file system".to_owned();
                    self.source
                        .problem(fields.value_span(key), &fields.key(key), message)
                        .help("filesystem = \"ext4\" or \"xfs\", or leave the key out");
                }
            }
        }
        if let Some(located) = mount_options.as_ref().filter(|l| {
            l.value.contains(|c: char| c.is_control() || c.is_whitespace()) || l.value.starts_with('-')
        }) {
            let message = format!("\"{}\" is not a list of options", located.value);
            self.source
                .problem(located.span.clone(), "disk.mount_options", message)
                .help("as `mount -o` takes them: \"noatime,nodiratime\"");
        }
        let disk = Disk {
            kind: kind.unwrap_or(DiskKind::Brd),
            size_mb: size.as_ref().map_or(0, |l| l.value as u32),
            scheduler,
            filesystem: filesystem.unwrap_or(Filesystem::None),
            mkfs_options: options,
            mount,
            mount_options: mount_options.map(|l| l.value).unwrap_or_default(),
            files,
        };
        if let (Some(size), Some(_), Some(_)) = (size, kind, filesystem) {
            self.fits(&disk, &size, memory_mb);
        }
        self.same_places(&disk, &listed);
        self.maker(&disk, &fields);
        Some(disk)
    }

    fn kind(&mut self, fields: &mut TableFields) -> Option<DiskKind> {
        let word = fields.string(&mut self.source, "kind");
        let s = &mut self.source;
        let latency_us = fields.integer(s, "latency_us", 0..=10_000_000).map_or(80, |l| l.value as u32);
        let queue_depth = fields.integer(s, "queue_depth", 1..=4096).map_or(64, |l| l.value as u32);
        let queues = fields.integer(s, "queues", 1..=64).map_or(1, |l| l.value as u32);
        let block = fields.integer(s, "block_bytes", 512..=4096);
        if let Some(located) = block.as_ref().filter(|l| ![512, 4096].contains(&l.value)) {
            let message = format!("{} bytes are no block", located.value);
            s.problem(located.span.clone(), "disk.block_bytes", message).help("512 or 4096");
        }
        let block_bytes = block.map_or(4096, |l| l.value as u32);
        let word = word?;
        let kind = match word.value.as_str() {
            "null_blk" => return Some(DiskKind::NullBlk { latency_us, queue_depth, queues, block_bytes }),
            "brd" => DiskKind::Brd,
            "pmem" => DiskKind::Pmem,
            "virtio" => DiskKind::Virtio,
            other => {
                let message = format!("\"{other}\" is no kind of disk");
                self.source
                    .problem(word.span, "disk.kind", message)
                    .help(format!("one of {}", DiskKind::NAMES.join(", ")));
                return None;
            }
        };
        for key in ["latency_us", "queue_depth", "queues", "block_bytes"] {
            if !fields.has(key) {
                continue;
            }
            let message = format!("a disk of the kind {} has none", kind.name());
            let key = (fields.value_span(key), fields.key(key));
            self.source.problem(key.0, &key.1, message).help("kind = \"null_blk\", or leave the key out");
        }
        Some(kind)
    }

    fn filesystem(&mut self, fields: &mut TableFields) -> Option<Filesystem> {
        let word = fields.string(&mut self.source, "filesystem")?;
        let found = match word.value.as_str() {
            "ext4" => Filesystem::Ext4,
            "xfs" => Filesystem::Xfs,
            "none" => Filesystem::None,
            other => {
                let message = format!("\"{other}\" is no file system that is made here");
                let help = format!("one of {}", Filesystem::NAMES.join(", "));
                self.source.problem(word.span, "disk.filesystem", message).help(help);
                return None;
            }
        };
        Some(found)
    }

    fn scheduler(&mut self, fields: &mut TableFields) -> Option<String> {
        let word = fields.optional_string(&mut self.source, "scheduler")?;
        let good =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !good(&word.value) {
            let message = format!("\"{}\" is not a scheduler's name", word.value);
            self.source
                .problem(word.span, "disk.scheduler", message)
                .help("none or mq-deadline, as /sys/block/*/queue/scheduler has them");
        }
        Some(word.value)
    }

    fn mount(&mut self, fields: &mut TableFields) -> PathBuf {
        let Some(place) = fields.optional_string(&mut self.source, "mount") else { return "/data".into() };
        let path = Path::new(&place.value);
        let plain = path.is_absolute()
            && path.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)))
            && !place.value.contains(|c: char| c.is_control());
        let wrong = if !plain {
            Some(format!("\"{}\" is not an absolute path", place.value))
        } else if let Some(dir) = HIDDEN.iter().chain([&TMP]).find(|dir| path.starts_with(dir)) {
            Some(format!("\"{}\" is in {dir}, which is the guest's own", place.value))
        } else if OF_PROGRAMS.iter().any(|dir| path == Path::new(dir)) {
            Some(format!("\"{}\" would hide the programs that are packed there", place.value))
        } else {
            None
        };
        if let Some(message) = wrong {
            self.source
                .problem(place.span, "disk.mount", message)
                .help("a directory of its own, for example \"/data\"");
        }
        place.value.into()
    }

    /// Reads words of a command that init's plan can contain.
    fn words_of(&mut self, fields: &mut TableFields, key: &str) -> Vec<String> {
        let mut words = Vec::new();
        for word in fields.strings(&mut self.source, key) {
            if word.value.contains('\0') {
                let message = "holds a NUL, which no argument can".into();
                self.source.problem(word.span, &fields.key(key), message);
            }
            words.push(word.value);
        }
        words
    }

    /// Checks whether the guest can have a disk of that size.
    fn fits(&mut self, disk: &Disk, size: &Located<i64>, memory_mb: u32) {
        let mut problem = |message: String, help: &str| {
            self.source.problem(size.span.clone(), "disk.size_mb", message).help(help);
        };
        let min = MIN_MB.iter().find(|(filesystem, _)| *filesystem == disk.filesystem);
        if let Some((filesystem, min)) = min.filter(|(_, min)| disk.size_mb < *min) {
            let word = filesystem.name();
            problem(format!("{word} takes {min} MiB at least, not {}", disk.size_mb), "make it larger");
        }
        match disk.kind {
            DiskKind::NullBlk { .. } | DiskKind::Brd if disk.size_mb >= memory_mb => problem(
                format!("the disk is memory of the guest, of which there are {memory_mb} MiB (`memory_mb`)"),
                "make it smaller, or raise `memory_mb`",
            ),
            DiskKind::Pmem if disk.size_mb > PMEM_MAX_MB => problem(
                format!("persistent memory has at most {PMEM_MAX_MB} MiB"),
                "make it smaller, or use kind = \"brd\"",
            ),
            DiskKind::Pmem if memory_mb < PMEM_MEMORY_MB => problem(
                format!("beside persistent memory `memory_mb` must be {PMEM_MEMORY_MB} at least"),
                "raise `memory_mb`",
            ),
            _ => {}
        }
    }

    /// Reports two files with the same name on the disk.
    fn same_places(&mut self, disk: &Disk, listed: &[Located<String>]) {
        for (at, file) in listed.iter().enumerate() {
            let place = disk.place(Path::new(&file.value));
            let Some(place) = place else { continue };
            let before =
                |other: &Located<String>| disk.place(Path::new(&other.value)).as_ref() == Some(&place);
            if listed[..at].iter().any(before) {
                let message = format!("another file is {}, too", place.display());
                self.source
                    .problem(file.span.clone(), "disk.files", message)
                    .help("a file is on the disk by its last name");
            }
        }
    }

    /// Requires the program that creates the file system.
    fn maker(&mut self, disk: &Disk, fields: &TableFields) {
        let Some(maker) = disk.filesystem.maker() else { return };
        for option in disk.filesystem.taken() {
            if disk.mkfs_options.iter().any(|word| word.starts_with(option)) {
                let message =
                    format!("{maker}'s {option} is kerntune's, so that each disk comes out the same");
                self.source
                    .problem(fields.value_span("mkfs_options"), "disk.mkfs_options", message)
                    .help("leave it out");
            }
        }
        self.require(
            fields.value_span("filesystem"),
            "disk.filesystem",
            HostNeedKind::Maker(disk.filesystem),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::reader::read_host_needs;
    use crate::Problem;
    use std::path::Path;

    fn problems(disk: &str) -> Vec<String> {
        let text = format!("[disk]\n{disk}\n[[measured.step]]\ncommand = [\"rr\"]\n");
        read_host_needs(&text, Path::new("x.toml")).1.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn three_keys_are_enough() {
        assert_eq!(problems("kind = \"null_blk\"\nsize_mb = 512\nfilesystem = \"xfs\""), [""; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_place() {
        assert_eq!(
            problems("size_m = 5"),
            [
                "1:1: disk.kind: is missing",
                "1:1: disk.size_mb: is missing",
                "1:1: disk.filesystem: is missing",
                "2:1: disk.size_m: is not a known key (did you mean `size_mb`?)",
            ]
        );
        assert_eq!(
            problems(
                "kind = \"brd\"\nsize_mb = 64\nlatency_us = 5\nqueues = 2\nfilesystem = \"none\"\nmount = \"/data\"\n\
                 files = [\"/etc/hostname\"]"
            ),
            [
                "4:14: disk.latency_us: a disk of the kind brd has none (kind = \"null_blk\", or leave the key out)",
                "5:10: disk.queues: a disk of the kind brd has none (kind = \"null_blk\", or leave the key out)",
                "7:9: disk.mount: is given, and there is no file system (filesystem = \"ext4\" or \"xfs\", or leave the key out)",
                "8:9: disk.files: is given, and there is no file system (filesystem = \"ext4\" or \"xfs\", or leave the key out)",
            ]
        );
        assert_eq!(
            problems(
                "kind = \"nvme\"\nsize_mb = 0\nfilesystem = \"btrfs\"\nscheduler = \"a b\"\nmount_options = \"-o ro\""
            ),
            [
                "2:8: disk.kind: \"nvme\" is no kind of disk (one of null_blk, brd, pmem, virtio)",
                "3:11: disk.size_mb: 0 is not between 1 and 1048576",
                "4:14: disk.filesystem: \"btrfs\" is no file system that is made here (one of ext4, xfs, none)",
                "5:13: disk.scheduler: \"a b\" is not a scheduler's name \
                 (none or mq-deadline, as /sys/block/*/queue/scheduler has them)",
                "6:17: disk.mount_options: \"-o ro\" is not a list of options (as `mount -o` takes them: \"noatime,nodiratime\")",
            ]
        );
    }

    #[test]
    fn a_disk_fits_into_the_guest_and_its_file_system_onto_it() {
        let of = |kind: &str, size: u32, filesystem: &str| {
            problems(&format!("kind = \"{kind}\"\nsize_mb = {size}\nfilesystem = \"{filesystem}\""))
                .join("\n")
        };
        assert_eq!(
            of("null_blk", 299, "xfs"),
            "3:11: disk.size_mb: xfs takes 300 MiB at least, not 299 (make it larger)"
        );
        assert_eq!(
            of("brd", 1024, "ext4"),
            "3:11: disk.size_mb: the disk is memory of the guest, of which there are 1024 MiB (`memory_mb`) \
             (make it smaller, or raise `memory_mb`)"
        );
        let block = "kind = \"null_blk\"\nsize_mb = 64\nblock_bytes = 1000\nfilesystem = \"none\"";
        assert_eq!(problems(block), ["4:15: disk.block_bytes: 1000 bytes are no block (512 or 4096)"]);
        assert!(of("pmem", 2048, "ext4").contains("persistent memory has at most 1024 MiB"));
        assert_eq!(of("pmem", 1024, "ext4"), "");
        // That disk is on the host.
        assert_eq!(of("virtio", 4096, "ext4"), "");
    }

    #[test]
    fn a_disk_is_mounted_where_it_hides_nothing() {
        let at = |mount: &str| {
            problems(&format!("kind = \"brd\"\nsize_mb = 64\nfilesystem = \"ext4\"\nmount = \"{mount}\""))
                .join("\n")
        };
        const HELP: &str = "(a directory of its own, for example \"/data\")";
        assert_eq!(at("/var/lib/postgresql"), "");
        assert_eq!(at("data"), format!("5:9: disk.mount: \"data\" is not an absolute path {HELP}"));
        assert_eq!(at("/a/../b"), format!("5:9: disk.mount: \"/a/../b\" is not an absolute path {HELP}"));
        assert_eq!(
            at("/tmp/x"),
            format!("5:9: disk.mount: \"/tmp/x\" is in /tmp, which is the guest's own {HELP}")
        );
        assert_eq!(
            at("/usr"),
            format!("5:9: disk.mount: \"/usr\" would hide the programs that are packed there {HELP}")
        );
    }

    #[test]
    fn files_of_one_name_and_options_that_are_pinned_are_refused() {
        let with = |more: &str| {
            problems(&format!("kind = \"brd\"\nsize_mb = 64\nfilesystem = \"ext4\"\n{more}")).join("\n")
        };
        assert_eq!(
            with("files = [\"/etc/hosts\", \"/srv/hosts\"]"),
            "5:24: disk.files: another file is /data/hosts, too (a file is on the disk by its last name)"
        );
        assert!(with("files = [\"/run/x\"]").contains("disk.files: \"/run/x\" cannot be seen in the guest"));
        assert_eq!(
            with("mkfs_options = [\"-U\", \"random\"]"),
            "5:16: disk.mkfs_options: mkfs.ext4's -U is kerntune's, so that each disk comes out the same (leave it out)"
        );
    }
}
