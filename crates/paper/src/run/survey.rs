//! Surveys of papers: the workloads are recorded on today's kernel, and the paper's figures and
//! findings are looked up in the recordings.

use super::study::{dry_patched, patched};
use super::{Result, RunError};
use crate::{BoundaryPath, Measure, Paper, PathCount, RunLocation, Survey, SurveyOutcome, SurveyRun};
use kerntune_analyze::anatomy::{anatomy, AnatomyRequest};
use kerntune_analyze::TraceFile;
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_profile::{FunctionIndex, Profile, RegionScope, Tables};
use kerntune_tune::base::with_needs;
use kerntune_tune::compare::{kernel_ref, measure, measured_request, CAPTURE};
use kerntune_tune::detail::DetailRequest;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::model::Model;
use kerntune_tune::record::{record_in_detail, RecordRequest, RecordedProfile, Repetition, MACHINE};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::{run_parallel, watch, Session};
use kerntune_work::interrupt;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Paper, survey, kernel request and models of a survey.
#[derive(Debug)]
pub struct SurveyRequest<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// Survey of the paper to carry out.
    pub survey: &'a Survey,
    /// Directories to search for workloads before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// Request of the kernel; options that a workload needs are added.
    pub build: &'a BuildRequest,
    /// Front-end model of the recordings.
    pub model: &'a Model,
    /// Front-end model of recordings that follow accesses to data.
    pub data_model: &'a Model,
    /// Workloads to measure; all if empty.
    pub only: &'a [String],
}

/// A workload and the kernel to record it on.
struct PreparedRun {
    workload: Workload,
    kernel: Kernel,
}

/// A recording of a workload with its profile.
struct RecordedRun {
    kernel: Kernel,
    recorded: RecordedProfile,
    profile: Profile,
}

/// Outcome of a survey and the profiles behind its figures.
#[derive(Debug)]
pub struct SurveyResult {
    /// Figures and findings of the paper with ours.
    pub outcome: SurveyOutcome,
    /// Profile directory of each place that was recorded.
    pub profiles: BTreeMap<RunLocation, PathBuf>,
}

/// Records every workload once and computes the survey's figures. A workload that cannot be
/// recorded is reported in the result. Earlier recordings are used again.
///
/// # Errors
/// An interrupt.
pub fn survey(
    session: &Session,
    request: &SurveyRequest,
    on_progress: &dyn Fn(&str),
) -> Result<SurveyResult> {
    let run_of = |place: &RunLocation| RunLocation { region: None, ..place.clone() };
    let places = request.survey.places();
    let mut ready: Vec<(RunLocation, Result<PreparedRun, String>)> = Vec::new();
    for place in &places {
        let key = run_of(place);
        if ready.iter().any(|(place, _)| *place == key) {
            continue;
        }
        interrupt::check()?;
        let found = match request.only.is_empty() || request.only.contains(&place.workload) {
            true => {
                on_progress(&place.workload);
                prepare_run(session, request, place).map_err(|error| error.to_string())
            }
            false => Err("it was not asked for (--only)".into()),
        };
        interrupt::check()?;
        ready.push((key, found));
    }
    let memory_mb = |(_, ready): &(RunLocation, Result<PreparedRun, String>)| {
        Some(ready.as_ref().ok()?.workload.memory_mb)
    };
    let memory_mb = ready.iter().filter_map(memory_mb).max().unwrap_or_default();
    let made = run_parallel(session, memory_mb, &ready, |session, (place, ready)| {
        let made = ready
            .as_ref()
            .map_err(String::clone)
            .and_then(|ready| record_run(session, request, place, ready).map_err(|error| error.to_string()));
        interrupt::check()?;
        Ok(made)
    })?;
    let made: BTreeMap<RunLocation, Result<RecordedRun, String>> =
        ready.into_iter().map(|(place, _)| place).zip(made).collect();
    let of = |place: &RunLocation| made.get(&run_of(place));
    let run = |place: &&RunLocation| {
        let made = of(place)?;
        Some(SurveyRun {
            place: (*place).clone(),
            profile: made.as_ref().ok().map(|made| made.recorded.manifest.id.clone()),
            kernel: made.as_ref().ok().map(|made| kernel_ref(&made.kernel)),
            because: made.as_ref().err().cloned(),
        })
    };
    let runs = places.iter().filter_map(run).collect();
    let mut figure = |place: &RunLocation, wanted: &Measure| -> Result<Option<f64>, String> {
        let made = of(place).ok_or("it was not recorded")?.as_ref().map_err(String::clone)?;
        let region = place.region.as_deref();
        if let Some(name) = region.filter(|name| RegionScope::named(&made.profile.tables, name).is_none()) {
            return Err(format!("workload {} has no region {name}", place.workload));
        }
        match wanted {
            Measure::Before(before) => {
                on_progress(&format!("{}: what {} does before {}", place.workload, before.of, before.until));
                self::before(session, made, region, before).map_err(|error| error.to_string())
            }
            wanted => Ok(wanted.of(&made.profile, region)),
        }
    };
    let outcome = SurveyOutcome::new(request.paper, request.survey, MACHINE, runs, &mut figure);
    interrupt::check()?;
    let profiles = places.iter().filter_map(|place| {
        let made = of(place)?.as_ref().ok()?;
        Some(((*place).clone(), made.recorded.path.clone()))
    });
    let profiles = profiles.collect();
    Ok(SurveyResult { outcome, profiles })
}

/// Adds the steps of a survey.
///
/// # Errors
/// Those of the real run before it makes anything.
pub fn dry_run(dry: &mut DryRun, request: &SurveyRequest) -> Result<()> {
    let mut seen = Vec::new();
    for place in request.survey.places() {
        let place = RunLocation { region: None, ..place.clone() };
        let is_asked = request.only.is_empty() || request.only.contains(&place.workload);
        if !is_asked || seen.contains(&place) {
            continue;
        }
        let mut steps = DryRun::new(dry.session());
        let (workload, asked) = asked(request, &place)?;
        let mut kernel = steps.kernel("build the kernel", &asked)?;
        if let Some(set) = &place.patches {
            kernel = dry_patched(&mut steps, &asked, set, kernel.as_ref())?;
        }
        let what = format!("record {}", workload.name);
        match &kernel {
            // What follows accesses to data is kept elsewhere.
            Some(kernel) if !place.data => {
                steps.recordings(what, &[measured_request(kernel, &workload, request.model, 0)])?
            }
            _ => steps.runs(what, &workload, "measured", 1),
        }
        dry.append(&place.workload, steps);
        seen.push(place);
    }
    Ok(())
}

/// Returns the workload of a place, and the request of its kernel without the place's patches.
fn asked(request: &SurveyRequest, place: &RunLocation) -> Result<(Workload, BuildRequest)> {
    let mut workload = Workload::find(&place.workload, request.workloads)?;
    workload.cpus = place.cpus.unwrap_or(workload.cpus);
    let mut build = with_needs(request.build.clone(), [&workload]);
    if let Some(source) = &place.source {
        build.source = source.parse()?;
        build.label = format!("{}-{}", build.label, source.rsplit(':').next().unwrap_or_default());
    }
    for name in &place.changes {
        let no_change = || RunError::NoChange { change: name.clone() };
        let change = request.survey.change(name).ok_or_else(no_change)?;
        change.apply_to_build(&mut build);
        change.apply_to_workload(&mut workload);
        if change.is_of_kernel() {
            build.label = format!("{}-with-{name}", build.label);
        }
    }
    Ok((workload, build))
}

fn prepare_run(session: &Session, request: &SurveyRequest, place: &RunLocation) -> Result<PreparedRun> {
    let (workload, asked) = asked(request, place)?;
    let mut kernel = build(session.work, &asked, session.progress)?;
    if let Some(set) = &place.patches {
        kernel = build(session.work, &patched(session, &asked, set, &kernel)?, session.progress)?;
    }
    Ok(PreparedRun { workload, kernel })
}

fn record_run(
    session: &Session,
    request: &SurveyRequest,
    place: &RunLocation,
    ready: &PreparedRun,
) -> Result<RecordedRun> {
    let PreparedRun { workload, kernel } = ready;
    let recorded = match place.data {
        false => measure(session, kernel, workload, request.model, 0)?,
        true => {
            let asked = RecordRequest {
                kernel,
                workload,
                run: "measured",
                capture: CAPTURE,
                model: Some(request.data_model),
                repeat: Repetition::Number(0),
            };
            record_in_detail(session, &asked, &DetailRequest { data: true, ..DetailRequest::default() })?
        }
    };
    let profile = Profile::load(&recorded.path)?;
    Ok(RecordedRun { kernel: kernel.clone(), recorded, profile })
}

/// Returns the median of what calls of a function do before they reach another one.
fn before(
    session: &Session,
    made: &RecordedRun,
    region: Option<&str>,
    asked: &BoundaryPath,
) -> Result<Option<f64>> {
    let tables = &made.profile.tables;
    let Some(function) = most_called(tables, &asked.of) else { return Ok(None) };
    let scope =
        region.and_then(|name| RegionScope::named(tables, name)).unwrap_or_else(|| RegionScope::all(tables));
    let regions: Vec<bool> = tables.regions.iter().map(|row| scope.contains(row.region)).collect();
    let until: Vec<bool> = tables.symbols.iter().map(|symbol| symbol.name == asked.until).collect();
    let wanted = AnatomyRequest {
        function,
        functions: tables.symbols.len(),
        regions: &regions,
        until: &until,
        partial: false,
    };
    let files = RunFiles::open(&made.recorded.path)?;
    let trace = TraceFile::open(&files.trace, &files.recording)?;
    let found = anatomy(&trace, &wanted, &mut |events| watch::report(session.progress, events))?;
    let spreads = &found.before.spreads;
    let spread = match asked.count {
        PathCount::Calls => &spreads.calls,
        PathCount::Functions => &spreads.functions,
        PathCount::Instructions => &spreads.ns,
    };
    Ok((spread.count > 0).then_some(spread.median as f64))
}

/// Returns the most called function of this name.
fn most_called(tables: &Tables, name: &str) -> Option<FunctionIndex> {
    let calls = |function: FunctionIndex| -> u64 {
        tables.functions.iter().filter(|row| row.function == function).map(|row| row.calls).sum()
    };
    let named = tables.symbols.iter().filter(|symbol| symbol.name == name).map(|symbol| symbol.function);
    named
        .map(|function| (calls(function), function))
        .filter(|(calls, _)| *calls > 0)
        .max()
        .map(|(_, found)| found)
}
