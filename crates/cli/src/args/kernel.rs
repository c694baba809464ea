//! `kerntune kernel`.

use super::{Build, Json};
use crate::kernel_words::label;
use clap::Subcommand;
use kerntune_kernel::{Arch, ObjectFlags};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Kernel {
    /// Build a kernel; the same inputs are never built twice
    Build {
        #[command(flatten)]
        build: Build,
        /// Architecture: x86-64, or um for a kernel that runs as a process (User-Mode Linux, docs/uml.md)
        #[arg(long, default_value_t, value_name = "ARCH")]
        arch: Arch,
        /// Label of the kernel; base-disk or base-pmem by default if it gets the drivers of a workload's disk
        #[arg(long, default_value = "base", value_parser = label)]
        label: String,
        /// Add the drivers that this workload's disk needs (docs/disk.md): a name or a .toml file; may be repeated
        #[arg(long, value_name = "WORKLOAD")]
        workload: Vec<String>,
        /// Give every function a section of its own and keep the objects (0.5 GB), so that `kernel order` can
        /// place them
        #[arg(long)]
        movable: bool,
        /// Keep the objects (0.3 GB and more), so that `kernel bisect` can mix them with another kernel's
        #[arg(long)]
        keep_objects: bool,
        /// A flag for one object (net/ipv4/tcp.o=-O3) or all below a directory (net/=-O3); may be repeated
        #[arg(long, value_name = "PATH=FLAG")]
        object_flags: Vec<ObjectFlags>,
        #[command(flatten)]
        format: Json,
    },
    /// Link a movable kernel again with its functions in another order
    Order {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Order the functions by who calls whom in this recording of the kernel
        #[arg(long, required_unless_present = "file", conflicts_with = "file")]
        profile: Option<String>,
        /// Algorithm of the order (docs/layout.md)
        #[arg(long, default_value = "c3", value_parser = ["pettis-hansen", "c3", "cdsort"], conflicts_with = "file")]
        algorithm: String,
        /// With a profile that has functions: cache colouring, for a 32-KiB cache with 8 ways
        #[arg(long, requires = "profile", conflicts_with = "file")]
        sets: bool,
        /// Place the functions of this file first: one name per line, with `@ OFFSET` if it has a fixed place
        #[arg(long)]
        file: Option<PathBuf>,
        /// Label of the new kernel
        #[arg(long, value_parser = label)]
        label: String,
        #[command(flatten)]
        format: Json,
    },
    /// List the kernels that were built
    List {
        #[command(flatten)]
        format: Json,
    },
    /// Show where a kernel comes from
    Show {
        /// Label, beginning of an id, or directory
        kernel: String,
        #[command(flatten)]
        format: Json,
    },
    /// Run functional checks on a kernel: does it work as a kernel must?
    #[command(alias = "check")]
    Selftest {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// The kernel whose answers count as right [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        against: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Build a kernel again from its source and compare every byte
    #[command(alias = "verify")]
    Reproduce {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Parallel jobs; all CPUs if not given
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: Json,
    },
    /// Find which objects break a kernel: it does not boot, or fails a check (docs/bisect.md)
    Bisect {
        /// The kernel that fails: label, beginning of an id, or directory
        kernel: String,
        /// The same kernel, compiled so that it works [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        good: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Delete a kernel
    Remove {
        /// Label, beginning of an id, or directory
        kernel: String,
    },
}
