//! `kerntune import mcrae`.

use super::{show, Entry};
use crate::exit::{Exit, Failure};
use crate::global::{work, Global, Json};
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::mcrae::Order;
use kerntune_profile::Profile;
use kerntune_tune::import_mcrae::{import, Request};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("mcrae", 1);

/// Dump of McRae's hardware profiler, or of a window watched with record --tags (docs/mcrae.md)
#[derive(Debug, Args)]
pub struct Options {
    /// Names files (NAME/TAG lines), one or several, and then the dump: records of 5 bytes, or lines
    /// TAG TIME
    #[arg(value_name = "NAMES… DUMP", required = true, num_args = 2.., value_parser = clap::value_parser!(PathBuf))]
    files: Vec<PathBuf>,
    /// The most significant byte of tags and times comes first
    #[arg(long)]
    big_endian: bool,
    /// Only the first N records: a memory that was not full ends with those of an earlier capture
    #[arg(long, value_name = "N")]
    records: Option<usize>,
    /// The kernel that ran, for the functions' source files: label, beginning of an id, or directory
    #[arg(long)]
    kernel: Option<String>,
    #[command(flatten)]
    format: Json,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let work = work(global)?;
        let Some((dump, names)) = self.files.split_last().filter(|(_, names)| !names.is_empty()) else {
            return Err(Failure::usage("give a names file and a dump: kerntune import mcrae NAMES… DUMP"));
        };
        let kernel = match &self.kernel {
            Some(kernel) => Some(kerntune_kernel::find(&work, kernel)?),
            None => None,
        };
        let request = Request {
            names,
            dump,
            order: if self.big_endian { Order::Big } else { Order::Little },
            records: self.records,
            kernel: kernel.as_ref(),
        };
        let import = import(&work, &request, output.progress())?;
        for note in import.notes() {
            output.note(&format!("note: {note}"));
        }
        let profile = Profile::load(&import.recorded.path)?;
        let next = format!(
            "\nprofile {}\n`kerntune report {} functions` shows the functions, `… path` the code path",
            import.recorded.path.display(),
            import.recorded.manifest.id
        );
        show(&profile, self.format.json, &next, output)?;
        Ok(Exit::Ok)
    }
}
