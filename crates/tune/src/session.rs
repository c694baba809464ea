//! Context that all steps share: work directory, machine, progress.

use crate::Result;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::{guest_modules, machine_of, Machine};
use kerntune_work::{Progress, WorkDir};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Creates a machine, or says why it is missing.
type FindMachine = dyn Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync;

/// A work directory, a machine and a receiver of progress. Start here.
pub struct Session<'a> {
    /// Work directory with all results.
    pub work: &'a WorkDir,
    /// Machine on which kernels run.
    pub machine: Arc<dyn Machine>,
    /// Result of [`Machine::identity`], part of the keys of results.
    pub machine_id: String,
    /// Receiver of progress and notes.
    pub progress: &'a dyn Progress,
    /// Maximum number of runs at a time; `None` for one per processor.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Creates the machine that records kernels for a PC.
    records: Arc<FindMachine>,
}

impl<'a> Session<'a> {
    /// Creates a session on the exact machine.
    pub fn new(work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        Self::on(Arch::default(), work, progress)
    }

    /// Creates a session on the machine for kernels of `arch`.
    pub fn on(arch: Arch, work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        Self::with(machine_of(arch)?, work, progress)
    }

    /// Creates a session on `machine`.
    pub fn with(machine: Box<dyn Machine>, work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        let machine_id = machine.identity()?;
        let records = Arc::new(|| machine_of(Arch::default()));
        Ok(Self { work, machine: machine.into(), machine_id, progress, jobs: None, records })
    }

    /// Returns the session with another receiver of progress.
    pub(crate) fn telling<'b>(&'b self, progress: &'b dyn Progress) -> Session<'b> {
        Session {
            machine: self.machine.clone(),
            machine_id: self.machine_id.clone(),
            records: self.records.clone(),
            work: self.work,
            jobs: self.jobs,
            progress,
        }
    }

    /// Limits the number of runs at a time; `None` for one per processor.
    #[must_use]
    pub fn with_jobs(self, jobs: Option<NonZeroUsize>) -> Self {
        Self { jobs, ..self }
    }

    /// Sets the machine that [`Session::recording`] uses instead of the emulator.
    #[must_use]
    pub fn recorded_on(
        self,
        find: impl Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync + 'static,
    ) -> Self {
        Self { records: Arc::new(find), ..self }
    }

    /// Returns the session on the machine that records kernels for a PC, to record a surrogate
    /// kernel.
    ///
    /// # Errors
    /// A machine that is missing.
    pub fn recording(&self) -> Result<Self> {
        let (machine, records) = ((self.records)()?, self.records.clone());
        let machine_id = machine.identity()?;
        let Self { work, progress, jobs, .. } = *self;
        Ok(Self { work, machine: machine.into(), machine_id, progress, jobs, records })
    }

    /// Returns the workload's guest image, which is packed if it is not there.
    pub fn image(&self, workload: &Workload) -> Result<GuestImage> {
        Ok(GuestImage::build(self.work, workload, self.progress)?)
    }

    /// Returns the workload's guest image for a kernel: with the modules that it loads there.
    pub fn image_on(&self, kernel: &Kernel, workload: &Workload) -> Result<GuestImage> {
        let modules = guest_modules(kernel, workload)?;
        Ok(GuestImage::with_modules(self.work, workload, modules.as_ref(), self.progress)?)
    }
}
