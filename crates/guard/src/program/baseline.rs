//! Measures programs, and keeps their figures in a file to commit.

use super::figures::{program_rows, ProgramFigure};
use crate::cell::KernelName;
use crate::project::{GuardProject, GuardedWorkload};
use crate::{deferred, Error, Result};
use kerntune_guest::is_shell;
use kerntune_kernel::Kernel;
use kerntune_tune::compare::measured_request;
use kerntune_tune::detail::DetailRequest;
use kerntune_tune::record::record_in_detail;
use kerntune_tune::Session;
use kerntune_work::{read_versioned, write_json, ContentHash};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Schema of a baseline file of programs.
pub const PROGRAM_SCHEMA: &str = "kerntune-guard-program/1";

/// Everything besides the program and the kernel that decides its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramInputs {
    /// Hash of QEMU and the recorder.
    pub machine: String,
    /// Hash of the workload, restricted to the guarded rows.
    pub workload: String,
    /// Hash of the front-end model, the table of deferred work, and kerntune's code.
    pub code: String,
    /// Files in the guest that are guarded: what changes.
    pub programs: BTreeSet<String>,
    /// Hash of each other entry of the guest's file tree.
    pub files: BTreeMap<String, String>,
}

impl ProgramInputs {
    /// Describes the differences, each in a few words.
    pub(super) fn differences(&self, other: &Self, workload: &str) -> Vec<String> {
        let mut found = Vec::new();
        if self.workload != other.workload {
            found.push(format!("{workload} changed"));
        }
        if self.machine != other.machine {
            found.push("another QEMU or recorder".to_owned());
        }
        if self.code != other.code {
            found.push("another version of kerntune".to_owned());
        }
        if self.programs != other.programs {
            let names: Vec<&str> = self.programs.iter().map(String::as_str).collect();
            found.push(format!("other programs were guarded ({})", names.join(", ")));
        }
        let paths: BTreeSet<&String> = self.files.keys().chain(other.files.keys()).collect();
        let changed: Vec<&str> = paths
            .into_iter()
            .filter(|path| self.files.get(*path) != other.files.get(*path))
            .map(String::as_str)
            .collect();
        if let [first, more @ ..] = &changed[..] {
            let more = match more.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            found.push(format!("{first}{more} changed in the guest, beside the program"));
        }
        found
    }
}

/// Figures of a workload's program on a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCell {
    /// Workload as in `guard.toml`.
    pub workload: String,
    /// Kernel that ran.
    pub kernel: KernelName,
    /// Everything else that decides the figures.
    pub inputs: ProgramInputs,
    /// Id of the recorded profile.
    pub profile: String,
    /// Figures of each row.
    pub rows: Vec<ProgramFigure>,
}

impl ProgramCell {
    /// Finds a row's figures by its name.
    pub fn row(&self, name: &str) -> Option<&ProgramFigure> {
        self.rows.iter().find(|row| row.kernel.row == name)
    }
}

/// A baseline file of programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramBaseline {
    /// [`PROGRAM_SCHEMA`].
    pub schema: String,
    /// Figures of every workload.
    pub cells: Vec<ProgramCell>,
}

impl ProgramBaseline {
    /// Creates a baseline from measured cells.
    pub fn of(cells: Vec<ProgramCell>) -> Self {
        Self { schema: PROGRAM_SCHEMA.into(), cells }
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// An invalid file, one of another version, one of kernels, or one without a workload, with a
    /// workload twice, or with several kernels.
    pub fn read(path: &Path) -> Result<Self> {
        let found: Self = read_versioned(path, PROGRAM_SCHEMA)?;
        let names: BTreeSet<&str> = found.cells.iter().map(|cell| cell.workload.as_str()).collect();
        let kernels: BTreeSet<&str> = found.cells.iter().map(|cell| cell.kernel.id.as_str()).collect();
        if names.len() != found.cells.len() || kernels.len() != 1 {
            let what = "one kernel, with each workload once".to_owned();
            return Err(Error::NoFigures { path: path.to_owned(), what });
        }
        Ok(found)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(write_json(path, self)?)
    }

    /// Returns the kernel of all figures.
    pub fn kernel(&self) -> Option<&KernelName> {
        self.cells.first().map(|cell| &cell.kernel)
    }
}

/// Runs all workloads of `guard.toml` on a kernel with their programs' functions, or finds the
/// recordings of earlier runs.
///
/// # Errors
/// A workload whose program is not known; errors of the recordings; rows that they lack.
pub fn measure_programs(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
) -> Result<Vec<ProgramCell>> {
    project.works.iter().map(|work| measure(session, project, kernel, work)).collect()
}

fn measure(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
    work: &GuardedWorkload,
) -> Result<ProgramCell> {
    let names = program_names(work)?;
    let image = session.image_on(kernel, &work.workload)?;
    let mut files = image.entries()?;
    let is_meant =
        |path: &str| names.iter().any(|name| path == name || path.rsplit('/').next() == Some(name.as_str()));
    let programs: BTreeSet<String> =
        image.manifest.files.iter().map(|file| file.path.clone()).filter(|path| is_meant(path)).collect();
    if let Some(name) = names.iter().find(|name| !programs.iter().any(|path| path.ends_with(*name))) {
        return Err(Error::NoProgram { workload: work.name.clone(), name: name.clone() });
    }
    files.retain(|path, _| !programs.contains(path));
    let detail = DetailRequest { users: names.into_iter().collect(), ..DetailRequest::default() };
    let request = measured_request(kernel, &work.workload, &project.model, 0);
    let recorded = record_in_detail(session, &request, &detail)?;
    let profile = kerntune_profile::Profile::load(&recorded.path)?;
    let code = ContentHash::new("guard-program/1")
        .field("model", &project.model.text)
        .field("put off", deferred::TABLE)
        .field("code", crate::CODE);
    let inputs = ProgramInputs {
        machine: session.machine_id.clone(),
        workload: work.workload.content_hash()?,
        code: code.finish(),
        programs,
        files,
    };
    Ok(ProgramCell {
        workload: work.name.clone(),
        kernel: KernelName::of(kernel),
        inputs,
        profile: recorded.manifest.id,
        rows: program_rows(&profile, &work.rows)?,
    })
}

/// Returns the guarded programs of a workload: those that `guard.toml` names, or else those that
/// its measured steps start.
///
/// # Errors
/// A step that starts a shell, if `guard.toml` names none.
fn program_names(work: &GuardedWorkload) -> Result<BTreeSet<String>> {
    if !work.programs.is_empty() {
        return Ok(work.programs.iter().cloned().collect());
    }
    let words = work.workload.measured.steps.iter().filter_map(|step| step.command.first());
    let names: BTreeSet<String> = words.cloned().collect();
    match names.iter().find(|word| is_shell(word)) {
        Some(shell) => Err(Error::WhichProgram { workload: work.name.clone(), shell: shell.clone() }),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> ProgramInputs {
        ProgramInputs {
            machine: "m".into(),
            workload: "w".into(),
            code: "c".into(),
            programs: ["/opt/prog".into()].into(),
            files: [("/etc/hosts".into(), "1".into()), ("/lib/libc.so.6".into(), "2".into())].into(),
        }
    }

    #[test]
    fn what_differs_beside_the_program_is_named() {
        let known = inputs();
        assert!(known.differences(&inputs(), "my.toml").is_empty());
        let mut other = inputs();
        other.files.insert("/lib/libc.so.6".into(), "3".into());
        let said = known.differences(&other, "my.toml");
        assert_eq!(said, ["/lib/libc.so.6 changed in the guest, beside the program"]);
        other.files.remove("/etc/hosts");
        other.machine = "n".into();
        let said = known.differences(&other, "my.toml").join("; ");
        assert_eq!(
            said,
            "another QEMU or recorder; /etc/hosts and 1 more changed in the guest, beside the program"
        );
    }
}
