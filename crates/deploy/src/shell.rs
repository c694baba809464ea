//! Shells that carry out commands on a machine: this one's, or another's over SSH. Start from
//! [`Shell`].

use crate::{Error, Result};
use kerntune_work::{IoContext, Job, JobEnd};
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit of the commands of one script.
const LIMIT: Duration = Duration::from_secs(1800);
/// Status of `ssh` if the connection fails.
const SSH_FAILED: i32 = 255;

/// Commands of a shell that together make one step.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The step, for people, as an infinitive: `write the kernel`.
    pub what: String,
    /// Commands; each runs if the ones before it succeeded.
    pub commands: Vec<String>,
    /// Standard input of the commands.
    pub input: ScriptInput,
}

/// Input of a [`Script`].
#[derive(Debug, Clone, Default)]
pub enum ScriptInput {
    /// None.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The content of a file of this machine.
    File(PathBuf),
}

impl Script {
    /// Makes a script without input.
    pub fn new(what: impl Into<String>, commands: impl IntoIterator<Item = String>) -> Self {
        Self { what: what.into(), commands: commands.into_iter().collect(), input: ScriptInput::Empty }
    }

    /// Returns the text for `sh -c`.
    pub fn text(&self) -> String {
        let braced: Vec<String> = self.commands.iter().map(|command| format!("{{ {command}\n}}")).collect();
        braced.join(" &&\n")
    }
}

impl ScriptInput {
    fn open(&self) -> Result<Stdio> {
        let path = match self {
            Self::Empty => return Ok(Stdio::null()),
            Self::File(path) => path,
            Self::Bytes(bytes) => {
                let here = PathBuf::from("a temporary file");
                let mut file = tempfile::tempfile().at("make", &here)?;
                file.write_all(bytes).at("write", &here)?;
                std::io::Seek::rewind(&mut file).at("read", &here)?;
                return Ok(file.into());
            }
        };
        Ok(std::fs::File::open(path).at("open", path)?.into())
    }
}

/// End of a [`Script`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptResult {
    /// Exit status of the last command that ran; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output; invalid UTF-8 is replaced.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

/// A machine's shell, with the rights of root.
pub trait Shell: fmt::Debug {
    /// Returns the name of the machine, for messages.
    fn host(&self) -> &str;

    /// Runs a script.
    ///
    /// # Errors
    /// The shell cannot be started or reached. A command that fails is no error.
    fn run(&self, script: &Script) -> Result<ScriptResult>;
}

/// The shell of this machine.
#[derive(Debug, Default)]
pub struct LocalShell {
    /// Directory in front of `PATH`, for tests.
    pub programs: Option<PathBuf>,
}

impl Shell for LocalShell {
    fn host(&self) -> &str {
        "this machine"
    }

    fn run(&self, script: &Script) -> Result<ScriptResult> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script.text()).env("LC_ALL", "C");
        let path = std::env::var("PATH").unwrap_or_default();
        let system = format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin");
        command.env(
            "PATH",
            self.programs
                .as_ref()
                .map_or(system.clone(), |programs| format!("{}:{system}", programs.display())),
        );
        ended(command, script, self.host())
    }
}

/// The shell of another machine, over `ssh`, which asks no questions.
#[derive(Debug)]
pub struct SshShell {
    host: String,
    options: Vec<String>,
}

impl SshShell {
    /// Makes the shell of `host`, as `ssh` names it; `options` are values of `ssh -o`.
    ///
    /// # Errors
    /// A name that `ssh` would take for an option or that has blanks.
    pub fn new(host: &str, options: &[String]) -> Result<Self> {
        if host.is_empty()
            || host.starts_with('-')
            || host.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(Error::Usage(format!(
                "--host: `{}` is not the name of a machine",
                host.escape_debug()
            )));
        }
        Ok(Self { host: host.into(), options: options.to_vec() })
    }

    /// Returns the command that runs a text in the machine's POSIX shell, as root.
    pub fn command(&self, text: &str) -> Command {
        let mut command = Command::new("ssh");
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=20",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=6",
            "LogLevel=ERROR",
        ] {
            command.arg("-o").arg(option);
        }
        for option in &self.options {
            command.arg("-o").arg(option);
        }
        let text = format!(
            "export LC_ALL=C PATH=\"$PATH:/usr/sbin:/sbin\"\nif [ \"$(id -u)\" = 0 ]; then exec sh -c {0}; else exec sudo -n sh -c {0}; fi",
            quoted(text)
        );
        command.arg("--").arg(&self.host).arg(format!("exec sh -c {}", quoted(&text)));
        command
    }

    /// Checks whether this is the status of `ssh` because the connection failed.
    pub fn is_lost(status: i32) -> bool {
        status == SSH_FAILED
    }
}

impl Shell for SshShell {
    fn host(&self) -> &str {
        &self.host
    }

    fn run(&self, script: &Script) -> Result<ScriptResult> {
        let result = ended(self.command(&script.text()), script, &self.host)?;
        if result.status == Some(SSH_FAILED) {
            let reason = last_line(&result.errors);
            return Err(Error::Unreachable { host: self.host.clone(), reason });
        }
        Ok(result)
    }
}

fn ended(command: Command, script: &Script, host: &str) -> Result<ScriptResult> {
    let job = Job::new(command).stdin(script.input.open()?).time_limit(LIMIT);
    let (end, [output, errors]) = job.outputs()?;
    match end {
        JobEnd::Exited(status) => Ok(ScriptResult { status: status.code(), output, errors }),
        JobEnd::TimedOut | JobEnd::Stopped => Err(Error::Step {
            host: host.into(),
            what: script.what.clone(),
            reason: format!("it took longer than {} s", LIMIT.as_secs()),
        }),
    }
}

/// Returns the last line of a program's errors, which has its reason.
pub(crate) fn last_line(errors: &str) -> String {
    let line = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
    line.trim().to_string()
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_after_a_failed_one_do_not_run() {
        let script = Script::new("try", ["cat; echo a".into(), "false".into(), "echo b".into()]);
        let script = Script { input: ScriptInput::Bytes(b"in\n".to_vec()), ..script };
        let result = LocalShell::default().run(&script).unwrap();
        assert_eq!((result.status, result.output.as_str()), (Some(1), "in\na\n"));
    }

    #[test]
    fn words_pass_through_two_shells() {
        let word = "a'b $(reboot) `x` \"\\\n;";
        let script =
            Script::new("try", [format!("exec sh -c {}", quoted(&format!("printf %s {}", quoted(word))))]);
        let result = LocalShell::default().run(&script).unwrap();
        assert_eq!(result.output.trim_end(), word);
    }

    #[test]
    fn options_are_no_hosts() {
        for host in ["", "-oProxyCommand=x", "a b", "a\nb"] {
            assert!(SshShell::new(host, &[]).is_err(), "{host:?}");
        }
    }
}
