//! What all steps share.

use crate::Result;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::Arch;
use kerntune_machine::{machine_of, Machine};
use kerntune_work::{Progress, WorkDir};

/// A work directory, a machine, and someone who is told of progress.
pub struct Session<'a> {
    /// Where results are kept.
    pub work: &'a WorkDir,
    /// Where kernels run.
    pub machine: Box<dyn Machine>,
    /// [`Machine::identity`], asked once.
    pub machine_id: String,
    /// Who is told.
    pub progress: &'a dyn Progress,
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
        Ok(Self { work, machine, machine_id, progress })
    }

    /// The workload's guest image, packed if need be.
    pub fn image(&self, workload: &Workload) -> Result<GuestImage> {
        Ok(GuestImage::build(self.work, workload, self.progress)?)
    }
}
