//! Preparation of Clang's profile from a recording of the training run.

use super::flags::PROFILE_FILE;
use super::modules::executed_modules;
use super::profile::{FUNCTIONS, TREE};
use super::{functions, AutofdoProfile, AutofdoSummary, ExecutedFunction};
use crate::llvm::{ProfileTools, ToolFailure};
use crate::stored::store;
use crate::{debug_info, quality, Error, Result};
use kerntune_convert::autofdo::{SampleProfile, UnsymbolizedProfile};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_profile::Profile;
use kerntune_work::{write_json, IoContext, Key, WorkDir};
use std::fs;
use std::path::PathBuf;

const COUNTS: &str = "counts.txt";
/// Profile of the kernel's image alone, if there are modules as well.
const IMAGE: &str = "image.afdo";
const LOG: &str = "llvm-profgen.log";

/// Least share of the executed bytes that must be in the sample profile. The rest is assembly code,
/// or the line tables do not fit.
const MIN_ATTRIBUTED: f64 = 0.5;
/// Least share of the executed C functions that must be in the sample profile.
const MIN_MATCHED: f64 = 0.8;

/// Makes a sample profile from a recording of `kernel` with edges, ideally of the training run.
///
/// The result is named by its content; an existing result is reused.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]), a kernel without debug
/// information, absent programs, and a sample profile with too few of the counts. With any of these
/// the profile would have no effect.
pub fn prepare_profile(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<AutofdoProfile> {
    let recorded = &recording.manifest;
    let quality = quality::pass_instructions(work, recording, kernel)?;
    debug_info::check_discriminators(kernel)?;
    let counts = UnsymbolizedProfile::of(&recording.tables)
        .map_err(|reason| Error::NoCounts { profile: recorded.id.clone(), reason })?;
    let mut text = Vec::new();
    counts.write(&mut text).at("write", COUNTS)?;
    let llvm = ProfileTools::of(&kernel.manifest.cc.parse::<Compiler>()?)?;
    let modules = executed_modules(kernel, &recording.tables)?;
    let mut key = Key::new("clang-autofdo/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("tools", llvm.versions()?)
        .field("counts", &text);
    for module in &modules {
        key = key
            .field("module", &module.module.name)
            .field("its code", &module.module.bytes)
            .field("its counts", module.text()?);
    }
    store(work, &key, Some(&quality), |dir| {
        let at = |name: &str| dir.join(name);
        fs::write(at(COUNTS), &text).at("write", at(COUNTS))?;
        fs::create_dir(at(TREE)).at("create", at(TREE))?;

        let failed = |failed: ToolFailure| failed.on(&kernel.manifest.label);
        let profile = at(TREE).join(PROFILE_FILE);
        let of_image = if modules.is_empty() { profile.clone() } else { at(IMAGE) };
        llvm.profgen(&kernel.vmlinux(), &at(COUNTS), &of_image, &at(LOG)).map_err(failed)?;
        let samples = llvm.samples(&of_image, dir).map_err(failed)?;
        let of_modules = modules.iter().map(|module| module.samples(&llvm, dir));
        let of_modules = of_modules.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut hot_from = samples.hot_from(functions::HOT_SHARE);
        if !modules.is_empty() {
            let parts = of_modules.iter().flatten().map(|(part, _)| part);
            let parts: Vec<&PathBuf> = std::iter::once(&of_image).chain(parts).collect();
            llvm.merge(&parts, &profile, &at("llvm-profdata-merge.log")).map_err(failed)?;
            hot_from = llvm.samples(&profile, dir).map_err(failed)?.hot_from(functions::HOT_SHARE);
        }

        let hot = hot_from.unwrap_or(u64::MAX);
        let mut ran = functions::ran(&recording.tables, None, (&samples, hot));
        let mut summary = summarize(&counts, &samples, &ran);
        summary.hot_from = hot_from.unwrap_or_default();
        judge(&summary, &ran)
            .map_err(|reason| Error::PoorSamples { profile: recorded.id.clone(), reason })?;
        for (module, samples) in modules.iter().zip(&of_modules) {
            let none = SampleProfile::default();
            let samples = samples.as_ref().map_or(&none, |(_, samples)| samples);
            let of_module = functions::ran(&recording.tables, Some(&module.module.name), (samples, hot));
            summary.modules.push(module.summarize(samples, &of_module));
            ran.extend(of_module);
        }
        write_json(&at(FUNCTIONS), &ran)?;
        let (kernel, recording) = (kernel.manifest.id.clone(), recorded.id.clone());
        Ok(AutofdoProfile { dir: dir.into(), id: key.id(), kernel, recording, summary })
    })
}

fn summarize(
    counts: &UnsymbolizedProfile,
    samples: &SampleProfile,
    ran: &[ExecutedFunction],
) -> AutofdoSummary {
    let number = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
    let count = |wanted: &dyn Fn(&ExecutedFunction) -> bool| ran.iter().filter(|f| wanted(f)).count() as u64;
    AutofdoSummary {
        ranges: counts.ranges() as u64,
        branches: counts.branches() as u64,
        executed_bytes: number(counts.executed_bytes),
        outside_bytes: number(counts.outside_bytes),
        attributed_bytes: number(samples.total()),
        functions: ran.len() as u64,
        c_functions: count(&|f| f.is_c()),
        matched_functions: count(&|f| f.is_c() && f.in_profile.is_some()),
        hot_functions: count(&|f| f.hot),
        hot_from: 0,
        modules: Vec::new(),
    }
}

/// Returns an error with the reason if the sample profile is too poor to use.
fn judge(summary: &AutofdoSummary, ran: &[ExecutedFunction]) -> Result<(), String> {
    let percent = |share: f64| share * 100.0;
    if summary.attributed_bytes == 0 {
        return Err(
            "llvm-profgen found no line of the source for any of its addresses; was vmlinux stripped or \
                    built again after the recording?"
                .into(),
        );
    }
    let lost = ran.iter().find(|f| f.is_c() && f.in_profile.is_none());
    let lost = lost.map_or(String::new(), |f| format!(" (most of what is lost is of {})", f.name));
    if summary.attributed_share() < MIN_ATTRIBUTED {
        return Err(format!(
            "it holds {:.1} % of what ran, {:.0} % are needed{lost}: the kernel's line tables do not fit its code",
            percent(summary.attributed_share()),
            percent(MIN_ATTRIBUTED)
        ));
    }
    if summary.matched_share() < MIN_MATCHED {
        return Err(format!(
            "it has {} of the {} functions in C that ran, {:.0} % are needed{lost}: the kernel's line tables do not fit \
             its symbols",
            summary.matched_functions,
            summary.c_functions,
            percent(MIN_MATCHED)
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
