//! `kerntune export pprof`.

use super::{Entry, Stacked, CREATOR};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::pprof::{self, About};
use kerntune_convert::stacks::Unit;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("pprof", 23);

/// Call paths for pprof, as a protocol buffer compressed by gzip
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kerntune export pprof latest\n  pprof -http=: profile.pb.gz")]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "profile.pb.gz", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = Stacked::open(global, &self.profile, self.region.as_deref())?;
        let profile = &of.subject.profile;
        let sampled = profile.manifest.sampled.as_ref();
        let comments = comments(&of);
        let about = About {
            comments: &comments,
            duration_ns: sampled.map_or(0, |sampled| sampled.wall_ns.get()),
            kernel: &profile.manifest.kernel.id,
        };
        let samples = file.write_with(|out| pprof::write(&of.stacks, &profile.tables, &about, out))?;
        let command = format!("pprof -top {}", self.output.display());
        of.done(&self.output, &format!("{samples} samples"), &command, output);
        Ok(Exit::Ok)
    }
}

/// What `pprof -comments` prints.
fn comments(of: &Stacked) -> Vec<String> {
    let unit = match of.stacks.unit {
        Unit::Instructions => "values are instructions, counted exactly, and calls",
        Unit::Nanoseconds => "values are nanoseconds and calls",
        Unit::Sampled(_) => "values are samples and the time that they stand for",
    };
    vec![format!("{CREATOR}: {}", of.title), unit.to_owned()]
}
