//! A whole plan, or some of it, on one machine: beside others that work on the same, if there are.

use crate::schedule::{next, Load};
use crate::{claim, turn, Cores, Error, Plan, Result, Store, Task, Turn};
use kerntune_work::{interrupt, Id};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the store is asked what others did, at least.
const LOOK: Duration = Duration::from_secs(2);

/// So often a task is begun whose process is killed.
const MOST_TRIES: usize = 3;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A task begins here.
    Begun(&'a Task),
    /// It ended.
    Ended {
        /// Which.
        task: &'a Task,
        /// How.
        turn: &'a Turn,
        /// How long it took.
        took: Duration,
    },
    /// Another machine put its result there.
    Elsewhere(&'a Task),
    /// This machine could not go on with it; it is tried again by others, or later.
    Stopped {
        /// Which.
        task: &'a Task,
        /// Why.
        error: &'a Error,
    },
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Summary {
    /// Tasks by how they ended here.
    pub turns: BTreeMap<Id, Turn>,
    /// Tasks that others finished meanwhile, or before.
    pub elsewhere: usize,
    /// Tasks that were not begun, since one that they need failed or was left to others.
    pub blocked: Vec<Id>,
    /// What kept this machine from ending a task.
    pub errors: Vec<(Id, Error)>,
}

/// Works on a plan.
pub struct Pool<'a> {
    /// What is to be computed.
    pub plan: &'a Plan,
    /// Where results and claims are.
    pub store: &'a dyn Store,
    /// CPUs that may be used.
    pub cores: usize,
    /// Computes a task, as [`crate::Worker::turn`] does: in a process of its own, or here. Called from several threads.
    pub run: &'a (dyn Fn(&Task) -> Result<Turn> + Sync),
    /// Begin also what other machines computed, so that it is confirmed here.
    pub confirm: bool,
    /// Hears what happens.
    pub tell: &'a (dyn Fn(usize, usize, Event) + Sync),
}

impl Pool<'_> {
    /// Computes all tasks that can be computed here, or waits for others to do so. Ends when every task has a result, failed,
    /// was left to others, or needs one that did.
    ///
    /// # Errors
    /// A store that does not answer; an interrupt, after what runs has ended. What keeps a single task from its end is in the summary.
    pub fn run(&self) -> Result<Summary> {
        let mut state = Run {
            done: BTreeSet::new(),
            over: BTreeSet::new(),
            running: BTreeMap::new(),
            tries: BTreeMap::new(),
        };
        let mut summary = Summary::default();
        let (tell, told) = channel();
        std::thread::scope(|scope| loop {
            if interrupt::is_set() {
                // Threads end when what they run has: it hears of the interrupt as well.
                return Err(kerntune_work::Error::Interrupted.into());
            }
            self.look(&mut state, &mut summary)?;
            while let Some(task) = self.choose(&state)? {
                state.running.insert(task.id.clone(), task.what.cores());
                self.say(&state, Event::Begun(task));
                let (tell, run) = (tell.clone(), self.run);
                scope.spawn(move || {
                    let began = Instant::now();
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(task)));
                    // Nobody listens once all is over.
                    let _ = tell.send((task, caught.unwrap_or(Err(Error::Panicked)), began.elapsed()));
                });
            }
            if state.running.is_empty() && self.open(&state).next().is_none() {
                summary.blocked = self.left(&state).map(|task| task.id.clone()).collect();
                return Ok(summary);
            }
            match told.recv_timeout(LOOK) {
                Ok((task, turn, took)) => self.ended(&mut state, &mut summary, task, turn, took),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        })
    }

    fn say(&self, state: &Run, event: Event) {
        (self.tell)(state.done.len() + state.over.len(), self.plan.tasks.len(), event);
    }

    /// What others did.
    fn look(&self, state: &mut Run, summary: &mut Summary) -> Result<()> {
        if self.confirm {
            return Ok(());
        }
        let finished = turn::finished(self.store)?;
        for task in &self.plan.tasks {
            let ours = state.running.contains_key(&task.id) || summary.turns.contains_key(&task.id);
            if finished.contains(&task.id) && !ours && state.done.insert(task.id.clone()) {
                summary.elsewhere += 1;
                state.over.remove(&task.id);
                self.say(state, Event::Elsewhere(task));
            }
        }
        Ok(())
    }

    /// Tasks that are neither done nor given up nor under way here.
    fn left<'s>(&'s self, state: &'s Run) -> impl Iterator<Item = &'s Task> {
        let is_left = |task: &&Task| {
            let id = &task.id;
            !state.done.contains(id) && !state.over.contains(id) && !state.running.contains_key(id)
        };
        self.plan.tasks.iter().filter(is_left)
    }

    /// Of these, those that can be begun.
    fn open<'s>(&'s self, state: &'s Run) -> impl Iterator<Item = &'s Task> {
        self.left(state).filter(|task| task.needs.iter().all(|need| state.done.contains(need)))
    }

    /// What to begin now. What others hold is begun, and waited for, only when there is nothing else to do.
    fn choose<'s>(&'s self, state: &Run) -> Result<Option<&'s Task>> {
        let ones = state.running.values().filter(|cores| **cores == Cores::One).count();
        let load = Load { cores: self.cores, ones, all: state.running.len() > ones };
        // Asked of the store one after the other: only until one is found.
        let mut held = Vec::new();
        let mut free = Vec::new();
        for task in self.open(state) {
            let wanted = task.what.cores();
            if next([wanted], load).is_none() && wanted == Cores::One {
                continue;
            }
            match claim::is_held(self.store, &task.id)? {
                true => held.push(task),
                false => {
                    free.push(task);
                    // Builds come first in a plan: the rest is as good as this one.
                    if wanted == Cores::One {
                        break;
                    }
                }
            }
        }
        if let Some(at) = next(free.iter().map(|task| task.what.cores()), load) {
            return Ok(self.plan.task(&free[at].id));
        }
        if !free.is_empty() || !state.running.is_empty() {
            return Ok(None);
        }
        Ok(held.first().and_then(|task| self.plan.task(&task.id)))
    }

    fn ended(&self, state: &mut Run, summary: &mut Summary, task: &Task, turn: Result<Turn>, took: Duration) {
        state.running.remove(&task.id);
        match turn {
            Ok(turn) => {
                let is_done = matches!(turn, Turn::Made | Turn::Found | Turn::Discarded | Turn::Confirmed);
                let list = if is_done { &mut state.done } else { &mut state.over };
                list.insert(task.id.clone());
                self.say(state, Event::Ended { task, turn: &turn, took });
                summary.turns.insert(task.id.clone(), turn);
            }
            Err(error) => {
                let tries = state.tries.entry(task.id.clone()).or_default();
                *tries += 1;
                if matches!(error, Error::Lost { .. }) && *tries < MOST_TRIES {
                    return self.say(state, Event::Stopped { task, error: &error });
                }
                state.over.insert(task.id.clone());
                self.say(state, Event::Stopped { task, error: &error });
                summary.errors.push((task.id.clone(), error));
            }
        }
    }
}

/// How far it is.
struct Run {
    done: BTreeSet<Id>,
    over: BTreeSet<Id>,
    running: BTreeMap<Id, Cores>,
    tries: BTreeMap<Id, usize>,
}

impl Summary {
    /// Whether every task has its result.
    pub fn is_whole(&self) -> bool {
        let good = |turn: &Turn| !matches!(turn, Turn::Failed(_) | Turn::Refused(_));
        self.blocked.is_empty() && self.errors.is_empty() && self.turns.values().all(good)
    }
}
