//! `kerntune matrix plan|run|status|results|log` and `kerntune worker`.

use super::work;
use crate::args::{Engine, Global, Matrix, MatrixRun, StoreAt, TrustOptions, Worker as WorkerOptions};
use crate::exit::{Exit, Failure};
use crate::kept::Kept;
use crate::output::Output;
use crate::stderr::say;
use kerntune_compare::number::figure;
use kerntune_compare::{Metric, TOTAL};
use kerntune_kernel::Arch;
use kerntune_machine::machine_of;
use kerntune_matrix::slurm::{self, Slurm};
use kerntune_matrix::{
    launch, log, open, resolve, results, retry, states, CellResult, CellState, Error, Event, Place, Plan,
    PlanFile, Pool, Progress, Store, Summary, Task, Trust, Turn, Worker, REFUSED, RESULTS_SCHEMA,
    STATES_SCHEMA,
};
use kerntune_work::{IoContext, Job, WorkDir};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Where a work directory has a store of its own, and logs.
const ROOM: &str = ".matrix";

#[derive(Serialize)]
struct Planned<'a> {
    schema: &'static str,
    plan: &'a str,
    store: &'a str,
    tasks: usize,
    cells: Vec<String>,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'static str,
    plan: &'a str,
    #[serde(flatten)]
    of: T,
}

#[derive(Serialize)]
struct States {
    tasks: Vec<CellState>,
}

#[derive(Serialize)]
struct Results {
    cells: Vec<CellResult>,
}

/// Name and version of the JSON form of `matrix plan`.
const PLAN: &str = "kerntune-matrix-planned/1";

pub fn run(global: &Global, command: &Matrix, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    match command {
        Matrix::Plan { file, store, format } => {
            let store = store_of(&work, store)?;
            let Planning { plan, id, .. } = planned(&work, &file.display().to_string(), &*store, output)?;
            let url = store.url();
            if format.json {
                let cells = plan.cells.iter().map(kerntune_matrix::Cell::name).collect();
                output.json(&Planned {
                    schema: PLAN,
                    plan: &id,
                    store: &url,
                    tasks: plan.tasks.len(),
                    cells,
                });
            } else {
                output.print(&id);
                output.note(&format!(
                    "{} cells, {} tasks; `kerntune worker --store {url} --plan {id}` computes them",
                    plan.cells.len(),
                    plan.tasks.len()
                ));
            }
            Ok(Exit::Ok)
        }
        Matrix::Run(options) => compute(&work, options, output),
        Matrix::Status { plan, store, format } => {
            let store = store_of(&work, store)?;
            let Planning { plan, id, .. } = planned(&work, plan, &*store, output)?;
            let tasks = states(&plan, &*store)?;
            match format.json {
                true => output.json(&Document { schema: STATES_SCHEMA, plan: &id, of: States { tasks } }),
                false => show_states(&tasks, output),
            }
            Ok(Exit::Ok)
        }
        Matrix::Results { plan, store, format } => {
            let store = store_of(&work, store)?;
            let Planning { plan, id, .. } = planned(&work, plan, &*store, output)?;
            show_results(&work, &plan, &id, &*store, format.json, output)
        }
        Matrix::Log { plan, cell, store } => {
            let store = store_of(&work, store)?;
            let plan = planned(&work, plan, &*store, output)?.plan;
            output.print(&log(&plan, &*store, plan.cell(cell)?)?);
            Ok(Exit::Ok)
        }
    }
}

/// `kerntune worker`.
pub fn worker(global: &Global, options: &WorkerOptions, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let store = open(&options.store)?;
    let planning = planned(&work, &options.plan, &*store, output)?;
    let trust = planning.trust(options.trust);
    let plan = &planning.plan;
    let Some(task) = &options.task else {
        let here = Here { work: &work, cores: options.cores, lease: options.lease, trust };
        let summary = pool(&here, plan, &planning.id, &*store, output)?;
        return Ok(ended(plan, &summary));
    };
    let kept = Kept::new(output.progress());
    let place = place(&work, &kept);
    let said = || kept.said();
    let lease = Duration::from_secs(options.lease);
    let worker = Worker { plan, store: Arc::from(store), place, lease, log: &said, trust };
    match worker.turn(task)? {
        Turn::Made => output.note("made"),
        Turn::Found => output.note("found"),
        Turn::Confirmed => output.note("confirmed: it came out the same here"),
        Turn::Discarded => output.note("found: another machine finished first, with the same result"),
        Turn::Failed(why) => {
            say(&format!("failed: {why}"));
            return Ok(Exit::Findings);
        }
        Turn::Refused(what) => {
            say(&format!("{REFUSED}{}", what.join(", ")));
            return Ok(Exit::Missing);
        }
    }
    Ok(Exit::Ok)
}

/// The store that is meant.
fn store_of(work: &WorkDir, at: &StoreAt) -> Result<Box<dyn Store>, Failure> {
    Ok(open(&at.store.clone().unwrap_or_else(|| own_store(work)))?)
}

/// The store of a work directory.
pub fn own_store(work: &WorkDir) -> String {
    work.root().join(ROOM).join("store").display().to_string()
}

/// A plan, and where it came from.
struct Planning {
    plan: Plan,
    id: String,
    /// Whether it was made here, of a file of the user's.
    is_own: bool,
}

impl Planning {
    fn trust(&self, asked: TrustOptions) -> Trust {
        Trust { commands: self.is_own || asked.trust_commands, confirm: asked.confirm }
    }
}

/// The plan of a file, put into the store, or the one that is there.
fn planned(work: &WorkDir, plan: &str, store: &dyn Store, output: &Output) -> Result<Planning, Failure> {
    // What is there and no file, or looks like a path, is refused as the file that was meant.
    if !Path::new(plan).exists() && !plan.contains('/') {
        let plan = Plan::load(store, plan)?;
        return Ok(Planning { id: plan.id(), plan, is_own: false });
    }
    let file = PlanFile::load(Path::new(plan))?;
    let plan = resolve(&file, &place(work, output.progress()), store)?;
    let id = plan.publish(store)?;
    Ok(Planning { plan, id, is_own: true })
}

/// This machine.
fn place<'a>(work: &'a WorkDir, progress: &'a dyn kerntune_work::Progress) -> Place<'a> {
    Place { work, machine: &|| machine_of(Arch::default()), command: &own_command, progress }
}

/// Runs a command of ours in a directory. It takes the work directory from the environment.
fn own_command(arguments: &[String], directory: &Path) -> kerntune_matrix::Result<String> {
    let program = own_program()?;
    // The work directory is two above a task's directory: WORK/.matrix/commands/TASK.
    let work = directory.ancestors().nth(3).unwrap_or(directory);
    let said = directory.join(".stderr");
    let mut command = Command::new("sh");
    // Both outputs of a job come together: what is no result goes elsewhere.
    command.args(["-c", "exec \"$0\" \"$@\" 2>.stderr"]).arg(&program).args(arguments);
    command.current_dir(directory).env("KERNTUNE_DIR", work);
    let (end, output) = Job::new(command).output()?;
    if end.success() {
        return Ok(output);
    }
    let status = match end {
        kerntune_work::JobEnd::Exited(status) => status.code().unwrap_or(-1),
        _ => -1,
    };
    let text = std::fs::read_to_string(&said).unwrap_or_default();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    Err(Error::Command { command: arguments.join(" "), status, last })
}

fn own_program() -> kerntune_matrix::Result<PathBuf> {
    Ok(std::env::current_exe().at("find", "kerntune")?)
}

fn compute(work: &WorkDir, options: &MatrixRun, output: &Output) -> Result<Exit, Failure> {
    let of_slurm = [!options.sbatch.is_empty(), options.node_dir.is_some(), options.node_program.is_some()];
    if options.engine == Engine::Local && of_slurm.contains(&true) {
        return Err(Failure::usage("--sbatch, --node-dir and --node-program are for --engine slurm"));
    }
    if options.engine == Engine::Slurm && options.cores.is_some() {
        return Err(Failure::usage("--cores is for --engine local: Slurm knows the nodes"));
    }
    let store = store_of(work, &options.store)?;
    let planning = planned(work, &options.plan, &*store, output)?;
    let (plan, id, trust) = (&planning.plan, &planning.id, planning.trust(options.trust));
    if options.retry {
        retry(plan, &*store)?;
    }
    let exit = match options.engine {
        Engine::Local => {
            let here = Here { work, cores: options.cores, lease: options.lease, trust };
            ended(plan, &pool(&here, plan, id, &*store, output)?)
        }
        Engine::Slurm => by_slurm(work, &planning, &*store, options, output)?,
    };
    match show_results(work, plan, id, &*store, options.format.json, output)? {
        Exit::Ok => Ok(exit),
        other => Ok(other),
    }
}

/// How this machine works on a plan.
struct Here<'a> {
    work: &'a WorkDir,
    cores: Option<NonZeroUsize>,
    /// Of claims, in seconds.
    lease: u64,
    trust: Trust,
}

/// The options of a worker that trusts so far.
fn trust_options(trust: Trust) -> impl Iterator<Item = &'static str> {
    let commands = trust.commands.then_some("--trust-commands");
    commands.into_iter().chain(trust.confirm.then_some("--confirm"))
}

/// All of a plan on this machine: each task in a process of its own.
fn pool(here: &Here, plan: &Plan, id: &str, store: &dyn Store, output: &Output) -> Result<Summary, Failure> {
    let program = own_program()?;
    let work = here.work;
    let logs = work.root().join(ROOM).join("logs").join(id);
    let run = |task: &Task| {
        let mut command = Command::new(&program);
        command.arg("--dir").arg(work.root()).args(["worker", "--store", &store.url(), "--plan", id]);
        command
            .args(["--task", task.id.as_str(), "--lease", &here.lease.to_string()])
            .args(trust_options(here.trust));
        launch(command, store, task, &logs.join(format!("{}.log", task.id)))
    };
    let tell = |done: usize, all: usize, event: Event| {
        let line = match event {
            Event::Begun(task) => format!("{}: begun", task.title),
            Event::Elsewhere(task) => format!("{}: there", task.title),
            Event::Stopped { task, error } => format!("{}: {error}", task.title),
            Event::Ended { task, turn, took } => match turn {
                Turn::Made => format!("{}: made in {:.1} s", task.title, took.as_secs_f64()),
                Turn::Found | Turn::Discarded => format!("{}: found", task.title),
                Turn::Confirmed => format!("{}: confirmed in {:.1} s", task.title, took.as_secs_f64()),
                Turn::Failed(why) => format!("{}: failed: {why}", task.title),
                Turn::Refused(what) => {
                    format!("{}: left to others, as {REFUSED}{}", task.title, what.join(", "))
                }
            },
        };
        output.note(&format!("[{done}/{all}] {line}"));
    };
    let all = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let cores = here.cores.map_or(all, NonZeroUsize::get);
    Ok(Pool { plan, store, cores, run: &run, confirm: here.trust.confirm, tell: &tell }.run()?)
}

fn ended(plan: &Plan, summary: &Summary) -> Exit {
    if summary.is_whole() {
        return Exit::Ok;
    }
    for id in &summary.blocked {
        let title = plan.task(id).map_or(id.as_str(), |task| &task.title);
        say(&format!("not started, because a result that it needs is missing: {title}"));
    }
    Exit::Findings
}

fn by_slurm(
    work: &WorkDir,
    planning: &Planning,
    store: &dyn Store,
    options: &MatrixRun,
    output: &Output,
) -> Result<Exit, Failure> {
    let Planning { plan, id, .. } = planning;
    if options.trust.confirm {
        return Err(Failure::usage(
            "--confirm is for --engine local: what this machine computes is confirmed",
        ));
    }
    let directory = slurm::directory(&work.root().join(ROOM), id);
    let own = own_program()?.display().to_string();
    let node = options.node_dir.clone().unwrap_or_else(|| work.root().to_owned());
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut worker =
        vec![options.node_program.clone().unwrap_or(own), "--dir".into(), node.display().to_string()];
    let lease = options.lease.to_string();
    worker.extend(words(&["worker", "--store", &store.url(), "--plan", id, "--lease", &lease]));
    worker.extend(trust_options(planning.trust(options.trust)).map(str::to_owned));
    let slurm = Slurm {
        plan,
        store,
        directory: &directory,
        worker: &worker,
        options: &options.sbatch,
        look: Duration::from_secs(2),
        patience: Duration::from_secs(2 * options.lease + 120),
    };
    let handed = slurm.run(output.progress())?;
    output.note(&format!(
        "{} arrays in {} rounds; logs are in {}",
        handed.jobs.len(),
        handed.rounds,
        directory.display()
    ));
    let whole = states(plan, store)?.iter().all(|task| task.progress == Progress::Done);
    Ok(if whole { Exit::Ok } else { Exit::Findings })
}

fn show_states(tasks: &[CellState], output: &Output) {
    output.table(
        &["TASK", "WHAT", "STATE", "#CLAIMS", "#COMPUTED"],
        tasks.iter().map(|task| {
            let state = match &task.progress {
                Progress::Done => "done".into(),
                Progress::Working { host, process } => format!("on {host} ({process})"),
                Progress::Failed { why } => format!("failed: {why}"),
                Progress::Waiting => "waiting".into(),
            };
            vec![
                task.task.clone(),
                task.title.clone(),
                state,
                task.claims.to_string(),
                task.computed.to_string(),
            ]
        }),
    );
}

fn show_results(
    work: &WorkDir,
    plan: &Plan,
    id: &str,
    store: &dyn Store,
    json: bool,
    output: &Output,
) -> Result<Exit, Failure> {
    let cells = results(plan, store, work)?;
    if json {
        output.json(&Document { schema: RESULTS_SCHEMA, plan: id, of: Results { cells } });
        return Ok(Exit::Ok);
    }
    let mut lines = Vec::new();
    for cell in &plan.cells {
        let number = plan.cells.iter().position(|other| other == cell).unwrap_or_default() + 1;
        let start = [number.to_string(), cell.name()];
        let line = |rest: [String; 3]| start.iter().cloned().chain(rest).collect::<Vec<String>>();
        let Some(result) = cells.iter().find(|result| result.task == cell.task) else {
            lines.push(line(["-".into(), "-".into(), "-".into()]));
            continue;
        };
        let Some(figures) = &result.figures else {
            lines.push(line(["output".into(), "-".into(), "-".into()]));
            continue;
        };
        for counters in figures.operations.iter().filter(|counters| counters.operation != TOTAL) {
            let per =
                Metric::PathLength.count(counters).map(|count| count as f64 / counters.operations as f64);
            let operations = counters.operations.to_string();
            lines.push(line([counters.operation.clone(), operations, per.map_or("-".into(), figure)]));
        }
    }
    output.table(
        &[
            "#CELL",
            "KERNEL/CONFIGURATION/COMPILER/RECIPE/WORKLOAD",
            "OPERATION",
            "#OPERATIONS",
            "#PATH LENGTH",
        ],
        lines,
    );
    let foreign = cells.iter().filter(|cell| !cell.confirmed).count();
    if foreign > 0 {
        output.note(&format!(
            "{foreign} of {} results are what other machines say; `matrix run --confirm` computes them here, too",
            cells.len()
        ));
    }
    for cell in cells.iter().filter(|cell| cell.output.is_some()) {
        output.print(&format!("\n{}\n{}", cell.cell, cell.output.as_deref().unwrap_or_default()));
    }
    Ok(Exit::Ok)
}
