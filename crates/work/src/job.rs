//! Child processes: in a process group of their own, killed with the parent, output read line by
//! line.

use crate::{interrupt, Error, Result};
use rustix::process::{
    kill_process_group, set_parent_process_death_signal, test_kill_process_group, Pid, Signal,
};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// End of a child process.
#[derive(Debug)]
pub enum JobEnd {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It was killed when its time was up.
    TimedOut,
    /// It was killed because the line callback returned false.
    Stopped,
}

impl JobEnd {
    /// Returns whether it ended by itself with status 0.
    pub fn success(&self) -> bool {
        matches!(self, JobEnd::Exited(status) if status.success())
    }
}

/// Maximum time that the output of an ended program may stay open and silent. Longer is an error,
/// since a process that the program started holds it and may still write.
const GRACE: Duration = Duration::from_secs(60);

/// Maximum length of a line, in bytes; longer ones are passed on in parts, so output cannot exhaust
/// memory.
const LINE_MAX: u64 = 1 << 20;

/// A program to run.
pub struct Job {
    command: Command,
    name: String,
    time_limit: Option<Duration>,
    grace: Duration,
}

impl Job {
    /// Wraps a command. Standard output and standard error are both read, merged in order of
    /// arrival.
    #[expect(unsafe_code, reason = "what is done between fork and exec is promised to be signal-safe")]
    pub fn new(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        // SIGTERM, not SIGKILL: make then ends its own children and removes half-made targets.
        let ends_with_us = || Ok(set_parent_process_death_signal(Some(Signal::TERM))?);
        // SAFETY: one system call, which allocates nothing and takes no lock.
        unsafe { command.pre_exec(ends_with_us) };
        Self { command, name, time_limit: None, grace: GRACE }
    }

    /// Sets the program's input, which is empty by default.
    pub fn stdin(mut self, input: Stdio) -> Self {
        self.command.stdin(input);
        self
    }

    /// Sets a limit of wall time after which the program is killed.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Runs until the program has ended and both outputs are closed, as `$(…)` in a shell does.
    /// `line` gets each line of output (without its newline, invalid UTF-8 replaced, a longer one
    /// in parts of `LINE_MAX` bytes) and returns false to stop the program. `tick` is called at
    /// least every 200 ms.
    ///
    /// # Errors
    /// A program that cannot be started; an interrupt; an output that stays open after the
    /// program's end, see `GRACE`.
    pub fn run(self, mut line: impl FnMut(&str) -> bool, tick: impl FnMut() -> bool) -> Result<JobEnd> {
        self.watch(|_, text| line(text), tick)
    }

    /// Runs as [`run`](Self::run) does; `line` also gets the output that the line comes from.
    fn watch(
        mut self,
        mut line: impl FnMut(ChildOutput, &str) -> bool,
        mut tick: impl FnMut() -> bool,
    ) -> Result<JobEnd> {
        let mut child =
            self.command.spawn().map_err(|source| Error::Spawn { program: self.name.clone(), source })?;
        let started = Instant::now();
        let (tx, rx) = mpsc::sync_channel(1024);
        let readers = [
            child.stdout.take().map(|s| (ChildOutput::Output, Box::new(s) as Box<dyn Read + Send>)),
            child.stderr.take().map(|s| (ChildOutput::Errors, Box::new(s) as Box<dyn Read + Send>)),
        ];
        for (stream, reader) in readers.into_iter().flatten() {
            let tx = tx.clone();
            std::thread::spawn(move || send_lines(stream, reader, &tx));
        }
        drop(tx);
        let (mut open, mut exited, mut heard) = (true, None, started);
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
                    Ok(Ok((stream, text))) => {
                        heard = Instant::now();
                        line(stream, &text)
                    }
                    Ok(Err(source)) => {
                        end(&mut child);
                        return Err(self.unread(source));
                    }
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
            if exited.is_none() {
                exited = match child.try_wait() {
                    Ok(status) => status,
                    // Without this, a caller that ignores SIGCHLD would wait forever.
                    Err(source) => {
                        end(&mut child);
                        return Err(self.unread(source));
                    }
                };
                if exited.is_some() {
                    heard = Instant::now();
                }
            }
            match exited {
                Some(status) if !open => return Ok(JobEnd::Exited(status)),
                _ if !wanted => {
                    end(&mut child);
                    return Ok(exited.map_or(JobEnd::Stopped, JobEnd::Exited));
                }
                Some(_) if heard.elapsed() > self.grace => {
                    end(&mut child);
                    let reason = format!(
                        "it ended, but a program that it started kept its output open for {} s and wrote nothing; try again, and \
                         look with `ps` for what it left running",
                        self.grace.as_secs()
                    );
                    return Err(self.unread(io::Error::other(reason)));
                }
                _ => {}
            }
        }
    }

    fn unread(&self, source: io::Error) -> Error {
        Error::Io { action: "read all output of", path: self.name.clone().into(), source }
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

    /// Runs and returns standard output and standard error separately; for short programs.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn outputs(self) -> Result<(JobEnd, [String; 2])> {
        let mut all = [String::new(), String::new()];
        let end = self.watch(
            |stream, text| {
                let to = &mut all[stream as usize];
                to.push_str(text);
                to.push('\n');
                true
            },
            || true,
        )?;
        Ok((end, all))
    }
}

/// One of the two outputs of a program.
#[derive(Debug, Clone, Copy)]
enum ChildOutput {
    Output,
    Errors,
}

/// Sends each line until the stream ends or the receiver is gone.
fn send_lines(stream: ChildOutput, reader: impl Read, to: &SyncSender<io::Result<(ChildOutput, String)>>) {
    let mut reader = BufReader::new(reader);
    let mut raw = Vec::new();
    loop {
        raw.clear();
        let read = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut raw);
        let item = match read {
            Ok(0) => return,
            Ok(_) => Ok((stream, String::from_utf8_lossy(&raw).trim_end_matches(['\r', '\n']).to_string())),
            Err(error) => Err(error),
        };
        let last = item.is_err();
        if to.send(item).is_err() || last {
            return;
        }
    }
}

/// Ends the whole process group, whose first process may be gone: SIGTERM, then SIGKILL.
fn end(child: &mut Child) {
    // The process group that we made for this child. Its number is not reused as long as a process
    // is in the group, or the child has not been waited for.
    let group = Pid::from_child(child);
    let asked = Instant::now();
    let mut left = kill_process_group(group, Signal::TERM).is_ok();
    while left && asked.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(20));
        let _ = child.try_wait();
        left = test_kill_process_group(group).is_ok();
    }
    if left {
        let _ = kill_process_group(group, Signal::KILL);
    }
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
    fn outputs_are_kept_apart() {
        let (end, [output, errors]) =
            Job::new(shell("echo one; echo two >&2; echo three")).outputs().unwrap();
        assert!(end.success());
        assert_eq!((output.as_str(), errors.as_str()), ("one\nthree\n", "two\n"));
    }

    /// Runs a job; returns its lines and its end.
    fn watched(job: Job) -> (Result<JobEnd>, Vec<String>) {
        let mut lines = Vec::new();
        let end = job.run(
            |line| {
                lines.push(line.to_string());
                true
            },
            || true,
        );
        (end, lines)
    }

    /// Returns whether a process runs; zombies do not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    }

    /// Returns whether a process is gone, or soon is: the kernel takes a moment to end a killed
    /// one.
    fn ends(pid: &str) -> bool {
        (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            !runs(pid)
        })
    }

    #[test]
    fn a_time_limit_ends_the_whole_group() {
        // The second one ignores SIGTERM, and the shell ends before it.
        let script = "sleep 60 & echo $!; (trap '' TERM; exec sleep 60) & echo $!; exec sleep 60";
        let (end, pids) = watched(Job::new(shell(script)).time_limit(Duration::from_millis(300)));
        assert!(matches!(end, Ok(JobEnd::TimedOut)));
        assert_eq!(pids.len(), 2, "{pids:?}");
        assert!(pids.iter().all(|pid| ends(pid)), "{pids:?}");
    }

    #[test]
    fn output_after_a_silence_and_after_the_program_ended_is_read() {
        let script = "echo first; (sleep 0.4; seq 1 120) & exit 0";
        let (end, lines) = watched(Job::new(shell(script)));
        assert!(end.unwrap().success());
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (121, Some("120")));
    }

    #[test]
    fn an_output_that_stays_open_is_an_error_and_its_holder_is_ended() {
        let mut job = Job::new(shell("sleep 60 & echo $!"));
        job.grace = Duration::from_millis(300);
        let (end, pids) = watched(job);
        let error = end.unwrap_err().to_string();
        assert!(error.contains("all output of sh: it ended, but a program that it started kept"), "{error}");
        assert!(ends(&pids[0]), "{pids:?}");
    }

    #[test]
    fn a_time_limit_holds_for_what_outlives_the_program() {
        let job = Job::new(shell("sleep 60 & exit 0")).time_limit(Duration::from_millis(300));
        assert!(matches!(watched(job).0, Ok(JobEnd::TimedOut)));
    }

    #[test]
    fn a_line_without_an_end_comes_in_parts() {
        let (end, lines) = watched(Job::new(shell("head -c 3000000 /dev/zero | tr '\\0' x")));
        assert!(end.unwrap().success());
        assert_eq!(
            lines.iter().map(String::len).collect::<Vec<_>>(),
            [1 << 20, 1 << 20, 3_000_000 - (2 << 20)]
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Job::new(Command::new("/nonexistent/tool")).output().unwrap_err();
        assert!(error.to_string().contains("/nonexistent/tool"));
    }
}
