//! `kerntune export autofdo`.

use super::{left_out, vmlinux};
use crate::args::{ExportAutofdo, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_convert::autofdo::Unsymbolized;
use kerntune_profile::{find, Profile};

pub fn run(global: &Global, options: &ExportAutofdo, output: &Output) -> Result<Exit, Failure> {
    let file = OutputFile::new("OUTPUT", &options.output)?;
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let counts = Unsymbolized::of(&profile.tables).map_err(Failure::usage)?;
    let mut text = Vec::new();
    counts.write(&mut text).map_err(Failure::usage)?;
    file.write(&text)?;
    left_out(counts.outside_bytes, counts.executed_bytes, output);
    let image = vmlinux(&work, &profile);
    output.note(&format!("{} ranges, {} branches", counts.ranges(), counts.branches()));
    output.note(&format!(
        "llvm-profgen-19 --binary={image} --unsymbolized-profile={} --use-offset=0 --output=kernel.afdo",
        options.output.display()
    ));
    Ok(Exit::Ok)
}
