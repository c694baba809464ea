//! `kerntune export gmon`.

use crate::args::{ExportGmon, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_convert::gmon::{self, Target};
use kerntune_profile::{find, Profile};
use kerntune_work::write_atomic;
use std::path::PathBuf;

pub fn run(global: &Global, options: &ExportGmon, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let wanted = regions(&profile, options.region.as_deref())?;
    let is_wanted = |region: u32| wanted.get(region as usize).copied().unwrap_or(false);
    let exported = gmon::export(&profile.tables, is_wanted).map_err(Failure::usage)?;
    let mut symbols = options.output.clone().into_os_string();
    symbols.push(".symbols");
    let symbols = PathBuf::from(symbols);
    write_atomic(&options.output, &exported.gmon.to_bytes(Target::LITTLE_64))?;
    write_atomic(&symbols, exported.symbols.as_bytes())?;
    if exported.left_out_ns > 0 {
        output.note(&format!(
            "left out: {} ns of functions that are too small for gprof",
            exported.left_out_ns
        ));
    }
    let kernel = work.find("kernels", &profile.manifest.kernel.id);
    let image = kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string());
    output.note(&format!("gprof -S {} {image} {}", symbols.display(), options.output.display()));
    Ok(Exit::Ok)
}

/// Which regions have the wanted name or lie within one that has; all if none is wanted.
fn regions(profile: &Profile, name: Option<&str>) -> Result<Vec<bool>, Failure> {
    let tables = &profile.tables;
    let Some(name) = name else { return Ok(vec![true; tables.regions.len()]) };
    let mut wanted = vec![false; tables.regions.len()];
    for row in tables.regions.iter().filter(|row| row.name == name) {
        let within = tables.within(row.region);
        let begin = within.start as usize;
        wanted.iter_mut().skip(begin).take(within.len()).for_each(|region| *region = true);
    }
    match wanted.contains(&true) {
        true => Ok(wanted),
        false => Err(Failure::usage(format!(
            "the profile has no region \"{name}\"; `kerntune report {} summary` lists them",
            profile.manifest.id
        ))),
    }
}
