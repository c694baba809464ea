//! `kerntune live start | status | dump | reset | stop`.

use super::ask::{asked, died, strange};
use super::{dump, keep, kernel_id, tell, with_module};
use crate::args::{Global, Live, Watch};
use crate::exit::{Exit, Failure};
use crate::global::work;
use crate::output::Output;
use kerntune_compare::number::grouped;
use kerntune_live::daemon::{serve, state, Answer, Place, Request, State, Status};
use kerntune_live::{Collector, Error, Labels};
use kerntune_symbols::Running;
use kerntune_work::WorkDir;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a collector in the background says when it has begun.
const READY: &str = "ready";
/// By which it knows that somebody waits for that.
const TOLD_BY: &str = "KERNTUNE_LIVE_READY";

pub fn run(global: &Global, command: &Live, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    match command {
        Live::Start { watch, foreground: true } => collect(&work, watch, output),
        Live::Start { watch, foreground: false } => start(&work, watch, output),
        Live::Status { format } => status(&work, format.json, output),
        Live::Dump(options) => dump::run(&work, options, output),
        Live::Reset => {
            done(&work, &Request::Reset, "what was collected is discarded; the collector continues", output)
        }
        Live::Stop => stop(&work, output),
        Live::Top { watch, every } => super::top::run(&work, watch, Duration::from_secs(*every), output),
    }
}

/// Starts the same command again, in a session of its own, and waits until it collects.
fn start(work: &WorkDir, watch: &Watch, output: &Output) -> Result<Exit, Failure> {
    watch.options()?;
    if let State::Runs(process) = state(&Place::of(work))? {
        return Err(runs_already(process));
    }
    let program =
        std::env::current_exe().map_err(|source| Error::Spawn { program: "kerntune".into(), source })?;
    let mut child = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        .env(TOLD_BY, "1")
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
    // It has said why.
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

/// Collects until it is told to stop.
fn collect(work: &WorkDir, watch: &Watch, output: &Output) -> Result<Exit, Failure> {
    let options = with_module(work, watch.options()?, output);
    let place = Place::of(work);
    let told = std::env::var_os(TOLD_BY).is_some();
    if told {
        // Who starts us is the head of no process group that we are in: this cannot fail.
        let _ = rustix::process::setsid();
    }
    let begin = || Collector::start(options, Running::find_in(work)?.0);
    let ready = |collector: &Collector| {
        tell(collector, output);
        if told {
            output.print(READY);
            leave_the_terminal(&place);
        }
    };
    let found = std::cell::OnceCell::new();
    let mut dump = |collector: &mut Collector, labels: Labels| {
        let kernel =
            found.get_or_init(|| kerntune_kernel::running(work).ok().flatten().as_ref().map(kernel_id));
        let labels = Labels { kernel: kernel.clone(), ..labels };
        keep(work, collector, labels).map(|(path, _)| path)
    };
    serve(&place, begin, ready, &mut dump)?;
    Ok(Exit::Ok)
}

/// Gives up what a terminal's end would take away: what is said from now on goes to the log.
fn leave_the_terminal(place: &Place) {
    let to = place.log().or_else(|_| OpenOptions::new().write(true).open("/dev/null"));
    if let Ok(to) = to {
        let _ = rustix::stdio::dup2_stdout(&to);
        let _ = rustix::stdio::dup2_stderr(&to);
    }
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
    }
    // No file system is kept from being unmounted; the work directory's path is absolute.
    let _ = std::env::set_current_dir("/");
}

fn done(work: &WorkDir, request: &Request, said: &str, output: &Output) -> Result<Exit, Failure> {
    asked(work, request)?;
    output.note(said);
    Ok(Exit::Ok)
}

/// Asks it to stop, and waits until it has gone.
fn stop(work: &WorkDir, output: &Output) -> Result<Exit, Failure> {
    asked(work, &Request::Stop)?;
    let place = Place::of(work);
    while matches!(state(&place)?, State::Runs(_)) {
        kerntune_work::interrupt::check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
    output.note("the collector has ended");
    Ok(Exit::Ok)
}

fn status(work: &WorkDir, json: bool, output: &Output) -> Result<Exit, Failure> {
    let found = state(&Place::of(work))?;
    let State::Runs(_) = found else {
        let message = match found {
            State::Died(process) => died(process).message,
            _ => format!("no collector runs for {}", work.root().display()),
        };
        match json {
            true => output.json(&serde_json::json!({ "schema": SCHEMA, "runs": false, "message": message })),
            false => output.print(&message),
        }
        return Ok(Exit::Findings);
    };
    let status = match asked(work, &Request::Status) {
        Ok(Answer::Status(status)) => status,
        Ok(_) => return Err(strange()),
        // Killed or stopped while it was asked.
        Err(_) if !matches!(state(&Place::of(work))?, State::Runs(_)) => return status(work, json, output),
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

fn as_json(status: &Status) -> serde_json::Value {
    let mut json = serde_json::json!({ "schema": SCHEMA, "runs": true });
    if let (Some(all), Ok(serde_json::Value::Object(more))) =
        (json.as_object_mut(), serde_json::to_value(status))
    {
        all.extend(more);
    }
    json
}

fn as_text(status: &Status) -> String {
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
