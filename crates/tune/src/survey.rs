//! A paper's survey, carried out: its workloads recorded on today's kernel, its figures and findings looked for in them.

use crate::base::with_needs;
use crate::compare::{kernel_ref, measure, CAPTURE};
use crate::detail::Detail;
use crate::model::Model;
use crate::record::{record_in_detail, RecordRequest, Recorded, Repeat, MACHINE};
use crate::run_files::RunFiles;
use crate::study::patched;
use crate::together::together;
use crate::{watch, Result, Session};
use kerntune_analyze::anatomy::{anatomy, Request};
use kerntune_analyze::TraceFile;
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_paper::{Before, Counted, Measure, Paper, Place, Survey, SurveyOutcome, SurveyRun};
use kerntune_profile::{FunctionIndex, Profile, Scope, Tables};
use kerntune_work::interrupt;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which survey, and of what.
#[derive(Debug)]
pub struct SurveyRequest<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// Its survey.
    pub survey: &'a Survey,
    /// Where workloads are looked for before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// What the kernel is built from; what a workload needs of it is added.
    pub build: &'a BuildRequest,
    /// The front-end model of the recordings.
    pub model: &'a Model,
    /// The same of those that follow accesses to data.
    pub data_model: &'a Model,
    /// Only what is measured in these workloads; all if empty.
    pub only: &'a [String],
}

/// What is to be recorded, and in which kernel.
struct Ready {
    workload: Workload,
    kernel: Kernel,
}

/// A recording of a workload on so many CPUs.
struct Made {
    kernel: Kernel,
    recorded: Recorded,
    profile: Profile,
}

/// What was recorded: the outcome, and where each run's profile is, for figures.
#[derive(Debug)]
pub struct Surveyed {
    /// What came of it.
    pub outcome: SurveyOutcome,
    /// The directory of the profile of each place that has one.
    pub profiles: BTreeMap<Place, PathBuf>,
}

/// Records every workload once, and looks. One that cannot be recorded is told in the result; what was made before is found
/// again.
///
/// # Errors
/// An interrupt.
pub fn survey(session: &Session, request: &SurveyRequest, told: &dyn Fn(&str)) -> Result<Surveyed> {
    let run_of = |place: &Place| Place { region: None, ..place.clone() };
    let places = request.survey.places();
    let mut ready: Vec<(Place, Result<Ready, String>)> = Vec::new();
    for place in &places {
        let key = run_of(place);
        if ready.iter().any(|(place, _)| *place == key) {
            continue;
        }
        interrupt::check()?;
        let found = match request.only.is_empty() || request.only.contains(&place.workload) {
            true => {
                told(&place.workload);
                make_ready(session, request, place).map_err(|error| error.to_string())
            }
            false => Err("it was not asked for (--only)".into()),
        };
        interrupt::check()?;
        ready.push((key, found));
    }
    let memory_mb =
        |(_, ready): &(Place, Result<Ready, String>)| Some(ready.as_ref().ok()?.workload.memory_mb);
    let memory_mb = ready.iter().filter_map(memory_mb).max().unwrap_or_default();
    let made = together(session, memory_mb, &ready, |session, (place, ready)| {
        let made = ready
            .as_ref()
            .map_err(String::clone)
            .and_then(|ready| make(session, request, place, ready).map_err(|error| error.to_string()));
        interrupt::check()?;
        Ok(made)
    })?;
    let made: BTreeMap<Place, Result<Made, String>> =
        ready.into_iter().map(|(place, _)| place).zip(made).collect();
    let of = |place: &Place| made.get(&run_of(place));
    let run = |place: &&Place| {
        let made = of(place)?;
        Some(SurveyRun {
            place: (*place).clone(),
            profile: made.as_ref().ok().map(|made| made.recorded.manifest.id.clone()),
            kernel: made.as_ref().ok().map(|made| kernel_ref(&made.kernel)),
            because: made.as_ref().err().cloned(),
        })
    };
    let runs = places.iter().filter_map(run).collect();
    let mut figure = |place: &Place, wanted: &Measure| -> Result<Option<f64>, String> {
        let made = of(place).ok_or("it was not recorded")?.as_ref().map_err(String::clone)?;
        let region = place.region.as_deref();
        if let Some(name) = region.filter(|name| Scope::named(&made.profile.tables, name).is_none()) {
            return Err(format!("workload {} has no region {name}", place.workload));
        }
        match wanted {
            Measure::Before(before) => {
                told(&format!("{}: what {} does before {}", place.workload, before.of, before.until));
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
    Ok(Surveyed { outcome, profiles })
}

fn make_ready(session: &Session, request: &SurveyRequest, place: &Place) -> Result<Ready> {
    let mut workload = Workload::find(&place.workload, request.workloads)?;
    workload.cpus = place.cpus.unwrap_or(workload.cpus);
    let asked = with_needs(request.build.clone(), [&workload]);
    let mut kernel = build(session.work, &asked, session.progress)?;
    if let Some(set) = &place.patches {
        kernel = build(session.work, &patched(session, &asked, set, &kernel)?, session.progress)?;
    }
    Ok(Ready { workload, kernel })
}

fn make(session: &Session, request: &SurveyRequest, place: &Place, ready: &Ready) -> Result<Made> {
    let Ready { workload, kernel } = ready;
    let recorded = match place.data {
        false => measure(session, kernel, workload, request.model, 0)?,
        true => {
            let asked = RecordRequest {
                kernel,
                workload,
                run: "measured",
                capture: CAPTURE,
                model: Some(request.data_model),
                repeat: Repeat::Number(0),
            };
            record_in_detail(session, &asked, &Detail { data: true, ..Detail::default() })?
        }
    };
    let profile = Profile::load(&recorded.path)?;
    Ok(Made { kernel: kernel.clone(), recorded, profile })
}

/// The median of what calls of a function do before they reach another.
fn before(session: &Session, made: &Made, region: Option<&str>, asked: &Before) -> Result<Option<f64>> {
    let tables = &made.profile.tables;
    let Some(function) = ran(tables, &asked.of) else { return Ok(None) };
    let scope = region.and_then(|name| Scope::named(tables, name)).unwrap_or_else(|| Scope::all(tables));
    let regions: Vec<bool> = tables.regions.iter().map(|row| scope.contains(row.region)).collect();
    let until: Vec<bool> = tables.symbols.iter().map(|symbol| symbol.name == asked.until).collect();
    let wanted = Request {
        function,
        functions: tables.symbols.len(),
        regions: &regions,
        until: &until,
        partial: false,
    };
    let files = RunFiles::open(&made.recorded.path)?;
    let trace = TraceFile::open(&files.trace, &files.recording)?;
    let found = anatomy(&trace, &wanted, &mut |events| watch::at(session.progress, events))?;
    let spreads = &found.before.spreads;
    let spread = match asked.count {
        Counted::Calls => &spreads.calls,
        Counted::Functions => &spreads.functions,
        Counted::Instructions => &spreads.ns,
    };
    Ok((spread.count > 0).then_some(spread.median as f64))
}

/// The function of that name that was called most.
fn ran(tables: &Tables, name: &str) -> Option<FunctionIndex> {
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
