//! The format `mcrae` of `kerntune import`.

use crate::import::load_names;
use crate::live_screen::{LiveScreen, NotesOnly};
use crate::{
    follow, import, DumpByteOrder, FollowRequest, LiveFigures, McraeImportRequest, StreamFormat,
    TagStreamSource,
};
use clap::Args;
use kerntune_command::{
    import_entry, print_summary, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportEntry,
    ImportInput, Recognition, RunSubcommand, TagLayoutOptions,
};
use kerntune_profile::Profile;
use kerntune_trace::TagLayout;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Entry of the format.
pub const ENTRY: ImportEntry = import_entry::<ImportMcraeOptions>("mcrae", 1, recognize);

/// Recognizes names files and dumps as text. Records of bytes look like nothing.
fn recognize(input: &ImportInput) -> Option<Recognition> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let name = |line: &str| {
        let Some((name, tag)) = line.split_once('/') else { return false };
        !name.is_empty()
            && !name.contains(char::is_whitespace)
            && is_number(tag.trim_end_matches(['!', '=', '~']))
    };
    let record = |line: &str| {
        let mut words = line.split_whitespace();
        matches!((words.next(), words.next(), words.next()), (Some(tag), Some(time), None) if is_number(tag) && is_number(time))
    };
    let all = |is: &dyn Fn(&str) -> bool| {
        let mut lines =
            input.lines()?.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = is(lines.next()?);
        Some(first && lines.all(is))
    };
    if all(&name)? {
        Recognition::certain("a names file of McRae's profiler")
    } else if all(&record)? {
        Recognition::likely("a dump of McRae's profiler as text")
    } else {
        None
    }
}

/// Dump of McRae's hardware profiler, or of a window recorded with record --tags (docs/mcrae.md)
#[derive(Debug, Args)]
pub struct ImportMcraeOptions {
    /// Names files (NAME/TAG lines), if any, and then the dump: records of bytes (5, if no option
    /// gives other widths), or lines TAG TIME. Without names files, the names of the triggers that the compiler placed in --kernel
    /// are used
    #[arg(value_name = "NAMES… DUMP", required = true, num_args = 1.., value_parser = clap::value_parser!(PathBuf))]
    files: Vec<PathBuf>,
    /// Read tags and times with the most significant byte first
    #[arg(long)]
    big_endian: bool,
    /// Import only the first N records; a memory that was not full ends with records of an earlier
    /// capture
    #[arg(long, value_name = "N")]
    records: Option<usize>,
    /// The kernel that ran, which gives the functions' source files: label, beginning of an id, or
    /// directory
    #[arg(long)]
    kernel: Option<String>,
    /// Receive tags, write them to DUMP until the stream ends or Ctrl-C is pressed, and import
    /// them: from a port (one connection from this machine), ADDRESS:PORT, a named pipe, or a
    /// serial line
    #[arg(long, value_name = "PORT|FIFO|SERIAL")]
    follow: Option<TagStreamSource>,
    /// Format of the stream: records of bytes, lines of text, or the bytes that KT_TAGS_UART sends,
    /// which are timed on arrival
    #[arg(long, value_name = "FORM", default_value = "records", value_parser = ["records", "text", "uart"], requires = "follow")]
    form: String,
    /// Speed of the serial line, in baud
    #[arg(long, value_name = "RATE", default_value_t = 230_400, requires = "follow")]
    baud: u32,
    /// Show the functions in this interval while tags arrive: on a terminal each second if not
    /// given, elsewhere only if given
    #[arg(long, value_name = "SECONDS", requires = "follow", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: Option<u64>,
    #[command(flatten)]
    widths: TagLayoutOptions,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportMcraeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
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
        let layout = self.widths.layout()?;
        let order = if self.big_endian { DumpByteOrder::Big } else { DumpByteOrder::Little };
        let form = match &self.follow {
            Some(source) => {
                let names = load_names(names, kernel.as_ref(), layout)?;
                let interval = self.interval.map(Duration::from_secs);
                let figures = LiveFigures::new(&names, layout);
                let screen = if global.quiet { None } else { LiveScreen::new(figures, interval) };
                Some(self.receive(source, order, layout, dump, screen, output)?)
            }
            None => None,
        };
        let request = McraeImportRequest {
            names,
            dump,
            form,
            order,
            layout,
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
        print_summary(&profile, self.format, &next, output)?;
        Ok(Exit::Ok)
    }
}

impl ImportMcraeOptions {
    /// Writes the received records to the dump, and returns the format of the dump.
    fn receive(
        &self,
        source: &TagStreamSource,
        order: DumpByteOrder,
        layout: TagLayout,
        dump: &Path,
        mut screen: Option<LiveScreen>,
        output: &CliOutput,
    ) -> Result<StreamFormat, Failure> {
        let form = match self.form.as_str() {
            "text" => StreamFormat::Text,
            "uart" => StreamFormat::Uart,
            _ => StreamFormat::Records(order),
        };
        let wanted = FollowRequest { source, form, layout, baud: self.baud, dump, records: self.records };
        let followed = match &mut screen {
            Some(screen) => {
                follow(&wanted, &mut |records| screen.add(records), &NotesOnly(output.progress()))
            }
            None => follow(&wanted, &mut |_| {}, output.progress()),
        };
        // The terminal shows its usual screen again before anything is printed.
        drop(screen);
        let followed = followed?;
        let why = if followed.interrupted { ", ended by a signal" } else { "" };
        output.note(&format!("{} records in {}{why}", followed.records, dump.display()));
        if followed.passed_over > 0 {
            output.note(&format!(
                "note: {} bytes that are not a whole record were skipped",
                followed.passed_over
            ));
        }
        Ok(StreamFormat::Records(DumpByteOrder::Little))
    }
}
