//! A matrix of kernels, configurations, compilers, recipes and workloads, computed on any number of
//! machines (docs/matrix.md).
//!
//! [`resolve`](resolve()) turns a [`PlanFile`] into a [`MatrixPlan`]: [`Task`]s, each with the
//! content of every input that decides its result, and the cells of the matrix that show these
//! results. Machines share results and claims through a [`Store`]: a directory, or an object store
//! that the program `kerntune-objects` reaches. [`Worker::compute`] claims one task, fetches what
//! it needs from the store, computes, and publishes the result once. [`TaskPool`] does this for a
//! whole plan on one machine; [`slurm`] submits the tasks to Slurm. Any number of machines may work
//! on one plan at the same time.
//!
//! Results do not depend on the machine: a machine whose inputs differ from those in the plan
//! refuses the task ([`TaskOutcome::Refused`]).

/// Hash of the code of this crate and of those below it; part of the keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod audit;
mod claim;
mod commands;
mod dirs;
mod dry_run;
mod error;
mod figures;
#[doc(hidden)]
pub mod fuzz_entry;
mod inputs;
mod launch;
mod ledger;
mod materials;
mod pack;
mod perform;
mod plan;
mod plan_file;
mod pool;
mod process;
mod recipe_table;
mod resolve;
pub mod schedule;
pub mod slurm;
mod store;
mod table;
mod task_result;
pub mod trust;
mod worker;

pub use audit::{audit, StoreAudit, StoreFinding};
pub use claim::{Claim, ClaimHolder, ClaimState, LEASE};
pub use dry_run::dry_run;
pub use error::{Error, Result};
pub use figures::{BuiltKernel, RunCounters};
pub use launch::{launch, REFUSED};
pub use perform::{RunCommand, TaskEnvironment};
pub use plan::{CoreDemand, KernelRef, MatrixCell, MatrixPlan, RefusedCell, SourceRef, Task, TaskKind};
pub use plan_file::PlanFile;
pub use pool::{PoolEvent, PoolSummary, TaskPool};
pub use resolve::resolve;
pub use store::{open, open_existing, DirectoryStore, DryRunStore, RemoteStore, Store, HELPER};
pub use table::{log, results, states, CellResult, TaskProgress, TaskStatus, RESULTS_SCHEMA, STATES_SCHEMA};
pub use trust::Trust;
pub use worker::{retry, TaskOutcome, Worker};

use kerntune_command::Room;

/// The commands of matrices and their workers.
pub static ROOM: Room = Room {
    commands: &[&commands::MATRIX, &commands::WORKER],
    audits: &[&commands::AUDIT],
    examples: include_str!("examples.tsv"),
    ..Room::EMPTY
};
