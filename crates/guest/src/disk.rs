//! A workload's disk: its needs from the machine, the kernel and the guest.
//!
//! All kinds but [`DiskKind::Virtio`] are in guest memory and take virtual time, so that runs
//! repeat (`docs/disk.md`). In the guest, `embedded/guest/disk.c` (`kt-disk`) sets the disk up with the
//! arguments of [`Disk::command`].

use crate::drivers::{driver_module, has_option};
use kerntune_work::ContentHash;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Program that sets the disk up in the guest.
pub(crate) const PROGRAM: &str = "kt-disk";
/// Device file in the guest, whatever the kind.
pub const DEVICE: &str = "/dev/kt-disk";
/// UUID of file systems, fixed so that they are always the same.
const UUID: &str = "6b65726e-7475-4e65-8000-6469736b0001";
/// Start of persistent memory, in MiB: above the kernel, and below the initial RAM disk, which is
/// loaded at the end.
const PMEM_START_MB: u32 = 256;

/// A disk as `[disk]` of a workload describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Kind of block device.
    pub kind: DiskKind,
    /// Size in MiB.
    pub size_mb: u32,
    /// The block layer's scheduler; `None` leaves it to the kernel.
    pub scheduler: Option<String>,
    /// File system to create.
    pub filesystem: Filesystem,
    /// Further arguments of the program that creates it.
    pub mkfs_options: Vec<String>,
    /// Mount point of the file system.
    pub mount: PathBuf,
    /// Options as `mount -o` takes them.
    pub mount_options: String,
    /// Absolute paths of host files or directories to copy below `mount`, under their last names.
    pub files: Vec<PathBuf>,
}

/// Kind of block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DiskKind {
    /// null_blk: blk-mq requests, answered from memory after a fixed time.
    NullBlk {
        /// Microseconds of guest time from a request's start to its completion.
        latency_us: u32,
        /// Requests that each hardware queue holds.
        queue_depth: u32,
        /// Number of hardware queues.
        queues: u32,
        /// Block size in bytes, 512 or 4096. null_blk copies block by block, so small blocks cost
        /// more.
        block_bytes: u32,
    },
    /// brd: a RAM disk, answered at once by the CPU that asks.
    Brd,
    /// Persistent memory with DAX, answered at once.
    Pmem,
    /// virtio-blk with a file of the host; runs do not repeat.
    Virtio,
}

/// File system of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// No file system: programs open [`DEVICE`].
    None,
}

impl Disk {
    /// Hashes every field, for the keys of results.
    pub fn content_hash(&self) -> String {
        // Lists every field, so that a new one is not forgotten.
        let Self { kind, size_mb, scheduler, filesystem, mkfs_options, mount, mount_options, files } = self;
        let hash = ContentHash::new("disk/1").field("kind", kind.name());
        let hash = match kind {
            DiskKind::NullBlk { latency_us, queue_depth, queues, block_bytes } => hash
                .field("latency", latency_us.to_string())
                .field("queue depth", queue_depth.to_string())
                .field("queues", queues.to_string())
                .field("block", block_bytes.to_string()),
            DiskKind::Brd | DiskKind::Pmem | DiskKind::Virtio => hash,
        };
        hash.field("size", size_mb.to_string())
            .list("scheduler", scheduler)
            .field("filesystem", filesystem.name())
            .list("mkfs options", mkfs_options)
            .field("mount", mount.as_os_str().as_encoded_bytes())
            .field("mount options", mount_options)
            .list("files", files.iter().map(|path| path.as_os_str().as_encoded_bytes()))
            .finish()
    }
}

impl DiskKind {
    /// Names of all kinds.
    pub const NAMES: [&'static str; 4] = ["null_blk", "brd", "pmem", "virtio"];

    /// Returns the kind's name in workload files.
    pub fn name(self) -> &'static str {
        match self {
            Self::NullBlk { .. } => "null_blk",
            Self::Brd => "brd",
            Self::Pmem => "pmem",
            Self::Virtio => "virtio",
        }
    }
}

impl Filesystem {
    /// Names of all file systems.
    pub const NAMES: [&'static str; 3] = ["ext4", "xfs", "none"];

    /// Returns the file system's name in workload files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::None => "none",
        }
    }

    /// Returns the program that creates the file system.
    pub(crate) fn maker(self) -> Option<&'static str> {
        match self {
            Self::Ext4 => Some("mkfs.ext4"),
            Self::Xfs => Some("mkfs.xfs"),
            Self::None => None,
        }
    }

    /// Returns the Debian package of that program.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::None => "",
        }
    }

    /// Arguments that make the file system reproducible and leave no work for after the mount.
    /// Blocks of ext4 have the size of pages even on small disks, as DAX requires.
    fn pinned(self) -> Vec<String> {
        let words = match self {
            Self::Ext4 => format!(
                "-q -F -b 4096 -U {UUID} -E hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0,nodiscard"
            ),
            Self::Xfs => format!("-q -f -K -m uuid={UUID}"),
            Self::None => String::new(),
        };
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// Options that a workload must not pass, because they are fixed.
    pub(crate) fn taken(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-U", "-E"],
            Self::Xfs => &["-f", "-K"],
            Self::None => &[],
        }
    }
}

impl Disk {
    /// Checks whether runs with the disk repeat, because it takes only virtual time.
    pub fn repeats(&self) -> bool {
        self.kind != DiskKind::Virtio
    }

    /// Returns the MiB of memory that the disk takes in addition to the guest's; other kinds use
    /// the guest's memory.
    pub fn memory_mb(&self) -> u32 {
        if self.kind == DiskKind::Pmem {
            self.size_mb
        } else {
            0
        }
    }

    /// Returns the disk's options for the kernel command line.
    pub fn kernel_options(&self) -> String {
        match self.kind {
            // No default device of 250 GB: configfs creates ours.
            DiskKind::NullBlk { .. } => "null_blk.nr_devices=0".into(),
            DiskKind::Brd => {
                format!("brd.rd_nr=1 brd.max_part=0 brd.rd_size={}", u64::from(self.size_mb) * 1024)
            }
            DiskKind::Pmem => format!("memmap={}M!{PMEM_START_MB}M", self.size_mb),
            DiskKind::Virtio => String::new(),
        }
    }

    /// Returns the kernel options that the disk needs, built in or as modules.
    pub fn needs(&self) -> Vec<&'static str> {
        let mut needs = match self.kind {
            DiskKind::NullBlk { .. } => vec!["CONFIG_BLK_DEV_NULL_BLK", "CONFIG_CONFIGFS_FS"],
            DiskKind::Brd => vec!["CONFIG_BLK_DEV_RAM"],
            DiskKind::Pmem => vec!["CONFIG_X86_PMEM_LEGACY", "CONFIG_BLK_DEV_PMEM"],
            DiskKind::Virtio => vec!["CONFIG_VIRTIO_BLK"],
        };
        needs.extend(match self.filesystem {
            Filesystem::Ext4 => Some("CONFIG_EXT4_FS"),
            Filesystem::Xfs => Some("CONFIG_XFS_FS"),
            Filesystem::None => None,
        });
        let dax = |option: &str| option == "dax" || option == "dax=always" || option == "dax=inode";
        if self.mount_options.split(',').any(dax) {
            needs.push("CONFIG_FS_DAX");
        }
        needs
    }

    /// Returns those of [`Disk::needs`] that a configuration lacks.
    pub fn lacking(&self, config: &str) -> Vec<&'static str> {
        let is_module = |option: &str| driver_module(option).is_some() && has_option(config, option, "=m");
        let has = |option: &&str| has_option(config, option, "=y") || is_module(option);
        self.needs().into_iter().filter(|option| !has(option)).collect()
    }

    /// Command that creates the file system, without the device.
    fn mkfs(&self) -> Vec<String> {
        let Some(maker) = self.filesystem.maker() else { return Vec::new() };
        let mut words = vec![maker.to_owned()];
        words.extend(self.filesystem.pinned());
        words.extend(self.mkfs_options.iter().cloned());
        words
    }

    /// Command that sets the disk up in the guest, as `embedded/guest/disk.c` parses it.
    pub(crate) fn command(&self) -> Vec<String> {
        let mut words: Vec<String> = vec![PROGRAM.into(), self.kind.name().into()];
        let mut put = |key: &str, value: &str| words.push(format!("{key}={value}"));
        put("size_mb", &self.size_mb.to_string());
        if let DiskKind::NullBlk { latency_us, queue_depth, queues, block_bytes } = self.kind {
            put("latency_us", &latency_us.to_string());
            put("queue_depth", &queue_depth.to_string());
            put("queues", &queues.to_string());
            put("block_bytes", &block_bytes.to_string());
        }
        if let Some(scheduler) = &self.scheduler {
            put("scheduler", scheduler);
        }
        if self.filesystem != Filesystem::None {
            put("filesystem", self.filesystem.name());
            put("mount", &self.mount.to_string_lossy());
            put("options", &self.mount_options);
            self.mkfs().iter().for_each(|word| put("mkfs", word));
            self.files.iter().for_each(|file| put("file", &file.to_string_lossy()));
        }
        words
    }

    /// Path of a host file on the disk.
    pub(crate) fn place(&self, file: &Path) -> Option<PathBuf> {
        Some(self.mount.join(file.file_name()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn disk(keys: &str) -> Disk {
        let text = format!("[disk]\n{keys}\n[[measured.step]]\ncommand = [\"rr\"]\n");
        Workload::parse(&text, Path::new("x.toml")).unwrap().disk.unwrap()
    }

    #[test]
    fn the_guest_is_told_all_of_it() {
        let disk = disk(
            "kind = \"null_blk\"\nsize_mb = 512\nlatency_us = 30\nqueue_depth = 32\nscheduler = \"none\"\nfilesystem = \"xfs\"\n\
             mkfs_options = [\"-b\", \"size=4096\"]\nmount = \"/srv\"\nmount_options = \"noatime\"\nfiles = [\"/etc/hostname\"]",
        );
        assert_eq!(
            disk.command().join(" "),
            "kt-disk null_blk size_mb=512 latency_us=30 queue_depth=32 queues=1 block_bytes=4096 scheduler=none filesystem=xfs mount=/srv \
             options=noatime mkfs=mkfs.xfs mkfs=-q mkfs=-f mkfs=-K mkfs=-m mkfs=uuid=6b65726e-7475-4e65-8000-6469736b0001 mkfs=-b \
             mkfs=size=4096 file=/etc/hostname"
        );
    }

    #[test]
    fn kinds_ask_for_different_things_of_machine_and_kernel() {
        let pmem = disk(
            "kind = \"pmem\"\nsize_mb = 128\nfilesystem = \"ext4\"\nmount_options = \"noatime,dax=always\"",
        );
        assert_eq!((pmem.kernel_options().as_str(), pmem.memory_mb()), ("memmap=128M!256M", 128));
        assert_eq!(
            pmem.lacking("CONFIG_EXT4_FS=y\nCONFIG_BLK_DEV_PMEM=m\nCONFIG_FS_DAX=m\n"),
            ["CONFIG_X86_PMEM_LEGACY", "CONFIG_FS_DAX"]
        );
        let brd = disk("kind = \"brd\"\nsize_mb = 64\nfilesystem = \"none\"");
        assert_eq!(brd.kernel_options(), "brd.rd_nr=1 brd.max_part=0 brd.rd_size=65536");
        assert_eq!((brd.needs(), brd.memory_mb(), brd.repeats()), (vec!["CONFIG_BLK_DEV_RAM"], 0, true));
        assert_eq!(brd.command().join(" "), "kt-disk brd size_mb=64");
        assert!(!disk("kind = \"virtio\"\nsize_mb = 64\nfilesystem = \"none\"").repeats());
    }
}
