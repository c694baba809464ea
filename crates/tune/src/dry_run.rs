//! Dry runs: the steps of a command in their order, which of them are done, and what the others
//! cost.
//!
//! A command adds its steps to a [`DryRun`]. Nothing guesses which results are there: a step calls
//! the function of the real run (`build`, `record`, `selftest` …) in a work directory that makes
//! nothing ([`WorkDir::open_for_dry_run`](kerntune_work::WorkDir::open_for_dry_run)). Such a
//! function computes the key, and returns the result that is there; where it would begin to make
//! one, it ends, and the step is to do. What it refuses before that, the dry run refuses with the
//! same error. Steps on a kernel that is to be built are to do without a look, as no result can be
//! there. Recipes have their steps from the plan that `tune` carries out.
//!
//! Costs are estimates, and each says what it rests on: of a build, [`preview`]; of a run, the last
//! recording of the same workload in this work directory. What is not known stays unknown.

use crate::engine::{StepName, StepStatus, TuningPlan};
use crate::parallel::{lanes, BESIDE_GUEST_MB};
use crate::recipe_parts::steps::{BASE_KERNEL, CHECK, IMAGE};
use crate::runs::record::{record, RecordRequest};
use crate::runs::run_files::{wall_seconds, RUN};
use crate::runs::selftest;
use crate::{Recipe, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{build, import, preview, BuildEstimate, BuildRequest, Kernel, ShippedKernel};
use kerntune_profile::{load_manifest, RunPurpose, KIND};
use kerntune_work::bytes_on_disk;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Minutes of an import (docs/kernel-import.md).
const IMPORT_MINUTES: f64 = 0.2;

/// Format and version of the steps in JSON.
pub const SCHEMA: &str = "kerntune-steps/1";

/// A step that a command would carry out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedStep {
    /// Short name.
    pub step: &'static str,
    /// Description.
    pub what: String,
    /// Directory of the result; `None` if the step is still to be done.
    pub result: Option<PathBuf>,
    /// Cost of a step that is still to be done; `None` if it takes seconds.
    pub estimate: Option<StepEstimate>,
}

/// Estimated cost of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepEstimate {
    /// Number of objects to compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Number of guests to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Wall time in minutes; `None` if nothing is known of it.
    pub minutes: Option<f64>,
    /// Bytes of disk, for builds while they run; `None` if nothing is known of it.
    pub disk_bytes: Option<u64>,
    /// Bytes of memory at the most; `None` if it is little.
    pub memory_bytes: Option<u64>,
    /// Basis of the estimate, in words.
    pub rests_on: String,
}

impl From<BuildEstimate> for StepEstimate {
    fn from(of: BuildEstimate) -> Self {
        Self {
            objects: Some(of.objects),
            runs: None,
            minutes: Some(of.minutes),
            disk_bytes: Some(of.disk_bytes),
            memory_bytes: Some(of.memory_bytes),
            rests_on: of.rests_on,
        }
    }
}

/// Sum over the steps that are still to be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TotalEstimate {
    /// Number of steps that are still to be done.
    pub steps: usize,
    /// Number of objects to compile.
    pub objects: u64,
    /// Number of guests to run.
    pub runs: u32,
    /// Wall time in minutes, of the steps whose time is known.
    pub minutes: f64,
    /// True if the time of a step is not known.
    pub more: bool,
    /// Bytes of disk: of the largest build, and of all other results.
    pub disk_bytes: u64,
    /// Bytes of memory of the step that needs most.
    pub memory_bytes: u64,
}

impl TotalEstimate {
    /// Sums up.
    pub fn of(steps: &[PlannedStep]) -> Self {
        let mut total = Self::default();
        let mut largest_build = 0;
        for step in steps.iter().filter(|step| step.result.is_none()) {
            total.steps += 1;
            let Some(of) = &step.estimate else { continue };
            total.objects += of.objects.unwrap_or_default();
            total.runs += of.runs.unwrap_or_default();
            total.minutes += of.minutes.unwrap_or_default();
            total.more |= of.minutes.is_none();
            total.memory_bytes = total.memory_bytes.max(of.memory_bytes.unwrap_or_default());
            let disk = of.disk_bytes.unwrap_or_default();
            match of.objects {
                // A build directory goes when its kernel is made.
                Some(_) => largest_build = largest_build.max(disk),
                None => total.disk_bytes += disk,
            }
        }
        total.disk_bytes += largest_build;
        total
    }
}

/// Collects the steps of a command.
pub struct DryRun<'a> {
    session: &'a Session<'a>,
    steps: Vec<PlannedStep>,
}

impl<'a> DryRun<'a> {
    /// Begins the list of a command. The session's work directory is open for a dry run.
    pub fn new(session: &'a Session<'a>) -> Self {
        Self { session, steps: Vec::new() }
    }

    /// Returns the session, whose work directory makes nothing.
    pub fn session(&self) -> &'a Session<'a> {
        self.session
    }

    /// Returns the steps.
    pub fn into_steps(self) -> Vec<PlannedStep> {
        self.steps
    }

    /// Calls a function of the real run; returns its result, or `None` if it was about to make it.
    ///
    /// # Errors
    /// Those of the function before it makes anything.
    pub fn find<T, E>(&self, make: impl FnOnce(&Session) -> Result<T, E>) -> Result<Option<T>, E> {
        self.session.work.take_missing();
        match make(self.session) {
            Ok(found) => Ok(Some(found)),
            Err(_) if self.session.work.take_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a step with its result, if there is one, and otherwise with an estimate.
    pub fn add(
        &mut self,
        step: &'static str,
        what: impl Into<String>,
        result: Option<&Path>,
        estimate: impl FnOnce(&Self) -> Option<StepEstimate>,
    ) {
        let estimate = if result.is_none() { estimate(self) } else { None };
        self.steps.push(PlannedStep {
            step,
            what: what.into(),
            result: result.map(Path::to_owned),
            estimate,
        });
    }

    /// Adds the steps of another list, each with `prefix`, except those that this list has.
    pub fn append(&mut self, prefix: &str, other: DryRun) {
        for step in other.steps {
            let what = format!("{prefix}: {}", step.what);
            let is_here = |here: &PlannedStep| here.result.is_some() && here.result == step.result;
            if !self.steps.iter().any(is_here) {
                self.steps.push(PlannedStep { what, ..step });
            }
        }
    }

    /// Adds the build of a kernel, and returns the kernel if it is there.
    ///
    /// # Errors
    /// Those of [`preview`], and of a build before it begins.
    pub fn kernel(&mut self, what: impl Into<String>, request: &BuildRequest) -> Result<Option<Kernel>> {
        let estimate = preview(self.session.work, request)?;
        let found = self.find(|session| build(session.work, request, session.progress))?;
        self.add("kernel", what, found.as_ref().map(|kernel| &*kernel.dir), |_| Some(estimate.into()));
        Ok(found)
    }

    /// Adds the import of a shipped kernel, and returns the kernel if it is there.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn import(&mut self, given: &ShippedKernel) -> Result<Option<Kernel>> {
        let found = self.find(|session| import(session.work, given, None))?;
        let what = "import the kernel as it was shipped";
        self.add("import", what, found.as_ref().map(|kernel| &*kernel.dir), |dry| Some(dry.of_import()));
        Ok(found)
    }

    /// Estimates the import of a kernel by the last one.
    pub fn of_import(&self) -> StepEstimate {
        let kernels = kerntune_kernel::list(self.session.work).unwrap_or_default();
        let last = kernels.iter().rev().find(|kernel| kernel.manifest.source.is_shipped());
        let (disk_bytes, rests_on) = match last {
            Some(kernel) => {
                (Some(bytes_on_disk(&kernel.dir)), format!("the import of {}", kernel.manifest.label))
            }
            None => (None, "imports of Debian's cloud kernels, which took 5 to 9 s".into()),
        };
        StepEstimate { minutes: Some(IMPORT_MINUTES), disk_bytes, rests_on, ..StepEstimate::default() }
    }

    /// Adds recordings of a workload as one step. Those that are there are not made again.
    ///
    /// # Errors
    /// Those of [`record`] before it boots the kernel.
    pub fn recordings(&mut self, what: impl Into<String>, requests: &[RecordRequest]) -> Result<()> {
        let (mut missing, mut last) = (0, None);
        for request in requests {
            match self.find(|session| record(session, request))? {
                Some(found) => last = Some(found.path),
                None => missing += 1,
            }
        }
        let Some(RecordRequest { workload, run, .. }) = requests.first() else { return Ok(()) };
        let found = last.filter(|_| missing == 0);
        self.add("record", what, found.as_deref(), |dry| Some(dry.of_runs(workload, run, missing)));
        Ok(())
    }

    /// Adds `count` runs of a workload on a kernel that is not there yet.
    pub fn runs(&mut self, what: impl Into<String>, workload: &Workload, run: &str, count: u32) {
        self.add("record", what, None, |dry| Some(dry.of_runs(workload, run, count)));
    }

    /// Adds `count` timed boots, or runs on the host, of a workload; `minutes` is the most that they
    /// take together, if there is a limit.
    pub fn timings(
        &mut self,
        what: impl Into<String>,
        workload: &Workload,
        count: u32,
        minutes: Option<u64>,
    ) {
        let rests_on = match minutes {
            Some(_) => "the time that --budget allows".to_owned(),
            None => {
                format!("nothing for timed runs of {}: how long they take shows when they run", workload.name)
            }
        };
        self.add("time", what, None, |_| {
            Some(StepEstimate {
                runs: Some(count),
                minutes: minutes.map(|minutes| minutes as f64),
                memory_bytes: Some(u64::from(workload.memory_mb) << 20),
                rests_on,
                ..StepEstimate::default()
            })
        });
    }

    /// Adds the functional checks of kernels, of which some may not be there yet.
    ///
    /// # Errors
    /// Those of the checks before they boot a kernel.
    pub fn selftests(&mut self, what: impl Into<String>, kernels: &[Option<&Kernel>]) -> Result<()> {
        let (mut missing, mut last) = (0, None);
        for kernel in kernels {
            let found = match kernel {
                Some(kernel) => self.find(|session| selftest::selftest(session, kernel))?,
                None => None,
            };
            match found {
                Some(found) => last = Some(found.dir),
                None => missing += 1,
            }
        }
        let found = last.filter(|_| missing == 0);
        self.add("check", what, found.as_deref(), |dry| Some(dry.of_selftests(missing)));
        Ok(())
    }

    /// Estimates recordings of a workload by the last one of the same run.
    pub fn of_runs(&self, workload: &Workload, run: &str, count: u32) -> StepEstimate {
        let earlier = self.session.work.list(KIND).unwrap_or_default().into_iter().filter_map(|profile| {
            let manifest = load_manifest(&profile).ok()?;
            let same = manifest.workload == workload.name && Some(manifest.run) == RunPurpose::from_name(run);
            let seconds = if same { wall_seconds(&profile.join(RUN))? } else { return None };
            Some((manifest.recorded, seconds, profile))
        });
        let last = earlier.max_by(|one, other| one.0.cmp(&other.0));
        let rests_on = match &last {
            Some((recorded, _, profile)) => {
                let id = profile.file_name().unwrap_or_default().to_string_lossy();
                format!("the recording {id} of {} ({recorded})", workload.name)
            }
            None => format!(
                "no recording of {} in this work directory: the time of its runs is not known",
                workload.name
            ),
        };
        let bytes = last.as_ref().map(|(.., profile)| bytes_on_disk(profile) * u64::from(count));
        self.of_guests(workload.memory_mb, count, last.map(|(_, seconds, _)| seconds), bytes, rests_on)
    }

    /// Estimates functional checks by the last ones that ran here.
    pub fn of_selftests(&self, count: u32) -> StepEstimate {
        let earlier = self.session.work.list(selftest::KIND).unwrap_or_default();
        let seconds = earlier.iter().filter_map(|dir| wall_seconds(&dir.join(RUN))).next_back();
        let rests_on = match seconds {
            Some(_) => "functional checks that ran here",
            None => "no functional checks in this work directory: their time is not known",
        };
        self.of_guests(selftest::MEMORY_MB, count, seconds, None, rests_on.into())
    }

    /// Estimates a whole build of a kernel that is there.
    ///
    /// # Errors
    /// Those of [`preview`]; an imported kernel.
    pub fn of_rebuild(&self, kernel: &Kernel) -> Result<StepEstimate> {
        let work = self.session.work;
        Ok(preview(work, &BuildRequest::of(work, kernel)?)?.into())
    }

    fn of_guests(
        &self,
        memory_mb: u32,
        count: u32,
        seconds: Option<f64>,
        disk_bytes: Option<u64>,
        rests_on: String,
    ) -> StepEstimate {
        let at_once = u32::try_from(lanes(self.session, memory_mb)).unwrap_or(u32::MAX).min(count).max(1);
        let minutes = |seconds: f64| (seconds * f64::from(count.div_ceil(at_once)) / 6.0).ceil() / 10.0;
        let memory = (u64::from(memory_mb) + BESIDE_GUEST_MB) << 20;
        StepEstimate {
            objects: None,
            runs: Some(count),
            minutes: seconds.map(minutes),
            disk_bytes,
            memory_bytes: Some(memory * u64::from(at_once)),
            rests_on,
        }
    }

    /// Adds the steps of a recipe from its plan; `base` is the base kernel if the recipe needs no
    /// other than the one that is there.
    ///
    /// # Errors
    /// Those of [`preview`], of the guest's image, and of a build before it begins.
    pub(crate) fn recipe(
        &mut self,
        (recipe, plan): (Recipe, &TuningPlan),
        (request, base): (&BuildRequest, Option<&Kernel>),
        workload: &Workload,
    ) -> Result<()> {
        let estimate = preview(self.session.work, request)?;
        for step in plan.steps() {
            let name = step.name;
            let result = match step.state {
                StepStatus::Found(path) | StepStatus::Made(path, _) | StepStatus::Resumed(path, _) => {
                    Some(path)
                }
                StepStatus::Todo if name == IMAGE => {
                    self.find(|session| session.image(workload))?.map(|image| image.dir)
                }
                StepStatus::Todo if name == BASE_KERNEL => match base {
                    Some(base) => Some(base.dir.clone()),
                    None => self
                        .find(|session| build(session.work, request, session.progress))?
                        .map(|kernel| kernel.dir),
                },
                StepStatus::Todo => None,
            };
            self.add(name.as_str(), name.about(), result.as_deref(), |dry| {
                dry.of_step(recipe, name, &estimate, workload)
            });
        }
        Ok(())
    }

    fn of_step(
        &self,
        recipe: Recipe,
        step: StepName,
        build: &BuildEstimate,
        workload: &Workload,
    ) -> Option<StepEstimate> {
        match step.run() {
            _ if recipe.compiles(step) => Some(build.clone().into()),
            Some(run) => Some(self.of_runs(workload, run, 1)),
            None if step == CHECK => Some(self.of_selftests(2)),
            None => None,
        }
    }
}
