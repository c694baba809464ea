//! The command `kerntune worker`.

use super::local::{pool, LocalLimits};
use super::opening::{environment, OpenPlan, TrustOptions};
use crate::{open, TaskOutcome, Worker, REFUSED};
use clap::Args;
use kerntune_command::{say, work, CliOutput, Exit, Failure, GlobalOptions, RecordedProgress, RunSubcommand};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

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

impl RunSubcommand<GlobalOptions> for WorkerOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let open = OpenPlan::new(work(global)?, open(&self.store)?, &self.plan, output)?;
        let trust = open.trust(self.trust);
        let Some(task) = &self.task else {
            return pool(&open, &LocalLimits { cores: self.jobs, lease: self.lease, trust }, output);
        };
        let kept = RecordedProgress::new(output.progress());
        let OpenPlan { work, store, plan, .. } = &open;
        let environment = environment(work, &kept);
        let said = || kept.text();
        let lease = Duration::from_secs(self.lease);
        let worker = Worker { plan, store: Arc::clone(store), environment, lease, log: &said, trust };
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
