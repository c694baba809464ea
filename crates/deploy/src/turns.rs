//! Kernels that take turns on a machine, for a comparison by its clock: its own kernel, and a deployed
//! one.

use crate::deployment::Deployment;
use crate::shell::{Shell, SshShell};
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_machine::{Error as MachineError, RemoteSystem};
use kerntune_work::{Job, Progress};
use std::process::Command;
use std::time::Duration;

/// A machine that starts its own kernel or the deployed one, as asked.
#[derive(Debug)]
pub struct KernelTurns {
    shell: SshShell,
    /// Build id of the deployed kernel.
    deployed: String,
    wait: Duration,
    power_cycle: Option<String>,
}

impl KernelTurns {
    /// Makes the turns of a machine on which `deployed` is deployed. `wait` is the time for a restart;
    /// `power_cycle` is a command of this machine's shell that switches the other one off and on.
    ///
    /// # Errors
    /// A kernel without a build id, by which the running kernel is known.
    pub fn new(
        shell: SshShell,
        deployed: &Kernel,
        wait: Duration,
        power_cycle: Option<String>,
    ) -> Result<Self> {
        Ok(Self { shell, deployed: build_id(deployed)?, wait, power_cycle })
    }

    /// Checks that a kernel runs.
    ///
    /// # Errors
    /// [`Error::OtherKernel`] if another one does.
    pub fn check_running(&self, kernel: &Kernel) -> Result<()> {
        let (running, wanted) = (Deployment::new(&self.shell, "").build_id()?, build_id(kernel)?);
        if running.as_ref() == Some(&wanted) {
            return Ok(());
        }
        Err(Error::OtherKernel {
            host: self.shell.host().into(),
            running: running.unwrap_or_else(|| "one without a build id".into()),
            wanted: format!("{} ({wanted})", kernel.manifest.label),
        })
    }

    fn start(&self, kernel: &Kernel) -> Result<()> {
        let deployment = Deployment::new(&self.shell, "");
        let before = deployment.boot_id()?;
        match build_id(kernel)? == self.deployed {
            true => deployment.arm()?,
            false => deployment.disarm()?,
        }
        deployment.restart()?;
        if let Err(error) = deployment.wait_for_restart(&before, self.wait) {
            let Some(command) = self.power_cycle.as_ref().filter(|_| matches!(error, Error::NotBack { .. }))
            else {
                return Err(error);
            };
            // The deployed kernel starts only once, so this brings the machine's own one back.
            let mut shell = Command::new("sh");
            shell.args(["-c", command]);
            let (end, output) = Job::new(shell).time_limit(self.wait).output()?;
            if !end.success() {
                let reason = format!("--power-cycle failed: {}", output.trim());
                return Err(Error::Unsafe { host: self.shell.host().into(), reason });
            }
            deployment.wait_for_restart(&before, self.wait)?;
            return Err(Error::CameBackByPower {
                host: self.shell.host().into(),
                kernel: kernel.manifest.label.clone(),
            });
        }
        self.check_running(kernel)
    }
}

impl RemoteSystem for KernelTurns {
    fn name(&self) -> &str {
        self.shell.host()
    }

    fn shell(&self, text: &str) -> Command {
        self.shell.command(text)
    }

    fn is_lost(&self, status: i32) -> bool {
        SshShell::is_lost(status)
    }

    fn boot(&self, kernel: &Kernel, progress: &dyn Progress) -> kerntune_machine::Result<()> {
        progress.begin(&format!("restart {} with {}", self.shell.host(), kernel.manifest.label), None);
        let started = self.start(kernel);
        progress.end();
        started.map_err(|error| match error {
            Error::Work(error) => error.into(),
            error => MachineError::Remote { host: self.shell.host().into(), what: error.to_string() },
        })
    }
}

fn build_id(kernel: &Kernel) -> Result<String> {
    let none = || Error::Usage(format!("kernel {} was linked without a build id", kernel.manifest.label));
    kernel.build_id()?.ok_or_else(none)
}
