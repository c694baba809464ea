//! Whether a kernel without some options is as good: built, checked, run and measured.

use super::choose::{widest, Because, Chosen, Options};
use super::{size, PathOf, Tell, Trim, TrimRequest};
use crate::compare::measure_all;
use crate::selftest::{agree, selftest};
use crate::trial::{self, Change, Trial, TrialRequest, Verdict};
use crate::{Error, Result, Session};
use kerntune_compare::{Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, configured, BuildRequest, Kernel};
use kerntune_work::interrupt;
use std::time::Instant;

/// A kernel goes on booting after the first program has started: it tests ciphers, reads certificates. Less of it falls into a
/// workload the longer the rest of the boot takes, so that a smaller kernel would look slower. Asleep, the machine passes
/// these seconds at once.
const REST: [&str; 3] = ["busybox", "sleep", "5"];

/// The workload, begun when the kernel has booted to the end.
fn rested(workload: &Workload) -> Workload {
    let mut workload = workload.clone();
    workload.setup.insert(0, REST.map(String::from).into());
    workload
}

/// How a choice is proved.
pub(super) struct Proof<'a> {
    pub session: &'a Session<'a>,
    pub request: &'a TrimRequest<'a>,
    pub base: &'a Kernel,
    /// Lines of a configuration with these options off.
    pub lines: &'a dyn Fn(&Options) -> Vec<String>,
    /// Whether an option did nothing at boot either.
    pub is_safe: &'a dyn Fn(&str) -> bool,
    pub started: Instant,
    pub tell: &'a Tell<'a>,
}

impl Proof<'_> {
    /// Builds it, has it make the checks and run the workloads, and measures. What does not work is taken back.
    pub fn prove(&self, chosen: &mut Chosen, found: &mut Trim) -> Result<()> {
        let Self { session, request, tell, .. } = *self;
        let is_late = || request.budget.is_some_and(|budget| self.started.elapsed() > budget);
        let mut fits = |off: &Options| -> Result<bool> {
            if (self.lines)(off).is_empty() || is_late() {
                return Ok(off.is_empty());
            }
            tell(&format!("the kernel with {} options off", off.len()));
            match self.works(off) {
                Ok(()) => Ok(true),
                Err(error) => {
                    interrupt::check()?;
                    tell(&format!("it cannot be used: {error}"));
                    Ok(false)
                }
            }
        };
        let mut kept = Options::new();
        if fits(&chosen.off)? {
            kept.clone_from(&chosen.off);
        } else {
            // What booted the machine is the first to be suspected.
            let (safe, booted): (Vec<_>, Vec<_>) =
                chosen.off.iter().cloned().partition(|option| (self.is_safe)(option));
            kept = widest(&mut fits, kept, &safe)?;
            kept = widest(&mut fits, kept, &booted)?;
        }
        let fewer = kept != chosen.off;
        found.time_was_up = fewer && is_late();
        for option in chosen.off.difference(&kept) {
            let because = if found.time_was_up { Because::Untried } else { Because::Fails };
            chosen.stay.insert(option.clone(), because);
        }
        chosen.off = kept;
        let asked = self.with(&chosen.off);
        if fewer {
            chosen.built_in = configured(session.work, &asked, session.progress)?.built_in();
        }
        if (self.lines)(&chosen.off).is_empty() {
            return Ok(());
        }
        let trimmed = build(session.work, &asked, session.progress)?;
        found.trimmed = Some(size(&trimmed, &trimmed.symbols()?, chosen.built_in.len()));
        let change = Change { name: "trim".into(), config: (self.lines)(&chosen.off), ..Change::default() };
        for workload in &request.workloads.iter().map(rested).collect::<Vec<_>>() {
            tell(&format!("the path of {}", workload.name));
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

    /// An error unless the kernel without these options does all that it is for.
    fn works(&self, off: &Options) -> Result<()> {
        let Self { session, request, .. } = *self;
        let answers = selftest(session, self.base)?;
        let kernel = build(session.work, &self.with(off), session.progress)?;
        agree(&answers, &selftest(session, &kernel)?, &kernel.manifest.label)?;
        let workloads: Vec<Workload> = request.workloads.iter().map(rested).collect();
        measure_all(session, &kernel, &workloads, request.model).map(drop)
    }

    /// The request with these options off, by the name under which a trial of them lists its kernel.
    fn with(&self, off: &Options) -> BuildRequest {
        let mut request = self.request.build.clone();
        request.extra.extend((self.lines)(off));
        request.label = format!("{}-with-trim", request.label);
        request
    }
}

/// The figures of a trial of one change.
fn path(trial: &Trial, workload: &Workload) -> Result<PathOf> {
    let tried = trial.tried.iter().find(|tried| tried.changes.len() == 1);
    let by = tried.and_then(|tried| tried.difference).ok_or_else(|| Error::NothingToTrim {
        kernel: trial.base.clone(),
        why: tried.and_then(|tried| tried.because.clone()).unwrap_or_default(),
    })?;
    let longer = trial.judged.iter().any(|judged| judged.verdict == Verdict::Worse);
    Ok(PathOf {
        workload: workload.name.clone(),
        base: trial.base_figure,
        trimmed: trial.base_figure + by,
        noise: trial.noise,
        runs: trial.runs,
        longer,
    })
}
