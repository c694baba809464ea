//! `kerntune export uftrace`.

use super::Entry;
use crate::exit::{Exit, Failure};
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_tune::export;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("uftrace", 4);

/// The trace as a data directory for uftrace (report, graph, tui, dump --chrome …)
#[derive(Debug, Args)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The directory to make, for `uftrace report -d`
    #[arg(long, short, default_value = "uftrace.data", value_name = "DIR")]
    output: PathBuf,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let subject = Subject::open(global, &self.profile)?;
        let records = export::uftrace(&subject.profile, &subject.directory, &self.output, output.progress())?;
        output.note(&format!("{records} records in {}", self.output.display()));
        output.note(&format!("`uftrace report -d {}` reads them", self.output.display()));
        Ok(Exit::Ok)
    }
}
