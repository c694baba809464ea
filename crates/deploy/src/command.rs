//! The command `kerntune deploy`.

use crate::deployment::{DeployOptions, Deployment, DeploymentState, DeploymentStatus};
use crate::shell::{LocalShell, Script, Shell, SshShell};
use crate::source::KernelFiles;
use crate::{Error, Result};
use clap::Args;
use kerntune_command::{
    bytes, check_input, command, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions,
    GlobalOptions, RunSubcommand,
};
use kerntune_work::interrupt;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Entry of the command.
pub const COMMAND: CommandEntry = command::<DeployCommand>("deploy", 127, "Tune");

/// Schema of the output of `--json`.
const SCHEMA: &str = "kerntune-deploy/1";
/// Schema of the output of `--dry-run --json`.
const STEPS_SCHEMA: &str = "kerntune-deploy-steps/1";

/// Install a kernel beside the one of a machine, start it once, confirm it after a health check, or take it
/// back (docs/deploy.md)
#[derive(Debug, Args)]
pub struct DeployCommand {
    /// The kernel: a label or the beginning of an id, or Debian packages that together have one kernel
    #[arg(required_unless_present_any = ["status", "confirm", "rollback"])]
    pub kernel: Vec<String>,
    /// Deploy on this machine over SSH, which must ask no questions [default: the machine that kerntune
    /// runs on]
    #[arg(long, value_name = "USER@MACHINE")]
    pub host: Option<String>,
    /// Give ssh this option, as in `ssh -o`; may be repeated
    #[arg(long, value_name = "OPTION", requires = "host")]
    pub ssh_option: Vec<String>,
    /// Confirm the kernel when this shell command succeeds on the machine
    #[arg(long, value_name = "COMMAND", requires = "kernel")]
    pub check: Option<String>,
    /// Time to start and to pass the check, in seconds; after it the old kernel is started
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "kernel", value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub check_within: u32,
    /// Time without a sign of life after which the watchdog restarts the machine, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "kernel", value_parser = clap::value_parser!(u32).range(10..=3600))]
    pub watchdog: u32,
    /// Add these words to the new kernel's command line
    #[arg(long, value_name = "WORDS", requires = "kernel", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Do not restart the machine
    #[arg(long)]
    pub no_restart: bool,
    /// Time to wait for a machine that was restarted, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub wait: u32,
    /// Show the state of the deployment
    #[arg(long, group = "action", conflicts_with = "kernel")]
    pub status: bool,
    /// Make the deployed kernel, which must be running, the default
    #[arg(long, group = "action", conflicts_with = "kernel")]
    pub confirm: bool,
    /// Make the old kernel the default again, and remove everything
    #[arg(long, group = "action", conflicts_with = "kernel")]
    pub rollback: bool,
    /// Print the steps; change nothing
    #[arg(long, conflicts_with_all = ["status", "confirm"])]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// State of a machine in the output of `--json`.
#[derive(Serialize)]
struct StatusJson<'a> {
    schema: &'static str,
    host: &'a str,
    state: DeploymentState,
    kernel: Option<&'a str>,
    id: Option<&'a str>,
    watchdog: Option<&'a str>,
    outcome: &'a str,
    running: &'a str,
    runs_new: bool,
}

/// Steps of a dry run in the output of `--json`.
#[derive(Serialize)]
struct StepsJson<'a> {
    schema: &'static str,
    host: &'a str,
    steps: Vec<StepJson<'a>>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    what: &'a str,
    commands: &'a [String],
}

impl RunSubcommand<GlobalOptions> for DeployCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let shell: Box<dyn Shell> = match &self.host {
            Some(host) => Box::new(SshShell::new(host, &self.ssh_option)?),
            None => Box::new(LocalShell::default()),
        };
        let deployment = Deployment::new(&*shell, "");
        let on = OnMachine { options: self, deployment, host: shell.host(), output };
        if self.status {
            return Ok(on.show(&on.deployment.status()?));
        }
        if self.confirm {
            on.deployment.confirm()?;
            return Ok(on.show(&on.deployment.status()?));
        }
        if self.rollback {
            return Ok(on.roll_back()?);
        }
        let kernel = KernelFiles::unpack(&self.packages(global, output)?)?;
        Ok(on.deploy(&kernel)?)
    }
}

impl DeployCommand {
    /// Returns the packages of the kernel; makes that of a kernel of the work directory.
    fn packages(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Vec<PathBuf>, Failure> {
        let is_package = |name: &String| Path::new(name).extension().is_some_and(|end| end == "deb");
        if self.kernel.iter().all(is_package) {
            let packages: Vec<PathBuf> = self.kernel.iter().map(PathBuf::from).collect();
            for package in &packages {
                check_input("KERNEL", package)?;
            }
            return Ok(packages);
        }
        let [name] = &self.kernel[..] else {
            return Err(Failure::usage(
                "KERNEL: give one kernel of the work directory, or packages (*.deb) only",
            ));
        };
        let work = work_to_read(global)?;
        let kernel = kerntune_kernel::find(&work, name)?;
        let package = kerntune_tune::package::package(&work, &kernel, output.progress())?;
        Ok(vec![package.file()])
    }
}

/// The command on one machine.
struct OnMachine<'a> {
    options: &'a DeployCommand,
    deployment: Deployment<'a>,
    host: &'a str,
    output: &'a CliOutput,
}

impl OnMachine<'_> {
    fn deploy(&self, kernel: &KernelFiles) -> Result<Exit> {
        let words = self.options.append.as_deref().unwrap_or_default();
        let options = DeployOptions {
            check: self.options.check.clone(),
            within_seconds: self.options.check_within,
            watchdog_seconds: self.options.watchdog,
            append: words.split_whitespace().map(String::from).collect(),
        };
        let steps = self.deployment.steps(kernel, &options)?;
        if self.options.dry_run {
            return Ok(self.show_steps(&steps.scripts));
        }
        self.output.note(&match &steps.watchdog {
            Some(found) if found.driver == "softdog" => {
                "watchdog: softdog, a timer of the kernel: it ends a hang of \
                 programs, and not one of the whole kernel"
                    .to_string()
            }
            Some(found) => format!("watchdog: {}", found.driver),
            None => "watchdog: none that the new kernel could use: a kernel that hangs without a panic stays"
                .to_string(),
        });
        self.output.note(&format!("restarts by itself: {}", steps.guards.join(" ")));
        self.carry_out(&steps.scripts)?;
        if self.options.no_restart || self.options.host.is_none() {
            self.output.note("the next start of the machine is the new kernel, once: `systemctl reboot`");
            return Ok(self.show(&self.deployment.status()?));
        }
        let status = self.restart()?;
        self.show(&status);
        Ok(match status.state {
            DeploymentState::Confirmed => Exit::Ok,
            DeploymentState::Trying if self.options.check.is_none() => Exit::Ok,
            _ => Exit::Guest,
        })
    }

    fn roll_back(&self) -> Result<Exit> {
        let steps = self.deployment.rollback()?;
        if self.options.dry_run {
            return Ok(self.show_steps(&[&steps.disarm[..], &steps.remove].concat()));
        }
        self.carry_out(&steps.disarm)?;
        if steps.runs_new {
            if self.options.no_restart || self.options.host.is_none() {
                self.output.note(
                    "the new kernel still runs, and the next start is the old one: restart the machine, and give \
                     this command again to remove the files",
                );
                return Ok(Exit::Findings);
            }
            self.restart()?;
            let again = self.deployment.rollback()?;
            if again.runs_new {
                let host = self.host.into();
                let reason = "it started the new kernel again; look at its boot loader".into();
                return Err(Error::Unsafe { host, reason });
            }
        }
        self.carry_out(&steps.remove)?;
        self.show(&self.deployment.status()?);
        Ok(Exit::Ok)
    }

    fn carry_out(&self, scripts: &[Script]) -> Result<()> {
        for script in scripts {
            self.output.progress().begin(&script.what, None);
            let done = self.deployment.carry_out(script);
            self.output.progress().end();
            done?;
        }
        Ok(())
    }

    /// Restarts the machine, and waits until it runs again and its unit has decided.
    fn restart(&self) -> Result<DeploymentStatus> {
        let before = self.deployment.boot_id()?;
        self.output.progress().begin("restart the machine and wait for it", None);
        self.deployment.restart()?;
        let limit = Duration::from_secs(self.options.wait.into());
        let found = self.deployment.wait_for_restart(&before, limit).and_then(|()| self.decided(limit));
        self.output.progress().end();
        found
    }

    /// Waits until the unit of a new kernel has decided.
    fn decided(&self, limit: Duration) -> Result<DeploymentStatus> {
        let started = Instant::now();
        loop {
            match self.deployment.status() {
                // The unit has not decided yet.
                Ok(status) if status.state == DeploymentState::Trying && status.outcome != "running" => {}
                Ok(status) => return Ok(status),
                Err(Error::Work(error)) => return Err(error.into()),
                Err(_) => {}
            }
            if started.elapsed() > limit {
                let seconds = limit.as_secs();
                let advice = "its unit has not decided; `kerntune deploy --status` asks again";
                return Err(Error::NotBack { host: self.host.into(), seconds, advice });
            }
            interrupt::check()?;
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    fn show_steps(&self, scripts: &[Script]) -> Exit {
        if self.options.format.json {
            let steps =
                scripts.iter().map(|script| StepJson { what: &script.what, commands: &script.commands });
            self.output.json(&StepsJson { schema: STEPS_SCHEMA, host: self.host, steps: steps.collect() });
            return Exit::Ok;
        }
        let rows = scripts.iter().enumerate().map(|(at, script)| {
            let size = match &script.input {
                crate::ScriptInput::Empty => String::new(),
                crate::ScriptInput::Bytes(content) => bytes(content.len() as u64),
                crate::ScriptInput::File(path) => bytes(path.metadata().map_or(0, |file| file.len())),
            };
            vec![(at + 1).to_string(), script.what.clone(), size]
        });
        self.output.table(&["#STEP", "WHAT", "#SENDS"], rows);
        if self.output.is_verbose() {
            let texts: Vec<String> = scripts.iter().map(Script::text).collect();
            self.output.print(&texts.join("\n\n"));
        }
        Exit::Ok
    }

    /// Prints the state; the exit status of `--status`.
    fn show(&self, status: &DeploymentStatus) -> Exit {
        let record = status.record.as_ref();
        let exit = match status.state {
            DeploymentState::Armed | DeploymentState::Trying | DeploymentState::Confirmed => Exit::Ok,
            DeploymentState::None | DeploymentState::Incomplete | DeploymentState::Returned => Exit::Findings,
        };
        if self.options.format.json {
            self.output.json(&StatusJson {
                schema: SCHEMA,
                host: self.host,
                state: status.state,
                kernel: record.map(|record| &*record.name),
                id: record.map(|record| &*record.id),
                watchdog: record.and_then(|record| record.watchdog.as_deref()),
                outcome: &status.outcome,
                running: &status.running,
                runs_new: status.runs_new,
            });
            return exit;
        }
        let mut text = format!("machine   {}\nrunning   {}\n", self.host, status.running);
        if let Some(record) = record {
            text.push_str(&format!("deployed  {} ({})\n", record.name, record.id));
        }
        text.push_str(&format!("state     {}\n", explained(status)));
        self.output.print(&text);
        exit
    }
}

fn explained(status: &DeploymentStatus) -> &'static str {
    match (status.state, status.outcome.as_str()) {
        (DeploymentState::None, _) => "nothing is deployed",
        (DeploymentState::Incomplete, _) => {
            "incomplete: it was interrupted, and the old kernel starts; give the command again, or --rollback"
        }
        (DeploymentState::Armed, _) => "armed: the next start is the new kernel, once",
        (DeploymentState::Trying, "failed") => "the health check failed; the machine restarts with the old kernel",
        (DeploymentState::Trying, _) => "the new kernel runs, not confirmed: the next start is the old kernel",
        (DeploymentState::Confirmed, _) if status.runs_new => "confirmed: the new kernel runs, and is the default",
        (DeploymentState::Confirmed, _) => "confirmed: the new kernel is the default, and another one runs",
        (DeploymentState::Returned, "failed") => "the old kernel came back: the health check failed",
        (DeploymentState::Returned, "armed") => {
            "the old kernel came back: the new one did not get as far as its unit (a panic, a hang or a power cut)"
        }
        (DeploymentState::Returned, _) => {
            "the old kernel came back: the new one ran, and was restarted before it was confirmed"
        }
    }
}
