//! Running another program: its own process group, killed with us, output line by line.

use crate::{interrupt, Error, Result};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How a job ended.
#[derive(Debug)]
pub enum JobEnd {
    /// By itself.
    Exited(ExitStatus),
    /// By us, when its time was up.
    TimedOut,
    /// By us, because the line watcher said so.
    Stopped,
}

impl JobEnd {
    /// Whether it ended by itself with status 0.
    pub fn success(&self) -> bool {
        matches!(self, JobEnd::Exited(status) if status.success())
    }
}

/// A program to run.
pub struct Job {
    command: Command,
    name: String,
    time_limit: Option<Duration>,
}

impl Job {
    /// Wraps a command. Output and error output are both read by us, merged in arrival order.
    pub fn new(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // SIGTERM and not SIGKILL: make then ends its own children and removes half-made targets.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        Self { command, name, time_limit: None }
    }

    /// Gives the program an input; it has none otherwise.
    pub fn stdin(mut self, input: Stdio) -> Self {
        self.command.stdin(input);
        self
    }

    /// Ends the program after so much wall time.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Runs to the end. `line` sees each line of output (without its newline, invalid UTF-8
    /// replaced) and returns false to stop the program. `tick` is called at least every 200 ms.
    pub fn run(
        mut self,
        mut line: impl FnMut(&str) -> bool,
        mut tick: impl FnMut() -> bool,
    ) -> Result<JobEnd> {
        let mut child =
            self.command.spawn().map_err(|source| Error::Spawn { program: self.name.clone(), source })?;
        let started = Instant::now();
        let (tx, rx) = mpsc::sync_channel::<String>(1024);
        let readers = [
            child.stdout.take().map(|s| Box::new(s) as Box<dyn std::io::Read + Send>),
            child.stderr.take().map(|s| Box::new(s) as Box<dyn std::io::Read + Send>),
        ];
        for stream in readers.into_iter().flatten() {
            let tx = tx.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut raw = Vec::new();
                while reader.read_until(b'\n', &mut raw).is_ok_and(|n| n > 0) {
                    let text = String::from_utf8_lossy(&raw).trim_end_matches(['\r', '\n']).to_string();
                    if tx.send(text).is_err() {
                        break;
                    }
                    raw.clear();
                }
            });
        }
        drop(tx);
        let mut open = true;
        loop {
            if interrupt::is_set() {
                end(&mut child);
                return Err(Error::Interrupted);
            }
            if self.time_limit.is_some_and(|limit| started.elapsed() > limit) {
                end(&mut child);
                return Ok(JobEnd::TimedOut);
            }
            let wanted = if open {
                match rx.recv_timeout(Duration::from_millis(200)) {
                    Ok(text) => line(&text),
                    Err(RecvTimeoutError::Timeout) => tick(),
                    Err(RecvTimeoutError::Disconnected) => {
                        open = false;
                        true
                    }
                }
            } else {
                std::thread::sleep(Duration::from_millis(5));
                tick()
            };
            if !wanted {
                end(&mut child);
                return Ok(JobEnd::Stopped);
            }
            if let Ok(Some(status)) = child.try_wait() {
                while let Ok(text) = rx.recv_timeout(Duration::from_millis(50)) {
                    line(&text);
                }
                return Ok(JobEnd::Exited(status));
            }
        }
    }

    /// Runs and returns the output lines; for short programs.
    pub fn output(self) -> Result<(JobEnd, String)> {
        let mut all = String::new();
        let end = self.run(
            |text| {
                all.push_str(text);
                all.push('\n');
                true
            },
            || true,
        )?;
        Ok((end, all))
    }
}

/// Ends the whole process group: first asked, then made to.
fn end(child: &mut Child) {
    let group = -(child.id() as i32);
    // SAFETY: kill(2) on the process group that we made for this child.
    unsafe { libc::kill(group, libc::SIGTERM) };
    let asked = Instant::now();
    while asked.elapsed() < Duration::from_secs(3) {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: as above.
    unsafe { libc::kill(group, libc::SIGKILL) };
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_arrive_and_status_is_kept() {
        let mut lines = Vec::new();
        let end = Job::new(shell("echo one; echo two >&2; exit 3"))
            .run(
                |l| {
                    lines.push(l.to_string());
                    true
                },
                || true,
            )
            .unwrap();
        lines.sort();
        assert_eq!(lines, ["one", "two"]);
        assert!(matches!(end, JobEnd::Exited(s) if s.code() == Some(3)));
    }

    #[test]
    fn a_time_limit_ends_the_whole_group() {
        let end = Job::new(shell("sleep 60 & sleep 60"))
            .time_limit(Duration::from_millis(300))
            .run(|_| true, || true)
            .unwrap();
        assert!(matches!(end, JobEnd::TimedOut));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Job::new(Command::new("/nonexistent/tool")).output().unwrap_err();
        assert!(error.to_string().contains("/nonexistent/tool"));
    }
}
