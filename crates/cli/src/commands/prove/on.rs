//! `kerntune prove --on`: the kernels take turns on another machine.

use clap::Args;
use kerntune_command::{CliOutput, Failure};
use kerntune_deploy::{DeployOptions, Deployment, DeploymentState, KernelFiles, KernelTurns, SshShell};
use kerntune_guest::compile_contain;
use kerntune_kernel::Kernel;
use kerntune_machine::{RemoteHost, RemoteSystem};
use kerntune_work::WorkDir;
use std::time::Duration;

/// Directory on the other machine; removed at the end.
const DIRECTORY: &str = "/var/lib/kerntune-prove";

#[derive(Debug, Args)]
pub struct OnOptions {
    /// Time the kernels on this machine over SSH: BASE, which must be its own kernel, and TUNED, which is
    /// deployed beside it and removed at the end (docs/prove.md)
    #[arg(long, value_name = "USER@MACHINE", conflicts_with = "machine")]
    pub on: Option<String>,
    /// With --on: give ssh this option, as in `ssh -o`; may be repeated
    #[arg(long, value_name = "OPTION", requires = "on")]
    pub ssh_option: Vec<String>,
    /// With --on: time to wait for a machine that was restarted, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900, requires = "on",
          value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub wait: u32,
    /// With --on: shell command of this machine that switches the other one off and on, for a restart that
    /// does not come back
    #[arg(long, value_name = "COMMAND", requires = "on")]
    pub power_cycle: Option<String>,
}

/// A machine on which the tuned kernel is deployed.
pub struct DeployedMachine {
    pub host: RemoteHost,
    shell: SshShell,
    turns: KernelTurns,
}

impl OnOptions {
    /// Deploys the tuned kernel, unless an earlier call did; `None` without `--on`.
    ///
    /// # Errors
    /// A machine that cannot be reached, that runs another kernel than `base`, or on which nothing can be
    /// deployed.
    pub fn deploy(
        &self,
        work: &WorkDir,
        [base, tuned]: [&Kernel; 2],
        output: &CliOutput,
    ) -> Result<Option<DeployedMachine>, Failure> {
        let Some(name) = &self.on else { return Ok(None) };
        let turns = || -> Result<KernelTurns, Failure> {
            let shell = SshShell::new(name, &self.ssh_option)?;
            let wait = Duration::from_secs(self.wait.into());
            Ok(KernelTurns::new(shell, tuned, wait, self.power_cycle.clone())?)
        };
        let shell = SshShell::new(name, &self.ssh_option)?;
        let deployment = Deployment::new(&shell, "");
        let status = deployment.status()?;
        let turns_of_end = turns()?;
        let program = compile_contain(work)?;
        let host = RemoteHost { system: Box::new(turns()?), directory: DIRECTORY.into(), program };
        if !status.runs_new {
            turns_of_end.check_running(base)?;
            if let Err(error) = host.can_contain() {
                host.clean()?;
                return Err(error.into());
            }
        }
        let package = kerntune_tune::package::package(work, tuned, output.progress())?;
        let kernel = KernelFiles::unpack(&[package.file()])?;
        let is_there = status.record.as_ref().is_some_and(|record| record.id == kernel.id)
            && !matches!(status.state, DeploymentState::Incomplete | DeploymentState::Confirmed);
        if !is_there {
            let options = DeployOptions {
                check: None,
                within_seconds: self.wait,
                watchdog_seconds: 60,
                append: Vec::new(),
            };
            for script in &deployment.steps(&kernel, &options)?.scripts {
                output.progress().begin(&format!("{name}: {}", script.what), None);
                let done = deployment.carry_out(script);
                output.progress().end();
                done?;
            }
        }
        Ok(Some(DeployedMachine { host, shell, turns: turns_of_end }))
    }

    /// Returns the options for the script that repeats the proof.
    pub fn to_argument(&self) -> Option<String> {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
        let mut text = format!("--on {}", quoted(self.on.as_ref()?));
        for option in &self.ssh_option {
            text += &format!(" --ssh-option {}", quoted(option));
        }
        Some(text)
    }
}

impl DeployedMachine {
    /// Brings the machine's own kernel back, and removes everything.
    ///
    /// # Errors
    /// A machine that does not come back.
    pub fn remove(&self, base: &Kernel, output: &CliOutput) -> Result<(), Failure> {
        let deployment = Deployment::new(&self.shell, "");
        self.host.clean()?;
        if deployment.status()?.runs_new {
            self.turns.boot(base, output.progress())?;
        }
        let steps = deployment.rollback()?;
        for script in steps.disarm.iter().chain(&steps.remove) {
            deployment.carry_out(script)?;
        }
        Ok(())
    }

    /// Returns what to do after a failure.
    pub fn advice(&self) -> String {
        format!(
            "the same command resumes the proof; `kerntune deploy --host {} --rollback` removes the kernel there",
            self.turns.name()
        )
    }
}
