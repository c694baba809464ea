//! A command that is started when it is told to.

use crate::{Error, Result};
use kerntune_work::interrupt;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A process that has not yet become the command.
#[derive(Debug)]
pub struct Waiting {
    child: Child,
    program: String,
}

/// Stops itself, and becomes the command when it is told to go on.
const SHELL: &str = "kill -STOP $$; exec \"$@\"";

impl Waiting {
    /// Makes the process, with the terminal and the files of this one but for its standard output, which is `stdout`.
    ///
    /// # Errors
    /// A command that is not there; an interrupt.
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

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it become the command.
    ///
    /// # Errors
    /// It is gone.
    pub fn go(&self) -> Result<()> {
        kill_process(self.pid(), Signal::CONT)
            .map_err(|error| Error::Spawn { program: self.program.clone(), source: error.into() })
    }

    /// Whether it has ended, and how.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|source| Error::Spawn { program: self.program.clone(), source })
    }

    /// Passes an interrupt on, and waits for the end.
    pub fn end(&mut self) {
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

impl Drop for Waiting {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
