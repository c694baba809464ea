//! What is known of commits: figures, or why there are none. Each is written when it is known, so that whatever was stopped goes on
//! where it was.

use crate::cell::{kernel_of, making, of_kernel, Cell, Measured};
use crate::project::{Project, Variant, Work};
use crate::tree::{Commit, Tree};
use crate::{Error, Result};
use kerntune_kernel::{Kernel, Source};
use kerntune_tune::Session;
use kerntune_work::{interrupt, read_sealed, write_sealed, ContentHash, IoContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// What is known of a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its figures.
    pub cell: Option<Cell>,
    /// Why there are none: it does not build, boot, or do its work.
    pub failure: Option<String>,
    /// Objects that were compiled for it; none where the kernel was there.
    pub objects: Option<u64>,
    /// What it took, wall clock, seconds.
    pub seconds: f64,
}

/// Where what is known of a tree's commits is kept, of one variant and workload.
pub struct Ledger<'a> {
    session: &'a Session<'a>,
    project: &'a Project,
    tree: &'a Tree,
    variant: &'a Variant,
    work: &'a Work,
    room: PathBuf,
    /// The name of what the variant makes of a build.
    kind: String,
}

impl<'a> Ledger<'a> {
    /// Of figures that are made as they are made here and now.
    ///
    /// # Errors
    /// A guest image that cannot be made, a compiler that is not there, fragments that cannot be read.
    pub fn open(
        session: &'a Session<'a>,
        project: &'a Project,
        tree: &'a Tree,
        variant: &'a Variant,
        work: &'a Work,
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
            .field("making", making(session, project, work)?)
            .field("rows", work.rows.join("\n"))
            .field("variant", &kind)
            .field("name", &configuration.name);
        let room = tree.room().join("figures").join(key.finish());
        fs::create_dir_all(&room).at("create", &room)?;
        Ok(Self { session, project, tree, variant, work, room, kind })
    }

    /// What is known of a commit.
    pub fn known(&self, commit: &str) -> Option<Entry> {
        let entry: Entry = read_sealed(&self.path(commit)).ok()?;
        entry.cell.as_ref().is_none_or(|cell| !cell.rows.is_empty()).then_some(entry)
    }

    /// The same, or what building and running it comes to.
    ///
    /// # Errors
    /// What says nothing of the commit: a full disk, a missing tool, an interrupt.
    pub fn entry(&self, commit: &Commit) -> Result<Entry> {
        if let Some(known) = self.known(&commit.id) {
            return Ok(known);
        }
        interrupt::check()?;
        let started = Instant::now();
        let mut entry = Entry { cell: None, failure: None, objects: None, seconds: 0.0 };
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

    /// The recording behind what is known of a commit, made again if it is gone.
    ///
    /// # Errors
    /// Those of the build and of the recording.
    pub fn measured(&self, commit: &Commit) -> Result<Measured> {
        let known = self.known(&commit.id).and_then(|entry| entry.cell);
        let there = known.and_then(|cell| kerntune_kernel::find(self.session.work, &cell.kernel.id).ok());
        let kernel = match there {
            Some(kernel) => kernel,
            None => self.kernel(commit, &mut None)?,
        };
        self.of(&kernel)
    }

    fn of(&self, kernel: &Kernel) -> Result<Measured> {
        of_kernel(self.session, self.project, kernel, Some(self.variant), self.work)
    }

    fn path(&self, commit: &str) -> PathBuf {
        self.room.join(format!("{commit}.json"))
    }

    /// Built in the checkout, with the objects of the commit before.
    fn kernel(&self, commit: &Commit, objects: &mut Option<u64>) -> Result<Kernel> {
        let (place, _lock) = self.tree.check_out(&commit.id, self.session.progress)?;
        let before = kerntune_kernel::list(self.session.work)?;
        let label = format!("commit-{}", commit.short());
        let source = (Source::Directory(place), label.as_str());
        let kernel =
            kernel_of(self.session, self.project, source, self.variant, Some(&self.tree.pool(&self.kind)))?;
        if before.iter().all(|known| known.manifest.id != kernel.manifest.id) {
            *objects = Some(kernel.manifest.objects);
        }
        Ok(kernel)
    }
}

/// What an error says of the kernel that was tried; none if it is not the kernel's fault.
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
    // Make's errors are whatever a program said.
    let is_ours = said.contains("No space left on device");
    (is_its && !is_ours).then_some(said)
}
