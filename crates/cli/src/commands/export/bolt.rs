//! `kerntune export bolt`.

use super::{left_out, vmlinux};
use crate::args::{ExportBolt, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_convert::bolt::PreAggregated;
use kerntune_profile::{find, Profile};
use kerntune_tune::export;

pub fn run(global: &Global, options: &ExportBolt, output: &Output) -> Result<Exit, Failure> {
    let file = OutputFile::new("OUTPUT", &options.output)?;
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let counts = PreAggregated::of(&profile.tables).map_err(Failure::usage)?;
    let written = export::bolt(&counts, file.path())?;
    left_out(counts.outside_bytes(), counts.executed_bytes(), output);
    let image = vmlinux(&work, &profile);
    output.note(&format!(
        "{} branches in {} lines, {} straight runs in {}",
        written.branches, written.branch_lines, written.runs, written.run_lines
    ));
    output.note(&format!("llvm-bolt-19 {image} --pa -p {} -o vmlinux.bolt", options.output.display()));
    Ok(Exit::Ok)
}
