//! `kerntune export uftrace`.

use crate::args::{ExportUftrace, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::{find, Profile};
use kerntune_tune::export;

pub fn run(global: &Global, options: &ExportUftrace, output: &Output) -> Result<Exit, Failure> {
    let entry = find(&work(global)?, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let records = export::uftrace(&profile, &entry.path, &options.output, output.progress())?;
    output.note(&format!("{records} records in {}", options.output.display()));
    output.note(&format!("`uftrace report -d {}` reads them", options.output.display()));
    Ok(Exit::Ok)
}
