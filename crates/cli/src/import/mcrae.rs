//! `kerntune import mcrae`.

use super::{show, Entry};
use crate::exit::{Exit, Failure};
use crate::global::{work, Global, Json};
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::mcrae::{Form, Order};
use kerntune_profile::Profile;
use kerntune_tune::follow_mcrae::{follow, FollowRequest, Source};
use kerntune_tune::import_mcrae::{import, Request};
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = entry::<_, Options>("mcrae", 1);

/// Dump of McRae's hardware profiler, or of a window watched with record --tags (docs/mcrae.md)
#[derive(Debug, Args)]
pub struct Options {
    /// Names files (NAME/TAG lines), one or several, and then the dump: records of 5 bytes, or lines
    /// TAG TIME. Without names, those of the triggers that the compiler placed in --kernel
    #[arg(value_name = "NAMES… DUMP", required = true, num_args = 1.., value_parser = clap::value_parser!(PathBuf))]
    files: Vec<PathBuf>,
    /// Tags and times have their most significant byte first
    #[arg(long)]
    big_endian: bool,
    /// Import only the first N records: a memory that was not full ends with records of an earlier capture
    #[arg(long, value_name = "N")]
    records: Option<usize>,
    /// The kernel that ran, for the functions' source files: label, beginning of an id, or directory
    #[arg(long)]
    kernel: Option<String>,
    /// Receive tags, write them to DUMP until the stream ends or Ctrl-C is pressed, and import that: a port (one connection
    /// from this machine), ADDRESS:PORT, a named pipe, or a serial line
    #[arg(long, value_name = "PORT|FIFO|SERIAL")]
    follow: Option<Source>,
    /// Format of the stream: records of 5 bytes, lines of text, or pairs of bytes as KT_TAGS_UART sends them, which are timed on
    /// arrival
    #[arg(long, value_name = "FORM", default_value = "records", value_parser = ["records", "text", "uart"], requires = "follow")]
    form: String,
    /// Speed of a serial line
    #[arg(long, value_name = "RATE", default_value_t = 230_400, requires = "follow")]
    baud: u32,
    #[command(flatten)]
    format: Json,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let work = work(global)?;
        let Some((dump, names)) = self.files.split_last() else {
            return Err(Failure::usage("give a dump: kerntune import mcrae NAMES… DUMP"));
        };
        let kernel = match &self.kernel {
            Some(kernel) => Some(kerntune_kernel::find(&work, kernel)?),
            None => None,
        };
        if names.is_empty() && kernel.is_none() {
            return Err(Failure::usage(
                "give a names file and a dump (kerntune import mcrae NAMES… DUMP), or with --kernel a kernel \
                 in which the compiler placed triggers",
            ));
        }
        let order = if self.big_endian { Order::Big } else { Order::Little };
        let form = match &self.follow {
            Some(source) => Some(self.receive(source, order, dump, output)?),
            None => None,
        };
        let request = Request { names, dump, form, order, records: self.records, kernel: kernel.as_ref() };
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

impl Options {
    /// Writes what comes to the dump; the form in which it is there.
    fn receive(&self, source: &Source, order: Order, dump: &Path, output: &Output) -> Result<Form, Failure> {
        let form = match self.form.as_str() {
            "text" => Form::Text,
            "uart" => Form::Uart,
            _ => Form::Records(order),
        };
        let wanted = FollowRequest { source, form, baud: self.baud, dump, records: self.records };
        let followed = follow(&wanted, output.progress())?;
        let why = if followed.interrupted { ", ended by a signal" } else { "" };
        output.note(&format!("{} records in {}{why}", followed.records, dump.display()));
        if followed.passed_over > 0 {
            output.note(&format!(
                "note: {} bytes that are not a whole record were skipped",
                followed.passed_over
            ));
        }
        Ok(Form::Records(Order::Little))
    }
}
