//! What all steps share.

use crate::Result;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::Arch;
use kerntune_machine::{machine_of, Machine};
use kerntune_work::{Progress, WorkDir};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Finds a machine.
type Finds = dyn Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync;

/// A work directory, a machine, and someone who is told of progress.
pub struct Session<'a> {
    /// Where results are kept.
    pub work: &'a WorkDir,
    /// Where kernels run.
    pub machine: Arc<dyn Machine>,
    /// [`Machine::identity`], asked once.
    pub machine_id: String,
    /// Who is told.
    pub progress: &'a dyn Progress,
    /// Most runs at once; as many as there are processors if None.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Finds the machine that records kernels for a PC.
    records: Arc<Finds>,
}

impl<'a> Session<'a> {
    /// On the exact machine.
    pub fn new(work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        Self::on(Arch::default(), work, progress)
    }

    /// On the machine for kernels of an architecture.
    pub fn on(arch: Arch, work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        Self::with(machine_of(arch)?, work, progress)
    }

    /// On this machine.
    pub fn with(machine: Box<dyn Machine>, work: &'a WorkDir, progress: &'a dyn Progress) -> Result<Self> {
        let machine_id = machine.identity()?;
        let records = Arc::new(|| machine_of(Arch::default()));
        Ok(Self { work, machine: machine.into(), machine_id, progress, jobs: None, records })
    }

    /// The same, telling someone else.
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

    /// With no more than so many runs at once.
    #[must_use]
    pub fn with_jobs(self, jobs: Option<NonZeroUsize>) -> Self {
        Self { jobs, ..self }
    }

    /// With another machine than the emulator for what [`Session::recording`] is for.
    #[must_use]
    pub fn recorded_on(
        self,
        find: impl Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync + 'static,
    ) -> Self {
        Self { records: Arc::new(find), ..self }
    }

    /// The same on the machine that records kernels for a PC, for a kernel that stands for one that no machine records.
    ///
    /// # Errors
    /// A machine that is not there.
    pub fn recording(&self) -> Result<Self> {
        let (machine, records) = ((self.records)()?, self.records.clone());
        let machine_id = machine.identity()?;
        let Self { work, progress, jobs, .. } = *self;
        Ok(Self { work, machine: machine.into(), machine_id, progress, jobs, records })
    }

    /// The workload's guest image, packed if need be.
    pub fn image(&self, workload: &Workload) -> Result<GuestImage> {
        Ok(GuestImage::build(self.work, workload, self.progress)?)
    }
}
