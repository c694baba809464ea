//! `guard.toml`: guarded workloads and the tolerances of their rows (`docs/guard.md`; pure).
//!
//! ```
//! use kerntune_guard::GuardFile;
//! let text = "[[workload]]\nname = \"rr\"\nrows = [\"tcp_rr\"]\n\n[tolerance]\npath = 0.05\n";
//! let file = GuardFile::parse(text, &|_| Ok(vec!["tcp_rr".into()])).unwrap();
//! assert_eq!(file.tolerance("rr", "tcp_rr").path, 0.05);
//! let problems = GuardFile::parse("[[workload]]\nname = \"rr\"\nrow = []\n", &|_| Ok(Vec::new())).unwrap_err();
//! assert!(problems[0].to_string().starts_with("3:1: "), "{}", problems[0]);
//! ```

use kerntune_guest::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;

/// Default name of the file.
pub const FILE: &str = "guard.toml";
/// Default path of the baseline file.
pub const BASELINE: &str = "guard-baseline.json";
/// Largest number of workloads, configurations, compilers and rows with tolerances.
const MAX_ENTRIES: usize = 64;
/// Example file, printed for an empty one.
const EXAMPLE: &str = "for example:\n[[workload]]\nname = \"rr\"\nrows = [\"tcp_rr\", \"pipe_rr\"]";

/// Largest growth of figures that is no finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Percent of a row's path length.
    pub path: f64,
    /// Instructions per operation; a smaller growth is never a finding.
    #[serde(rename = "least")]
    pub min: f64,
    /// Percent of the row's path length that one part may grow while others compensate.
    #[serde(rename = "made_up")]
    pub compensated: f64,
    /// Percent of the deferred work in all rows of a workload.
    #[serde(rename = "put_off")]
    pub deferred: f64,
    /// Percent of a program's path in the kernel. It depends on where the program's code and data
    /// lie, as that decides how the kernel keeps its address space.
    pub kernel: f64,
    /// System calls and page faults per operation of a program.
    pub calls: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { path: 0.02, min: 0.5, compensated: 0.1, deferred: 10.0, kernel: 1.0, calls: 0.01 }
    }
}

/// A guarded workload, as `guard.toml` names it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadEntry {
    /// Name of the workload, or path of its `.toml` file.
    pub name: String,
    /// Guarded rows; empty means all.
    pub rows: Vec<String>,
    /// Factor by which each row does more than its usual work.
    pub scale: f64,
    /// Guarded programs and libraries, by name or path in the guest; empty means the programs of the
    /// measured steps.
    pub programs: Vec<String>,
}

/// A configuration of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelConfiguration {
    /// Name in tables.
    pub name: String,
    /// Configuration fragments, in order; relative to `guard.toml`.
    pub fragments: Vec<PathBuf>,
    /// Lines of the configuration.
    pub set: Vec<String>,
    /// Flags for `KCFLAGS`.
    pub kcflags: Vec<String>,
}

/// A parsed and checked `guard.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardFile {
    /// Source of kernels when no commit is named.
    pub source: String,
    /// Git tree of commits; relative to `guard.toml`.
    pub git: Option<PathBuf>,
    /// Path of the baseline file.
    pub baseline: PathBuf,
    /// Compilers, at least one.
    pub compilers: Vec<String>,
    /// Configurations, at least one.
    pub configurations: Vec<KernelConfiguration>,
    /// Workloads, at least one.
    pub workloads: Vec<WorkloadEntry>,
    /// Tolerances of rows that have none of their own.
    pub default_tolerance: Tolerance,
    /// Workload, row, and tolerances of the row.
    rows: Vec<(String, String, Tolerance)>,
}

impl GuardFile {
    /// Parses the file's text. `rows_of` returns a workload's rows, or the reason why it has none.
    ///
    /// # Errors
    /// All problems of the file, by line and column.
    pub fn parse(
        text: &str,
        rows_of: &dyn Fn(&str) -> Result<Vec<String>, String>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = ProblemList { text, found: Vec::new() };
        let raw: RawGuardFile = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                problems.add(error.span(), "", error.message().trim().to_owned());
                if text.trim().is_empty() {
                    problems.help(EXAMPLE);
                }
                return Err(problems.found);
            }
        };
        let file = raw.check(&mut problems, rows_of);
        problems.found.sort_by_key(|problem| (problem.line, problem.column));
        match problems.found.is_empty() {
            true => Ok(file),
            false => Err(problems.found),
        }
    }

    /// Returns the tolerances of a row.
    pub fn tolerance(&self, workload: &str, row: &str) -> Tolerance {
        let of = self.rows.iter().find(|(of, name, _)| of == workload && name == row);
        of.map_or(self.default_tolerance, |(_, _, tolerance)| *tolerance)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGuardFile {
    source: Option<Spanned<String>>,
    git: Option<Spanned<PathBuf>>,
    baseline: Option<Spanned<PathBuf>>,
    compilers: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    configuration: Vec<Spanned<RawConfiguration>>,
    workload: Spanned<Vec<Spanned<RawWorkload>>>,
    #[serde(default)]
    tolerance: RawTolerance,
    #[serde(default)]
    row: Vec<Spanned<RawRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfiguration {
    name: Spanned<String>,
    #[serde(default)]
    fragments: Vec<PathBuf>,
    #[serde(default)]
    set: Vec<Spanned<String>>,
    #[serde(default)]
    kcflags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    name: Spanned<String>,
    #[serde(default)]
    rows: Vec<Spanned<String>>,
    scale: Option<Spanned<f64>>,
    #[serde(default)]
    program: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTolerance {
    path: Option<Spanned<f64>>,
    #[serde(rename = "least")]
    min: Option<Spanned<f64>>,
    #[serde(rename = "made_up")]
    compensated: Option<Spanned<f64>>,
    #[serde(rename = "put_off")]
    deferred: Option<Spanned<f64>>,
    kernel: Option<Spanned<f64>>,
    calls: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    workload: Spanned<String>,
    name: Spanned<String>,
    path: Option<Spanned<f64>>,
    #[serde(rename = "least")]
    min: Option<Spanned<f64>>,
    #[serde(rename = "made_up")]
    compensated: Option<Spanned<f64>>,
    kernel: Option<Spanned<f64>>,
    calls: Option<Spanned<f64>>,
}

struct ProblemList<'t> {
    text: &'t str,
    found: Vec<Problem>,
}

impl ProblemList<'_> {
    fn add(&mut self, span: Option<Range<usize>>, key: &str, message: String) {
        let (line, column) = position(self.text, span.map_or(0, |span| span.start));
        self.found.push(Problem { line, column, key: key.into(), message, help: None, warning: false });
    }

    fn help(&mut self, help: &str) {
        if let Some(last) = self.found.last_mut() {
            last.help = Some(help.into());
        }
    }

    /// Returns the number, or reports one that is out of range and returns the default.
    fn number(&mut self, value: Option<&Spanned<f64>>, key: &str, default: f64, max: f64) -> f64 {
        let Some(value) = value else { return default };
        let number = *value.get_ref();
        if !(0.0..=max).contains(&number) {
            self.add(Some(value.span()), key, format!("is {number}, and has to be from 0 to {max}"));
            return default;
        }
        number
    }

    /// Reports a list that is too long.
    fn few(&mut self, count: usize, span: Option<Range<usize>>, key: &str) {
        if count > MAX_ENTRIES {
            self.add(span, key, format!("has {count} entries; {MAX_ENTRIES} are the most"));
        }
    }
}

/// Returns the line and column of a byte, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    (1..=40).contains(&name.len()) && name.chars().all(plain) && !name.starts_with(['-', '.'])
}

impl RawGuardFile {
    fn check(
        self,
        problems: &mut ProblemList,
        rows_of: &dyn Fn(&str) -> Result<Vec<String>, String>,
    ) -> GuardFile {
        let compilers = compilers(self.compilers, problems);
        let configurations = configurations(self.configuration, problems);
        let (workloads, known) = workloads(self.workload, problems, rows_of);
        let base = Tolerance::default();
        let of = &self.tolerance;
        let default_tolerance = Tolerance {
            path: problems.number(of.path.as_ref(), "tolerance.path", base.path, 1e4),
            min: problems.number(of.min.as_ref(), "tolerance.least", base.min, 1e9),
            compensated: problems.number(of.compensated.as_ref(), "tolerance.made_up", base.compensated, 1e4),
            deferred: problems.number(of.deferred.as_ref(), "tolerance.put_off", base.deferred, 1e6),
            kernel: problems.number(of.kernel.as_ref(), "tolerance.kernel", base.kernel, 1e4),
            calls: problems.number(of.calls.as_ref(), "tolerance.calls", base.calls, 1e9),
        };
        let mut rows: Vec<(String, String, Tolerance)> = Vec::new();
        problems.few(self.row.len(), self.row.last().map(Spanned::span), "row");
        for (at, row) in self.row.iter().enumerate() {
            let key = |name: &str| format!("row[{at}].{name}");
            let raw = row.get_ref();
            let (workload, name) = (raw.workload.get_ref(), raw.name.get_ref());
            match known.iter().find(|(known, _)| known == workload) {
                None => {
                    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
                    let message =
                        format!("\"{workload}\" is no workload of this file: it has {}", names.join(", "));
                    problems.add(Some(raw.workload.span()), &key("workload"), message);
                }
                Some((_, all)) if !all.contains(name) => {
                    let message =
                        format!("\"{name}\" is no row of {workload} here: it has {}", all.join(", "));
                    problems.add(Some(raw.name.span()), &key("name"), message);
                }
                Some(_) if rows.iter().any(|(of, row, _)| (of, row) == (workload, name)) => {
                    problems.add(
                        Some(row.span()),
                        &format!("row[{at}]"),
                        format!("{workload}/{name} is there twice"),
                    );
                }
                Some(_) => {}
            }
            let limits = [&raw.path, &raw.min, &raw.compensated, &raw.kernel, &raw.calls];
            if limits.iter().all(|limit| limit.is_none()) {
                problems.add(
                    Some(row.span()),
                    &format!("row[{at}]"),
                    "says nothing: give path, least, made_up, kernel or calls".into(),
                );
            }
            let default = default_tolerance;
            let tolerance = Tolerance {
                path: problems.number(raw.path.as_ref(), &key("path"), default.path, 1e4),
                min: problems.number(raw.min.as_ref(), &key("least"), default.min, 1e9),
                compensated: problems.number(
                    raw.compensated.as_ref(),
                    &key("made_up"),
                    default.compensated,
                    1e4,
                ),
                deferred: default.deferred,
                kernel: problems.number(raw.kernel.as_ref(), &key("kernel"), default.kernel, 1e4),
                calls: problems.number(raw.calls.as_ref(), &key("calls"), default.calls, 1e9),
            };
            rows.push((workload.clone(), name.clone(), tolerance));
        }
        let path = |value: Option<Spanned<PathBuf>>, key: &str, problems: &mut ProblemList| {
            let value = value?;
            if value.get_ref().as_os_str().is_empty() {
                problems.add(Some(value.span()), key, "is empty".into());
            }
            Some(value.into_inner())
        };
        GuardFile {
            source: self.source.map_or_else(|| "debian:6.12".into(), Spanned::into_inner),
            git: path(self.git, "git", problems),
            baseline: path(self.baseline, "baseline", problems).unwrap_or_else(|| BASELINE.into()),
            compilers,
            configurations,
            workloads,
            default_tolerance,
            rows,
        }
    }
}

fn compilers(raw: Option<Spanned<Vec<Spanned<String>>>>, problems: &mut ProblemList) -> Vec<String> {
    let Some(raw) = raw else { return vec!["gcc".into()] };
    let span = raw.span();
    problems.few(raw.get_ref().len(), Some(span.clone()), "compilers");
    if raw.get_ref().is_empty() {
        problems.add(Some(span), "compilers", "is empty: leave it out for gcc".into());
    }
    let mut all: Vec<String> = Vec::new();
    for (at, name) in raw.into_inner().into_iter().enumerate() {
        if all.contains(name.get_ref()) || !is_name(name.get_ref()) {
            let message =
                format!("\"{}\" is there twice, or no name of a compiler (gcc, clang-19)", name.get_ref());
            problems.add(Some(name.span()), &format!("compilers[{at}]"), message);
        }
        all.push(name.into_inner());
    }
    all
}

fn configurations(
    raw: Vec<Spanned<RawConfiguration>>,
    problems: &mut ProblemList,
) -> Vec<KernelConfiguration> {
    if raw.is_empty() {
        return vec![KernelConfiguration { name: "base".into(), ..KernelConfiguration::default() }];
    }
    problems.few(raw.len(), raw.last().map(Spanned::span), "configuration");
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for (at, raw) in raw.into_iter().enumerate() {
        let RawConfiguration { name, fragments, set, kcflags } = raw.into_inner();
        let key = |name: &str| format!("configuration[{at}].{name}");
        if !is_name(name.get_ref()) {
            let message =
                format!("\"{}\" is not 1 to 40 letters, digits, `-`, `_`, `.` and `+`", name.get_ref());
            problems.add(Some(name.span()), &key("name"), message);
        } else if !names.insert(name.get_ref().clone()) {
            problems.add(Some(name.span()), &key("name"), format!("\"{}\" is there twice", name.get_ref()));
        }
        for line in set.iter().filter(|line| !is_config_line(line.get_ref())) {
            let message = format!(
                "\"{}\" is no line of configuration: write CONFIG_NAME=y, =n or =VALUE",
                line.get_ref()
            );
            problems.add(Some(line.span()), &key("set"), message);
        }
        let set = set.into_iter().map(Spanned::into_inner).collect();
        all.push(KernelConfiguration { name: name.into_inner(), fragments, set, kcflags });
    }
    all
}

fn is_config_line(line: &str) -> bool {
    line.starts_with("CONFIG_") && kerntune_kernel::config_line(line).is_ok()
}

/// Names of workloads with their guarded rows.
type KnownRows = Vec<(String, Vec<String>)>;

fn workloads(
    raw: Spanned<Vec<Spanned<RawWorkload>>>,
    problems: &mut ProblemList,
    rows_of: &dyn Fn(&str) -> Result<Vec<String>, String>,
) -> (Vec<WorkloadEntry>, KnownRows) {
    let span = raw.span();
    problems.few(raw.get_ref().len(), Some(span.clone()), "workload");
    if raw.get_ref().is_empty() {
        problems.add(Some(span), "workload", "is empty: there is nothing to guard".into());
        problems.help(EXAMPLE);
    }
    let (mut all, mut known): (Vec<WorkloadEntry>, KnownRows) = (Vec::new(), Vec::new());
    for (at, raw) in raw.into_inner().into_iter().take(MAX_ENTRIES).enumerate() {
        let RawWorkload { name, rows, scale, program } = raw.into_inner();
        let key = |name: &str| format!("workload[{at}].{name}");
        if known.iter().any(|(known, _)| known == name.get_ref()) {
            problems.add(Some(name.span()), &key("name"), format!("\"{}\" is there twice", name.get_ref()));
            continue;
        }
        let there = rows_of(name.get_ref()).unwrap_or_else(|why| {
            problems.add(Some(name.span()), &key("name"), why);
            // The workload's rows are unknown, so its names are not checked.
            rows.iter().map(|row| row.get_ref().clone()).collect()
        });
        let mut chosen: Vec<String> = Vec::new();
        for row in &rows {
            let said = match row.get_ref() {
                name if !there.contains(name) => {
                    format!("\"{name}\" is no row: there are {}", there.join(", "))
                }
                name if chosen.contains(name) => format!("\"{name}\" is there twice"),
                name => {
                    chosen.push(name.clone());
                    continue;
                }
            };
            problems.add(Some(row.span()), &key("rows"), said);
        }
        let number = scale.as_ref().map_or(1.0, |scale| *scale.get_ref());
        if !(0.001..=1000.0).contains(&number) {
            let span = scale.as_ref().map(Spanned::span);
            problems.add(span, &key("scale"), format!("is {number}, and has to be from 0.001 to 1000"));
        }
        known.push((name.get_ref().clone(), if chosen.is_empty() { there } else { chosen.clone() }));
        for word in program.iter().filter(|word| word.get_ref().is_empty() || word.get_ref().ends_with('/')) {
            let message = format!("\"{}\" is no file of the guest", word.get_ref());
            problems.add(Some(word.span()), &key("program"), message);
        }
        let programs = program.into_iter().map(Spanned::into_inner).collect();
        all.push(WorkloadEntry { name: name.into_inner(), rows: chosen, scale: number, programs });
    }
    (all, known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows_of(name: &str) -> Result<Vec<String>, String> {
        match name {
            "rr" => Ok(vec!["tcp_rr".into(), "pipe_rr".into()]),
            _ => Err(format!("there is no workload {name}")),
        }
    }

    const WHOLE: &str = "source = \"debian:6.12\"\ngit = \"linux\"\nbaseline = \"figures.json\"\ncompilers = [\"gcc\", \"clang-19\"]\n\
        \n[tolerance]\npath = 0.01\nleast = 2\nmade_up = 0.5\nput_off = 20\nkernel = 2\ncalls = 0.1\n\
        \n[[configuration]]\nname = \"hz\"\nfragments = [\"a.config\"]\nset = [\"CONFIG_HZ_100=y\"]\nkcflags = [\"-O3\"]\n\
        \n[[workload]]\nname = \"rr\"\nrows = [\"pipe_rr\"]\nscale = 4\nprogram = [\"rr\"]\n\
        \n[[row]]\nworkload = \"rr\"\nname = \"pipe_rr\"\npath = 1\n";

    #[test]
    fn every_key_is_read() {
        let file = GuardFile::parse(WHOLE, &rows_of).unwrap();
        assert_eq!((file.git, file.baseline), (Some("linux".into()), "figures.json".into()));
        assert_eq!(file.compilers, ["gcc", "clang-19"]);
        let [hz] = &file.configurations[..] else { panic!() };
        assert_eq!(
            (hz.name.as_str(), &hz.set[..], &hz.kcflags[..]),
            ("hz", &["CONFIG_HZ_100=y".into()][..], &["-O3".into()][..])
        );
        let [rr] = &file.workloads[..] else { panic!() };
        assert_eq!((&rr.rows[..], rr.scale), (&["pipe_rr".into()][..], 4.0));
        assert_eq!(rr.programs, ["rr"]);
        assert_eq!(
            file.default_tolerance,
            Tolerance { path: 0.01, min: 2.0, compensated: 0.5, deferred: 20.0, kernel: 2.0, calls: 0.1 }
        );
    }

    #[test]
    fn rows_have_tolerances_of_their_own() {
        let file = GuardFile::parse(WHOLE, &rows_of).unwrap();
        let own = file.tolerance("rr", "pipe_rr");
        assert_eq!((own.path, own.min, own.deferred), (1.0, 2.0, 20.0));
        assert_eq!(file.tolerance("rr", "tcp_rr").path, 0.01);
        let min = GuardFile::parse("[[workload]]\nname = \"rr\"\n", &rows_of).unwrap();
        assert_eq!((min.compilers, min.default_tolerance), (vec!["gcc".to_string()], Tolerance::default()));
        assert_eq!((min.configurations[0].name.as_str(), min.source.as_str()), ("base", "debian:6.12"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, said) in [
            ("", "1:1: missing field `workload` (for example:"),
            ("workload = []", "1:12: workload: is empty"),
            ("[[workload]]\nname = \"rr\"\ncolor = 1", "3:1: unknown field `color`"),
            ("[[workload]]\nname = \"xx\"", "2:8: workload[0].name: there is no workload xx"),
            (
                "[[workload]]\nname = \"rr\"\nrows = [\"tcp\"]",
                "3:9: workload[0].rows: \"tcp\" is no row: there are tcp_rr",
            ),
            (
                "[[workload]]\nname = \"rr\"\n[[workload]]\nname = \"rr\"",
                "4:8: workload[1].name: \"rr\" is there twice",
            ),
            ("[[workload]]\nname = \"rr\"\nscale = 0", "3:9: workload[0].scale: is 0"),
            ("[[workload]]\nname = \"rr\"\n[tolerance]\npath = -1", "4:8: tolerance.path: is -1"),
            ("[[workload]]\nname = \"rr\"\n[tolerance]\npath = nan", "4:8: tolerance.path: is NaN"),
            ("compilers = []\n[[workload]]\nname = \"rr\"", "1:13: compilers: is empty"),
            ("compilers = [\"a b\"]\n[[workload]]\nname = \"rr\"", "1:14: compilers[0]: \"a b\""),
            ("[[workload]]\nname = \"rr\"\n[[configuration]]\nname = \"a/b\"", "4:8: configuration[0].name"),
            (
                "[[workload]]\nname = \"rr\"\n[[configuration]]\nname = \"a\"\nset = [\"HZ=1\"]",
                "5:8: configuration[0].set: \"HZ=1\"",
            ),
            (
                "[[workload]]\nname = \"rr\"\n[[row]]\nworkload = \"kbx\"\nname = \"x\"\npath = 1",
                "4:12: row[0].workload: \"kbx\" is no workload of this file",
            ),
            (
                "[[workload]]\nname = \"rr\"\n[[row]]\nworkload = \"rr\"\nname = \"x\"\npath = 1",
                "5:8: row[0].name: \"x\" is no row of rr",
            ),
            (
                "[[workload]]\nname = \"rr\"\n[[row]]\nworkload = \"rr\"\nname = \"tcp_rr\"",
                "row[0]: says nothing",
            ),
        ] {
            let problems = GuardFile::parse(text, &rows_of).unwrap_err();
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(all.iter().any(|problem| problem.contains(said)), "{text}: {all:#?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", at in 0..WHOLE.len(), put in "[\\[\\]\"=a-z0-9.\n-]{0,8}") {
            let _ = GuardFile::parse(&text, &rows_of);
            let mut changed = WHOLE.to_owned();
            changed.insert_str(at, &put);
            if let Err(problems) = GuardFile::parse(&changed, &rows_of) {
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|problem| problem.line >= 1 && problem.line <= changed.lines().count() + 1));
            }
            changed.truncate(at);
            let _ = GuardFile::parse(&changed, &rows_of);
        }
    }
}
