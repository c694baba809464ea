//! Works on a whole plan on one machine, alongside other machines that may work on the same plan.

use crate::schedule::{next, MachineLoad};
use crate::{claim, worker, CoreDemand, Error, MatrixPlan, Result, Store, Task, TaskOutcome};
use kerntune_work::{interrupt, Id};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval at which the store is asked for results of other machines.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Attempts at a task whose process is killed.
const MAX_TRIES: usize = 3;

/// Progress of a [`TaskPool`].
#[derive(Debug)]
pub enum PoolEvent<'a> {
    /// This machine begins a task.
    Begun(&'a Task),
    /// This machine ended a task.
    Ended {
        /// The ended task.
        task: &'a Task,
        /// Its outcome on this machine.
        outcome: &'a TaskOutcome,
        /// Wall-clock time of the task.
        took: Duration,
    },
    /// Another machine published the task's result.
    Elsewhere(&'a Task),
    /// This machine could not compute a task; other machines may, or this one later.
    Stopped {
        /// The task that remains.
        task: &'a Task,
        /// Reason why this machine could not compute it.
        error: &'a Error,
    },
}

/// Outcome of working on a plan.
#[derive(Debug, Default)]
pub struct PoolSummary {
    /// Outcomes of the tasks that this machine ended.
    pub outcomes: BTreeMap<Id, TaskOutcome>,
    /// Number of tasks whose results other machines published, during the run or before.
    pub elsewhere: usize,
    /// Tasks that could not begin, because a task that they need failed or was refused.
    pub blocked: Vec<Id>,
    /// Tasks that this machine could not compute, with the reasons.
    pub errors: Vec<(Id, Error)>,
}

/// Computes the tasks of a plan on this machine.
pub struct TaskPool<'a> {
    /// Plan to work on.
    pub plan: &'a MatrixPlan,
    /// Store of results and claims.
    pub store: &'a dyn Store,
    /// CPUs that tasks may occupy.
    pub cores: usize,
    /// Computes one task like [`crate::Worker::compute`], in another process or this one. Called
    /// from several threads.
    pub run: &'a (dyn Fn(&Task) -> Result<TaskOutcome> + Sync),
    /// Also computes tasks that have a result, to confirm it.
    pub confirm: bool,
    /// Called at each event, with the numbers of ended and of all tasks.
    pub on_event: &'a (dyn Fn(usize, usize, PoolEvent) + Sync),
}

impl TaskPool<'_> {
    /// Computes every task that this machine can compute, or waits for other machines to do so.
    /// Returns when each task has a result, failed, was refused, or needs a task that failed or was
    /// refused.
    ///
    /// # Errors
    /// A store that does not answer; an interrupt, after running tasks have ended. Errors of single
    /// tasks are in the summary.
    pub fn run(&self) -> Result<PoolSummary> {
        let mut state = PoolState {
            done: BTreeSet::new(),
            over: BTreeSet::new(),
            running: BTreeMap::new(),
            tries: BTreeMap::new(),
        };
        let mut summary = PoolSummary::default();
        let (sender, ends) = channel();
        std::thread::scope(|scope| loop {
            if interrupt::is_set() {
                // The threads end soon: what they run sees the interrupt too.
                return Err(kerntune_work::Error::Interrupted.into());
            }
            self.note_finished(&mut state, &mut summary)?;
            while let Some(task) = self.choose(&state)? {
                state.running.insert(task.id.clone(), task.kind.cores());
                self.notify(&state, PoolEvent::Begun(task));
                let (sender, run) = (sender.clone(), self.run);
                scope.spawn(move || {
                    let began = Instant::now();
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(task)));
                    // The receiver is gone once the pool has returned.
                    let _ = sender.send((task, caught.unwrap_or(Err(Error::Panicked)), began.elapsed()));
                });
            }
            if state.running.is_empty() && self.ready(&state).next().is_none() {
                summary.blocked = self.remaining(&state).map(|task| task.id.clone()).collect();
                return Ok(summary);
            }
            match ends.recv_timeout(POLL_INTERVAL) {
                Ok((task, outcome, took)) => self.note_end(&mut state, &mut summary, task, outcome, took),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        })
    }

    fn notify(&self, state: &PoolState, event: PoolEvent) {
        (self.on_event)(state.done.len() + state.over.len(), self.plan.tasks.len(), event);
    }

    /// Notes the tasks that other machines finished.
    fn note_finished(&self, state: &mut PoolState, summary: &mut PoolSummary) -> Result<()> {
        if self.confirm {
            return Ok(());
        }
        let finished = worker::finished(self.store)?;
        for task in &self.plan.tasks {
            let ours = state.running.contains_key(&task.id) || summary.outcomes.contains_key(&task.id);
            if finished.contains(&task.id) && !ours && state.done.insert(task.id.clone()) {
                summary.elsewhere += 1;
                state.over.remove(&task.id);
                self.notify(state, PoolEvent::Elsewhere(task));
            }
        }
        Ok(())
    }

    /// Tasks that are neither finished, given up nor running here.
    fn remaining<'s>(&'s self, state: &'s PoolState) -> impl Iterator<Item = &'s Task> {
        let is_left = |task: &&Task| {
            let id = &task.id;
            !state.done.contains(id) && !state.over.contains(id) && !state.running.contains_key(id)
        };
        self.plan.tasks.iter().filter(is_left)
    }

    /// Remaining tasks whose needs are all finished.
    fn ready<'s>(&'s self, state: &'s PoolState) -> impl Iterator<Item = &'s Task> {
        self.remaining(state).filter(|task| task.needs.iter().all(|need| state.done.contains(need)))
    }

    /// Chooses the next task. One that another machine holds is chosen only when there is nothing
    /// else to do; the worker then waits for it.
    fn choose<'s>(&'s self, state: &PoolState) -> Result<Option<&'s Task>> {
        let ones = state.running.values().filter(|cores| **cores == CoreDemand::One).count();
        let load = MachineLoad { cores: self.cores, ones, all: state.running.len() > ones };
        // Each check is a request to the store, so stop at the first free task.
        let mut held = Vec::new();
        let mut free = Vec::new();
        for task in self.ready(state) {
            let wanted = task.kind.cores();
            if next([wanted], load).is_none() && wanted == CoreDemand::One {
                continue;
            }
            match claim::is_held(self.store, &task.id)? {
                true => held.push(task),
                false => {
                    free.push(task);
                    // Builds come first in a plan, so later tasks are no better than this one.
                    if wanted == CoreDemand::One {
                        break;
                    }
                }
            }
        }
        if let Some(at) = next(free.iter().map(|task| task.kind.cores()), load) {
            return Ok(self.plan.task(&free[at].id));
        }
        if !free.is_empty() || !state.running.is_empty() {
            return Ok(None);
        }
        Ok(held.first().and_then(|task| self.plan.task(&task.id)))
    }

    fn note_end(
        &self,
        state: &mut PoolState,
        summary: &mut PoolSummary,
        task: &Task,
        outcome: Result<TaskOutcome>,
        took: Duration,
    ) {
        state.running.remove(&task.id);
        match outcome {
            Ok(outcome) => {
                let is_done = matches!(
                    outcome,
                    TaskOutcome::Made | TaskOutcome::Found | TaskOutcome::Discarded | TaskOutcome::Confirmed
                );
                let list = if is_done { &mut state.done } else { &mut state.over };
                list.insert(task.id.clone());
                self.notify(state, PoolEvent::Ended { task, outcome: &outcome, took });
                summary.outcomes.insert(task.id.clone(), outcome);
            }
            Err(error) => {
                let tries = state.tries.entry(task.id.clone()).or_default();
                *tries += 1;
                if matches!(error, Error::Lost { .. }) && *tries < MAX_TRIES {
                    return self.notify(state, PoolEvent::Stopped { task, error: &error });
                }
                state.over.insert(task.id.clone());
                self.notify(state, PoolEvent::Stopped { task, error: &error });
                summary.errors.push((task.id.clone(), error));
            }
        }
    }
}

/// State of a running pool.
struct PoolState {
    done: BTreeSet<Id>,
    over: BTreeSet<Id>,
    running: BTreeMap<Id, CoreDemand>,
    tries: BTreeMap<Id, usize>,
}

impl PoolSummary {
    /// Checks whether every task has a result.
    pub fn is_whole(&self) -> bool {
        let good =
            |outcome: &TaskOutcome| !matches!(outcome, TaskOutcome::Failed(_) | TaskOutcome::Refused(_));
        self.blocked.is_empty() && self.errors.is_empty() && self.outcomes.values().all(good)
    }
}
