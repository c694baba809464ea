//! `kerntune tags`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Tags {
    /// The names file; created if it does not exist
    pub file: PathBuf,
    /// Functions to tag; with --from-symbols, patterns (`tcp_*`)
    pub names: Vec<String>,
    /// Tag the functions of this ELF file that a NAME matches
    #[arg(long, value_name = "VMLINUX")]
    pub from_symbols: Option<PathBuf>,
    /// Write the names of all functions of this kernel, in which the compiler placed triggers, with the tags that the linker gave
    /// them
    #[arg(long, value_name = "VMLINUX", conflicts_with_all = ["names", "from_symbols", "inline", "context_switch", "first"])]
    pub from_triggers: Option<PathBuf>,
    /// A point inside a function; may be repeated
    #[arg(long, value_name = "NAME")]
    pub inline: Vec<String>,
    /// A function that switches between processes; may be repeated
    #[arg(long, value_name = "NAME")]
    pub context_switch: Vec<String>,
    /// The first tag of a new file
    #[arg(long, value_name = "TAG", default_value_t = 2)]
    pub first: u16,
    /// Write the tags for C and assembler (guest/kt_tags.h)
    #[arg(long, value_name = "FILE")]
    pub header: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
