//! `kerntune export callgrind`.

use super::{Entry, Stacked, CREATOR};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::callgrind;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("callgrind", 24);

/// Functions and who calls whom for callgrind_annotate and KCachegrind
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export callgrind latest\n  callgrind_annotate --inclusive=yes callgrind.out"
)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "callgrind.out", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = Stacked::open(global, &self.profile, self.region.as_deref())?;
        let functions = file.write_with(|out| callgrind::write(&of.stacks, &of.title, CREATOR, out))?;
        let command = format!("callgrind_annotate {}", self.output.display());
        of.done(&self.output, &format!("{functions} functions"), &command, output);
        Ok(Exit::Ok)
    }
}
