//! Command that is created in a stopped state, so that collection can start first.

use crate::{Error, Result};
use kerntune_work::interrupt;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Stopped shell process that becomes the command when it is resumed.
#[derive(Debug)]
pub struct StoppedCommand {
    child: Child,
    program: String,
}

/// Shell script that stops itself and replaces itself with the command when resumed.
const SHELL: &str = "kill -STOP $$; exec \"$@\"";

impl StoppedCommand {
    /// Creates the stopped process. It inherits the terminal and files; its standard output is
    /// `stdout`.
    ///
    /// # Errors
    /// The command does not exist, or the wait was interrupted.
    pub fn new(command: &[String], stdout: Stdio) -> Result<Self> {
        let program = command.first().cloned().unwrap_or_default();
        let failed = |source| Error::Spawn { program: program.clone(), source };
        if kerntune_work::find_program(&program, &[]).is_none() {
            return Err(failed(std::io::ErrorKind::NotFound.into()));
        }
        let arguments = command.iter().map(OsString::from);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SHELL, "sh"]).args(arguments).stdout(stdout);
        let child = shell.spawn().map_err(failed)?;
        let waiting = Self { child, program };
        loop {
            let status = waitpid(Some(waiting.pid()), WaitOptions::UNTRACED)
                .map_err(|error| Error::Spawn { program: waiting.program.clone(), source: error.into() })?;
            if status.is_some_and(|(_, status)| status.stopped()) {
                return Ok(waiting);
            }
            interrupt::check()?;
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resumes the process, which then becomes the command.
    ///
    /// # Errors
    /// The process no longer exists.
    pub fn resume(&self) -> Result<()> {
        kill_process(self.pid(), Signal::CONT)
            .map_err(|error| Error::Spawn { program: self.program.clone(), source: error.into() })
    }

    /// Returns the exit status if the command has ended.
    ///
    /// # Errors
    /// The status cannot be read.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|source| Error::Spawn { program: self.program.clone(), source })
    }

    /// Sends SIGTERM to the command and waits for its end; kills it after three seconds.
    pub fn terminate(&mut self) {
        let _ = kill_process(self.pid(), Signal::TERM);
        let _ = kill_process(self.pid(), Signal::CONT);
        for _ in 0..300 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for StoppedCommand {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
