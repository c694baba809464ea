//! Arguments of `kerntune tags`.

use super::FormatOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TagsOptions {
    /// The names file; created if it does not exist
    pub file: PathBuf,
    /// Functions to tag; with --from-symbols, patterns (`tcp_*`)
    pub names: Vec<String>,
    /// Tag the functions of this ELF file that match a NAME
    #[arg(long, value_name = "VMLINUX")]
    pub from_symbols: Option<PathBuf>,
    /// Write the names of all functions of this kernel, whose triggers the compiler placed, with
    /// the tags that the linker assigned
    #[arg(long, value_name = "VMLINUX", conflicts_with_all = ["names", "from_symbols", "inline", "context_switch", "first"])]
    pub from_triggers: Option<PathBuf>,
    /// Tag a point inside a function; may be repeated
    #[arg(long, value_name = "NAME")]
    pub inline: Vec<String>,
    /// Tag a function that switches between processes; may be repeated
    #[arg(long, value_name = "NAME")]
    pub context_switch: Vec<String>,
    /// First tag of a new file
    #[arg(long, value_name = "TAG", default_value_t = 2)]
    pub first: u16,
    /// Write the tags for C and assembler (guest/kt_tags.h)
    #[arg(long, value_name = "FILE")]
    pub header: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
