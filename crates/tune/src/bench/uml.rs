//! Kernels timed against each other: boots in turn, each with several iterations of the workload's measured run.
//!
//! What a boot finds, such as where its memory lies, lasts until the next one, and the host is busy in phases. So
//! kernels take turns boot by boot, every second round in reverse: what changes slowly meets all of them alike. All of
//! them run on one CPU of the host.
//! The first kernel takes part twice; how far the two differ is what the difference of others has to be held against.
//! Times are written after each boot: the same request goes on from there.

use super::lines::{self, Line};
use super::{empty_row, fitting, uname, Selected};
use crate::{outputs, Error, Result, Session};
use kerntune_guest::{step_log, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::{Outcome, RunRequest, Uml};
use kerntune_profile::rfc3339;
use kerntune_stats::{
    schedule, Better, Decision, Kernel as KernelName, Level, Options, Results, ResultsRow, Set, Skipped,
    Stop, Value, RESULTS_SCHEMA,
};
use kerntune_work::{write_json, IoContext};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What results call this machine.
pub const MACHINE: &str = "uml";
/// What every row is measured in; less is better.
const UNIT: &str = "ns/op";
/// Where the runs of boots are until they are read.
const ROOM: &str = "timings";

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// How often each kernel is booted.
    pub boots: u32,
    /// How often a row is timed in each boot.
    pub iterations: u32,
    /// How much of its work a row does in each iteration.
    pub scale: f64,
    /// The host's CPU that they run on.
    pub cpu: u32,
}

/// What to time.
#[derive(Debug, Clone, Copy)]
pub struct TimedRequest<'a> {
    /// The first one twice.
    pub kernels: &'a [Kernel],
    /// Its measured run is timed. Programs print a line for each row and iteration (`guest/README.md`).
    pub workload: &'a Workload,
    /// As many boots at most.
    pub effort: Effort,
    /// When fewer boots are enough.
    pub until: Option<Until>,
    /// Where the results go: one file for each kernel, replaced after each boot.
    pub directory: &'a Path,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Each row's interval, relative to its estimate: 0.01 is one per cent from end to end.
    pub width: f64,
    /// No round is begun after this time.
    pub budget: Option<Duration>,
}

/// What one kernel's rows came to, and where that is written.
pub type Timed = (PathBuf, Results);

/// What this kernel can run, and what it lacks for the rest.
///
/// # Errors
/// A kernel of another architecture, a configuration that cannot be read, nothing left.
pub fn check(kernel: &Kernel, selection: Vec<Selected>) -> Result<(Vec<Selected>, Vec<Skipped>)> {
    only_um(std::slice::from_ref(kernel))?;
    let dear =
        "a system call takes microseconds there, so that only batched rows say something of the kernel";
    fitting(kernel, selection, MACHINE, |suite| (!suite.is_batched()).then_some(dear))
}

/// Times what [`check`] left, of one kernel by itself.
///
/// # Errors
/// Runs that fail, lines that are none.
pub fn run(
    session: &Session,
    (selection, skipped): (Vec<Selected>, Vec<Skipped>),
    kernel: &Kernel,
    effort: Effort,
) -> Result<Results> {
    let mut results = empty(kernel, None, effort);
    results.skipped = skipped;
    for Selected { suite, rows } in &selection {
        let workload = configured(&suite.restricted(&rows.iter().collect::<Vec<_>>(), 1.0), effort);
        let image = session.image(&workload)?;
        results.rows.extend(rows.iter().map(|row| empty_row(&workload.name, row)));
        for boot in 0..effort.boots {
            time(session, (kernel, effort.cpu), &workload, &image.initramfs, boot, &mut results)?;
        }
    }
    // Programs that have no --only do more than was asked for.
    results.rows.retain(|row| {
        selection
            .iter()
            .any(|s| s.suite.workload.name == row.suite && s.rows.iter().any(|r| r.name == row.row))
    });
    Ok(results)
}

fn only_um(kernels: &[Kernel]) -> Result<()> {
    match kernels.iter().find(|kernel| kernel.manifest.arch != Arch::Um) {
        Some(kernel) => Err(Error::NotTimed { kernel: kernel.manifest.label.clone() }),
        None => Ok(()),
    }
}

/// The workload with the effort that its programs read.
fn configured(workload: &Workload, effort: Effort) -> Workload {
    let mut workload = workload.clone();
    workload.env.insert("KT_SCALE".into(), effort.scale.to_string());
    workload.env.insert("KT_ITERATIONS".into(), effort.iterations.to_string());
    workload
}

/// Results without rows.
fn empty(kernel: &Kernel, label: Option<String>, effort: Effort) -> Results {
    Results {
        schema: RESULTS_SCHEMA.into(),
        machine: MACHINE.into(),
        kernel: KernelName { id: Some(kernel.manifest.id.clone()), ..KernelName::default() },
        label,
        started: rfc3339(SystemTime::now()),
        scale: Some(effort.scale),
        iterations: Some(effort.iterations),
        model: None,
        rows: Vec::new(),
        skipped: Vec::new(),
    }
}

/// How often the kernel of these results was booted.
fn boots(results: &Results) -> u32 {
    let boots = results.rows.iter().flat_map(|row| &row.values).map(|value| value.boot + 1);
    boots.max().unwrap_or(0)
}

/// Whether times of `other` can stand beside these.
fn goes_on_with(one: &Results, other: &Results) -> bool {
    (&one.schema, &one.machine, &one.kernel.id, one.iterations, one.scale)
        == (&other.schema, &other.machine, &other.kernel.id, other.iterations, other.scale)
}

fn add(results: &mut Results, suite: &str, boot: u32, lines: &[Line]) {
    for line in lines {
        let is_it = |row: &ResultsRow| (row.suite.as_str(), &row.row) == (suite, &line.row);
        let at = results.rows.iter().position(is_it).unwrap_or_else(|| {
            results.rows.push(ResultsRow {
                suite: suite.into(),
                row: line.row.clone(),
                unit: UNIT.into(),
                better: Better::Lower,
                values: Vec::new(),
            });
            results.rows.len() - 1
        });
        let value = line.nanoseconds as f64 / line.operations as f64;
        let iteration = line.iteration;
        results.rows[at].values.push(Value { build: 0, boot, run: 0, iteration, value, figures: None });
    }
}

/// Boots the kernels in turn; the first of the results is the first kernel's, the last its A/A partner's. Boots whose
/// times are in the directory are not made again. `tell` hears of each other boot: which of how many, and whose;
/// `look` of each look at the intervals.
///
/// # Errors
/// A kernel that cannot be timed, runs that fail, lines that are none.
pub fn timed(
    session: &Session,
    request: &TimedRequest,
    tell: &dyn Fn(u32, u32, &str),
    look: &dyn Fn(Decision),
) -> Result<Vec<Timed>> {
    only_um(request.kernels)?;
    let workload = configured(request.workload, request.effort);
    let image = session.image(&workload)?;
    let mut sides = sides(request)?;
    let all = request.effort.boots * sides.len() as u32;
    let (mut done, begun, mut block) = (0, Instant::now(), Instant::now());
    let mut stop = request.until.map(|until| Stop::at_width(until.width, Options::default().confidence));
    let turns: Vec<usize> =
        schedule::mirrored(sides.len(), request.effort.boots.div_ceil(2) as usize).collect();
    for (boot, round) in (0..request.effort.boots).zip(turns.chunks(sides.len())) {
        for &at in round {
            let (kernel, (path, results)) = &mut sides[at];
            done += 1;
            if boots(results) > boot {
                continue;
            }
            tell(done, all, results.label.as_deref().unwrap_or_default());
            time(session, (kernel, request.effort.cpu), &workload, &image.initramfs, boot, results)?;
            write_json(path, results)?;
        }
        // Two rounds are one way and back, a block.
        if let (Some(stop), Some(until), 1) = (&mut stop, request.until, boot % 2) {
            // Another one takes about as long as this one did; boots of before took no time.
            let left = until.budget.is_none_or(|budget| begun.elapsed() + block.elapsed() <= budget);
            block = Instant::now();
            let decision = stop.look(&ratios(&sides)?, left);
            look(decision);
            if !matches!(decision, Decision::GoOn(_)) {
                break;
            }
        }
    }
    Ok(sides.into_iter().map(|(_, timed)| timed).collect())
}

/// Each row of each kernel against the base kernel, its A/A partner left out, with the boots of the one that has fewer.
fn ratios(sides: &[(&Kernel, Timed)]) -> Result<Vec<(kerntune_stats::Ratio, usize)>> {
    let set = |(_, (path, results)): &(&Kernel, Timed)| -> Result<Set> {
        Ok(Set::join(&[(path.display().to_string(), results.clone())])?)
    };
    let [base, others @ .., again] = sides else { return Ok(Vec::new()) };
    let others = if others.is_empty() { std::slice::from_ref(again) } else { others };
    let base = set(base)?;
    let mut ratios = Vec::new();
    for other in others {
        let other = set(other)?;
        for row in &base.rows {
            let Some(beside) = other.row(&row.suite, &row.row) else { continue };
            let units = row.sample.count(Level::Boot).min(beside.sample.count(Level::Boot));
            if units > 1 {
                let ratio = Options::default().ratio(&row.sample, &beside.sample, Level::Boot)?;
                ratios.push((ratio, units));
            }
        }
    }
    Ok(ratios)
}

/// One boot, added to the results.
fn time(
    session: &Session,
    (kernel, cpu): (&Kernel, u32),
    workload: &Workload,
    initramfs: &Path,
    boot: u32,
    results: &mut Results,
) -> Result<()> {
    let (lines, outcome) = boot_once(session, Uml { cpu: Some(cpu) }, kernel, workload, initramfs)?;
    if results.kernel.release.is_empty() {
        (results.kernel.release, results.kernel.version) = uname(&outcome.directory.join("console.log"));
    }
    add(results, &workload.name, boot, &lines);
    Ok(fs::remove_dir_all(&outcome.directory).at("remove", &outcome.directory)?)
}

/// The kernels, then the first of them again, each with its file and what is in it by now.
fn sides<'a>(request: &TimedRequest<'a>) -> Result<Vec<(&'a Kernel, Timed)>> {
    fs::create_dir_all(request.directory).at("create", request.directory)?;
    let mut names = BTreeSet::new();
    let again = request.kernels.first().map(|kernel| (kernel, "-again"));
    let each = request.kernels.iter().map(|kernel| (kernel, "")).chain(again);
    each.map(|(kernel, suffix)| {
        let label = format!("{}{suffix}", kernel.manifest.label);
        let path = request.directory.join(format!("{label}.json"));
        if !names.insert(label.clone()) {
            return Err(Error::Exists { path });
        }
        let empty = empty(kernel, Some(label), request.effort);
        let results = match path.exists() {
            true => taken_up(&path, &request.workload.name, &empty)?,
            false => empty,
        };
        Ok((kernel, (path, results)))
    })
    .collect()
}

/// The times of before, if they are those of the same request.
fn taken_up(path: &Path, suite: &str, empty: &Results) -> Result<Results> {
    let bytes = fs::read(path).at("read", path)?;
    let results = serde_json::from_slice(&bytes).ok().filter(|results: &Results| {
        goes_on_with(results, empty) && results.rows.iter().all(|row| row.suite == suite)
    });
    results.ok_or_else(|| Error::Exists { path: path.to_owned() })
}

/// One boot's lines.
fn boot_once(
    session: &Session,
    uml: Uml,
    kernel: &Kernel,
    workload: &Workload,
    initramfs: &Path,
) -> Result<(Vec<Line>, Outcome)> {
    let directory = session.work.room(ROOM)?.join(format!("{}.{}", kernel.manifest.id, std::process::id()));
    if directory.is_dir() {
        fs::remove_dir_all(&directory).at("remove", &directory)?;
    }
    fs::create_dir(&directory).at("create", &directory)?;
    let request = RunRequest {
        memory_mb: workload.memory_mb,
        network_cards: workload.network_cards,
        time_limit_seconds: workload.time_limit_seconds,
        append: &workload.append,
        ..RunRequest::new(kernel, initramfs, "measured")
    };
    let outcome = uml.run(&request, &directory, session.progress)?;
    outputs::judge(workload, "measured", &outcome.guest_files)?;
    let mut lines = Vec::new();
    for (number, step) in (1..).zip(&workload.measured.steps) {
        let path = outcome.guest_files.join(step_log("measured", number, &step.command));
        let text = fs::read_to_string(&path).at("read", &path)?;
        lines.extend(parse(&text).map_err(|message| Error::NotTimes { path, message })?);
    }
    Ok((lines, outcome))
}

/// What a step printed: at least one line, and nothing but lines.
fn parse(text: &str) -> Result<Vec<Line>, String> {
    let lines = lines::parse(text)?;
    match lines.is_empty() {
        true => Err("it is empty".into()),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(id: &str, scale: f64) -> Results {
        Results {
            schema: RESULTS_SCHEMA.into(),
            machine: MACHINE.into(),
            kernel: KernelName { id: Some(id.into()), ..KernelName::default() },
            label: None,
            started: String::new(),
            scale: Some(scale),
            iterations: Some(2),
            model: None,
            rows: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn only_times_of_the_same_request_are_taken_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.json");
        let empty = nothing("aa11", 1.0);
        let mut timed = empty.clone();
        let lines = parse("{\"row\":\"nop\",\"operations\":1,\"nanoseconds\":5}").unwrap();
        add(&mut timed, "batched", 0, &lines);
        write_json(&path, &timed).unwrap();
        let again = taken_up(&path, "batched", &empty).unwrap();
        assert_eq!((boots(&again), boots(&empty)), (1, 0));
        assert_eq!(again, timed);
        let others = [nothing("bb22", 1.0), nothing("aa11", 2.0)];
        for other in others.iter().map(|other| ("batched", other)).chain([("rr", &empty)]) {
            let error = taken_up(&path, other.0, other.1).unwrap_err().to_string();
            assert!(error.contains("base.json") && error.contains("remove it"), "{error}");
        }
        fs::write(&path, "{").unwrap();
        taken_up(&path, "batched", &empty).unwrap_err();
    }

    #[test]
    fn lines_become_rows_in_order() {
        let mut timed = nothing("aa11", 1.0);
        let text = "{\"row\":\"nop\",\"iteration\":0,\"operations\":10,\"nanoseconds\":1000}\n\
                    {\"row\":\"nop\",\"iteration\":1,\"operations\":10,\"nanoseconds\":1200}\n\
                    {\"row\":\"tcp_rr\",\"operations\":2,\"nanoseconds\":5000}\n";
        let lines = parse(text).unwrap();
        add(&mut timed, "batched", 0, &lines);
        add(&mut timed, "batched", 1, &lines);
        let rows: Vec<_> = timed.rows.iter().map(|row| (row.row.as_str(), row.values.len())).collect();
        assert_eq!(rows, [("nop", 4), ("tcp_rr", 2)]);
        assert_eq!(timed.rows[0].spread(), Some([110.0, 100.0, 120.0]));
        let value = timed.rows[0].values[3];
        assert_eq!((value.boot, value.iteration, value.value), (1, 1, 120.0));
        let written = serde_json::to_value(&timed).unwrap();
        assert_eq!(written["rows"][0]["unit"], "ns/op");
    }

    #[test]
    fn what_is_no_time_is_no_number() {
        for bad in ["", "done", "{\"row\":\"a\",\"operations\":0,\"nanoseconds\":5}", "{\"row\":\"a\"}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
