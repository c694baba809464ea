//! Runs that do not need each other, several at once.
//!
//! The exact machine keeps one processor busy, and what else runs beside it changes none of its figures. So what is recorded for
//! one comparison is recorded on all processors, as far as there is memory for the guests.

use crate::{Result, Session};
use kerntune_work::{available_memory, interrupt, Progress};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a run takes beside the guest's own memory: the emulator's translations, its recorder, the tables of the analysis. In MiB.
const BESIDE_GUEST_MB: u64 = 1024;

/// Makes something of each item, in the order of the items, as many at once as this machine carries guests with
/// `memory_mb` MiB. `make` is handed a session whose progress is that of all together: one bar that counts items.
///
/// # Errors
/// Of the items that failed, what the first says. None is begun after a failure or an interrupt; what runs ends first, and is kept.
pub(crate) fn together<T, R>(
    session: &Session,
    memory_mb: u32,
    items: &[T],
    make: impl Fn(&Session, &T) -> Result<R> + Sync,
) -> Result<Vec<R>>
where
    T: Sync,
    R: Send,
{
    let processors = session.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let lanes = lanes(processors, available_memory(), memory_mb).min(items.len());
    let make = |session: &Session, item| {
        interrupt::check()?;
        make(session, item)
    };
    if lanes < 2 {
        return items.iter().map(|item| make(session, item)).collect();
    }
    let joined = Joined {
        shown: session.progress,
        lanes: lanes as u64,
        state: Mutex::new(State::Left(items.len() as u64)),
    };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lane = || {
        let session = session.telling(&joined);
        let mut made = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = make(&session, item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            joined.one_more();
            made.push((at, result));
        }
        made
    };
    let mut made: Vec<(usize, Result<R>)> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let joined = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    });
    joined.over();
    // Items are begun in their order: one is missing only behind one that failed.
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, result)| result).collect()
}

/// As many guests of this memory as there are processors for, and room beside each other; at least one.
fn lanes(processors: usize, available: Option<u64>, memory_mb: u32) -> usize {
    let each = (u64::from(memory_mb) + BESIDE_GUEST_MB) << 20;
    let fit = available.map_or(1, |bytes| usize::try_from(bytes / each).unwrap_or(usize::MAX));
    processors.min(fit).max(1)
}

/// One bar for all: what each run tells of itself is remarks beside it.
struct Joined<'a> {
    shown: &'a dyn Progress,
    lanes: u64,
    state: Mutex<State>,
}

enum State {
    /// Nothing began: what is done was found, and is no work that an estimate could go by. So many are left.
    Left(u64),
    /// The bar is shown, and has so many.
    Done(u64),
}

impl Joined<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_more(&self) {
        match &mut *self.state() {
            State::Left(left) => *left -= 1,
            State::Done(done) => {
                *done += 1;
                self.shown.at(*done);
            }
        }
    }

    fn over(&self) {
        if let State::Done(_) = *self.state() {
            self.shown.end();
        }
    }
}

impl Progress for Joined<'_> {
    fn begin(&self, what: &str, _: Option<u64>) {
        let mut state = self.state();
        if let State::Left(left) = *state {
            let what = match left {
                1 => "1 run".into(),
                _ => format!("{left} runs, {} at once", left.min(self.lanes)),
            };
            self.shown.begin(&what, Some(left));
            *state = State::Done(0);
        }
        self.shown.note(what);
    }

    fn at(&self, _: u64) {}

    fn note(&self, line: &str) {
        self.shown.note(line);
    }

    fn end(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use kerntune_machine::{Machine, Outcome, RunRequest};
    use kerntune_work::WorkDir;
    use std::path::Path;
    use std::time::Duration;

    /// A machine on which nothing runs.
    #[derive(Debug)]
    struct Idle;

    impl Machine for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn identity(&self) -> kerntune_machine::Result<String> {
            Ok("idle".into())
        }

        fn run(&self, _: &RunRequest, _: &Path, _: &dyn Progress) -> kerntune_machine::Result<Outcome> {
            unreachable!("nothing is run")
        }
    }

    /// What is told, a line each.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Told {
        fn add(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }
    }

    impl Progress for Told {
        fn begin(&self, _: &str, total: Option<u64>) {
            self.add(format!("begin {total:?}"));
        }

        fn at(&self, done: u64) {
            self.add(format!("at {done}"));
        }

        fn note(&self, line: &str) {
            self.add(line.into());
        }

        fn end(&self) {
            self.add("end".into());
        }
    }

    fn with<R>(told: &Told, check: impl FnOnce(&Session) -> R) -> R {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        check(&Session::with(Box::new(Idle), &work, told).unwrap())
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        let made = with(&Told::default(), |session| together(session, 1, &items, |_, item| Ok(item * 2)));
        assert_eq!(made.unwrap(), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        let none = with(&Told::default(), |session| together(session, 1, &[], |_, item: &u32| Ok(*item)));
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn the_first_failure_is_told_and_nothing_is_begun_after_it() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let fail = |_: &Session, item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            match item {
                3 => return Err(Error::TwoRecipes),
                0..3 => {}
                // As long as a lane may be kept from telling of its failure, by far.
                _ => thread::sleep(Duration::from_millis(5)),
            }
            Ok(*item)
        };
        let made = with(&Told::default(), |session| together(session, 1, &items, fail));
        assert!(matches!(made, Err(Error::TwoRecipes)), "{made:?}");
        // Other lanes may be some items ahead, but not all of them.
        assert!((4..1000).contains(&begun.into_inner()));
    }

    #[test]
    fn one_bar_counts_all_and_none_is_shown_where_nothing_begins() {
        let told = Told::default();
        with(&told, |session| together(session, 1, &[1, 2, 3], |_, _| Ok(()))).unwrap();
        assert!(told.0.into_inner().unwrap().is_empty());

        let told = Told::default();
        with(&told, |session| {
            together(session, 1, &[1, 2, 3], |session, item| {
                session.progress.begin(&format!("run {item}"), None);
                session.progress.end();
                Ok(())
            })
        })
        .unwrap();
        let lines = told.0.into_inner().unwrap();
        let count = |line: &str| lines.iter().filter(|told| *told == line).count();
        // Where one processor or little memory leaves one lane, each run has its own bar.
        if count("begin None") == 0 {
            assert_eq!((count("begin Some(3)"), count("at 3"), count("end")), (1, 1, 1), "{lines:?}");
            assert_eq!([1, 2, 3].map(|item| count(&format!("run {item}"))), [1, 1, 1], "{lines:?}");
        } else {
            assert_eq!((count("begin None"), count("end")), (3, 3), "{lines:?}");
        }
    }

    #[test]
    fn what_was_found_before_anything_began_is_not_on_the_bar() {
        let told = Told::default();
        let joined = Joined { shown: &told, lanes: 2, state: Mutex::new(State::Left(4)) };
        joined.one_more();
        joined.one_more();
        joined.begin("run 2", None);
        joined.one_more();
        joined.begin("run 3", None);
        joined.one_more();
        joined.over();
        assert_eq!(*told.0.lock().unwrap(), ["begin Some(2)", "run 2", "at 1", "run 3", "at 2", "end"]);
    }

    #[test]
    fn guests_have_room_beside_each_other() {
        let gib = |count: u64| Some(count << 30);
        assert_eq!(lanes(8, gib(24), 1024), 8);
        assert_eq!(lanes(8, gib(24), 7 * 1024), 3);
        assert_eq!(lanes(8, gib(1), 1024), 1);
        // Where nobody says how much there is.
        assert_eq!(lanes(8, None, 1024), 1);
    }
}
