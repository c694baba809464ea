//! Kernels timed against each other: boots in turn, each with several iterations of the workload's measured run.
//!
//! What a boot finds, such as where its memory lies, lasts until the next one, and the host is busy in phases. So
//! kernels take turns boot by boot, every second round in reverse: what changes slowly meets all of them alike. All of
//! them run on one CPU of the host.
//! The first kernel takes part twice; how far the two differ is what the difference of others has to be held against.
//! Times are written after each boot: the same request goes on from there.

use crate::{outputs, Error, Result, Session};
use kerntune_guest::{step_log, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::{Outcome, RunRequest, Uml};
use kerntune_profile::rfc3339;
use kerntune_work::{write_json, IoContext};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The version of the results that are written.
pub const SCHEMA: &str = "kerntune-bench-results/1";
/// The machine that times.
pub const MACHINE: &str = "uml";
/// What every row is measured in; less is better.
pub const UNIT: &str = "ns/op";
/// Where the runs of boots are until they are read.
const ROOM: &str = "timings";

/// What to time.
#[derive(Debug, Clone, Copy)]
pub struct TimedRequest<'a> {
    /// The first one twice.
    pub kernels: &'a [Kernel],
    /// Its measured run is timed. Programs print a line for each row and iteration (`guest/README.md`).
    pub workload: &'a Workload,
    /// How often each kernel is booted.
    pub boots: u32,
    /// How often a row is timed in each boot.
    pub iterations: u32,
    /// How much of its work a row does in each iteration.
    pub scale: f64,
    /// The host's CPU that they run on.
    pub cpu: u32,
    /// Where the results go: one file for each kernel, replaced after each boot.
    pub directory: &'a Path,
}

/// One kernel's times: what `kerntune bench compare` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// [`SCHEMA`].
    pub schema: String,
    /// `uml`.
    pub machine: String,
    /// Who was timed.
    pub kernel: TimedKernel,
    /// When the first boot began, RFC 3339 in UTC.
    pub started: String,
    /// How often each row was timed in a boot.
    pub iterations: u32,
    /// How much of its work a row did in each iteration.
    pub scale: f64,
    /// In the order in which the program printed them.
    pub rows: Vec<Row>,
}

/// A kernel as it calls itself, and as it is found again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedKernel {
    /// `6.12.117-kt`: `uname -r`.
    pub release: String,
    /// `#1 Thu Jan …`: `uname -v`.
    pub version: String,
    /// Of the work directory.
    pub id: String,
    /// The name it is listed under; `-again` is added to that of the A/A partner.
    pub label: String,
}

/// One row's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub suite: String,
    /// As the program calls it.
    pub row: String,
    /// [`UNIT`].
    pub unit: String,
    /// `lower`.
    pub better: String,
    /// All of them, in order of time.
    pub values: Vec<Value>,
}

/// One time, and where it stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// One build of each kernel: 0.
    pub build: u32,
    /// From 0.
    pub boot: u32,
    /// One run in each boot: 0.
    pub run: u32,
    /// From 0.
    pub iteration: u32,
    /// In the row's unit.
    pub value: f64,
}

impl Timed {
    /// The median of a row's times; None if it has none.
    pub fn median(&self, row: &str) -> Option<f64> {
        let row = self.rows.iter().find(|r| r.row == row)?;
        let mut values: Vec<f64> = row.values.iter().map(|v| v.value).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some((values[last / 2] + values[last.div_ceil(2)]) / 2.0)
    }

    /// How often it was booted.
    pub fn boots(&self) -> u32 {
        let boots = self.rows.iter().flat_map(|row| &row.values).map(|value| value.boot + 1);
        boots.max().unwrap_or(0)
    }

    /// Whether times of `other` can stand beside these.
    fn goes_on_with(&self, other: &Timed) -> bool {
        let of = |timed: &Timed| (timed.schema.clone(), timed.machine.clone(), timed.kernel.id.clone());
        of(self) == of(other) && (self.iterations, self.scale) == (other.iterations, other.scale)
    }

    fn add(&mut self, suite: &str, boot: u32, lines: &[Line]) {
        for line in lines {
            let at = self.rows.iter().position(|row| row.row == line.row).unwrap_or_else(|| {
                self.rows.push(Row {
                    suite: suite.into(),
                    row: line.row.clone(),
                    unit: UNIT.into(),
                    better: "lower".into(),
                    values: Vec::new(),
                });
                self.rows.len() - 1
            });
            let value = line.nanoseconds as f64 / line.operations as f64;
            let iteration = line.iteration;
            self.rows[at].values.push(Value { build: 0, boot, run: 0, iteration, value });
        }
    }
}

/// What a program prints for each row and iteration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Line {
    row: String,
    /// Programs that do each row once leave it out.
    #[serde(default)]
    iteration: u32,
    operations: u64,
    nanoseconds: u64,
}

/// Boots the kernels in turn; the first of the results is the first kernel's, the last its A/A partner's. Boots whose
/// times are in the directory are not made again. `tell` hears of each other boot: which of how many, and whose.
///
/// # Errors
/// A kernel that cannot be timed, runs that fail, lines that are none.
pub fn timed(
    session: &Session,
    request: &TimedRequest,
    tell: &dyn Fn(u32, u32, &str),
) -> Result<Vec<(PathBuf, Timed)>> {
    let pc = request.kernels.iter().find(|kernel| kernel.manifest.arch != Arch::Um);
    if let Some(kernel) = pc {
        return Err(Error::NotTimed { kernel: kernel.manifest.label.clone() });
    }
    let mut workload = request.workload.clone();
    workload.env.insert("KT_SCALE".into(), request.scale.to_string());
    workload.env.insert("KT_ITERATIONS".into(), request.iterations.to_string());
    let image = session.image(&workload)?;
    let uml = Uml { cpu: Some(request.cpu) };
    let mut sides = sides(request)?;
    let all = request.boots * sides.len() as u32;
    let mut done = 0;
    for boot in 0..request.boots {
        for at in turn(sides.len(), boot) {
            let (kernel, path, timed) = &mut sides[at];
            done += 1;
            if timed.boots() > boot {
                continue;
            }
            tell(done, all, &timed.kernel.label);
            let (lines, outcome) = run(session, uml, kernel, &workload, &image.initramfs)?;
            if timed.kernel.release.is_empty() {
                (timed.kernel.release, timed.kernel.version) = uname(&outcome);
            }
            timed.add(&workload.name, boot, &lines);
            fs::remove_dir_all(&outcome.directory).at("remove", &outcome.directory)?;
            write_json(path, timed)?;
        }
    }
    Ok(sides.into_iter().map(|(_, path, timed)| (path, timed)).collect())
}

/// The kernels, then the first of them again, each with its file and what is in it by now.
fn sides<'a>(request: &TimedRequest<'a>) -> Result<Vec<(&'a Kernel, PathBuf, Timed)>> {
    fs::create_dir_all(request.directory).at("create", request.directory)?;
    let started = rfc3339(SystemTime::now());
    let mut names = BTreeSet::new();
    let again = request.kernels.first().map(|kernel| (kernel, "-again"));
    let each = request.kernels.iter().map(|kernel| (kernel, "")).chain(again);
    each.map(|(kernel, suffix)| {
        let label = format!("{}{suffix}", kernel.manifest.label);
        let path = request.directory.join(format!("{label}.json"));
        if !names.insert(label.clone()) {
            return Err(Error::Exists { path });
        }
        let id = kernel.manifest.id.clone();
        let empty = Timed {
            schema: SCHEMA.into(),
            machine: MACHINE.into(),
            kernel: TimedKernel { id, label, ..TimedKernel::default() },
            started: started.clone(),
            iterations: request.iterations,
            scale: request.scale,
            rows: Vec::new(),
        };
        let timed = match path.exists() {
            true => taken_up(&path, &request.workload.name, &empty)?,
            false => empty,
        };
        Ok((kernel, path, timed))
    })
    .collect()
}

/// The times of before, if they are those of the same request.
fn taken_up(path: &Path, suite: &str, empty: &Timed) -> Result<Timed> {
    let bytes = fs::read(path).at("read", path)?;
    let timed = serde_json::from_slice(&bytes)
        .ok()
        .filter(|timed: &Timed| timed.goes_on_with(empty) && timed.rows.iter().all(|row| row.suite == suite));
    timed.ok_or_else(|| Error::Exists { path: path.to_owned() })
}

/// Whose turn it is in a round: two rounds are one way and back, so that what drifts meets all of them alike; the next
/// two begin with the next one, so that none always comes first.
fn turn(sides: usize, round: u32) -> Vec<usize> {
    let there = (0..sides).map(|place| (round as usize / 2 + place) % sides);
    match round % 2 {
        0 => there.collect(),
        _ => there.rev().collect(),
    }
}

/// One boot.
fn run(
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

/// What a step printed: nothing but lines.
fn parse(text: &str) -> Result<Vec<Line>, String> {
    let line = |text: &str| {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("`{text}`: {error}"))?;
        match line.operations > 0 && line.nanoseconds > 0 {
            true => Ok(line),
            false => Err(format!("`{text}`: no operations, or no time")),
        }
    };
    let lines = text.lines().map(line).collect::<Result<Vec<_>, _>>()?;
    match lines.is_empty() {
        true => Err("it is empty".into()),
        false => Ok(lines),
    }
}

/// `uname -r` and `uname -v`, from the first words on the console; empty if it had others.
fn uname(outcome: &Outcome) -> (String, String) {
    let text = fs::read_to_string(outcome.directory.join("console.log")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.split_once("Linux version "));
    let Some((_, rest)) = line else { return Default::default() };
    let release = rest.split(' ').next().unwrap_or_default();
    let version = rest.find(" #").map(|at| rest[at + 1..].trim()).unwrap_or_default();
    (release.into(), version.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Timed {
        Timed {
            schema: SCHEMA.into(),
            machine: MACHINE.into(),
            kernel: TimedKernel::default(),
            started: String::new(),
            iterations: 2,
            scale: 1.0,
            rows: Vec::new(),
        }
    }

    #[test]
    fn only_times_of_the_same_request_are_taken_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.json");
        let mut timed = empty();
        timed.add("batched", 0, &parse("{\"row\":\"nop\",\"operations\":1,\"nanoseconds\":5}").unwrap());
        write_json(&path, &timed).unwrap();
        let again = taken_up(&path, "batched", &empty()).unwrap();
        assert_eq!((again.boots(), empty().boots()), (1, 0));
        assert_eq!(again, timed);
        let other = TimedKernel { id: "bb22".into(), ..TimedKernel::default() };
        let others = [Timed { kernel: other, ..empty() }, Timed { scale: 2.0, ..empty() }];
        for other in others.iter().map(|other| ("batched", other)).chain([("rr", &empty())]) {
            let error = taken_up(&path, other.0, other.1).unwrap_err().to_string();
            assert!(error.contains("base.json") && error.contains("remove it"), "{error}");
        }
        fs::write(&path, "{").unwrap();
        taken_up(&path, "batched", &empty()).unwrap_err();
    }

    #[test]
    fn turns_go_there_and_back_and_all_begin() {
        let rounds: Vec<_> = (0..4).map(|round| turn(3, round)).collect();
        assert_eq!(rounds, [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]]);
    }

    #[test]
    fn lines_become_rows_in_order() {
        let mut timed = empty();
        let text = "{\"row\":\"nop\",\"iteration\":0,\"operations\":10,\"nanoseconds\":1000}\n\
                    {\"row\":\"nop\",\"iteration\":1,\"operations\":10,\"nanoseconds\":1200}\n\
                    {\"row\":\"tcp_rr\",\"operations\":2,\"nanoseconds\":5000}\n";
        let lines = parse(text).unwrap();
        timed.add("batched", 0, &lines);
        timed.add("batched", 1, &lines);
        let rows: Vec<_> = timed.rows.iter().map(|row| (row.row.as_str(), row.values.len())).collect();
        assert_eq!(rows, [("nop", 4), ("tcp_rr", 2)]);
        assert_eq!((timed.median("nop"), timed.median("tcp_rr")), (Some(110.0), Some(2500.0)));
        assert_eq!(timed.median("udp_rr"), None);
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
