//! The command `kerntune matrix run`.

use super::local::{pool, trust_options, LocalLimits};
use super::opening::{OpenPlan, StoreOptions, TrustOptions, MATRIX_DIR};
use super::program::own_program;
use super::results::show_results;
use crate::slurm::{self, Slurm};
use crate::{dry_run, retry, states, TaskProgress};
use clap::{Args, ValueEnum};
use kerntune_command::{
    show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand,
};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

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
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatrixEngine {
    Local,
    Slurm,
}

impl RunSubcommand<GlobalOptions> for MatrixRunOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let of_slurm = [!self.sbatch.is_empty(), self.node_dir.is_some(), self.node_program.is_some()];
        if self.engine == MatrixEngine::Local && of_slurm.contains(&true) {
            return Err(Failure::usage("--sbatch, --node-dir and --node-program are for --engine slurm"));
        }
        if self.engine == MatrixEngine::Slurm && self.jobs.is_some() {
            return Err(Failure::usage("--jobs is for --engine local: Slurm knows the nodes"));
        }
        let work = self.dry.work(global)?;
        if self.dry.dry_run {
            let store = self.store.open_for_dry_run(&work)?;
            let OpenPlan { work, store, plan, .. } = OpenPlan::new(work, store, &self.plan, output)?;
            let session = Session::new(&work, output.progress())?;
            let mut dry = DryRun::new(&session);
            dry_run(&mut dry, &plan, &*store)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        let store = self.store.open(&work)?;
        let open = OpenPlan::new(work, store, &self.plan, output)?;
        if self.retry {
            retry(&open.plan, &*open.store)?;
        }
        let exit = match self.engine {
            MatrixEngine::Local => {
                let trust = open.trust(self.trust);
                pool(&open, &LocalLimits { cores: self.jobs, lease: self.lease, trust }, output)?
            }
            MatrixEngine::Slurm => by_slurm(&open, self, output)?,
        };
        show_results(&open, self.format.json, output)?;
        Ok(exit)
    }
}

fn by_slurm(open: &OpenPlan, options: &MatrixRunOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let OpenPlan { work, store, plan, id, .. } = open;
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
    worker.extend(trust_options(open.trust(options.trust)).map(str::to_owned));
    let slurm = Slurm {
        plan,
        store: &**store,
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
    let whole = states(plan, &**store)?.iter().all(|task| task.progress == TaskProgress::Done);
    Ok(if whole { Exit::Ok } else { Exit::Findings })
}
