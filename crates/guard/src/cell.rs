//! One workload on one kernel: its figures, and the recording that they are of.

use crate::figures::{rows, RowFigure};
use crate::project::{Project, Variant, Work};
use crate::{put_off, Result};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel, Source};
use kerntune_profile::Profile;
use kerntune_tune::base::with_needs;
use kerntune_tune::compare::{measure, measure_all};
use kerntune_tune::record::Recorded;
use kerntune_tune::Session;
use kerntune_work::ContentHash;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelName {
    /// Its id in the work directory.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// The version of its source.
    pub version: String,
    /// What compiled it.
    pub compiler: String,
}

impl KernelName {
    fn of(kernel: &Kernel) -> Self {
        let of = &kernel.manifest;
        let (id, label, version) = (of.id.clone(), of.label.clone(), of.version.clone());
        Self { id, label, version, compiler: of.compiler.version.clone() }
    }
}

/// A workload's figures on a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The configuration's name; empty of a kernel that was named.
    pub configuration: String,
    /// The compiler as the file names it; empty of a kernel that was named.
    pub compiler: String,
    /// The workload as the file names it.
    pub workload: String,
    /// The kernel.
    pub kernel: KernelName,
    /// What made the figures beside the kernel: machine, guest image, workload, code. Only figures of one making are held
    /// against each other.
    pub making: String,
    /// Each of these by itself. Files of before it was written have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
    /// The recording.
    pub profile: String,
    /// One for each row.
    pub rows: Vec<RowFigure>,
}

impl Cell {
    /// Whether they are of the same configuration, compiler and workload.
    pub fn same_place(&self, other: &Cell) -> bool {
        (&self.configuration, &self.compiler, &self.workload)
            == (&other.configuration, &other.compiler, &other.workload)
    }

    /// A row's figures.
    pub fn row(&self, name: &str) -> Option<&RowFigure> {
        self.rows.iter().find(|row| row.row == name)
    }

    /// `rr`, or `rr, hz-100, clang-19`.
    pub fn named(&self) -> String {
        let names = [&self.workload, &self.configuration, &self.compiler];
        names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// A cell that was measured here.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Its figures.
    pub cell: Cell,
    /// The kernel.
    pub kernel: Kernel,
    /// The profile's directory.
    pub profile: PathBuf,
}

impl Measured {
    /// The profile.
    ///
    /// # Errors
    /// One that is damaged.
    pub fn load(&self) -> Result<Profile> {
        Ok(Profile::load(&self.profile)?)
    }
}

/// What makes figures beside the kernel, each as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// QEMU and the recorder.
    pub machine: String,
    /// Programs and files in the guest.
    pub image: String,
    /// The workload's file, with the rows that are guarded.
    pub workload: String,
    /// The front-end model, what is put off, and the code of kerntune.
    pub code: String,
}

impl Means {
    /// # Errors
    /// A guest image that cannot be made.
    fn of(session: &Session, project: &Project, work: &Work) -> Result<Self> {
        let code = ContentHash::new("guard-code/1")
            .field("model", &project.model.text)
            .field("put off", put_off::TABLE)
            .field("code", crate::CODE);
        let workload = ContentHash::new("guard-workload/1").field("workload", format!("{:?}", work.workload));
        Ok(Self {
            machine: session.machine_id.clone(),
            image: session.image(&work.workload)?.manifest.id,
            workload: workload.finish(),
            code: code.finish(),
        })
    }

    /// In what they differ from others, in words: `another guest (my.toml changed)`. A changed workload packs another image.
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

/// What makes figures beside the kernel.
///
/// # Errors
/// A guest image that cannot be made.
pub fn making(session: &Session, project: &Project, work: &Work) -> Result<String> {
    let image = session.image(&work.workload)?;
    let hash = ContentHash::new("guard-making/1")
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id)
        .field("workload", format!("{:?}", work.workload))
        .field("model", &project.model.text)
        .field("put off", put_off::TABLE)
        .field("code", crate::CODE);
    Ok(hash.finish())
}

/// Runs a workload on a kernel, or finds that it ran. `variant` is what the kernel was built with, if the file says so.
///
/// # Errors
/// Those of the recording, and rows that are not in it.
pub fn of_kernel(
    session: &Session,
    project: &Project,
    kernel: &Kernel,
    variant: Option<&Variant>,
    work: &Work,
) -> Result<Measured> {
    let recorded = measure(session, kernel, &work.workload, &project.model, 0)?;
    of_recording(session, project, (kernel, variant), work, recorded)
}

fn of_recording(
    session: &Session,
    project: &Project,
    (kernel, variant): (&Kernel, Option<&Variant>),
    work: &Work,
    recorded: Recorded,
) -> Result<Measured> {
    let profile = Profile::load(&recorded.path)?;
    let cell = Cell {
        configuration: variant.map(|variant| variant.configuration.name.clone()).unwrap_or_default(),
        compiler: variant.map(|variant| variant.compiler.clone()).unwrap_or_default(),
        workload: work.name.clone(),
        kernel: KernelName::of(kernel),
        making: making(session, project, work)?,
        means: Some(Means::of(session, project, work)?),
        profile: recorded.manifest.id.clone(),
        rows: rows(&profile, &work.rows)?,
    };
    Ok(Measured { cell, kernel: kernel.clone(), profile: recorded.path })
}

/// All workloads of the file on a kernel, several of which run at once.
///
/// # Errors
/// Those of [`of_kernel`].
pub fn of_works(
    session: &Session,
    project: &Project,
    kernel: &Kernel,
    variant: Option<&Variant>,
) -> Result<Vec<Measured>> {
    let workloads: Vec<Workload> = project.works.iter().map(|work| work.workload.clone()).collect();
    let recorded = measure_all(session, kernel, &workloads, &project.model)?;
    let each = project.works.iter().zip(recorded);
    each.map(|(work, recorded)| of_recording(session, project, (kernel, variant), work, recorded)).collect()
}

/// Builds the kernel of a source as the file wants it, or finds it. `pool` lends a build directory.
///
/// # Errors
/// Those of the build.
pub fn kernel_of(
    session: &Session,
    project: &Project,
    (source, label): (Source, &str),
    variant: &Variant,
    pool: Option<&Path>,
) -> Result<Kernel> {
    let Variant { configuration, compiler } = variant;
    let mut request = BuildRequest::new(source, label);
    request.fragments = configuration.fragments.iter().map(|path| project.dir.join(path)).collect();
    request.extra.clone_from(&configuration.set);
    request.kcflags.clone_from(&configuration.kcflags);
    request.compiler = compiler.parse()?;
    request.pool = pool.map(Path::to_owned);
    let request = with_needs(request, project.works.iter().map(|work| &work.workload));
    Ok(build(session.work, &request, session.progress)?)
}
