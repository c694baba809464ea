//! Does a kernel do what a kernel has to do? The checks of `guest/selftest/`, run in the guest.

use crate::{Error, Result, Session};
use kerntune_guest::{step_log, Workload};
use kerntune_kernel::Kernel;
use kerntune_machine::{Demands, RunRequest, BOOT_SECONDS};
use kerntune_work::{write_json, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where results are in the work directory.
pub const ROOM: &str = "selftests";

const FILE: &str = "checks.json";
/// Both runs are the same: nothing is trained.
const WORKLOAD: &str =
    "description = \"Functional checks of a kernel\"\nmemory_mb = 512\ntime_limit_seconds = 600\n\
    [training]\n[[training.step]]\ncommand = [\"selftest\", \"--report\"]\n\
    [measured]\n[[measured.step]]\ncommand = [\"selftest\", \"--report\"]\n";

const RUN: &str = "measured";

/// What one check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All its conditions held.
    Ok,
    /// A condition did not hold.
    Failed,
    /// The kernel was not configured for it.
    Unsupported,
}

/// One check, as the guest said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The check's name.
    #[serde(rename = "check")]
    pub name: String,
    /// `files`, `sockets` …
    pub group: String,
    /// What it came to.
    pub result: Outcome,
    /// The place and the condition that did not hold, or the call that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A check that two kernels answered differently; `None` where a kernel did not get to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference<'a> {
    /// The check's name.
    pub check: &'a str,
    /// The base kernel's answer.
    pub base: Option<&'a Check>,
    /// The other kernel's answer.
    pub kernel: Option<&'a Check>,
}

/// All checks of one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The result directory.
    pub dir: PathBuf,
    /// Id of the image that they are in.
    pub image: String,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

/// Runs all checks on a kernel; found again if they were run before.
///
/// # Errors
/// Those of a run, among them a guest that panics or hangs, and [`Error::SelfTest`].
pub fn selftest(session: &Session, kernel: &Kernel) -> Result<SelfTest> {
    let workload = Workload::parse(WORKLOAD, Path::new("selftest.toml"))?;
    let image = session.image(&workload)?;
    let key = Key::new("selftest/3", kerntune_machine::CODE)
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = RunRequest::of_workload(kernel, &image.initramfs, &workload, RUN).named(key)?;
    let staged = session.work.stage(ROOM, &key)?;
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
    let checks = answers(session, kernel, &run, Patience::default())?;
    write_json(&staged.path().join(FILE), &checks)?;
    Ok(SelfTest { dir: staged.publish()?, image: image.manifest.id, checks })
}

/// How long a kernel may take, wall seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    boot: u64,
    all: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { boot: BOOT_SECONDS, all: 600 }
    }
}

impl Patience {
    /// For kernels like one that took so long: ten times as much, as others may use the machine meanwhile.
    pub(crate) fn after(took: Duration) -> Self {
        let all = (took.as_secs() + 1) * 10;
        let Patience { boot, all: most } = Self::default();
        Self { boot: (all / 3).clamp(20, boot), all: all.min(most) }
    }
}

/// All checks on a kernel, in an empty directory; nothing is kept for later.
pub(crate) fn answers(
    session: &Session,
    kernel: &Kernel,
    run: &Path,
    patience: Patience,
) -> Result<Vec<Check>> {
    let workload = Workload::parse(WORKLOAD, Path::new("selftest.toml"))?;
    let image = session.image(&workload)?;
    let request = RunRequest {
        demands: Demands {
            boot_limit_seconds: patience.boot,
            time_limit_seconds: patience.all,
            ..Demands::of(&workload)
        },
        ..RunRequest::new(kernel, &image.initramfs, RUN)
    };
    let outcome = session.machine.run(&request, run, session.progress)?;
    let command = workload.measured.steps.first().map(|step| step.command.as_slice()).unwrap_or_default();
    let log = outcome.guest_files.join(step_log(RUN, 1, command));
    let text = fs::read_to_string(&log).at("read", &log)?;
    parse(&text).map_err(|message| Error::SelfTest { path: log, message })
}

/// Refuses a tuned kernel that answers a check in another way than its base kernel.
///
/// # Errors
/// [`Error::Misbehaves`] with every difference.
pub(crate) fn agree(base: &SelfTest, tuned: &SelfTest, label: &str) -> Result<()> {
    let said = |check: Option<&Check>| match check {
        Some(Check { result, why: Some(why), .. }) => format!("{result:?}: {why}").to_lowercase(),
        Some(check) => format!("{:?}", check.result).to_lowercase(),
        None => "not reached".into(),
    };
    let line =
        |d: &Difference| format!("{}: {}, on the base kernel {}", d.check, said(d.kernel), said(d.base));
    let differences: Vec<String> = differences(&base.checks, &tuned.checks).iter().map(line).collect();
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Error::Misbehaves { kernel: label.to_string(), differences }),
    }
}

/// What differs between the checks of a base kernel and those of another.
pub fn differences<'a>(base: &'a [Check], kernel: &'a [Check]) -> Vec<Difference<'a>> {
    let mut pairs: BTreeMap<&str, (Option<&Check>, Option<&Check>)> = BTreeMap::new();
    for check in base {
        pairs.entry(&check.name).or_default().0 = Some(check);
    }
    for check in kernel {
        pairs.entry(&check.name).or_default().1 = Some(check);
    }
    pairs
        .into_iter()
        .filter(|(_, (base, kernel))| base != kernel)
        .map(|(check, (base, kernel))| Difference { check, base, kernel })
        .collect()
}

/// The lines that the program printed.
fn parse(text: &str) -> std::result::Result<Vec<Check>, String> {
    let checks: Vec<Check> = text
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
        other[0].result = Outcome::Failed;
        other.pop();
        let found = differences(&base, &other);
        assert_eq!(found.iter().map(|d| d.check).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(found[1].kernel, None);
        let kernel =
            |checks: &[Check]| SelfTest { dir: "d".into(), image: "i".into(), checks: checks.to_vec() };
        agree(&kernel(&base), &kernel(&base), "tuned").unwrap();
        let error = agree(&kernel(&base), &kernel(&other), "tuned").unwrap_err().to_string();
        assert!(error.contains("a: failed, on the base kernel ok"), "{error}");
        assert!(error.contains("c: not reached, on the base kernel ok"), "{error}");
        assert!(parse("").is_err() && parse("selftest: no\n").unwrap_err().contains("selftest: no"));
    }
}
