//! Claims say which machine computes a task.
//!
//! The n-th claim of a task is the object `claims/TASK/n`; the store lets only one machine create
//! it. While it works, the holder keeps changing the claim's `beat`. A machine that sees no change
//! for a lease, by its own clock, creates claim n+1, so clocks need not agree. If two machines do
//! compute one task, because one only seemed dead, that costs time and nothing else: a result is
//! published once.

use crate::figures::bytes;
use crate::process::{began_at, process};
use crate::task_result::{damaged, decode};
use crate::{Error, Result, Store};
use kerntune_work::{interrupt, Id};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time without a change after which another machine may take over a claim.
pub const LEASE: Duration = Duration::from_secs(60);

/// The process that holds a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimHolder {
    /// Name of the machine.
    pub host: String,
    /// Boot id and PID namespace: a process can be looked up only from the same ones.
    pub inside: String,
    /// Process number and start time, as `PID@START`.
    pub process: String,
}

/// State of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// The holder computes the task.
    Working,
    /// The holder published the result.
    Made,
    /// The holder computed the result after another machine had published the same.
    Discarded,
    /// The task failed.
    Failed,
    /// Given up without a result: interrupted, or this machine cannot compute it.
    Released,
}

/// A claim as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    schema: String,
    /// Process that holds the claim.
    pub holder: ClaimHolder,
    /// Progress of the holder.
    pub state: ClaimState,
    /// Counter that grows while the holder is alive.
    pub beat: u64,
}

impl ClaimHolder {
    /// Describes this process.
    pub fn current() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let link =
            |path: &str| std::fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default();
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            inside: format!("{} {}", read("/proc/sys/kernel/random/boot_id"), link("/proc/self/ns/pid")),
            process: process(),
        }
    }

    /// Checks whether the holder is known to be dead, which only works within the same boot and PID
    /// namespace.
    fn is_gone(&self, own: &Self) -> bool {
        if self.host != own.host || self.inside != own.inside || self.process == own.process {
            return false;
        }
        let Some((number, began)) = self.process.split_once('@') else { return false };
        began_at(number).as_deref() != Some(began)
    }
}

/// Schema of a claim.
const CLAIM: &str = "kerntune-claim/1";
/// Largest number of a claim; in practice never reached.
const MAX_NUMBER: u64 = 999_999_999;

impl Claim {
    fn new(holder: ClaimHolder) -> Self {
        Self { schema: CLAIM.into(), holder, state: ClaimState::Working, beat: 0 }
    }
}

fn object(task: &Id, number: u64) -> String {
    format!("claims/{task}/{number:04}")
}

/// Parses an object's name as the number of a claim.
fn number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number <= MAX_NUMBER && name == format!("{number:04}")).then_some(number)
}

/// Reads a claim by its name; `None` if the name is not a claim's.
pub(crate) fn read_named(store: &dyn Store, task: &Id, name: &str) -> Result<Option<Claim>> {
    number(name).map_or(Ok(None), |number| read(store, task, number))
}

/// Returns the numbers of a task's claims, ascending. Ignores other names, such as copies that
/// backup programs make.
fn numbers(store: &dyn Store, task: &Id) -> Result<Vec<u64>> {
    let start = format!("claims/{task}/");
    let names = store.list(&start)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name.strip_prefix(&start)?)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the claims of a task, in order.
pub(crate) fn claims(store: &dyn Store, task: &Id) -> Result<Vec<(u64, Claim)>> {
    let mut found = Vec::new();
    for number in numbers(store, task)? {
        found.extend(read(store, task, number)?.map(|claim| (number, claim)));
    }
    Ok(found)
}

fn read(store: &dyn Store, task: &Id, number: u64) -> Result<Option<Claim>> {
    let name = object(task, number);
    let Some(bytes) = store.get(&name)? else { return Ok(None) };
    decode(store, &name, &bytes, CLAIM).map(Some)
}

/// Returns the last claim of a task.
///
/// # Errors
/// [`Error::Object`] for a damaged claim.
pub(crate) fn last(store: &dyn Store, task: &Id) -> Result<Option<(u64, Claim)>> {
    let Some(number) = numbers(store, task)?.pop() else { return Ok(None) };
    Ok(read(store, task, number)?.map(|claim| (number, claim)))
}

/// Checks whether a process works on the task that is not known to be dead.
pub(crate) fn is_held(store: &dyn Store, task: &Id) -> Result<bool> {
    let own = ClaimHolder::current();
    let held = |claim: &Claim| claim.state == ClaimState::Working && !claim.holder.is_gone(&own);
    Ok(last(store, task)?.is_some_and(|(_, claim)| held(&claim)))
}

/// Claims a task, waiting while others hold it. Returns `None` once `done` says that the claim is
/// no longer needed.
pub(crate) fn acquire(
    store: &Arc<dyn Store>,
    task: &Id,
    lease: Duration,
    done: &dyn Fn() -> Result<bool>,
) -> Result<Option<ClaimGuard>> {
    let own = ClaimHolder::current();
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
        if number > MAX_NUMBER {
            return Err(damaged(&**store, &name, "there are no numbers after it"));
        }
        let claim = Claim::new(own.clone());
        if store.put_new(&name, &bytes(&claim))? {
            return Ok(Some(ClaimGuard::new(store.clone(), task, number, claim, lease)));
        }
        // Another machine was faster.
        std::thread::sleep(pause);
    }
}

/// A claim that this process holds. Released on drop unless [`ClaimGuard::end`] is called.
pub(crate) struct ClaimGuard {
    store: Arc<dyn Store>,
    name: String,
    /// Number of the claim among those of the task.
    pub number: u64,
    claim: Claim,
    beats: Option<(Sender<()>, JoinHandle<u64>)>,
}

impl ClaimGuard {
    fn new(store: Arc<dyn Store>, task: &Id, number: u64, claim: Claim, lease: Duration) -> Self {
        let name = object(task, number);
        let (stop, stopped) = channel();
        let (own, at, mut beating) = (store.clone(), name.clone(), claim.clone());
        let thread = std::thread::spawn(move || {
            // Dropping the sender ends the loop too.
            while stopped.recv_timeout(lease / 4) == Err(RecvTimeoutError::Timeout) {
                beating.beat += 1;
                // A lost beat does not matter: there are four in a lease.
                let _ = own.put(&at, &bytes(&beating));
            }
            beating.beat
        });
        Self { store, name, number, claim, beats: Some((stop, thread)) }
    }

    /// Ends the claim with this state.
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

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        // If this is lost, the next machine waits for a lease.
        let _ = self.close(ClaimState::Released);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirectoryStore;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(DirectoryStore::open(dir.path()).unwrap());
        (dir, store)
    }

    fn task() -> Id {
        "t".parse().unwrap()
    }

    #[test]
    fn names_beside_claims_are_passed_over_and_the_largest_number_is_the_last() {
        let (_dir, store) = store();
        let over = Claim { state: ClaimState::Released, ..Claim::new(ClaimHolder::current()) };
        for name in ["0001", "0001.bak", "x", "12", "00002", "9999", "10000", "18446744073709551615", "+7"] {
            store.put(&format!("claims/t/{name}"), &bytes(&over)).unwrap();
        }
        assert_eq!(numbers(&*store, &task()).unwrap(), [1, 9999, 10_000]);
        assert_eq!(acquire(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap().number, 10_001);
        store.put(&object(&task(), MAX_NUMBER), &bytes(&over)).unwrap();
        let error = acquire(&store, &task(), LEASE, &|| Ok(false)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no numbers after it"), "{error}");
    }

    #[test]
    fn a_changed_claim_is_refused() {
        let (_dir, store) = store();
        let whole = bytes(&Claim::new(ClaimHolder::current()));
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
                    let held = acquire(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap();
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
        // A silent holder on another machine.
        let holder = ClaimHolder { host: "elsewhere".into(), ..ClaimHolder::current() };
        let claim = Claim { beat: 7, ..Claim::new(holder) };
        store.put(&object(&task(), 3), &bytes(&claim)).unwrap();
        assert!(is_held(&*store, &task()).unwrap());
        let held = acquire(&store, &task(), short, &done).unwrap().unwrap();
        assert_eq!(held.number, 4);
        // Our beats keep the claim although the other waits longer than its lease. The lease is
        // many beats, so that a busy machine may be late.
        let (tries, patient) = (AtomicUsize::new(0), Duration::from_secs(3));
        let waited =
            acquire(&store, &task(), patient, &|| Ok(tries.fetch_add(1, Ordering::SeqCst) > 14)).unwrap();
        assert!(waited.is_none());
        held.end(ClaimState::Made).unwrap();
        assert!(!is_held(&*store, &task()).unwrap());
    }

    #[test]
    fn a_process_of_this_machine_that_is_gone_is_not_waited_for() {
        let (_dir, store) = store();
        // No process has this number.
        let holder = ClaimHolder { process: "4194305@1".into(), ..ClaimHolder::current() };
        store.put(&object(&task(), 1), &bytes(&Claim::new(holder))).unwrap();
        assert!(!is_held(&*store, &task()).unwrap());
        assert_eq!(acquire(&store, &task(), LEASE, &|| Ok(false)).unwrap().unwrap().number, 2);
    }
}
