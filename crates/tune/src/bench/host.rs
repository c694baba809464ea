//! Benchmark rows on the running system: the suite's programs run under the booted kernel.
//!
//! Our own programs run directly. Suites with services and files, such as servers, run from their
//! guest image in a sandbox, as in a guest, and can change nothing on the host ([`Host`]).

use super::lines::{self, SuiteLine};
use super::measured::read_values;
use super::{common_value, directory, empty_row, require_rows, split_unfit, Error, SelectedRows};
use crate::Result;
use kerntune_guest::{compile, compile_contain, CommandLine, GuestImage, Suite, SuiteRow, Workload};
use kerntune_machine::{can_contain, Error as MachineError, Host, Machine, RunRequest};
use kerntune_profile::rfc3339;
use kerntune_stats::{
    BenchResults, MeasuredKernel as KernelName, MeasuredValue, PerfCounter, ResultsRow, SkippedRow,
    RESULTS_SCHEMA,
};
use kerntune_work::{IoContext, Job, JobEnd, Progress, WorkDir};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

/// Name of this machine in results.
pub const MACHINE: &str = "host";
/// Default factor on a row's work: usual work takes milliseconds, too little for the clock of a
/// shared machine.
const SCALE: f64 = 10.0;
/// Number of output lines of a failed program that messages show.
const WORDS: usize = 5;

/// Numbers of runs, scale and counters of a benchmark on the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostEffort<'a> {
    /// Number of runs of each suite's program.
    pub runs: u32,
    /// Factor on the usual work of each row; by default 10, or 1 for suites with fixed work.
    pub scale: Option<f64>,
    /// CPU counters to read.
    pub counters: &'a [PerfCounter],
}

impl HostEffort<'_> {
    fn scale_of(&self, suite: &Suite) -> Result<f64, Error> {
        match (self.scale, suite.is_scalable()) {
            (scale, true) => Ok(scale.unwrap_or(SCALE)),
            (None | Some(1.0), false) => Ok(1.0),
            (Some(_), false) => Err(Error::NotScalable { suite: suite.workload.name.clone() }),
        }
    }
}

/// Splits the selection into what can run here and the rows that are skipped. The programs test
/// this themselves.
///
/// # Errors
/// Programs that cannot be compiled or fail the test; no row that can run.
pub fn check(work: &WorkDir, selection: Vec<SelectedRows>) -> Result<(Vec<SelectedRows>, Vec<SkippedRow>)> {
    let (mut left, mut skipped) = (Vec::new(), Vec::new());
    for selected in selection {
        let reasons = reasons(work, &selected.suite)?;
        left.extend(split_unfit(selected, &reasons, &mut skipped));
    }
    require_rows(&left, &skipped, MACHINE)?;
    Ok((left, skipped))
}

fn reasons(work: &WorkDir, suite: &Suite) -> Result<BTreeMap<String, String>> {
    let all = |reason: String| suite.rows.iter().map(|row| (row.name.clone(), reason.clone())).collect();
    if let Some(reason) = suite.guest_only() {
        return Ok(all(reason.into()));
    }
    if !suite.is_bare() {
        return match can_contain(&compile_contain(work)?) {
            Ok(()) => Ok(BTreeMap::new()),
            Err(error @ MachineError::NotContained { .. }) => Ok(all(error.to_string())),
            Err(error) => Err(error.into()),
        };
    }
    let mut reasons = BTreeMap::new();
    for command in suite.checks() {
        let text = run_program(work, &suite.workload, &command)?;
        reasons.extend(text.lines().filter_map(|line| {
            let (row, reason) = line.split_once('\t')?;
            Some((row.to_owned(), reason.to_owned()))
        }));
    }
    Ok(reasons)
}

/// Runs the rows that [`check`] left: every suite once, then all of them again.
///
/// # Errors
/// A program that fails, takes too long, or prints anything but its figures.
pub fn run(
    work: &WorkDir,
    (selection, skipped): (Vec<SelectedRows>, Vec<SkippedRow>),
    effort: HostEffort,
    progress: &dyn Progress,
) -> Result<BenchResults> {
    let scales: Vec<f64> =
        selection.iter().map(|selected| effort.scale_of(&selected.suite)).collect::<Result<_, _>>()?;
    let kernel = kernel(work)?;
    let started = rfc3339(SystemTime::now());
    let mut results = BenchResults {
        schema: RESULTS_SCHEMA.into(),
        machine: MACHINE.into(),
        kernel,
        started,
        scale: common_value(scales.iter().copied()),
        skipped,
        ..BenchResults::default()
    };
    let mut rows: Vec<Vec<ResultsRow>> = selection.iter().map(empty_rows).collect();
    let prepared: Vec<(Workload, Option<GuestImage>)> = selection
        .iter()
        .zip(scales)
        .map(|(SelectedRows { suite, rows }, scale)| {
            let mut workload = suite.restricted(&rows.iter().collect::<Vec<_>>(), scale);
            workload.env.extend(lines::environment(effort.counters));
            workload.times = true;
            let image = match suite.is_bare() {
                true => None,
                false => Some(GuestImage::build(work, &workload, progress)?),
            };
            Ok((workload, image))
        })
        .collect::<Result<_>>()?;
    for number in 0..effort.runs {
        for ((selected, rows), (workload, image)) in selection.iter().zip(&mut rows).zip(&prepared) {
            let what = format!("{} on the host, run {} of {}", workload.name, number + 1, effort.runs);
            let run = HostRun { work, suite: &selected.suite, workload, number, what: &what, progress };
            let uncounted = match image {
                None => run.here(&selected.rows, rows)?,
                Some(image) => run.contained(image, rows)?,
            };
            results.uncounted.extend(uncounted);
        }
    }
    results.rows = rows.into_iter().flatten().collect();
    Ok(results)
}

fn empty_rows(selected: &SelectedRows) -> Vec<ResultsRow> {
    selected.rows.iter().map(|row| empty_row(&selected.suite.workload.name, row)).collect()
}

/// One run of a suite.
struct HostRun<'a> {
    work: &'a WorkDir,
    suite: &'a Suite,
    /// Workload of the suite, restricted to the selected rows.
    workload: &'a Workload,
    /// Number of the run, from 0.
    number: u32,
    what: &'a str,
    progress: &'a dyn Progress,
}

impl HostRun<'_> {
    /// Runs the programs directly and adds values of the rows `asked` to `rows`. Returns the
    /// counters that did not count, with reasons.
    fn here(&self, asked: &[SuiteRow], rows: &mut [ResultsRow]) -> Result<BTreeMap<PerfCounter, String>> {
        let mut commands = Vec::new();
        let mut lines = Vec::new();
        for step in &self.workload.measured.steps {
            self.progress.begin(self.what, None);
            let text = run_program(self.work, self.workload, &step.command);
            self.progress.end();
            let not_figures = |message| Error::NotFigures { command: step.command.join(" "), message };
            lines.extend(lines::parse(&text?).map_err(not_figures)?);
            commands.push(step.command.join(" "));
        }
        for (row, of) in rows.iter_mut().zip(asked) {
            let values = values(&lines, of, self.number).map_err(|message| {
                let command = commands.join("; ");
                Error::NotFigures { command, message }
            })?;
            row.values.extend(values);
        }
        Ok(lines.into_iter().flat_map(|line| line.uncounted).collect())
    }

    /// Runs the programs from the guest image in a sandbox; otherwise as [`here`](Self::here).
    fn contained(
        &self,
        image: &GuestImage,
        rows: &mut [ResultsRow],
    ) -> Result<BTreeMap<PerfCounter, String>> {
        let Self { work, workload, progress, .. } = *self;
        let directory = directory(work, MACHINE)?;
        let host = Host { program: compile_contain(work)?, what: self.what.into() };
        let request = RunRequest::on_host(&image.initramfs, workload, "measured");
        let outcome = host.run(&request, &directory, progress)?;
        let measured = read_values(workload, Some(self.suite), &outcome.guest_files)?;
        for row in rows {
            let of_row = measured.iter().filter(|measured| measured.row == row.row);
            let values = of_row.map(|one| MeasuredValue {
                run: self.number,
                iteration: one.iteration,
                value: one.value,
                counters: one.counters.clone(),
                ..MeasuredValue::default()
            });
            let times = measured.iter().filter(|measured| measured.row == row.row).filter_map(|one| one.cpu);
            row.cpu.extend(times);
            let before = row.values.len();
            row.values.extend(values);
            if row.values.len() == before {
                let message = format!("row {} is missing", row.row);
                return Err(Error::NotFigures { command: workload.name.clone(), message }.into());
            }
        }
        fs::remove_dir_all(&outcome.directory).at("remove", &outcome.directory)?;
        Ok(measured.into_iter().flat_map(|one| one.uncounted).collect())
    }
}

/// Extracts the values of one row from the output of a run.
fn values(lines: &[SuiteLine], row: &SuiteRow, run: u32) -> Result<Vec<MeasuredValue>, String> {
    let of_row = lines.iter().filter(|line| line.row == row.name);
    let value = |line: &SuiteLine| {
        let value = row.unit.value(line.operations, line.nanoseconds);
        let value = value.ok_or_else(|| format!("row {} is in {}", row.name, row.unit.name()))?;
        Ok(MeasuredValue {
            run,
            iteration: line.iteration,
            value,
            counters: line.counted(),
            ..MeasuredValue::default()
        })
    };
    let values: Vec<MeasuredValue> = of_row.map(value).collect::<Result<_, String>>()?;
    match values.is_empty() {
        true => Err(format!("row {} is missing", row.name)),
        false => Ok(values),
    }
}

/// Runs one of our programs and returns its output.
fn run_program(work: &WorkDir, workload: &Workload, command: &CommandLine) -> Result<String> {
    let command = &workload.as_run(command);
    let (name, arguments) = command.split_first().map_or(("", command.as_slice()), |(n, a)| (n.as_str(), a));
    let seconds = workload.time_limit_seconds;
    let failed = |what: String, output: &str| Error::Program {
        command: command.join(" "),
        what,
        words: last_words(output),
    };
    let program = compile(work, name)?.ok_or_else(|| failed("is no program of kerntune's".into(), ""))?;
    let mut process = std::process::Command::new(program);
    process.args(arguments).envs(&workload.env);
    let (end, output) = Job::new(process).time_limit(Duration::from_secs(seconds)).output()?;
    match end {
        end if end.success() => Ok(output),
        JobEnd::Exited(status) => Err(failed(format!("ended with {status}"), &output).into()),
        JobEnd::TimedOut | JobEnd::Stopped => {
            Err(failed(format!("did not end within {seconds} s (a smaller --scale does less)"), &output)
                .into())
        }
    }
}

fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let from = lines.len().saturating_sub(WORDS);
    match lines[from..].join("\n    ") {
        words if words.is_empty() => "    (none)".into(),
        words => format!("    {words}"),
    }
}

/// Identifies the booted kernel.
fn kernel(work: &WorkDir) -> Result<KernelName> {
    let read = |path: &str| fs::read_to_string(path).at("read", path).map(|text| text.trim().to_owned());
    Ok(KernelName {
        release: read("/proc/sys/kernel/osrelease")?,
        version: read("/proc/sys/kernel/version")?,
        id: kerntune_kernel::find_running(work)?.map(|kernel| kernel.manifest.id),
        build_id: kerntune_kernel::running_build_id(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::select;
    use super::*;
    use kerntune_work::NoProgress;
    use std::path::Path;

    fn selection(name: &str, rows: &[&str]) -> Vec<SelectedRows> {
        let suite = Suite::of(Workload::find(name, &[]).unwrap()).unwrap();
        select(vec![suite], &rows.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn rows_run_here_as_often_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let checked = check(&work, selection("osbench", &["read", "getpid", "select_15_10"])).unwrap();
        let results = run(
            &work,
            checked,
            HostEffort {
                runs: 2,
                scale: Some(0.05),
                counters: &[PerfCounter::PageFaults, PerfCounter::Cycles],
            },
            &NoProgress,
        )
        .unwrap();
        let rows: Vec<_> = results.rows.iter().map(|row| (row.row.as_str(), row.unit.as_str())).collect();
        assert_eq!(rows, [("getpid", "ns/op"), ("read", "MB/s"), ("select_15_10", "ns/op")]);
        for row in &results.rows {
            let places: Vec<_> = row.values.iter().map(|v| (v.build, v.boot, v.run, v.iteration)).collect();
            assert_eq!(places, [(0, 0, 0, 0), (0, 0, 1, 0)]);
            assert!(row.values.iter().all(|v| v.value > 0.0 && v.value.is_finite()));
        }
        assert!(!results.kernel.release.is_empty() && results.kernel.id.is_none());
        // Page faults can be counted everywhere, if we may; few virtual machines count cycles. Each
        // counter has a number or a reason.
        for counter in [PerfCounter::PageFaults, PerfCounter::Cycles] {
            let counted = results.rows.iter().all(|row| row.counted(counter).is_some());
            assert_ne!(counted, results.uncounted.contains_key(&counter), "{counter}");
        }
    }

    #[test]
    fn what_only_a_guest_has_is_said_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let error = check(&work, selection("paths", &["epoll_nested"])).unwrap_err().to_string();
        assert!(error.contains("paths/epoll_nested: it takes network cards"), "{error}");
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let text = "[training]\n[[training.step]]\ncommand = [\"kbx\"]\n[measured]\n[[measured.step]]\n\
                    command = [\"kbx\", \"--order\", \"random\"]\n";
        let suite = Suite::of(Workload::parse(text, Path::new("x.toml")).unwrap()).unwrap();
        let checked = check(&work, select(vec![suite], &["getpid".into()]).unwrap()).unwrap();
        let error = run(&work, checked, HostEffort { runs: 1, scale: Some(1.0), counters: &[] }, &NoProgress)
            .unwrap_err()
            .to_string();
        for word in ["`kbx --order random --only getpid` ended with", "listed, reversed or shuffled"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_no_figure() {
        let rows = selection("kbx", &["umask"]).remove(0).rows;
        let lines = lines::parse("{\"row\":\"sbrk\",\"operations\":1,\"nanoseconds\":1}").unwrap();
        assert_eq!(values(&lines, &rows[0], 0).unwrap_err(), "row umask is missing");
        assert_eq!(last_words("a\nb\nc\nd\ne\nf\n"), "    b\n    c\n    d\n    e\n    f");
        assert_eq!(last_words(""), "    (none)");
    }
}
