//! Tasks on this machine, in a pool of processes.

use super::opening::{OpenPlan, MATRIX_DIR};
use super::program::own_program;
use crate::{launch, MatrixPlan, PoolEvent, PoolSummary, Task, TaskOutcome, TaskPool, Trust, REFUSED};
use kerntune_command::{say, CliOutput, Exit, Failure};
use std::num::NonZeroUsize;
use std::process::Command;

/// Resources and trust for computing a plan on this machine.
pub(super) struct LocalLimits {
    pub cores: Option<NonZeroUsize>,
    /// Lease of claims, in seconds.
    pub lease: u64,
    pub trust: Trust,
}

/// Returns the options that give a worker process the same trust.
pub(super) fn trust_options(trust: Trust) -> impl Iterator<Item = &'static str> {
    let commands = trust.commands.then_some("--trust-commands");
    commands.into_iter().chain(trust.confirm.then_some("--confirm"))
}

/// Computes a plan on this machine, with each task in its own process.
pub(super) fn pool(open: &OpenPlan, limits: &LocalLimits, output: &CliOutput) -> Result<Exit, Failure> {
    let program = own_program()?;
    let OpenPlan { work, store, plan, id, .. } = open;
    let logs = work.root().join(MATRIX_DIR).join("logs").join(id);
    let run = |task: &Task| {
        let mut command = Command::new(&program);
        command.arg("--dir").arg(work.root()).args([
            "worker",
            "--store",
            &store.url(),
            "--plan",
            id.as_str(),
        ]);
        command
            .args(["--task", task.id.as_str(), "--lease", &limits.lease.to_string()])
            .args(trust_options(limits.trust));
        launch(command, &**store, task, &logs.join(format!("{}.log", task.id)))
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
    let cores = limits.cores.map_or(all, NonZeroUsize::get);
    let confirm = limits.trust.confirm;
    let pool = TaskPool { plan, store: &**store, cores, run: &run, confirm, on_event: &on_event };
    Ok(ended(plan, &pool.run()?))
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
