//! Preparation of Clang's profile from a recording of the training run.

use super::profile::{FUNCTIONS, TREE};
use super::request::PROFILE_FILE;
use super::{functions, AutofdoProfile, AutofdoSummary, ExecutedFunction};
use crate::llvm::{LlvmTools, ToolFailure};
use crate::stored::store;
use crate::{debug_info, quality, Error, Result};
use kerntune_convert::autofdo::{SampleProfile, UnsymbolizedProfile};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_profile::Profile;
use kerntune_work::{write_json, IoContext, Key, WorkDir};
use std::fs;

const COUNTS: &str = "counts.txt";
const SAMPLES: &str = "samples.txt";
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
    let llvm = LlvmTools::of(&kernel.manifest.cc.parse::<Compiler>()?)?;
    let key = Key::new("clang-autofdo/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("tools", llvm.versions()?)
        .field("counts", &text);
    store(work, &key, Some(&quality), |dir| {
        let at = |name: &str| dir.join(name);
        fs::write(at(COUNTS), &text).at("write", at(COUNTS))?;
        fs::create_dir(at(TREE)).at("create", at(TREE))?;

        let failed = |failed: ToolFailure| failed.on(&kernel.manifest.label);
        let profile = at(TREE).join(PROFILE_FILE);
        llvm.profgen(&kernel.vmlinux(), &at(COUNTS), &profile, &at(LOG)).map_err(failed)?;
        llvm.text(&profile, &at(SAMPLES), &at("llvm-profdata.log")).map_err(failed)?;
        let samples = fs::read(at(SAMPLES)).at("read", at(SAMPLES))?;
        let samples = SampleProfile::parse(&String::from_utf8_lossy(&samples))
            .map_err(|reason| Error::BadSamples { file: at(SAMPLES), reason })?;

        let ran = functions::ran(&recording.tables, &samples);
        let summary = summarize(&counts, &samples, &ran);
        judge(&summary, &ran)
            .map_err(|reason| Error::PoorSamples { profile: recorded.id.clone(), reason })?;
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
        hot_from: samples.hot_from(functions::HOT_SHARE).unwrap_or_default(),
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
