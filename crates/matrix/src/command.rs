//! The commands `kerntune matrix plan|run|status|results|log` and `kerntune worker`.

use crate::slurm::{self, Slurm};
use crate::{
    launch, log, open, open_existing, resolve, results, retry, states, CellResult, Error, MatrixCell,
    MatrixPlan, PlanFile, PoolEvent, PoolSummary, Store, StoreAudit, Task, TaskEnvironment, TaskOutcome,
    TaskPool, TaskProgress, TaskStatus, Trust, Worker, REFUSED, RESULTS_SCHEMA, STATES_SCHEMA,
};
use clap::{Args, Subcommand, ValueEnum};
use kerntune_command::{
    audit, command, command_group, say, work, AuditEntry, AuditStores, AuditedStore, CliOutput, CommandEntry,
    Exit, Failure, FormatOptions, GlobalOptions, RecordedProgress, RunSubcommand,
};
use kerntune_compare::number::figure;
use kerntune_compare::{Metric, TOTAL};
use kerntune_kernel::Arch;
use kerntune_machine::machine_of;
use kerntune_work::{IoContext, Job, WorkDir};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Entry of `kerntune matrix`.
pub const MATRIX: CommandEntry = command_group::<MatrixCommand>("matrix", 55, "Many machines");

/// Entry of `kerntune worker`.
pub const WORKER: CommandEntry = command::<WorkerOptions>("worker", 60, "Many machines");

/// Entry of the audit of stores of matrices.
pub const AUDIT: AuditEntry = audit::<MatrixAudit>("stores");

/// Compute a matrix of kernels, configurations, compilers, recipes and workloads, on this
/// machine or on a cluster (docs/matrix.md)
#[derive(Debug, Subcommand)]
pub enum MatrixCommand {
    /// Make a plan from a plan file, and put it and the kernels that it names into a store for
    /// workers
    Plan {
        /// The plan file (docs/matrix.md)
        file: PathBuf,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Compute a plan, on this machine or with Slurm; resumes where it stopped
    Run(MatrixRunOptions),
    /// Show the state of each task of a plan
    Status {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the figures of a plan's cells
    Results {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the log of a cell
    Log {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        /// The cell: its name, or its number in `matrix results`
        cell: String,
        #[command(flatten)]
        store: StoreOptions,
    },
}

/// The option `--store`: the directory or URL for results and claims.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// Store for results and claims: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    /// [default: .matrix/store in the work directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

#[derive(Debug, Args)]
pub struct MatrixRunOptions {
    /// The plan file, or the beginning of a plan's id in the store
    pub plan: String,
    #[command(flatten)]
    pub store: StoreOptions,
    /// Place of the computation: local (this machine), or slurm
    #[arg(long, value_enum, default_value_t = MatrixEngine::Local, value_name = "ENGINE")]
    pub engine: MatrixEngine,
    /// CPUs to use on this machine [default: all]
    #[arg(short, long, alias = "cores", value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Try failed tasks again
    #[arg(long)]
    pub retry: bool,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// With slurm: pass this option to sbatch, for example --sbatch=--partition=long; may be
    /// repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// With slurm: the work directory on each node; need not be shared [default: this one]
    #[arg(long, value_name = "DIR")]
    pub node_dir: Option<PathBuf>,
    /// With slurm: the kerntune program on the nodes [default: this one, at the same path]
    #[arg(long, value_name = "PROGRAM")]
    pub node_program: Option<String>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatrixEngine {
    Local,
    Slurm,
}

/// Compute tasks of a matrix plan, together with any number of other machines (docs/matrix.md)
#[derive(Debug, Args)]
pub struct WorkerOptions {
    /// Store for results and claims: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// The plan: the beginning of its id in the store (printed by `kerntune matrix plan`), or a
    /// plan file
    #[arg(long)]
    pub plan: String,
    /// Compute only this task
    #[arg(long, value_name = "ID", conflicts_with = "jobs")]
    pub task: Option<String>,
    /// CPUs to use [default: all]
    #[arg(short, long, alias = "cores", value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
}

/// Trust in a plan and in the other machines that use its store.
#[derive(Debug, Clone, Copy, Args)]
pub struct TrustOptions {
    /// Allow the plan to run its commands on this machine, and to build the sources, patches and
    /// compilers that it names: a plan is code. Not needed for your own plan file
    #[arg(long)]
    pub trust_commands: bool,
    /// Compute also tasks that other machines computed, and reject a result that differs
    #[arg(long)]
    pub confirm: bool,
}

/// Directory in the work directory with the default store and with logs.
const MATRIX_DIR: &str = ".matrix";

#[derive(Serialize)]
struct PlannedJson<'a> {
    schema: &'static str,
    plan: &'a str,
    store: &'a str,
    tasks: usize,
    cells: Vec<String>,
}

#[derive(Serialize)]
struct PlanDocument<'a, T> {
    schema: &'static str,
    plan: &'a str,
    #[serde(flatten)]
    of: T,
}

#[derive(Serialize)]
struct TaskStates {
    tasks: Vec<TaskStatus>,
}

#[derive(Serialize)]
struct CellResults {
    cells: Vec<CellResult>,
}

/// Name and version of the JSON form of `matrix plan`.
const PLAN: &str = "kerntune-matrix-planned/1";

impl RunSubcommand<GlobalOptions> for MatrixCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        match self {
            Self::Plan { file, store, format } => {
                let store = store_of(&work, store)?;
                let OpenPlan { plan, id, .. } = planned(&work, &file.display().to_string(), &*store, output)?;
                let url = store.url();
                if format.json {
                    let cells = plan.cells.iter().map(MatrixCell::name).collect();
                    output.json(&PlannedJson {
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
            Self::Run(options) => compute(&work, options, output),
            Self::Status { plan, store, format } => {
                let store = store_of(&work, store)?;
                let OpenPlan { plan, id, .. } = planned(&work, plan, &*store, output)?;
                let tasks = states(&plan, &*store)?;
                match format.json {
                    true => output.json(&PlanDocument {
                        schema: STATES_SCHEMA,
                        plan: &id,
                        of: TaskStates { tasks },
                    }),
                    false => show_states(&tasks, output),
                }
                Ok(Exit::Ok)
            }
            Self::Results { plan, store, format } => {
                let store = store_of(&work, store)?;
                let OpenPlan { plan, id, .. } = planned(&work, plan, &*store, output)?;
                show_results(&work, &plan, &id, &*store, format.json, output)
            }
            Self::Log { plan, cell, store } => {
                let store = store_of(&work, store)?;
                let plan = planned(&work, plan, &*store, output)?.plan;
                output.print(&log(&plan, &*store, plan.cell(cell)?)?);
                Ok(Exit::Ok)
            }
        }
    }
}

impl RunSubcommand<GlobalOptions> for WorkerOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let store = open(&self.store)?;
        let planning = planned(&work, &self.plan, &*store, output)?;
        let trust = planning.trust(self.trust);
        let plan = &planning.plan;
        let Some(task) = &self.task else {
            let here = LocalRun { work: &work, cores: self.jobs, lease: self.lease, trust };
            let summary = pool(&here, plan, &planning.id, &*store, output)?;
            return Ok(ended(plan, &summary));
        };
        let kept = RecordedProgress::new(output.progress());
        let environment = environment(&work, &kept);
        let said = || kept.text();
        let lease = Duration::from_secs(self.lease);
        let worker = Worker { plan, store: Arc::from(store), environment, lease, log: &said, trust };
        match worker.compute(task)? {
            TaskOutcome::Made => output.note("made"),
            TaskOutcome::Found => output.note("found"),
            TaskOutcome::Confirmed => output.note("confirmed: it came out the same here"),
            TaskOutcome::Discarded => {
                output.note("found: another machine finished first, with the same result")
            }
            TaskOutcome::Failed(why) => {
                say(&format!("failed: {why}"));
                return Ok(Exit::Findings);
            }
            TaskOutcome::Refused(what) => {
                say(&format!("{REFUSED}{}", what.join(", ")));
                return Ok(Exit::Missing);
            }
        }
        Ok(Exit::Ok)
    }
}

/// Opens the store named by `--store`, or the default store of the work directory.
fn store_of(work: &WorkDir, at: &StoreOptions) -> Result<Box<dyn Store>, Failure> {
    Ok(open(&at.store.clone().unwrap_or_else(|| own_store(work)))?)
}

/// Returns the path of the default store of a work directory.
fn own_store(work: &WorkDir) -> String {
    work.root().join(MATRIX_DIR).join("store").display().to_string()
}

/// A plan, and whether it is trusted.
struct OpenPlan {
    plan: MatrixPlan,
    id: String,
    /// Set if the plan was made from the user's own plan file, which is trusted.
    is_own: bool,
}

impl OpenPlan {
    fn trust(&self, asked: TrustOptions) -> Trust {
        Trust { commands: self.is_own || asked.trust_commands, confirm: asked.confirm }
    }
}

/// Makes a plan from a plan file and puts it into the store, or loads the plan with this id from
/// the store.
fn planned(work: &WorkDir, plan: &str, store: &dyn Store, output: &CliOutput) -> Result<OpenPlan, Failure> {
    // A missing name that looks like a path is reported as a missing plan file.
    if !Path::new(plan).exists() && !plan.contains('/') {
        let plan = MatrixPlan::load(store, plan)?;
        return Ok(OpenPlan { id: plan.id(), plan, is_own: false });
    }
    let file = PlanFile::load(Path::new(plan))?;
    let plan = resolve(&file, &environment(work, output.progress()), store)?;
    let id = plan.publish(store)?;
    Ok(OpenPlan { plan, id, is_own: true })
}

/// Returns the environment for tasks on this machine.
fn environment<'a>(work: &'a WorkDir, progress: &'a dyn kerntune_work::Progress) -> TaskEnvironment<'a> {
    TaskEnvironment { work, machine: &|| machine_of(Arch::default()), command: &own_command, progress }
}

/// Runs kerntune with these arguments in a directory. The process gets the work directory through
/// the environment.
fn own_command(arguments: &[String], directory: &Path) -> crate::Result<String> {
    let program = own_program()?;
    // A task's directory is WORK/.matrix/commands/TASK.
    let work = directory.ancestors().nth(3).unwrap_or(directory);
    let said = directory.join(".stderr");
    let mut command = Command::new("sh");
    // A job's standard output and error are captured together, so error output goes to a file.
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

fn own_program() -> crate::Result<PathBuf> {
    Ok(std::env::current_exe().at("find", "kerntune")?)
}

fn compute(work: &WorkDir, options: &MatrixRunOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let of_slurm = [!options.sbatch.is_empty(), options.node_dir.is_some(), options.node_program.is_some()];
    if options.engine == MatrixEngine::Local && of_slurm.contains(&true) {
        return Err(Failure::usage("--sbatch, --node-dir and --node-program are for --engine slurm"));
    }
    if options.engine == MatrixEngine::Slurm && options.jobs.is_some() {
        return Err(Failure::usage("--jobs is for --engine local: Slurm knows the nodes"));
    }
    let store = store_of(work, &options.store)?;
    let planning = planned(work, &options.plan, &*store, output)?;
    let (plan, id, trust) = (&planning.plan, &planning.id, planning.trust(options.trust));
    if options.retry {
        retry(plan, &*store)?;
    }
    let exit = match options.engine {
        MatrixEngine::Local => {
            let here = LocalRun { work, cores: options.jobs, lease: options.lease, trust };
            ended(plan, &pool(&here, plan, id, &*store, output)?)
        }
        MatrixEngine::Slurm => by_slurm(work, &planning, &*store, options, output)?,
    };
    match show_results(work, plan, id, &*store, options.format.json, output)? {
        Exit::Ok => Ok(exit),
        other => Ok(other),
    }
}

/// Resources and trust for computing a plan on this machine.
struct LocalRun<'a> {
    work: &'a WorkDir,
    cores: Option<NonZeroUsize>,
    /// Lease of claims, in seconds.
    lease: u64,
    trust: Trust,
}

/// Returns the options that give a worker process the same trust.
fn trust_options(trust: Trust) -> impl Iterator<Item = &'static str> {
    let commands = trust.commands.then_some("--trust-commands");
    commands.into_iter().chain(trust.confirm.then_some("--confirm"))
}

/// Computes a plan on this machine, with each task in its own process.
fn pool(
    here: &LocalRun,
    plan: &MatrixPlan,
    id: &str,
    store: &dyn Store,
    output: &CliOutput,
) -> Result<PoolSummary, Failure> {
    let program = own_program()?;
    let work = here.work;
    let logs = work.root().join(MATRIX_DIR).join("logs").join(id);
    let run = |task: &Task| {
        let mut command = Command::new(&program);
        command.arg("--dir").arg(work.root()).args(["worker", "--store", &store.url(), "--plan", id]);
        command
            .args(["--task", task.id.as_str(), "--lease", &here.lease.to_string()])
            .args(trust_options(here.trust));
        launch(command, store, task, &logs.join(format!("{}.log", task.id)))
    };
    let on_event = |done: usize, all: usize, event: PoolEvent| {
        let line = match event {
            PoolEvent::Begun(task) => format!("{}: begun", task.title),
            PoolEvent::Elsewhere(task) => format!("{}: there", task.title),
            PoolEvent::Stopped { task, error } => format!("{}: {error}", task.title),
            PoolEvent::Ended { task, outcome, took } => match outcome {
                TaskOutcome::Made => format!("{}: made in {:.1} s", task.title, took.as_secs_f64()),
                TaskOutcome::Found | TaskOutcome::Discarded => format!("{}: found", task.title),
                TaskOutcome::Confirmed => format!("{}: confirmed in {:.1} s", task.title, took.as_secs_f64()),
                TaskOutcome::Failed(why) => format!("{}: failed: {why}", task.title),
                TaskOutcome::Refused(what) => {
                    format!("{}: left to others, as {REFUSED}{}", task.title, what.join(", "))
                }
            },
        };
        output.note(&format!("[{done}/{all}] {line}"));
    };
    let all = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let cores = here.cores.map_or(all, NonZeroUsize::get);
    Ok(TaskPool { plan, store, cores, run: &run, confirm: here.trust.confirm, on_event: &on_event }.run()?)
}

fn ended(plan: &MatrixPlan, summary: &PoolSummary) -> Exit {
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
    planning: &OpenPlan,
    store: &dyn Store,
    options: &MatrixRunOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let OpenPlan { plan, id, .. } = planning;
    if options.trust.confirm {
        return Err(Failure::usage(
            "--confirm is for --engine local: what this machine computes is confirmed",
        ));
    }
    let directory = slurm::directory(&work.root().join(MATRIX_DIR), id);
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
    let whole = states(plan, store)?.iter().all(|task| task.progress == TaskProgress::Done);
    Ok(if whole { Exit::Ok } else { Exit::Findings })
}

fn show_states(tasks: &[TaskStatus], output: &CliOutput) {
    output.table(
        &["TASK", "WHAT", "STATE", "#CLAIMS", "#COMPUTED"],
        tasks.iter().map(|task| {
            let state = match &task.progress {
                TaskProgress::Done => "done".into(),
                TaskProgress::Working { host, process } => format!("on {host} ({process})"),
                TaskProgress::Failed { why } => format!("failed: {why}"),
                TaskProgress::Waiting => "waiting".into(),
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
    plan: &MatrixPlan,
    id: &str,
    store: &dyn Store,
    json: bool,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let cells = results(plan, store, work)?;
    if json {
        output.json(&PlanDocument { schema: RESULTS_SCHEMA, plan: id, of: CellResults { cells } });
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

// Not a doc comment: it would replace the help of `check`.
#[derive(Debug, Args)]
pub struct MatrixAudit {
    /// Check also this store of matrices: a directory or a URL; may be repeated; the store in the
    /// work directory is always checked
    #[arg(long, value_name = "URL")]
    store: Vec<String>,
}

#[derive(Serialize)]
struct AuditDocument {
    store: String,
    #[serde(flatten)]
    audit: StoreAudit,
}

impl AuditStores for MatrixAudit {
    fn audit(&self, work: &WorkDir, output: &CliOutput) -> Result<Vec<AuditedStore>, Failure> {
        let own = own_store(work);
        let own = Path::new(&own).is_dir().then(|| open(&own));
        // An empty or missing store that the user named is an error: the name is probably wrong.
        let named = self.store.iter().map(|address| open_existing(address));
        let audit = |store: crate::Result<Box<dyn Store>>| {
            let store = store?;
            let url = store.url();
            output.progress().note(&url);
            let audit = crate::audit(&*store, work)?;
            let wrong = audit.findings.iter();
            let mut lines: Vec<String> =
                wrong.map(|finding| format!("{url}: {}: {}", finding.object, finding.what)).collect();
            lines.push(format!("{url}: {} objects, {} wrong", audit.objects, audit.findings.len()));
            let is_whole = audit.findings.is_empty();
            let document = serde_json::json!(AuditDocument { store: url, audit });
            Ok(AuditedStore { document, lines, is_whole })
        };
        own.into_iter().chain(named).map(audit).collect()
    }
}
