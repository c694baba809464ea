//! Checks of the output of a run's programs, so that no figure comes from a failed run.
//!
//! Init checks exit statuses. Many load generators exit with status 0 even if their requests
//! failed, so the workload names words that mean failure and words that must appear.

use crate::runs::run_files::RUN;
use crate::{Error, Result};
use kerntune_guest::{step_log, MetricValue, Workload, EXIT_STATUS};
use kerntune_machine::{reports_missing_file, ServiceLogTail};
use kerntune_work::IoContext;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Figures that one step printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepFigures {
    /// Region of the step, or the program's name if it marks its own regions.
    pub step: String,
    /// Figures in the order of the workload file.
    pub figures: Vec<MetricValue>,
}

/// Checks the output of every step of a run and returns the figures of steps that print some.
/// `guest_files` is the directory with the guest's files.
///
/// # Errors
/// [`Error::Output`] for the first failed step, with the last output of the services.
pub fn judge(workload: &Workload, run: &str, guest_files: &Path) -> Result<Vec<StepFigures>> {
    let mut all = Vec::new();
    let steps = workload.runs().into_iter().filter(|(name, _)| *name == run).flat_map(|(_, run)| &run.steps);
    for (step, number) in steps.zip(1..) {
        if step.fail.is_empty() && step.expect.is_empty() && step.metrics.is_empty() {
            continue;
        }
        let log = guest_files.join(step_log(run, number, &step.command));
        let output = fs::read(&log).at("read", &log)?;
        let program = step.command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        let figures = step.judge(&String::from_utf8_lossy(&output)).map_err(|complaint| Error::Output {
            step: format!("{run} step {number} ({program})"),
            complaint: Box::new(complaint),
            services: ServiceLogTail::of(guest_files),
            log,
        })?;
        if !figures.is_empty() {
            all.push(StepFigures {
                step: step.region.clone().unwrap_or_else(|| program.to_owned()),
                figures,
            });
        }
    }
    Ok(all)
}

/// Returns the status with which a command ended, if another than 0. `guest_files` is the directory
/// with the guest's files.
pub fn exit_status(guest_files: &Path) -> Option<u8> {
    fs::read_to_string(guest_files.join(EXIT_STATUS)).ok()?.trim().parse().ok()
}

/// Checks the output of a recording in the work directory, as [`judge`] does.
///
/// # Errors
/// As [`judge`].
pub fn of_recording(workload: &Workload, run: &str, profile: &Path) -> Result<Vec<StepFigures>> {
    judge(workload, run, &profile.join(RUN).join("guest"))
}

/// Maximum length of a shown line, in characters.
const LINE_WIDTH: usize = 160;

/// Returns the log and its first message about a missing file or program, for each step that
/// printed one. Such a step may succeed and still measure other work than intended; some workloads
/// do this on purpose. After a first run the message has to name a path that it did not find.
pub fn missing_files(workload: &Workload, run: &str, profile: &Path) -> Vec<(PathBuf, String)> {
    let found = workload.context.as_ref().and_then(|context| context.discovered.as_ref());
    let is_absent = |line: &str| found.is_none_or(|found| found.names_absent(line));
    let missing = step_logs(workload, run, profile).into_iter().filter_map(|log| {
        let text = fs::read(&log).ok()?;
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| reports_missing_file(line) && is_absent(line))?;
        let shown =
            line.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(LINE_WIDTH).collect();
        Some((log, shown))
    });
    missing.collect()
}

/// Returns the files with what the programs of a run's steps printed, in order.
pub fn step_logs(workload: &Workload, run: &str, profile: &Path) -> Vec<PathBuf> {
    let files = profile.join(RUN).join("guest");
    let steps = workload.runs().into_iter().filter(|(name, _)| *name == run).flat_map(|(_, run)| &run.steps);
    steps.zip(1..).map(|(step, number)| files.join(step_log(run, number, &step.command))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOAD: &str = "[[training.step]]\ncommand = [\"rr\"]\n[[measured.step]]\ncommand = [\"rr\"]\n\
        [[measured.step]]\nregion = \"get\"\ncommand = [\"/usr/bin/ab\"]\nfail = [\"Failed requests: +[1-9]\"]\n\
        metrics = [{ name = \"rps\", regex = \"second: (.*)\", unit = \"1/s\", better = \"higher\" }]\n";

    fn judged(output: &str) -> Result<Vec<StepFigures>> {
        let dir = tempfile::tempdir().unwrap();
        let workload = Workload::parse(WORKLOAD, &PathBuf::from("x.toml")).unwrap();
        fs::write(dir.path().join("measured-2-ab.log"), output).unwrap();
        fs::write(dir.path().join("service-web.log"), "worker exited on signal 11\n").unwrap();
        assert_eq!(judge(&workload, "training", dir.path()).unwrap(), []);
        judge(&workload, "measured", dir.path())
    }

    #[test]
    fn a_status_is_read_if_it_was_sent() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(exit_status(dir.path()), None);
        fs::write(dir.path().join(EXIT_STATUS), "141\n").unwrap();
        assert_eq!(exit_status(dir.path()), Some(141));
    }

    #[test]
    fn figures_have_the_name_of_their_step() {
        let all = judged("Failed requests:  0\nper second: 12.5\n").unwrap();
        assert_eq!((all.len(), all[0].step.as_str(), all[0].figures[0].value), (1, "get", 12.5));
    }

    #[test]
    fn what_a_program_did_not_find_is_said_with_its_log() {
        let profile = tempfile::tempdir().unwrap();
        let guest = profile.path().join(RUN).join("guest");
        fs::create_dir_all(&guest).unwrap();
        let workload = Workload::parse(WORKLOAD, &PathBuf::from("x.toml")).unwrap();
        let found = |text: &str| {
            fs::write(guest.join("measured-2-ab.log"), text).unwrap();
            missing_files(&workload, "measured", profile.path())
        };
        assert_eq!(found("all is well\n"), []);
        let log = guest.join("measured-2-ab.log");
        for line in ["bash: line 1: sort: command not found", "cat: /x: No such file or directory"] {
            assert_eq!(found(&format!("first\n{line}\u{1b}\n")), [(log.clone(), format!("{line} "))]);
        }
        assert_eq!(missing_files(&workload, "training", profile.path()), []);
    }

    #[test]
    fn a_failure_comes_with_the_servers_last_words_and_the_log() {
        let error = judged("Failed requests:  7\nper second: 12.5\n").unwrap_err().to_string();
        for word in ["measured step 2 (ab) printed `Failed requests:  7`", "web: worker exited", "2-ab.log"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
