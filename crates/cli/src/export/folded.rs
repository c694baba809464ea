//! `kerntune export folded`.

use super::{Entry, Stacked};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::folded;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("folded", 20);

/// Call paths as folded stacks, `a;b;c N` a line (flamegraph.pl, inferno and many viewers)
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export folded latest -o stacks.folded\n  flamegraph.pl --countname instructions stacks.folded > flames.svg"
)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "stacks.folded", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = Stacked::open(global, &self.profile, self.region.as_deref())?;
        let lines = file.write_with(|out| folded::write(&of.stacks, out))?;
        let command =
            format!("flamegraph.pl --countname {} {}", of.stacks.unit.name(), self.output.display());
        of.done(&self.output, &format!("{lines} stacks"), &command, output);
        Ok(Exit::Ok)
    }
}
