//! Cells: one workload on one kernel, with its figures and the recording behind them.

use crate::figures::{rows, RowFigure};
use crate::project::{BuildVariant, GuardProject, GuardedWorkload};
use crate::{deferred, Result};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel, KernelSource};
use kerntune_profile::Profile;
use kerntune_tune::base::with_needs;
use kerntune_tune::compare::{measure, measure_all};
use kerntune_tune::record::RecordedProfile;
use kerntune_tune::Session;
use kerntune_work::ContentHash;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The identity of a kernel, as files of figures have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelName {
    /// Id in the work directory.
    pub id: String,
    /// Label of the kernel.
    pub label: String,
    /// Version of the kernel's source.
    pub version: String,
    /// Version of the compiler.
    pub compiler: String,
}

impl KernelName {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let of = &kernel.manifest;
        let (id, label, version) = (of.id.clone(), of.label.clone(), of.version.clone());
        Self { id, label, version, compiler: of.compiler.version.clone() }
    }
}

/// Figures of a workload on a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellFigures {
    /// Name of the configuration; empty if the user named the kernel.
    pub configuration: String,
    /// Compiler as in `guard.toml`; empty if the user named the kernel.
    pub compiler: String,
    /// Workload as in `guard.toml`.
    pub workload: String,
    /// Kernel that ran.
    pub kernel: KernelName,
    /// Hash of everything besides the kernel that decides the figures ([`inputs_hash`]). Only figures
    /// with the same hash are comparable.
    pub making: String,
    /// The parts of that hash, for messages; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<MeasurementInputs>,
    /// Id of the recorded profile.
    pub profile: String,
    /// Figures of each row.
    pub rows: Vec<RowFigure>,
}

impl CellFigures {
    /// Checks whether both cells have the same configuration, compiler and workload.
    pub fn is_same_cell(&self, other: &CellFigures) -> bool {
        (&self.configuration, &self.compiler, &self.workload)
            == (&other.configuration, &other.compiler, &other.workload)
    }

    /// Finds a row's figures by its name.
    pub fn row(&self, name: &str) -> Option<&RowFigure> {
        self.rows.iter().find(|row| row.row == name)
    }

    /// Returns the cell's name for messages: `rr`, or `rr, hz-100, clang-19`.
    pub fn display_name(&self) -> String {
        let names = [&self.workload, &self.configuration, &self.compiler];
        names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// A cell that was measured here.
#[derive(Debug, Clone)]
pub struct MeasuredCell {
    /// Figures of the cell.
    pub cell: CellFigures,
    /// Kernel that ran.
    pub kernel: Kernel,
    /// Directory of the profile.
    pub profile: PathBuf,
}

impl MeasuredCell {
    /// Loads the profile.
    ///
    /// # Errors
    /// A damaged profile.
    pub fn load(&self) -> Result<Profile> {
        Ok(Profile::load(&self.profile)?)
    }
}

/// Hashes of everything besides the kernel that decides the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementInputs {
    /// QEMU and the recorder.
    pub machine: String,
    /// Programs and files in the guest.
    pub image: String,
    /// The workload, restricted to the guarded rows.
    pub workload: String,
    /// The front-end model, the table of deferred work, and kerntune's code.
    pub code: String,
}

impl MeasurementInputs {
    /// Hashes each input.
    ///
    /// # Errors
    /// A guest image that cannot be made.
    fn of(session: &Session, project: &GuardProject, work: &GuardedWorkload) -> Result<Self> {
        let code = ContentHash::new("guard-code/1")
            .field("model", &project.model.text)
            .field("put off", deferred::TABLE)
            .field("code", crate::CODE);
        Ok(Self {
            machine: session.machine_id.clone(),
            image: session.image(&work.workload)?.manifest.id,
            workload: work.workload.content_hash()?,
            code: code.finish(),
        })
    }

    /// Describes the differences: `another guest (my.toml changed)`. A changed workload also
    /// changes the image.
    pub(crate) fn differences(&self, other: &Self, workload: &str) -> Vec<String> {
        let mut found = Vec::new();
        if self.workload != other.workload {
            found.push(format!("another guest ({workload} changed)"));
        } else if self.image != other.image {
            found.push(format!("another guest (programs or files that {workload} packs changed)"));
        }
        if self.machine != other.machine {
            found.push("another machine (QEMU or recorder)".to_owned());
        }
        if self.code != other.code {
            found.push("another version of kerntune".to_owned());
        }
        found
    }
}

/// Hashes everything besides the kernel that decides the figures.
///
/// # Errors
/// A guest image that cannot be made.
pub fn inputs_hash(session: &Session, project: &GuardProject, work: &GuardedWorkload) -> Result<String> {
    let image = session.image(&work.workload)?;
    let hash = ContentHash::new("guard-making/1")
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id)
        .field("workload", work.workload.content_hash()?)
        .field("model", &project.model.text)
        .field("put off", deferred::TABLE)
        .field("code", crate::CODE);
    Ok(hash.finish())
}

/// Runs a workload on a kernel, or finds the recording of an earlier run. `variant` is the kernel's
/// variant in `guard.toml`, if it has one.
///
/// # Errors
/// Errors of the recording; rows that it lacks.
pub fn measure_kernel(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
    variant: Option<&BuildVariant>,
    work: &GuardedWorkload,
) -> Result<MeasuredCell> {
    let recorded = measure(session, kernel, &work.workload, &project.model, 0)?;
    from_recording(session, project, (kernel, variant), work, recorded)
}

fn from_recording(
    session: &Session,
    project: &GuardProject,
    (kernel, variant): (&Kernel, Option<&BuildVariant>),
    work: &GuardedWorkload,
    recorded: RecordedProfile,
) -> Result<MeasuredCell> {
    let profile = Profile::load(&recorded.path)?;
    let cell = CellFigures {
        configuration: variant.map(|variant| variant.configuration.name.clone()).unwrap_or_default(),
        compiler: variant.map(|variant| variant.compiler.clone()).unwrap_or_default(),
        workload: work.name.clone(),
        kernel: KernelName::of(kernel),
        making: inputs_hash(session, project, work)?,
        means: Some(MeasurementInputs::of(session, project, work)?),
        profile: recorded.manifest.id.clone(),
        rows: rows(&profile, &work.rows)?,
    };
    Ok(MeasuredCell { cell, kernel: kernel.clone(), profile: recorded.path })
}

/// Runs all workloads of `guard.toml` on a kernel, several at once.
///
/// # Errors
/// As [`measure_kernel`].
pub fn measure_workloads(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
    variant: Option<&BuildVariant>,
) -> Result<Vec<MeasuredCell>> {
    let workloads: Vec<Workload> = project.works.iter().map(|work| work.workload.clone()).collect();
    let recorded = measure_all(session, kernel, &workloads, &project.model)?;
    let each = project.works.iter().zip(recorded);
    each.map(|(work, recorded)| from_recording(session, project, (kernel, variant), work, recorded)).collect()
}

/// Builds the kernel of a source in a variant, or finds it. `pool` is a pool of build directories
/// to borrow from.
///
/// # Errors
/// Errors of the build.
pub fn build_kernel(
    session: &Session,
    project: &GuardProject,
    (source, label): (KernelSource, &str),
    variant: &BuildVariant,
    pool: Option<&Path>,
) -> Result<Kernel> {
    let request = build_request(project, (source, label), variant, pool)?;
    Ok(build(session.work, &request, session.progress)?)
}

/// Returns the request of [`build_kernel`].
///
/// # Errors
/// An unknown compiler.
pub fn build_request(
    project: &GuardProject,
    (source, label): (KernelSource, &str),
    variant: &BuildVariant,
    pool: Option<&Path>,
) -> Result<BuildRequest> {
    let BuildVariant { configuration, compiler } = variant;
    let mut request = BuildRequest::new(source, label);
    request.fragments = configuration.fragments.iter().map(|path| project.dir.join(path)).collect();
    request.extra.clone_from(&configuration.set);
    request.kcflags.clone_from(&configuration.kcflags);
    request.compiler = compiler.parse()?;
    request.pool = pool.map(Path::to_owned);
    Ok(with_needs(request, project.works.iter().map(|work| &work.workload)))
}
