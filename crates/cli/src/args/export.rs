//! `kerntune export`: one foreign format each.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ExportFormat {
    /// Executed code and taken branches for LLVM's AutoFDO (llvm-profgen --unsymbolized-profile)
    Autofdo(ExportAutofdo),
    /// The same as branch records, as perf prints a CPU's last branches (llvm-profgen --perfscript)
    Branches(ExportBranches),
    /// Taken branches and what ran between them for LLVM BOLT (llvm-bolt --pa)
    Bolt(ExportBolt),
    /// Self times and arcs for GNU gprof (gmon.out), with the symbols that go with them
    Gmon(ExportGmon),
    /// The trace as a data directory for uftrace (report, graph, tui, dump --chrome …)
    Uftrace(ExportUftrace),
}

#[derive(Debug, Args)]
pub struct ExportAutofdo {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// The file to write, for `llvm-profgen --use-offset=0`
    #[arg(default_value = "counts.txt", value_name = "OUTPUT")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExportBranches {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// The file to write, for `llvm-profgen --kernel`
    #[arg(default_value = "branches.txt", value_name = "OUTPUT")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExportBolt {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// The file to write, for `llvm-bolt --pa`
    #[arg(default_value = "bolt.txt", value_name = "OUTPUT")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExportUftrace {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// The directory to make, for `uftrace report -d`
    #[arg(long, default_value = "uftrace.data", value_name = "DIR")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExportGmon {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// The file to write; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, default_value = "gmon.out", value_name = "FILE")]
    pub output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}
