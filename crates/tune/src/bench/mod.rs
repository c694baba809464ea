//! Rows of suites on a machine, with their figures in one format.
//!
//! [`select`] chooses rows, a machine's `check` reports rows that cannot run there, and its `run`
//! gives the [`BenchResults`](kerntune_stats::BenchResults) of the others. [`timed::timed`] makes
//! several kernels take turns. A failure never becomes a number.

mod cpu;
pub mod emulator;
mod error;
pub mod host;
pub(crate) mod lines;
mod measured;
pub mod timed;

pub use error::Error;

use kerntune_guest::{MetricDirection, RowUnit, Suite, SuiteRow};
use kerntune_kernel::Kernel;
use kerntune_stats::{ResultsRow, SkippedRow};
use kerntune_work::{IoContext, WorkDir};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Kind of timed runs in the work directory, which are deleted after they were read.
const KIND: &str = "timings";

/// Rows of a suite to run, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedRows {
    /// Suite of the rows.
    pub suite: Suite,
    /// Rows in the suite's order.
    pub rows: Vec<SuiteRow>,
}

/// Selects rows by name, `ROW` or `SUITE/ROW`; all rows if `names` is empty. Suites without a
/// selected row are left out.
///
/// # Errors
/// A name that no suite has.
pub fn select(suites: Vec<Suite>, names: &[String]) -> Result<Vec<SelectedRows>, Error> {
    let is = |suite: &Suite, row: &SuiteRow, name: &str| match name.split_once('/') {
        Some((of, name)) => of == suite.workload.name && name == row.name,
        None => name == row.name,
    };
    for name in names {
        if !suites.iter().any(|suite| suite.rows.iter().any(|row| is(suite, row, name))) {
            let known = suites.iter().map(names_of).collect::<Vec<_>>().join("; ");
            return Err(Error::NoRow { name: name.clone(), known });
        }
    }
    let chosen = suites.into_iter().map(|suite| {
        let asked = |row: &&SuiteRow| names.is_empty() || names.iter().any(|name| is(&suite, row, name));
        let rows = suite.rows.iter().filter(asked).cloned().collect();
        SelectedRows { suite, rows }
    });
    Ok(chosen.filter(|selected| !selected.rows.is_empty()).collect())
}

/// Lists the rows of a suite: `kbx: getpid, umask`.
fn names_of(suite: &Suite) -> String {
    let names: Vec<&str> = suite.rows.iter().map(|row| row.name.as_str()).collect();
    format!("{}: {}", suite.workload.name, names.join(", "))
}

/// Removes rows that cannot run for these reasons and adds them to `skipped`.
fn split_unfit(
    selected: SelectedRows,
    reasons: &BTreeMap<String, String>,
    skipped: &mut Vec<SkippedRow>,
) -> Option<SelectedRows> {
    let SelectedRows { suite, rows } = selected;
    let mut left = Vec::new();
    for row in rows {
        let missing = suite.rows.iter().find(|other| row.is_aggregate() && reasons.contains_key(&other.name));
        let reason = match (reasons.get(&row.name), missing) {
            (Some(reason), _) => reason.clone(),
            (None, Some(other)) => format!("it is the sum of all rows, and {} cannot run", other.name),
            (None, None) => {
                left.push(row);
                continue;
            }
        };
        skipped.push(SkippedRow { suite: suite.workload.name.clone(), row: row.name, reason });
    }
    (!left.is_empty()).then_some(SelectedRows { suite, rows: left })
}

/// Splits the selection into rows that a kernel can run in a guest of `machine` and skipped ones:
/// suites that are `unfit` for the machine, and rows that need missing options.
fn fitting(
    kernel: &Kernel,
    selection: Vec<SelectedRows>,
    machine: &'static str,
    unfit: impl Fn(&Suite) -> Option<&'static str>,
) -> crate::Result<(Vec<SelectedRows>, Vec<SkippedRow>)> {
    let path = kernel.config();
    let config = fs::read_to_string(&path).at("read", &path)?;
    let (mut left, mut skipped) = (Vec::new(), Vec::new());
    for selected in selection {
        let unfit = unfit(&selected.suite);
        let reason = |row: &SuiteRow| unfit.map(str::to_string).or_else(|| lacks(row, &config));
        let rows = selected.suite.rows.iter();
        let reasons: BTreeMap<String, String> =
            rows.filter_map(|row| Some((row.name.clone(), reason(row)?))).collect();
        left.extend(split_unfit(selected, &reasons, &mut skipped));
    }
    require_rows(&left, &skipped, machine)?;
    Ok((left, skipped))
}

/// Returns the options that a row needs and the kernel lacks. The guest loads no modules, so
/// options must be built in.
fn lacks(row: &SuiteRow, config: &str) -> Option<String> {
    let built_in = |option: &str| config.lines().any(|line| line.strip_suffix("=y") == Some(option));
    let missing: Vec<&str> = row.needs.iter().map(String::as_str).filter(|need| !built_in(need)).collect();
    (!missing.is_empty()).then(|| format!("the kernel was built without {}", missing.join(", ")))
}

/// Creates a row without values, in its own unit.
fn empty_row(suite: &str, row: &SuiteRow) -> ResultsRow {
    let (better, unit) = (better(&row.unit), row.unit.name().into());
    ResultsRow {
        suite: suite.into(),
        row: row.name.clone(),
        unit,
        better,
        values: Vec::new(),
        cpu: Vec::new(),
    }
}

/// Creates an empty directory for a run of `what`. The caller removes it; the directory of a failed
/// run stays until its process has ended and the next run starts.
fn directory(work: &WorkDir, what: &str) -> crate::Result<PathBuf> {
    let timings = work.kind_dir(KIND)?;
    let gone = |name: &str| {
        let process = name.rsplit_once('.').and_then(|(_, process)| process.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
    };
    for entry in fs::read_dir(&timings).at("list", &timings)?.flatten() {
        if gone(&entry.file_name().to_string_lossy()) {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let directory = timings.join(format!("{what}.{}", std::process::id()));
    if directory.is_dir() {
        fs::remove_dir_all(&directory).at("remove", &directory)?;
    }
    fs::create_dir(&directory).at("create", &directory)?;
    Ok(directory)
}

/// Returns the value that all have in common; `None` if they differ.
fn common_value<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn better(unit: &RowUnit) -> kerntune_stats::RowDirection {
    match unit.better() {
        MetricDirection::Lower => kerntune_stats::RowDirection::Lower,
        MetricDirection::Higher => kerntune_stats::RowDirection::Higher,
    }
}

/// Reads `uname -r` and `uname -v` from the banner on a console; empty if there is none.
fn uname(console: &Path) -> (String, String) {
    let text = fs::read_to_string(console).unwrap_or_default();
    let line = text.lines().find_map(|line| line.split_once("Linux version "));
    let Some((_, rest)) = line else { return Default::default() };
    let release = rest.split(' ').next().unwrap_or_default();
    let version = rest.find(" #").map(|at| rest[at..].trim()).unwrap_or_default();
    (release.into(), version.into())
}

/// Returns how programs of User-Mode Linux enter the kernel (`seccomp` or `ptrace`), from its
/// console; `None` for other kernels.
fn uml_entry(console: &Path) -> Option<String> {
    let text = fs::read_to_string(console).ok()?;
    let ways = [
        ("Checking that seccomp filters can be installed...OK", "seccomp"),
        ("Checking that ptrace can change system call numbers...OK", "ptrace"),
    ];
    ways.into_iter().find(|(words, _)| text.contains(words)).map(|(_, way)| way.to_owned())
}

/// Returns an error if no row is left.
fn require_rows(left: &[SelectedRows], skipped: &[SkippedRow], machine: &'static str) -> Result<(), Error> {
    if !left.is_empty() {
        return Ok(());
    }
    let reasons = skipped.iter().map(ToString::to_string).collect();
    Err(Error::NothingRuns { machine, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_guest::Workload;

    fn suite(name: &str) -> Suite {
        Suite::of(Workload::find(name, &[]).unwrap()).unwrap()
    }

    fn names(selected: &[SelectedRows]) -> Vec<String> {
        let of = |s: &SelectedRows| -> Vec<String> {
            s.rows.iter().map(|row| format!("{}/{}", s.suite.workload.name, row.name)).collect()
        };
        selected.iter().flat_map(of).collect()
    }

    #[test]
    fn what_a_failed_run_left_is_there_until_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let work = WorkDir::open(root.path()).unwrap();
        // No process has this number, since they end at 2^22.
        let dead = work.kind_dir(KIND).unwrap().join("k.4194305");
        let alive = work.kind_dir(KIND).unwrap().join("other.1");
        let _ = [&dead, &alive].map(|path| fs::create_dir(path).unwrap());
        let ours = directory(&work, "k").unwrap();
        fs::write(ours.join("console.log"), "kt: failed").unwrap();
        assert_eq!((dead.exists(), alive.exists()), (false, true));
        assert_eq!(fs::read_dir(directory(&work, "k").unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn rows_are_chosen_by_name_in_the_suites_order() {
        let both = || vec![suite("kbx"), suite("osbench")];
        let asked = |rows: &[&str]| select(both(), &rows.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(names(&asked(&["getpid"]).unwrap()), ["kbx/getpid", "osbench/getpid"]);
        assert_eq!(names(&asked(&["osbench/getpid"]).unwrap()), ["osbench/getpid"]);
        assert_eq!(
            names(&asked(&["umask", "getpid"]).unwrap()),
            ["kbx/getpid", "kbx/umask", "osbench/getpid"]
        );
        assert_eq!(asked(&[]).unwrap().len(), 2);
        let error = asked(&["getpid", "kbx/read"]).unwrap_err().to_string();
        assert!(error.contains("no row \"kbx/read\"") && error.contains("osbench: cwcor_1K, "), "{error}");
    }

    #[test]
    fn what_cannot_run_is_said_and_no_sum_is_made_without_it() {
        let selected = select(vec![suite("mckusick")], &[]).unwrap().remove(0);
        let reasons = BTreeMap::from([("csw".to_string(), "no signals".to_string())]);
        let mut skipped = Vec::new();
        let left = split_unfit(selected.clone(), &reasons, &mut skipped).unwrap();
        assert_eq!(left.rows.len(), selected.rows.len() - 2);
        assert_eq!(skipped[0].to_string(), "mckusick/csw: no signals");
        assert_eq!(
            skipped[1].to_string(),
            "mckusick/aggregate: it is the sum of all rows, and csw cannot run"
        );
        let all = selected.suite.rows.iter().map(|row| (row.name.clone(), "no".into())).collect();
        assert_eq!(split_unfit(selected, &all, &mut skipped), None);
        let error = require_rows(&[], &skipped[..1], "host").unwrap_err().to_string();
        assert!(error.contains("host") && error.contains("mckusick/csw: no signals"), "{error}");
    }

    #[test]
    fn a_kernel_without_an_option_lacks_the_rows_that_need_it() {
        let netperf = suite("netperf");
        let veth = netperf.row("veth_tcp_rr_1").unwrap();
        assert_eq!(lacks(veth, "CONFIG_NET_NS=y\nCONFIG_VETH=y\n"), None);
        let reason = lacks(veth, "CONFIG_NET_NS=y\nCONFIG_VETH=m\n# CONFIG_X is not set\n").unwrap();
        assert_eq!(reason, "the kernel was built without CONFIG_VETH");
        assert_eq!(lacks(netperf.row("tcp_rr_1").unwrap(), ""), None);
    }
}
