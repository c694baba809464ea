//! Functional checks of a kernel (`embedded/guest/selftest/`), run in the guest.

use crate::runs::run_files::keep_wall_seconds;
use crate::{Error, Result, Session};
use kerntune_guest::{step_log, Workload};
use kerntune_kernel::Kernel;
use kerntune_machine::{MachineDemands, RunRequest, BOOT_SECONDS};
use kerntune_work::{write_json, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Kind of self-test results in the work directory.
pub const KIND: &str = "selftests";

const FILE: &str = "checks.json";
/// Both runs are the same, since nothing is trained.
const WORKLOAD: &str =
    "description = \"Functional checks of a kernel\"\nmemory_mb = 512\ntime_limit_seconds = 600\n\
    [training]\n[[training.step]]\ncommand = [\"selftest\", \"--report\"]\n\
    [measured]\n[[measured.step]]\ncommand = [\"selftest\", \"--report\"]\n";

const RUN: &str = "measured";

/// Memory of the guest that runs the checks, in MiB, as `WORKLOAD` has it.
pub(crate) const MEMORY_MB: u32 = 512;

/// Result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// All conditions held.
    Ok,
    /// A condition did not hold.
    Failed,
    /// The kernel's configuration lacks the feature.
    Unsupported,
}

/// One check as the guest reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTestCheck {
    /// Name of the check.
    #[serde(rename = "check")]
    pub name: String,
    /// Group of the check, such as `files` or `sockets`.
    pub group: String,
    /// Result of the check.
    pub result: CheckOutcome,
    /// Place and condition that did not hold, or the missing system call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A check with different results on two kernels; `None` if a kernel did not reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckDifference<'a> {
    /// Name of the check.
    pub check: &'a str,
    /// Result on the base kernel.
    pub base: Option<&'a SelfTestCheck>,
    /// Result on the other kernel.
    pub kernel: Option<&'a SelfTestCheck>,
}

/// All checks of one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// Directory of the result.
    pub dir: PathBuf,
    /// Id of the guest image with the checks.
    pub image: String,
    /// Checks in the order in which they ran.
    pub checks: Vec<SelfTestCheck>,
}

/// Runs all checks on a kernel, or returns the earlier result.
///
/// # Errors
/// Those of a run, such as a guest that panics or hangs, and [`Error::SelfTest`].
pub fn selftest(session: &Session, kernel: &Kernel) -> Result<SelfTest> {
    let workload = Workload::parse(WORKLOAD, Path::new("selftest.toml"))?;
    let image = session.image(&workload)?;
    let key = Key::new("selftest/3", kerntune_machine::CODE)
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = RunRequest::of_workload(kernel, &image.initramfs, &workload, RUN).add_to_key(key)?;
    let staged = session.work.stage(KIND, &key)?;
    if let Some(done) = staged.already() {
        let path = done.join(FILE);
        let bytes = fs::read(&path).at("read", &path)?;
        let checks =
            serde_json::from_slice(&bytes).map_err(|e| Error::SelfTest { path, message: e.to_string() })?;
        return Ok(SelfTest { dir: done, image: image.manifest.id, checks });
    }
    staged.clear()?;
    let run = staged.path().join("run");
    fs::create_dir(&run).at("create", &run)?;
    let began = Instant::now();
    let checks = run_checks(session, kernel, &run, CheckLimits::default())?;
    keep_wall_seconds(&run, began)?;
    write_json(&staged.path().join(FILE), &checks)?;
    Ok(SelfTest { dir: staged.publish()?, image: image.manifest.id, checks })
}

/// Time limits of a run, in seconds of wall time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckLimits {
    boot: u64,
    all: u64,
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self { boot: BOOT_SECONDS, all: 600 }
    }
}

impl CheckLimits {
    /// Returns limits of ten times `took`, since others may use the host meanwhile; at most the
    /// defaults.
    pub(crate) fn after(took: Duration) -> Self {
        let all = (took.as_secs() + 1) * 10;
        let CheckLimits { boot, all: max } = Self::default();
        Self { boot: (all / 3).clamp(20, boot), all: all.min(max) }
    }
}

/// Runs all checks on a kernel in an empty directory, without storing the result.
pub(crate) fn run_checks(
    session: &Session,
    kernel: &Kernel,
    run: &Path,
    patience: CheckLimits,
) -> Result<Vec<SelfTestCheck>> {
    let workload = Workload::parse(WORKLOAD, Path::new("selftest.toml"))?;
    let image = session.image(&workload)?;
    let request = RunRequest {
        demands: MachineDemands {
            boot_limit_seconds: patience.boot,
            time_limit_seconds: patience.all,
            ..MachineDemands::of(&workload)
        },
        ..RunRequest::new(kernel, &image.initramfs, RUN)
    };
    let outcome = session.machine.run(&request, run, session.progress)?;
    let command = workload.measured.steps.first().map(|step| step.command.as_slice()).unwrap_or_default();
    let log = outcome.guest_files.join(step_log(RUN, 1, command));
    let text = fs::read_to_string(&log).at("read", &log)?;
    parse(&text).map_err(|message| Error::SelfTest { path: log, message })
}

/// Refuses a tuned kernel if a check has another result than on its base kernel.
///
/// # Errors
/// [`Error::Misbehaves`] with every difference.
pub(crate) fn require_same_answers(base: &SelfTest, tuned: &SelfTest, label: &str) -> Result<()> {
    let said = |check: Option<&SelfTestCheck>| match check {
        Some(SelfTestCheck { result, why: Some(why), .. }) => format!("{result:?}: {why}").to_lowercase(),
        Some(check) => format!("{:?}", check.result).to_lowercase(),
        None => "not reached".into(),
    };
    let line =
        |d: &CheckDifference| format!("{}: {}, on the base kernel {}", d.check, said(d.kernel), said(d.base));
    let differences: Vec<String> = differences(&base.checks, &tuned.checks).iter().map(line).collect();
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Error::Misbehaves { kernel: label.to_string(), differences }),
    }
}

/// Returns the checks whose results differ between a base kernel and another one.
pub fn differences<'a>(base: &'a [SelfTestCheck], kernel: &'a [SelfTestCheck]) -> Vec<CheckDifference<'a>> {
    let mut pairs: BTreeMap<&str, (Option<&SelfTestCheck>, Option<&SelfTestCheck>)> = BTreeMap::new();
    for check in base {
        pairs.entry(&check.name).or_default().0 = Some(check);
    }
    for check in kernel {
        pairs.entry(&check.name).or_default().1 = Some(check);
    }
    pairs
        .into_iter()
        .filter(|(_, (base, kernel))| base != kernel)
        .map(|(check, (base, kernel))| CheckDifference { check, base, kernel })
        .collect()
}

/// Parses the program's output, one JSON object for each line.
fn parse(text: &str) -> std::result::Result<Vec<SelfTestCheck>, String> {
    let checks: Vec<SelfTestCheck> = text
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|e| format!("{e} in the line `{line}`")))
        .collect::<std::result::Result<_, _>>()?;
    match checks.is_empty() {
        true => Err("no check was made".into()),
        false => Ok(checks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found_and_what_is_missing() {
        let base = parse(
            "{\"check\":\"a\",\"group\":\"files\",\"result\":\"ok\"}\n\
             {\"check\":\"b\",\"group\":\"files\",\"result\":\"unsupported\",\"why\":\"x: no\"}\n\
             {\"check\":\"c\",\"group\":\"files\",\"result\":\"ok\"}\n",
        )
        .unwrap();
        assert_eq!(base[1].why.as_deref(), Some("x: no"));
        assert_eq!(differences(&base, &base), []);
        let mut other = base.clone();
        other[0].result = CheckOutcome::Failed;
        other.pop();
        let found = differences(&base, &other);
        assert_eq!(found.iter().map(|d| d.check).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(found[1].kernel, None);
        let kernel = |checks: &[SelfTestCheck]| SelfTest {
            dir: "d".into(),
            image: "i".into(),
            checks: checks.to_vec(),
        };
        require_same_answers(&kernel(&base), &kernel(&base), "tuned").unwrap();
        let error = require_same_answers(&kernel(&base), &kernel(&other), "tuned").unwrap_err().to_string();
        assert!(error.contains("a: failed, on the base kernel ok"), "{error}");
        assert!(error.contains("c: not reached, on the base kernel ok"), "{error}");
        assert!(parse("").is_err() && parse("selftest: no\n").unwrap_err().contains("selftest: no"));
    }
}
