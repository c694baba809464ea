//! The command `kerntune matrix status`.

use super::opening::PlanOptions;
use crate::{states, TaskProgress, TaskStatus, STATES_SCHEMA};
use clap::Args;
use kerntune_command::{CliOutput, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand};
use serde::Serialize;

#[derive(Debug, Args)]
pub struct MatrixStatusOptions {
    #[command(flatten)]
    plan: PlanOptions,
    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct StatesJson<'a> {
    schema: &'static str,
    plan: &'a str,
    tasks: Vec<TaskStatus>,
}

impl RunSubcommand<GlobalOptions> for MatrixStatusOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let open = self.plan.open(global, output)?;
        let tasks = states(&open.plan, &*open.store)?;
        match self.format.json {
            true => output.json(&StatesJson { schema: STATES_SCHEMA, plan: &open.id, tasks }),
            false => show_states(&tasks, output),
        }
        Ok(Exit::Ok)
    }
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
