//! Proof of a trim: the kernel without the options is built, checked, run and measured.

use super::choose::{widest, ConfigOptions, KeepReason, TrimChoice};
use super::{size, OnTrimProgress, TrimRequest, TrimResult, WorkloadPath};
use crate::measuring::compare::measure_all;
use crate::runs::selftest::{require_same_answers, selftest};
use crate::trial::{self, ChangeVerdict, TrialChange, TrialRequest, TrialResult};
use crate::{Error, Result, Session};
use kerntune_compare::{Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, resolve_config, BuildRequest, Kernel};
use kerntune_work::interrupt;
use std::time::Instant;

/// Setup command that waits for the end of the boot. A kernel goes on booting after the first
/// program has started: it tests ciphers, reads certificates. The faster the rest of the boot, the
/// more of this work falls into the workload, so a smaller kernel would look slower. The exact
/// machine skips time in which all CPUs sleep.
const REST: [&str; 3] = ["busybox", "sleep", "5"];

/// Returns the workload with a setup that waits for the end of the boot.
fn after_boot(workload: &Workload) -> Workload {
    let mut workload = workload.clone();
    workload.setup.insert(0, REST.map(String::from).into());
    workload
}

/// Inputs of the proof.
pub(super) struct TrimProof<'a> {
    pub session: &'a Session<'a>,
    pub request: &'a TrimRequest<'a>,
    pub base: &'a Kernel,
    /// Returns configuration lines with these options off.
    pub lines: &'a dyn Fn(&ConfigOptions) -> Vec<String>,
    /// Returns whether an option's code did not run during boot either.
    pub is_safe: &'a dyn Fn(&str) -> bool,
    pub started: Instant,
    pub on_progress: &'a OnTrimProgress<'a>,
}

impl TrimProof<'_> {
    /// Builds the kernel, runs the checks and the workloads on it, and measures. Options that break
    /// it come back.
    pub fn prove(&self, chosen: &mut TrimChoice, found: &mut TrimResult) -> Result<()> {
        let Self { session, request, on_progress, .. } = *self;
        let is_late = || request.budget.is_some_and(|budget| self.started.elapsed() > budget);
        let mut fits = |off: &ConfigOptions| -> Result<bool> {
            if (self.lines)(off).is_empty() || is_late() {
                return Ok(off.is_empty());
            }
            on_progress(&format!("the kernel with {} options off", off.len()));
            match self.works(off) {
                Ok(()) => Ok(true),
                Err(error) => {
                    interrupt::check()?;
                    on_progress(&format!("it cannot be used: {error}"));
                    Ok(false)
                }
            }
        };
        let mut kept = ConfigOptions::new();
        if fits(&chosen.off)? {
            kept.clone_from(&chosen.off);
        } else {
            // Options whose code ran during boot are tried last.
            let (safe, booted): (Vec<_>, Vec<_>) =
                chosen.off.iter().cloned().partition(|option| (self.is_safe)(option));
            kept = widest(&mut fits, kept, &safe)?;
            kept = widest(&mut fits, kept, &booted)?;
        }
        let fewer = kept != chosen.off;
        found.time_was_up = fewer && is_late();
        for option in chosen.off.difference(&kept) {
            let because = if found.time_was_up { KeepReason::Untried } else { KeepReason::Fails };
            chosen.stay.insert(option.clone(), because);
        }
        chosen.off = kept;
        let asked = self.with(&chosen.off);
        if fewer {
            chosen.built_in = resolve_config(session.work, &asked, session.progress)?.built_in();
        }
        if (self.lines)(&chosen.off).is_empty() {
            return Ok(());
        }
        let trimmed = build(session.work, &asked, session.progress)?;
        found.trimmed = Some(size(&trimmed, &trimmed.symbols()?, chosen.built_in.len()));
        let change =
            TrialChange { name: "trim".into(), config: (self.lines)(&chosen.off), ..TrialChange::default() };
        for workload in &request.workloads.iter().map(after_boot).collect::<Vec<_>>() {
            on_progress(&format!("the path of {}", workload.name));
            let asked = TrialRequest {
                build: request.build,
                workload,
                changes: std::slice::from_ref(&change),
                model: request.model,
                metric: Metric::PathLength,
                operation: TOTAL,
                runs: request.runs,
                alone: false,
                budget: None,
            };
            found.paths.push(path(&trial::trial(session, &asked, &|_| {})?, workload)?);
        }
        Ok(())
    }

    /// Builds the kernel without these options; fails unless it passes the checks and runs the
    /// workloads.
    fn works(&self, off: &ConfigOptions) -> Result<()> {
        let Self { session, request, .. } = *self;
        let answers = selftest(session, self.base)?;
        let kernel = build(session.work, &self.with(off), session.progress)?;
        require_same_answers(&answers, &selftest(session, &kernel)?, &kernel.manifest.label)?;
        let workloads: Vec<Workload> = request.workloads.iter().map(after_boot).collect();
        measure_all(session, &kernel, &workloads, request.model).map(drop)
    }

    /// Returns the request with these options off, with the label that a trial gives its kernel.
    fn with(&self, off: &ConfigOptions) -> BuildRequest {
        let mut request = self.request.build.clone();
        request.extra.extend((self.lines)(off));
        request.label = format!("{}-with-trim", request.label);
        request
    }
}

/// Extracts the path lengths from a trial of one change.
fn path(trial: &TrialResult, workload: &Workload) -> Result<WorkloadPath> {
    let tried = trial.tried.iter().find(|tried| tried.changes.len() == 1);
    let by = tried.and_then(|tried| tried.difference).ok_or_else(|| Error::NothingToTrim {
        kernel: trial.base.clone(),
        why: tried.and_then(|tried| tried.because.clone()).unwrap_or_default(),
    })?;
    let longer = trial.judged.iter().any(|judged| judged.verdict == ChangeVerdict::Worse);
    Ok(WorkloadPath {
        workload: workload.name.clone(),
        base: trial.base_figure,
        trimmed: trial.base_figure + by,
        noise: trial.noise,
        runs: trial.runs,
        longer,
    })
}
