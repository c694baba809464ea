//! The store and the plan that a command names.

use super::program::own_command;
use crate::{open, resolve, DryRunStore, MatrixPlan, PlanFile, Store, TaskEnvironment, Trust};
use clap::Args;
use kerntune_command::{work, CliOutput, Failure, GlobalOptions};
use kerntune_kernel::Arch;
use kerntune_machine::machine_of;
use kerntune_work::{Progress, WorkDir};
use std::path::Path;
use std::sync::Arc;

/// Directory in the work directory with the default store and with logs.
pub(super) const MATRIX_DIR: &str = ".matrix";

/// The option `--store`: the directory or URL for results and claims.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// Store for results and claims: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    /// [default: .matrix/store in the work directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

impl StoreOptions {
    /// Opens the store, by default that of the work directory.
    pub(super) fn open(&self, work: &WorkDir) -> Result<Box<dyn Store>, Failure> {
        Ok(open(&self.address(work))?)
    }

    /// Opens the store, if it exists, in such a way that nothing is put into it.
    pub(super) fn open_for_dry_run(&self, work: &WorkDir) -> Result<Box<dyn Store>, Failure> {
        let address = self.address(work);
        let exists = address.contains("://") || Path::new(&address).is_dir();
        let existing = exists.then(|| open(&address)).transpose()?;
        Ok(Box::new(DryRunStore::new(&address, existing)))
    }

    fn address(&self, work: &WorkDir) -> String {
        self.store.clone().unwrap_or_else(|| own_store(work))
    }
}

/// Returns the path of the default store of a work directory.
pub(super) fn own_store(work: &WorkDir) -> String {
    work.root().join(MATRIX_DIR).join("store").display().to_string()
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

#[derive(Debug, Args)]
pub struct PlanOptions {
    /// The plan file, or the beginning of the plan's id
    pub plan: String,
    #[command(flatten)]
    pub store: StoreOptions,
}

impl PlanOptions {
    /// Opens the work directory, the store and the plan.
    pub(super) fn open(&self, global: &GlobalOptions, output: &CliOutput) -> Result<OpenPlan, Failure> {
        let work = work(global)?;
        let store = self.store.open(&work)?;
        OpenPlan::new(work, store, &self.plan, output)
    }
}

/// A plan in its store, and whether it is trusted.
pub(super) struct OpenPlan {
    pub work: WorkDir,
    pub store: Arc<dyn Store>,
    pub plan: MatrixPlan,
    pub id: String,
    /// Set if the plan was made from the user's own plan file, which is trusted.
    is_own: bool,
}

impl OpenPlan {
    /// Makes a plan from a plan file and puts it into the store, or loads the plan with this id
    /// from the store.
    pub fn new(
        work: WorkDir,
        store: Box<dyn Store>,
        plan: &str,
        output: &CliOutput,
    ) -> Result<Self, Failure> {
        // A missing name that looks like a path is reported as a missing plan file.
        let is_own = Path::new(plan).exists() || plan.contains('/');
        let (plan, id) = if is_own {
            let file = PlanFile::load(Path::new(plan))?;
            let plan = resolve(&file, &environment(&work, output.progress()), &*store)?;
            let id = plan.publish(&*store)?;
            (plan, id)
        } else {
            let plan = MatrixPlan::load(&*store, plan)?;
            let id = plan.id();
            (plan, id)
        };
        Ok(Self { work, store: Arc::from(store), plan, id, is_own })
    }

    pub fn trust(&self, asked: TrustOptions) -> Trust {
        Trust { commands: self.is_own || asked.trust_commands, confirm: asked.confirm }
    }
}

/// Returns the environment for tasks on this machine.
pub(super) fn environment<'a>(work: &'a WorkDir, progress: &'a dyn Progress) -> TaskEnvironment<'a> {
    TaskEnvironment { work, machine: &|| machine_of(Arch::default()), command: &own_command, progress }
}
