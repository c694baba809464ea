//! Claims: who computes a task.
//!
//! The n-th claim of a task is the object `claims/TASK/n`, which only one can make. Its holder changes it again and again while it
//! works, so that others see that it lives. Whoever sees no change for a while, by a clock of his own, makes claim n+1: no two
//! machines' clocks have to agree. Two that work on one task all the same, since one of them only seemed dead, cost time and no
//! more: a result is put there once.

use crate::figures::bytes;
use crate::made::{damaged, decode};
use crate::process::{began_at, process};
use crate::{Error, Result, Store};
use kerntune_work::{interrupt, Id};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After so long without a sign of life a claim is taken over.
pub const LEASE: Duration = Duration::from_secs(60);

/// Who holds a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// Which boot of it, and which container: within these, processes can be asked for.
    pub inside: String,
    /// The process and when it began.
    pub process: String,
}

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// It is being worked on.
    Working,
    /// The result is there, made under this claim.
    Made,
    /// Somebody else put the same result there first.
    Discarded,
    /// The task failed.
    Failed,
    /// Given up without a result: interrupted, or a machine that cannot.
    Released,
}

/// A claim as it is in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    schema: String,
    /// Whose.
    pub holder: Holder,
    /// How far.
    pub state: ClaimState,
    /// Grows while it is worked on.
    pub beat: u64,
}

impl Holder {
    /// This process.
    pub fn own() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let link =
            |path: &str| std::fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default();
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            inside: format!("{} {}", read("/proc/sys/kernel/random/boot_id"), link("/proc/self/ns/pid")),
            process: process(),
        }
    }

    /// Whether it is known to be gone. Only a process of the same machine and container can be asked for.
    fn is_gone(&self, own: &Self) -> bool {
        if self.host != own.host || self.inside != own.inside || self.process == own.process {
            return false;
        }
        let Some((number, began)) = self.process.split_once('@') else { return false };
        began_at(number).as_deref() != Some(began)
    }
}

/// Name and version of a claim's form.
const CLAIM: &str = "kerntune-claim/1";
/// The largest number of a claim. No task is claimed so often, and the next number is one that exists.
const LAST: u64 = 999_999_999;

impl Claim {
    fn new(holder: Holder) -> Self {
        Self { schema: CLAIM.into(), holder, state: ClaimState::Working, beat: 0 }
    }
}

fn object(task: &Id, number: u64) -> String {
    format!("claims/{task}/{number:04}")
}

/// The number of a claim of this name, if it is one.
fn number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number <= LAST && name == format!("{number:04}")).then_some(number)
}

/// The claim of this name among those of a task; none if it is no name of a claim.
pub(crate) fn named(store: &dyn Store, task: &Id, name: &str) -> Result<Option<Claim>> {
    number(name).map_or(Ok(None), |number| read(store, task, number))
}

/// The numbers of a task's claims, ascending. Other names beside them, such as a copy that a program made, are nobody's claims.
fn numbers(store: &dyn Store, task: &Id) -> Result<Vec<u64>> {
    let start = format!("claims/{task}/");
    let names = store.list(&start)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name.strip_prefix(&start)?)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The claims of a task, in order.
pub(crate) fn claims(store: &dyn Store, task: &Id) -> Result<Vec<(u64, Claim)>> {
    let mut found = Vec::new();
    for number in numbers(store, task)? {
        found.extend(read(store, task, number)?.map(|claim| (number, claim)));
    }
    Ok(found)
}

/// A claim; none if it is gone.
fn read(store: &dyn Store, task: &Id, number: u64) -> Result<Option<Claim>> {
    let name = object(task, number);
    let Some(bytes) = store.get(&name)? else { return Ok(None) };
    decode(store, &name, &bytes, CLAIM).map(Some)
}

/// The last claim of a task.
///
/// # Errors
/// [`Error::Object`] for one that is damaged.
pub(crate) fn last(store: &dyn Store, task: &Id) -> Result<Option<(u64, Claim)>> {
    let Some(number) = numbers(store, task)?.pop() else { return Ok(None) };
    Ok(read(store, task, number)?.map(|claim| (number, claim)))
}

/// Whether somebody seems to work on it who is not known to be gone.
pub(crate) fn is_held(store: &dyn Store, task: &Id) -> Result<bool> {
    let own = Holder::own();
    let held = |claim: &Claim| claim.state == ClaimState::Working && !claim.holder.is_gone(&own);
    Ok(last(store, task)?.is_some_and(|(_, claim)| held(&claim)))
}

/// Makes a claim, and waits for it while others hold it. None once `done` says that it is of no use any more.
pub(crate) fn take(
    store: &Arc<dyn Store>,
    task: &Id,
    lease: Duration,
    done: &dyn Fn() -> Result<bool>,
) -> Result<Option<Held>> {
    let own = Holder::own();
    let mut seen: Option<((u64, u64), Instant)> = None;
    let mut pause = Duration::from_millis(50);
    loop {
        interrupt::check().map_err(Error::from)?;
        if done()? {
            return Ok(None);
        }
        let number = match last(&**store, task)? {
            None => 1,
            Some((number, claim)) => {
                let is_over = claim.state != ClaimState::Working || claim.holder.is_gone(&own);
                let now = (number, claim.beat);
                let is_still = match seen {
                    Some((then, since)) if then == now => since.elapsed() >= lease,
                    _ => {
                        seen = Some((now, Instant::now()));
                        false
                    }
                };
                if !is_over && !is_still {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(lease / 8).min(Duration::from_secs(5));
                    continue;
                }
                number + 1
            }
        };
        let name = object(task, number);
        if number > LAST {
            return Err(damaged(&**store, &name, "there are no numbers after it"));
        }
        let claim = Claim::new(own.clone());
        if store.put_new(&name, &bytes(&claim))? {
            return Ok(Some(Held::new(store.clone(), task, number, claim, lease)));
        }
        // Somebody else was faster.
        std::thread::sleep(pause);
    }
}

/// A claim that is ours. Dropped without [`Held::end`] it is given up.
pub(crate) struct Held {
    store: Arc<dyn Store>,
    name: String,
    /// Which claim of the task it is.
    pub number: u64,
    claim: Claim,
    beats: Option<(Sender<()>, JoinHandle<u64>)>,
}

impl Held {
    fn new(store: Arc<dyn Store>, task: &Id, number: u64, claim: Claim, lease: Duration) -> Self {
        let name = object(task, number);
        let (stop, stopped) = channel();
        let (own, at, mut beating) = (store.clone(), name.clone(), claim.clone());
        let thread = std::thread::spawn(move || {
            // Dropping the sender ends it, as well.
            while stopped.recv_timeout(lease / 4) == Err(RecvTimeoutError::Timeout) {
                beating.beat += 1;
                // One that is lost is one of several within a lease.
                let _ = own.put(&at, &bytes(&beating));
            }
            beating.beat
        });
        Self { store, name, number, claim, beats: Some((stop, thread)) }
    }

    /// Says how it ended.
    pub fn end(mut self, state: ClaimState) -> Result<()> {
        self.close(state)
    }

    fn close(&mut self, state: ClaimState) -> Result<()> {
        let Some((stop, thread)) = self.beats.take() else { return Ok(()) };
        drop(stop);
        self.claim.beat = thread.join().unwrap_or_default();
        self.claim.state = state;
        self.store.put(&self.name, &bytes(&self.claim))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Who comes next waits for a lease if this is lost.
        let _ = self.close(ClaimState::Released);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Directory;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(Directory::open(dir.path()).unwrap());
        (dir, store)
    }

    fn task() -> Id {
        "t".parse().unwrap()
    }

    #[test]
    fn names_beside_claims_are_passed_over_and_the_largest_number_is_the_last() {
        let (_dir, store) = store();
        let over = Claim { state: ClaimState::Released, ..Claim::new(Holder::own()) };
        for name in ["0001", "0001.bak", "x", "12", "00002", "9999", "10000", "18446744073709551615", "+7"] {
            store.put(&format!("claims/t/{name}"), &bytes(&over)).unwrap();
        }
        assert_eq!(numbers(&*store, &task()).unwrap(), [1, 9999, 10_000]);
        assert_eq!(take(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap().number, 10_001);
        store.put(&object(&task(), LAST), &bytes(&over)).unwrap();
        let error = take(&store, &task(), LEASE, &|| Ok(false)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no numbers after it"), "{error}");
    }

    #[test]
    fn a_changed_claim_is_refused() {
        let (_dir, store) = store();
        let whole = bytes(&Claim::new(Holder::own()));
        let changed = String::from_utf8(whole).unwrap().replace("\"beat\": 0", "\"beat\": 1");
        store.put(&object(&task(), 1), changed.as_bytes()).unwrap();
        assert!(matches!(last(&*store, &task()), Err(Error::Object { .. })));
    }

    #[test]
    fn one_holds_a_claim_and_the_next_has_it_when_it_is_given_up() {
        let (_dir, store) = store();
        let holds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let held = take(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap();
                    assert_eq!(holds.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::sleep(Duration::from_millis(5));
                    holds.fetch_sub(1, Ordering::SeqCst);
                    held.end(ClaimState::Released).unwrap();
                });
            }
        });
        let all = claims(&*store, &task()).unwrap();
        let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    }

    #[test]
    fn what_shows_no_life_is_taken_over_and_what_does_is_not() {
        let (_dir, store) = store();
        let (short, done) = (Duration::from_millis(200), || Ok(false));
        // Of another machine, which is silent.
        let holder = Holder { host: "elsewhere".into(), ..Holder::own() };
        let claim = Claim { beat: 7, ..Claim::new(holder) };
        store.put(&object(&task(), 3), &bytes(&claim)).unwrap();
        assert!(is_held(&*store, &task()).unwrap());
        let held = take(&store, &task(), short, &done).unwrap().unwrap();
        assert_eq!(held.number, 4);
        // We live: others wait until it is done, longer than their lease. It is many of our beats, so that a machine which does much
        // else may be late.
        let (tries, patient) = (AtomicUsize::new(0), Duration::from_secs(3));
        let waited =
            take(&store, &task(), patient, &|| Ok(tries.fetch_add(1, Ordering::SeqCst) > 14)).unwrap();
        assert!(waited.is_none());
        held.end(ClaimState::Made).unwrap();
        assert!(!is_held(&*store, &task()).unwrap());
    }

    #[test]
    fn a_process_of_this_machine_that_is_gone_is_not_waited_for() {
        let (_dir, store) = store();
        // No process has this number.
        let holder = Holder { process: "4194305@1".into(), ..Holder::own() };
        store.put(&object(&task(), 1), &bytes(&Claim::new(holder))).unwrap();
        assert!(!is_held(&*store, &task()).unwrap());
        assert_eq!(take(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap().number, 2);
    }
}
