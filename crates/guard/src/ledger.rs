//! Ledger of commits: their figures, or the reasons why they have none. Every entry is written at
//! once, so an interrupted search resumes.

use crate::cell::{build_kernel, inputs_hash, measure_kernel, CellFigures, MeasuredCell};
use crate::project::{BuildVariant, GuardProject, GuardedWorkload};
use crate::tree::{Commit, GitTree};
use crate::{Error, Result};
use kerntune_kernel::{Kernel, KernelSource};
use kerntune_tune::Session;
use kerntune_work::{interrupt, read_sealed, write_sealed, ContentHash, IoContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Figures of a commit, or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Figures of the commit.
    pub cell: Option<CellFigures>,
    /// Reason why there are none: the commit does not build, boot or complete the workload.
    pub failure: Option<String>,
    /// Number of objects compiled; `None` if the kernel existed already.
    pub objects: Option<u64>,
    /// Wall-clock seconds to build and run the commit.
    pub seconds: f64,
}

/// Entries of a git tree's commits, for one variant and workload.
pub struct CommitLedger<'a> {
    session: &'a Session<'a>,
    project: &'a GuardProject,
    tree: &'a GitTree,
    variant: &'a BuildVariant,
    work: &'a GuardedWorkload,
    directory: PathBuf,
    /// Hash of the variant, which names its build directories.
    kind: String,
}

impl<'a> CommitLedger<'a> {
    /// Opens the ledger for the QEMU, image and code of this machine; others have ledgers of their
    /// own.
    ///
    /// # Errors
    /// A guest image that cannot be made, a missing compiler, unreadable fragments.
    pub fn open(
        session: &'a Session<'a>,
        project: &'a GuardProject,
        tree: &'a GitTree,
        variant: &'a BuildVariant,
        work: &'a GuardedWorkload,
    ) -> Result<Self> {
        let compiler: kerntune_kernel::Compiler = variant.compiler.parse()?;
        let identity = compiler.identify()?;
        let configuration = &variant.configuration;
        let mut hash = ContentHash::new("guard-variant/1")
            .field("compiler", format!("{} {}", identity.program, identity.version))
            .field("set", configuration.set.join("\n"))
            .field("kcflags", configuration.kcflags.join("\n"));
        for path in &configuration.fragments {
            hash = hash.file("fragment", &project.dir.join(path))?;
        }
        let kind = hash.finish();
        let key = ContentHash::new("guard-ledger/1")
            .field("making", inputs_hash(session, project, work)?)
            .field("rows", work.rows.join("\n"))
            .field("variant", &kind)
            .field("name", &configuration.name);
        let directory = tree.directory().join("figures").join(key.finish());
        if !session.work.is_dry_run() {
            fs::create_dir_all(&directory).at("create", &directory)?;
        }
        Ok(Self { session, project, tree, variant, work, directory, kind })
    }

    /// Returns the entry of a commit, if there is one.
    pub fn lookup(&self, commit: &str) -> Option<LedgerEntry> {
        let entry: LedgerEntry = read_sealed(&self.path(commit)).ok()?;
        entry.cell.as_ref().is_none_or(|cell| !cell.rows.is_empty()).then_some(entry)
    }

    /// Returns the entry of a commit, after building and running the commit if necessary.
    ///
    /// # Errors
    /// Errors that are not the commit's fault: a full disk, a missing tool, an interrupt.
    pub fn entry(&self, commit: &Commit) -> Result<LedgerEntry> {
        if let Some(known) = self.lookup(&commit.id) {
            return Ok(known);
        }
        interrupt::check()?;
        let started = Instant::now();
        let mut entry = LedgerEntry { cell: None, failure: None, objects: None, seconds: 0.0 };
        match self.kernel(commit, &mut entry.objects).and_then(|kernel| self.of(&kernel)) {
            Ok(measured) => entry.cell = Some(measured.cell),
            Err(error) => {
                interrupt::check()?;
                entry.failure = Some(failure(&error).ok_or(error)?);
            }
        }
        entry.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        write_sealed(&self.path(&commit.id), &entry)?;
        Ok(entry)
    }

    /// Returns the recording of a commit, made again if it is gone.
    ///
    /// # Errors
    /// Errors of the build and of the recording.
    pub fn measured(&self, commit: &Commit) -> Result<MeasuredCell> {
        let known = self.lookup(&commit.id).and_then(|entry| entry.cell);
        let there = known.and_then(|cell| kerntune_kernel::find(self.session.work, &cell.kernel.id).ok());
        let kernel = match there {
            Some(kernel) => kernel,
            None => self.kernel(commit, &mut None)?,
        };
        self.of(&kernel)
    }

    fn of(&self, kernel: &Kernel) -> Result<MeasuredCell> {
        measure_kernel(self.session, self.project, kernel, Some(self.variant), self.work)
    }

    fn path(&self, commit: &str) -> PathBuf {
        self.directory.join(format!("{commit}.json"))
    }

    /// Builds the commit in the checkout, reusing the objects of the previous one.
    fn kernel(&self, commit: &Commit, objects: &mut Option<u64>) -> Result<Kernel> {
        let (place, _lock) = self.tree.check_out(&commit.id, self.session.progress)?;
        let before = kerntune_kernel::list(self.session.work)?;
        let label = format!("commit-{}", commit.short());
        let source = (KernelSource::Directory(place), label.as_str());
        let kernel = build_kernel(
            self.session,
            self.project,
            source,
            self.variant,
            Some(&self.tree.pool(&self.kind)),
        )?;
        if before.iter().all(|known| known.manifest.id != kernel.manifest.id) {
            *objects = Some(kernel.manifest.objects);
        }
        Ok(kernel)
    }
}

/// Returns the message of an error that is the commit's fault; `None` for others.
fn failure(error: &Error) -> Option<String> {
    use kerntune_tune::Error as Tune;
    let of_guest = |error: &kerntune_machine::Error| {
        use kerntune_machine::Error::{Guest, NoBoot, OutOfMemory, Panic, Silent, TimeLimit};
        matches!(
            error,
            Panic { .. }
                | Guest { .. }
                | OutOfMemory { .. }
                | TimeLimit { .. }
                | NoBoot { .. }
                | Silent { .. }
        )
    };
    let of_build = |error: &kerntune_kernel::Error| matches!(error, kerntune_kernel::Error::Make { .. });
    let is_its = match error {
        Error::Kernel(inner) => of_build(inner),
        Error::Tune(inner) => match &**inner {
            Tune::Kernel(inner) => of_build(inner),
            Tune::Machine(inner) => of_guest(inner),
            Tune::Output { .. } | Tune::NothingRecorded { .. } => true,
            _ => false,
        },
        Error::NoRow { .. } => true,
        _ => false,
    };
    let said = error.to_string();
    // Make reports whatever a program said, including a full disk.
    let is_ours = said.contains("No space left on device");
    (is_its && !is_ours).then_some(said)
}
