//! A matrix of kernels, configurations, compilers, recipes and workloads, computed wherever there are CPUs (docs/matrix.md).
//!
//! A [`PlanFile`] says what is wanted; [`resolve`](resolve()) makes a [`Plan`] of it: [`Task`]s, each with every input that decides its
//! result, by content, and the cells of the matrix that they are for. A [`Store`] is where results are found and claims are made:
//! a directory, or whatever the program `kerntune-objects` reaches. [`Worker::turn`] computes one task: it claims it, takes what it needs out of
//! the store, computes, and puts the result there, once. [`Pool`] does so for a whole plan on one machine, [`slurm`] hands tasks
//! to Slurm, and any number of machines may work on one plan at once.
//!
//! Nothing of a machine enters a result: a task whose inputs are others here than in the plan is left to others
//! ([`Turn::Refused`]).

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod audit;
mod claim;
mod error;
mod figures;
#[doc(hidden)]
pub mod foreign;
mod inputs;
mod launch;
mod ledger;
mod made;
mod materials;
mod pack;
mod perform;
mod plan;
mod plan_file;
mod pool;
mod process;
mod resolve;
mod room;
pub mod schedule;
pub mod slurm;
mod store;
mod table;
pub mod trust;
mod turn;

pub use audit::{audit, StoreAudit, StoreFinding};
pub use claim::{Claim, ClaimState, Holder, LEASE};
pub use error::{Error, Result};
pub use figures::{Built, Figures};
pub use launch::{launch, REFUSED};
pub use perform::{Place, RunCommand};
pub use plan::{Cell, Cores, KernelRef, Plan, SourceRef, Task, What};
pub use plan_file::PlanFile;
pub use pool::{Event, Pool, Summary};
pub use resolve::resolve;
pub use store::{existing, open, Directory, Remote, Store, HELPER};
pub use table::{log, results, states, CellResult, CellState, Progress, RESULTS_SCHEMA, STATES_SCHEMA};
pub use trust::Trust;
pub use turn::{retry, Turn, Worker};
