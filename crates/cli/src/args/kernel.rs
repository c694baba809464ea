//! Arguments of `kerntune kernel`.

use super::{BuildOptions, FormatOptions};
use crate::kernel_words::label;
use clap::Subcommand;
use kerntune_kernel::{Arch, ObjectFlags};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Build a kernel; the same inputs are never built twice
    Build {
        #[command(flatten)]
        build: BuildOptions,
        /// Architecture: x86-64, or um for a kernel that runs as a process (User-Mode Linux,
        /// docs/uml.md)
        #[arg(long, default_value_t, value_name = "ARCH")]
        arch: Arch,
        /// Label of the kernel; base-disk or base-pmem if not given and the kernel gets the drivers
        /// of a workload's disk
        #[arg(long, default_value = "base", value_parser = label)]
        label: String,
        /// Add the drivers that this workload's disk needs (docs/disk.md): a name or a .toml file; may be repeated
        #[arg(long, value_name = "WORKLOAD")]
        workload: Vec<String>,
        /// Put every function into its own section and keep the objects (0.5 GB), so that `kernel
        /// relink` can place functions
        #[arg(long)]
        movable: bool,
        /// Keep the objects (0.3 GB and more), so that `kernel bisect` can mix them with another kernel's
        #[arg(long)]
        keep_objects: bool,
        /// Compiler flag for one object (net/ipv4/tcp.o=-O3) or for a directory (net/=-O3); may be
        /// repeated
        #[arg(long, value_name = "PATH=FLAG")]
        object_flags: Vec<ObjectFlags>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Relink a movable kernel with its functions in another order
    #[command(alias = "order")]
    Relink {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Order the functions by the calls in this recording of the kernel
        #[arg(long, required_unless_present = "file", conflicts_with = "file")]
        profile: Option<String>,
        /// Algorithm for the order (docs/layout.md)
        #[arg(long, default_value = "c3", value_parser = ["pettis-hansen", "c3", "cdsort"], conflicts_with = "file")]
        algorithm: String,
        /// Use cache coloring for a 32-KiB cache with 8 ways; needs a profile with functions
        #[arg(long, alias = "sets", requires = "profile", conflicts_with = "file")]
        cache_coloring: bool,
        /// Place the functions of this file first: one name per line, followed by `@ OFFSET` for a
        /// fixed place
        #[arg(long)]
        file: Option<PathBuf>,
        /// Label of the new kernel
        #[arg(long, value_parser = label)]
        label: String,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// List all built kernels
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the provenance of a kernel
    Show {
        /// Label, beginning of an id, or directory
        kernel: String,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Run functional checks on a kernel
    #[command(alias = "check")]
    Selftest {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// The kernel whose results count as correct [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        against: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Build a kernel again from its source, and compare every byte
    #[command(alias = "verify")]
    Reproduce {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Number of parallel jobs [default: number of CPUs]
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Find which objects break a kernel that does not boot or fails a check (docs/bisect.md)
    Bisect {
        /// The broken kernel: label, beginning of an id, or directory
        kernel: String,
        /// A working build of the same kernel [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        good: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Delete a kernel
    Remove {
        /// Label, beginning of an id, or directory
        kernel: String,
    },
}
