//! `kerntune export gmon`.

use super::vmlinux;
use crate::args::{ExportGmon, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_convert::gmon::{self, Target};
use kerntune_profile::{find, Profile};
use std::path::PathBuf;

pub fn run(global: &Global, options: &ExportGmon, output: &Output) -> Result<Exit, Failure> {
    let mut symbols = options.output.clone().into_os_string();
    symbols.push(".symbols");
    let symbols = PathBuf::from(symbols);
    let files = [OutputFile::new("--output", &options.output)?, OutputFile::new("--output", &symbols)?];
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let scope = kerntune_report::scope(&profile, options.region.as_deref())?;
    let exported = gmon::export(&profile.tables, |region| scope.contains(region)).map_err(Failure::usage)?;
    files[0].write(&exported.gmon.to_bytes(Target::LITTLE_64))?;
    files[1].write(exported.symbols.as_bytes())?;
    if exported.left_out_ns > 0 {
        output.note(&format!(
            "left out: {} ns of functions that are too small for gprof",
            exported.left_out_ns
        ));
    }
    let image = vmlinux(&work, &profile);
    output.note(&format!("gprof -S {} {image} {}", symbols.display(), options.output.display()));
    Ok(Exit::Ok)
}
