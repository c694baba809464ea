//! `kerntune import`: one foreign format each. What is imported becomes a profile in the work
//! directory.

use super::Json;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ImportFormat {
    /// gmon.out of a kernel or program that was built with -pg (GNU's format, or 4.2BSD's)
    Gmon(ImportGmon),
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
