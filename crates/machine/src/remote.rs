//! Runs a workload on another machine, under a kernel that was booted there: like [`Host`](crate::Host), over a
//! connection.

use crate::host::{boots_nothing, died, PROBE_MB};
use crate::request::RunRequest;
use crate::users::UserIdMap;
use crate::watch::{RunLimits, WatchedRun};
use crate::{process, Error, Machine, Result, RunOutcome};
use kerntune_guest::boot_options;
use kerntune_kernel::Kernel;
use kerntune_work::{ContentHash, IoContext, Job, JobEnd, Progress};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time in which a file reaches the other machine.
const SEND_LIMIT: Duration = Duration::from_secs(1800);

/// Connection to another machine, with the rights of root there.
pub trait RemoteSystem: std::fmt::Debug + Send + Sync {
    /// Returns the machine's name, for messages.
    fn name(&self) -> &str;

    /// Returns the command that runs `text` in the machine's POSIX shell. It passes standard input,
    /// output and errors through, and ends with the shell's status.
    fn shell(&self, text: &str) -> Command;

    /// Checks whether `status` is the command's own, because the connection failed.
    fn is_lost(&self, status: i32) -> bool;

    /// Boots the machine with a kernel, unless that kernel runs already.
    ///
    /// # Errors
    /// A kernel that is not deployed there; a machine that does not come back.
    fn boot(&self, kernel: &Kernel, progress: &dyn Progress) -> Result<()>;
}

/// Another machine as a machine of this crate: it times kernels.
#[derive(Debug)]
pub struct RemoteHost {
    /// Connection to the machine.
    pub system: Box<dyn RemoteSystem>,
    /// Directory there for the program and the images; a path of letters, digits, `-`, `.`, `_` and
    /// `/`.
    pub directory: String,
    /// Path here of the program that isolates a workload
    /// ([`compile_contain`](kerntune_guest::compile_contain)).
    pub program: PathBuf,
}

impl RemoteHost {
    /// Sends a file unless it is there, under a name made of its content; returns its path there.
    fn send(&self, file: &Path, mode: &str) -> Result<String> {
        let hash = ContentHash::new("remote-file/1").file("content", file)?.finish();
        let path = format!("{}/{hash}", self.directory);
        if self.ends(&format!("[ -f {path} ]"), None)? == Some(0) {
            return Ok(path);
        }
        let size = file.metadata().at("look at", file)?.len();
        let text = format!(
            "mkdir -p -m 700 {0} && cat >{path}.new && [ \"$(wc -c <{path}.new)\" = {size} ] && chmod {mode} {path}.new && \
             sync {path}.new && mv {path}.new {path} && sync {0}",
            self.directory
        );
        match self.ends(&text, Some(file))? {
            Some(0) => Ok(path),
            _ => {
                let what = format!("{} did not reach {}:{path}", file.display(), self.system.name());
                Err(Error::Remote { host: self.system.name().into(), what })
            }
        }
    }

    /// Runs a text of the shell there; returns its status.
    fn ends(&self, text: &str, input: Option<&Path>) -> Result<Option<i32>> {
        let mut job = Job::new(self.system.shell(text)).time_limit(SEND_LIMIT);
        if let Some(path) = input {
            job = job.stdin(File::open(path).at("open", path)?.into());
        }
        let (end, output) = job.output()?;
        let lost = |what: String| Error::Remote { host: self.system.name().into(), what };
        match end {
            JobEnd::Exited(status) if status.code().is_some_and(|code| self.system.is_lost(code)) => {
                Err(lost(format!("the connection failed: {}", output.trim())))
            }
            JobEnd::Exited(status) => Ok(status.code()),
            JobEnd::TimedOut | JobEnd::Stopped => {
                Err(lost(format!("it did not answer within {} s", SEND_LIMIT.as_secs())))
            }
        }
    }

    /// Tries whether a workload can be isolated on the other machine under the kernel that runs there.
    ///
    /// # Errors
    /// [`Error::NotContained`] with what that kernel lacks; a machine that cannot be reached.
    pub fn can_contain(&self) -> Result<()> {
        let program = self.send(&self.program, "700")?;
        let users = UserIdMap::of_root().argument();
        // An input that ends, as that of `ssh` does, ends the program.
        let text = format!("exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin {program} {users} {PROBE_MB} probe </dev/null 2>&1");
        let (end, output) = Job::new(self.system.shell(&text)).time_limit(SEND_LIMIT).output()?;
        match end.success() {
            true => Ok(()),
            false => {
                Err(Error::NotContained { message: format!("{}: {}", self.system.name(), output.trim()) })
            }
        }
    }

    /// Removes what runs left on the other machine.
    ///
    /// # Errors
    /// A machine that cannot be reached, or that keeps the files.
    pub fn clean(&self) -> Result<()> {
        match self.ends(&format!("rm -rf {}", self.directory), None)? {
            Some(0) => Ok(()),
            _ => {
                let what = format!("{} could not be removed", self.directory);
                Err(Error::Remote { host: self.system.name().into(), what })
            }
        }
    }
}

impl Machine for RemoteHost {
    fn name(&self) -> &'static str {
        "remote"
    }

    /// Results are never reused, so the machine does not matter.
    fn identity(&self) -> Result<String> {
        Ok(ContentHash::new("remote/1").finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        boots_nothing(request)?;
        let kernel = request.kernel()?;
        let directory = directory.canonicalize().at("open", directory)?;
        self.system.boot(kernel, progress)?;
        let program = self.send(&self.program, "700")?;
        let image = self.send(request.initramfs, "600")?;
        let memory_mb = request.demands.memory_mb;
        let options = boot_options(request.run, request.collect, 1);
        // Results go out where the program finds its socket, lines on the other stream.
        let text = format!(
            "echo \"Linux version $(uname -r) $(uname -v)\" >&2; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin {program} {} {memory_mb} {image} {options} 0>&1 1>&2",
            UserIdMap::of_root().argument()
        );
        let what = format!("{} on {}", request.run, self.system.name());
        let limits = RunLimits { what, ..request.limits() };
        let command = swapped(&self.system.shell(&text));
        let died = |end: &JobEnd, watched: &WatchedRun| match end {
            JobEnd::Exited(status) if status.code().is_some_and(|code| self.system.is_lost(code)) => {
                let tail = watched.console.tail();
                let what = format!("the connection was lost during the run: {}", tail.lines.join("; "));
                Some(Error::Remote { host: self.system.name().into(), what })
            }
            end => died(end, watched),
        };
        process::run(command, &limits, &directory, memory_mb, progress, &|| None, died)
    }
}

/// Returns the command with its standard output on descriptor 0, a socket, and its errors on
/// standard output.
fn swapped(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 3>&1 1>&0 2>&3 3>&-"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_program::kernel;
    use kerntune_guest::{compile_contain, GuestImage, Workload};
    use kerntune_kernel::Arch;
    use kerntune_work::{NoProgress, WorkDir};
    use std::fs;

    /// This machine, as if it were another one.
    #[derive(Debug)]
    struct Loopback(Option<i32>);

    impl RemoteSystem for Loopback {
        fn name(&self) -> &str {
            "loopback"
        }
        fn shell(&self, text: &str) -> Command {
            let mut command = Command::new("sh");
            match self.0 {
                None => command.args(["-c", text]),
                Some(status) => command.args(["-c", &format!("echo no route >&2; exit {status}")]),
            };
            command
        }
        fn is_lost(&self, status: i32) -> bool {
            status == 255
        }
        fn boot(&self, _: &Kernel, _: &dyn Progress) -> Result<()> {
            Ok(())
        }
    }

    fn remote(dir: &Path, system: Loopback) -> (RemoteHost, PathBuf) {
        let work = WorkDir::open(dir.join("work")).unwrap();
        let text = "[[training.step]]\nregion = \"r\"\ncommand = [\"rr\", \"--only\", \"getpid\"]\n\
                    [[measured.step]]\nregion = \"r\"\noperations = 1\ncommand = [\"rr\", \"--only\", \"getpid\"]\n";
        let workload = Workload { times: true, ..Workload::parse(text, Path::new("x.toml")).unwrap() };
        let image = GuestImage::build(&work, &workload, &NoProgress).unwrap().initramfs;
        let directory = dir.join("there").display().to_string();
        let program = compile_contain(&work).unwrap();
        (RemoteHost { system: Box::new(system), directory, program }, image)
    }

    #[test]
    fn results_come_back_and_nothing_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (host, image) = remote(dir.path(), Loopback(None));
        if crate::can_contain(&host.program).is_err() || fs::read("/proc/1/environ").is_err() {
            return;
        }
        host.can_contain().unwrap();
        let kernel = kernel(Arch::X86_64);
        let request = RunRequest::new(&kernel, &image, "measured");
        for run in ["one", "two"] {
            let to = dir.path().join(run);
            fs::create_dir(&to).unwrap();
            let outcome = host.run(&request, &to, &NoProgress).unwrap();
            let times = fs::read_to_string(outcome.guest_files.join("times")).unwrap();
            assert!(times.starts_with("{\"row\":\"r\",\"operations\":1,"), "{times}");
        }
        assert_eq!(fs::read_dir(dir.path().join("there")).unwrap().count(), 2);
        host.clean().unwrap();
        assert!(!dir.path().join("there").exists());
    }

    #[test]
    fn a_machine_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (host, image) = remote(dir.path(), Loopback(Some(255)));
        let kernel = kernel(Arch::X86_64);
        let request = RunRequest::new(&kernel, &image, "measured");
        let error = host.run(&request, dir.path(), &NoProgress).unwrap_err().to_string();
        assert!(error.contains("loopback") && error.contains("no route"), "{error}");
    }
}
