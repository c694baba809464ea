//! `kerntune import`: one foreign format each. What is imported becomes a profile in the work
//! directory.

use super::Json;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ImportFormat {
    /// gmon.out of a kernel or program that was built with -pg (GNU's format, or 4.2BSD's)
    Gmon(ImportGmon),
    /// Dump of McRae's hardware profiler, or of a window watched with record --tags (docs/mcrae.md)
    Mcrae(ImportMcrae),
    /// Samples of a CPU's last branches (perf record -b), as a profile for the recipes (docs/recipes.md)
    Perf(ImportPerf),
}

#[derive(Debug, Args)]
pub struct ImportPerf {
    /// perf.data, or what `perf script --header --show-mmap-events -F cpu,ip,brstack` printed of it
    pub file: PathBuf,
    /// The kernel that ran: label, beginning of an id, or directory
    #[arg(long)]
    pub kernel: String,
    /// What it was busy with
    #[arg(long, value_name = "NAME", default_value = "perf")]
    pub workload: String,
    /// CPUs without a sample were idle: nothing is missing
    #[arg(long)]
    pub idle_cpus: bool,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct ImportGmon {
    /// The kernel or program, with its symbols
    #[arg(value_name = "VMLINUX")]
    pub image: PathBuf,
    /// The gmon.out that it wrote; several are added up
    #[arg(value_name = "GMON", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct ImportMcrae {
    /// Names files (NAME/TAG lines), one or several, and then the dump: records of 5 bytes, or lines
    /// TAG TIME
    #[arg(value_name = "NAMES… DUMP", required = true, num_args = 2.., value_parser = clap::value_parser!(PathBuf))]
    pub files: Vec<PathBuf>,
    /// The most significant byte of tags and times comes first
    #[arg(long)]
    pub big_endian: bool,
    /// Only the first N records: a memory that was not full ends with those of an earlier capture
    #[arg(long, value_name = "N")]
    pub records: Option<usize>,
    /// The kernel that ran, for the functions' source files: label, beginning of an id, or directory
    #[arg(long)]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub format: Json,
}
