//! The commands `kerntune live start | status | dump | reset | stop`.

use super::ask::{ask_collector, died, unexpected_answer};
use super::dump::LiveDumpOptions;
use super::{branches, dump, keep, kernel_id, print_sources, with_module, LiveOptions};
use clap::Subcommand;
use kerntune_command::{
    command_group, work, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions,
    RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_live::daemon::{
    serve, state, DaemonDir, DaemonRequest, DaemonResponse, DaemonState, DaemonStatus,
};
use kerntune_live::{Collector, Error, ProfileLabels};
use kerntune_symbols::RunningKernel;
use kerntune_work::WorkDir;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Line that a background collector prints when it has started.
const READY: &str = "ready";
/// Environment variable that tells a collector to print [`READY`] and to detach.
const READY_VARIABLE: &str = "KERNTUNE_LIVE_READY";

pub const COMMAND: CommandEntry = command_group::<LiveCommand>("live", 40, "");

/// Profile the kernel of this machine while it works (docs/live.md)
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Start profiling the kernel of this machine; runs until `live stop`
    Start {
        #[command(flatten)]
        watch: LiveOptions,
        /// Run in this terminal, not in the background
        #[arg(long)]
        foreground: bool,
    },
    /// Show whether a collector runs, what it has collected, and how much memory it uses
    Status {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Write the data collected so far as a profile; the collector continues
    Dump(LiveDumpOptions),
    /// Discard the data collected so far; the collector continues
    Reset,
    /// Stop the collector; data that was not dumped is lost
    Stop,
    /// Show functions, paths, subsystems, interrupts and rates, updated continuously
    Top {
        /// Set what is watched if no collector runs
        #[command(flatten)]
        watch: LiveOptions,
        /// Seconds between two updates
        #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
}

impl RunSubcommand<GlobalOptions> for LiveCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = match self {
            Self::Start { .. } | Self::Top { .. } => work(global)?,
            _ => work_to_read(global)?,
        };
        match self {
            Self::Start { watch, foreground: true } => collect(&work, watch, output),
            Self::Start { watch, foreground: false } => start(&work, watch, output),
            Self::Status { format } => status(&work, format.json, output),
            Self::Dump(options) => dump::run(&work, options, output),
            Self::Reset => done(
                &work,
                &DaemonRequest::Reset,
                "what was collected is discarded; the collector continues",
                output,
            ),
            Self::Stop => stop(&work, output),
            Self::Top { watch, every } => super::top::run(&work, watch, Duration::from_secs(*every), output),
        }
    }
}

/// Runs the same command again in the background, in its own session, and waits until it has
/// started.
fn start(work: &WorkDir, watch: &LiveOptions, output: &CliOutput) -> Result<Exit, Failure> {
    watch.options()?;
    if let DaemonState::Runs(process) = state(&DaemonDir::of(work))? {
        return Err(runs_already(process));
    }
    let program =
        std::env::current_exe().map_err(|source| Error::Spawn { program: "kerntune".into(), source })?;
    let mut child = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        .env(READY_VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| Error::Spawn { program: program.display().to_string(), source })?;
    let mut line = String::new();
    if let Some(said) = child.stdout.take() {
        let _ = BufReader::new(said).read_line(&mut line);
    }
    if line.trim() == READY {
        output.note(&format!(
            "collecting (process {}): `kerntune live dump` keeps what was collected, `kerntune live stop` \
             stops it",
            child.id()
        ));
        return Ok(Exit::Ok);
    }
    // The child has printed the error.
    let status = child.wait().ok().and_then(|status| status.code());
    Ok(match status {
        Some(2) => Exit::Usage,
        Some(3) => Exit::Missing,
        Some(130) => Exit::Interrupted,
        _ => Exit::Recording,
    })
}

fn runs_already(process: u32) -> Failure {
    Failure::usage(format!("a collector runs already (process {process}): `kerntune live stop` stops it"))
}

/// Collects until `live stop`.
fn collect(work: &WorkDir, watch: &LiveOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let options = with_module(work, watch.options()?, output);
    let place = DaemonDir::of(work);
    let told = std::env::var_os(READY_VARIABLE).is_some();
    if told {
        // Cannot fail: the child is not the leader of its process group.
        let _ = rustix::process::setsid();
    }
    let begin = || {
        let (running, own) = RunningKernel::find_in(work)?;
        let of_branches = options.branches;
        let collector = Collector::start(options, running)?;
        match of_branches && own.is_none() {
            true => Err(Error::Filter(branches::no_kernel(collector.running()).message)),
            false => Ok(collector),
        }
    };
    let ready = |collector: &Collector| {
        print_sources(collector, output);
        if told {
            output.print(READY);
            leave_the_terminal(&place);
        }
    };
    let found = std::cell::OnceCell::new();
    let mut dump = |collector: &mut Collector, labels: ProfileLabels| {
        let kernel =
            found.get_or_init(|| kerntune_kernel::find_running(work).ok().flatten().as_ref().map(kernel_id));
        let labels = ProfileLabels { kernel: kernel.clone(), ..labels };
        keep(work, collector, labels).map(|(path, _)| path)
    };
    serve(&place, begin, ready, &mut dump)?;
    Ok(Exit::Ok)
}

/// Detaches from the terminal; later output goes to the log.
fn leave_the_terminal(place: &DaemonDir) {
    let to = place.log().or_else(|_| OpenOptions::new().write(true).open("/dev/null"));
    if let Ok(to) = to {
        let _ = rustix::stdio::dup2_stdout(&to);
        let _ = rustix::stdio::dup2_stderr(&to);
    }
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
    }
    // Keeps no file system busy; the work directory's path is absolute.
    let _ = std::env::set_current_dir("/");
}

fn done(work: &WorkDir, request: &DaemonRequest, said: &str, output: &CliOutput) -> Result<Exit, Failure> {
    ask_collector(work, request)?;
    output.note(said);
    Ok(Exit::Ok)
}

/// Stops the collector, and waits until it has ended.
fn stop(work: &WorkDir, output: &CliOutput) -> Result<Exit, Failure> {
    ask_collector(work, &DaemonRequest::Stop)?;
    let place = DaemonDir::of(work);
    while matches!(state(&place)?, DaemonState::Runs(_)) {
        kerntune_work::interrupt::check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
    output.note("the collector has ended");
    Ok(Exit::Ok)
}

fn status(work: &WorkDir, json: bool, output: &CliOutput) -> Result<Exit, Failure> {
    let found = state(&DaemonDir::of(work))?;
    let DaemonState::Runs(_) = found else {
        let message = match found {
            DaemonState::Died(process) => died(process).message,
            _ => format!("no collector runs for {}", work.root().display()),
        };
        match json {
            true => output.json(&serde_json::json!({ "schema": SCHEMA, "runs": false, "message": message })),
            false => output.print(&message),
        }
        return Ok(Exit::Findings);
    };
    let status = match ask_collector(work, &DaemonRequest::Status) {
        Ok(DaemonResponse::Status(status)) => status,
        Ok(_) => return Err(unexpected_answer()),
        // The collector was killed or stopped in the meantime.
        Err(_) if !matches!(state(&DaemonDir::of(work))?, DaemonState::Runs(_)) => {
            return status(work, json, output)
        }
        Err(failure) => return Err(failure),
    };
    match json {
        true => output.json(&as_json(&status)),
        false => output.print(&as_text(&status)),
    }
    Ok(Exit::Ok)
}

/// Schema of `live status --json`.
const SCHEMA: &str = "kerntune-live-status/1";

fn as_json(status: &DaemonStatus) -> serde_json::Value {
    let mut json = serde_json::json!({ "schema": SCHEMA, "runs": true });
    if let (Some(all), Ok(serde_json::Value::Object(more))) =
        (json.as_object_mut(), serde_json::to_value(status))
    {
        all.extend(more);
    }
    json
}

fn as_text(status: &DaemonStatus) -> String {
    let mut out = String::new();
    let mut line = |word: &str, text: String| out += &format!("{word:<9}  {text}\n");
    line("collector", format!("process {}, started {}", status.process, status.started));
    line("source", status.sources.join("; "));
    if let Some(filter) = &status.filter {
        line("only", filter.clone());
    }
    line("time", format!("{:.1} s since its start or the last reset", status.wall_ns as f64 / 1e9));
    line("samples", format!("{}, {} lost", grouped(status.samples), grouped(status.lost)));
    line("paths", format!("{} of at most {}", grouped(status.paths[0]), grouped(status.paths[1])));
    let memory = [status.bound_bytes, status.resident_bytes].map(super::super::bytes);
    line("memory", format!("tables and buffers at most {}; the process has {}", memory[0], memory[1]));
    for (name, count) in &status.health {
        line("note", format!("{}: {}", name.replace('_', " "), grouped(*count)));
    }
    for note in &status.notes {
        line("note", note.clone());
    }
    out
}
