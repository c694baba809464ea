//! Deployment of a tuned kernel beside the one of a machine: the boot loader starts it once, a unit
//! confirms it after a health check, and without confirmation the next start is the old kernel.
//!
//! - [`KernelFiles`]: a kernel out of Debian packages.
//! - [`Shell`]: the machine, this one or another over SSH.
//! - [`Deployment`]: the steps, the state, and the way back.
//! - [`KernelTurns`]: the old and the new kernel in turn, for a comparison.
//!
//! All files of the machine are written and removed by commands of its shell, so that nothing has to
//! be installed there. Tests cut the power after each of them.

mod command;
mod deployment;
mod env_block;
mod error;
mod facts;
mod grub;
mod shell;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod turns;

pub use deployment::{
    DeployOptions, Deployment, DeploymentRecord, DeploymentState, DeploymentStatus, DeploymentSteps,
    RollbackSteps,
};
pub use env_block::{EnvBlock, BLOCK_BYTES};
pub use error::{Error, Result};
pub use facts::MachineFacts;
pub use shell::{LocalShell, Script, ScriptInput, ScriptResult, Shell, SshShell};
pub use source::{KernelFiles, Watchdog};
pub use turns::KernelTurns;

use kerntune_command::Room;

/// The command `deploy`.
pub static ROOM: Room =
    Room { commands: &[&command::COMMAND], examples: include_str!("examples.tsv"), ..Room::EMPTY };
