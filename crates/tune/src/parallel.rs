//! Independent runs, several at a time.
//!
//! The exact machine uses one processor, and other load on the host does not change its figures. So
//! the recordings of a comparison run on all processors, as far as memory allows.

use crate::{Result, Session};
use kerntune_work::{available_memory, interrupt, Progress};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// MiB that a run takes besides the guest's memory: translated code, recorder, tables of the
/// analysis.
pub(crate) const BESIDE_GUEST_MB: u64 = 1024;

/// Calls `make` for each item and returns the results in the order of the items. As many calls run
/// at a time as this host can hold guests with `memory_mb` MiB. The session that `make` gets
/// reports progress as one common bar, which counts items.
///
/// # Errors
/// The error of the first failed item. No item is started after a failure or an interrupt; running
/// items end first, and their results are kept.
pub fn run_parallel<T, R>(
    session: &Session,
    memory_mb: u32,
    items: &[T],
    make: impl Fn(&Session, &T) -> Result<R> + Sync,
) -> Result<Vec<R>>
where
    T: Sync,
    R: Send,
{
    let lanes = lanes(session, memory_mb).min(items.len());
    let make = |session: &Session, item| {
        interrupt::check()?;
        make(session, item)
    };
    if lanes < 2 {
        return items.iter().map(|item| make(session, item)).collect();
    }
    let joined = CombinedProgress {
        shown: session.progress,
        lanes: lanes as u64,
        state: Mutex::new(BarState::Left(items.len() as u64)),
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
            joined.item_done();
            made.push((at, result));
        }
        made
    };
    let mut made: Vec<(usize, Result<R>)> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let joined = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    });
    joined.finish();
    // Items are started in order, so only items after a failed one are missing.
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, result)| result).collect()
}

/// Returns the number of guests with this memory that run at a time.
pub(crate) fn lanes(session: &Session, memory_mb: u32) -> usize {
    let processors = session.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    fitting(processors, available_memory(), memory_mb)
}

/// Returns the number of guests that processors and memory allow, at least one.
fn fitting(processors: usize, available: Option<u64>, memory_mb: u32) -> usize {
    let each = (u64::from(memory_mb) + BESIDE_GUEST_MB) << 20;
    let fit = available.map_or(1, |bytes| usize::try_from(bytes / each).unwrap_or(usize::MAX));
    processors.min(fit).max(1)
}

/// One progress bar for all runs; messages of single runs are shown beside it.
struct CombinedProgress<'a> {
    shown: &'a dyn Progress,
    lanes: u64,
    state: Mutex<BarState>,
}

enum BarState {
    /// Nothing has started: finished items were found and are no work to estimate from. Holds the
    /// items left.
    Left(u64),
    /// The bar is shown. Holds the finished items.
    Done(u64),
}

impl CombinedProgress<'_> {
    fn state(&self) -> MutexGuard<'_, BarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn item_done(&self) {
        match &mut *self.state() {
            BarState::Left(left) => *left -= 1,
            BarState::Done(done) => {
                *done += 1;
                self.shown.at(*done);
            }
        }
    }

    fn finish(&self) {
        if let BarState::Done(_) = *self.state() {
            self.shown.end();
        }
    }
}

impl Progress for CombinedProgress<'_> {
    fn begin(&self, what: &str, _: Option<u64>) {
        let mut state = self.state();
        if let BarState::Left(left) = *state {
            let what = match left {
                1 => "1 run".into(),
                _ => format!("{left} runs, {} at once", left.min(self.lanes)),
            };
            self.shown.begin(&what, Some(left));
            *state = BarState::Done(0);
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
    use kerntune_machine::{Machine, RunOutcome, RunRequest};
    use kerntune_work::WorkDir;
    use std::path::Path;
    use std::time::Duration;

    /// A machine on which nothing runs.
    #[derive(Debug)]
    struct IdleMachine;

    impl Machine for IdleMachine {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn identity(&self) -> kerntune_machine::Result<String> {
            Ok("idle".into())
        }

        fn run(&self, _: &RunRequest, _: &Path, _: &dyn Progress) -> kerntune_machine::Result<RunOutcome> {
            unreachable!("nothing is run")
        }
    }

    /// Log of progress calls, a line each.
    #[derive(Default)]
    struct ProgressLog(Mutex<Vec<String>>);

    impl ProgressLog {
        fn add(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }
    }

    impl Progress for ProgressLog {
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

    fn with<R>(told: &ProgressLog, check: impl FnOnce(&Session) -> R) -> R {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        check(&Session::with(Box::new(IdleMachine), &work, told).unwrap())
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        let made =
            with(&ProgressLog::default(), |session| run_parallel(session, 1, &items, |_, item| Ok(item * 2)));
        assert_eq!(made.unwrap(), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        let none =
            with(&ProgressLog::default(), |session| run_parallel(session, 1, &[], |_, item: &u32| Ok(*item)));
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
                // Far longer than a lane can be delayed before it reports its failure.
                _ => thread::sleep(Duration::from_millis(5)),
            }
            Ok(*item)
        };
        let made = with(&ProgressLog::default(), |session| run_parallel(session, 1, &items, fail));
        assert!(matches!(made, Err(Error::TwoRecipes)), "{made:?}");
        // Other lanes may be some items ahead, but not all of them.
        assert!((4..1000).contains(&begun.into_inner()));
    }

    #[test]
    fn one_bar_counts_all_and_none_is_shown_where_nothing_begins() {
        let told = ProgressLog::default();
        with(&told, |session| run_parallel(session, 1, &[1, 2, 3], |_, _| Ok(()))).unwrap();
        assert!(told.0.into_inner().unwrap().is_empty());

        let told = ProgressLog::default();
        with(&told, |session| {
            run_parallel(session, 1, &[1, 2, 3], |session, item| {
                session.progress.begin(&format!("run {item}"), None);
                session.progress.end();
                Ok(())
            })
        })
        .unwrap();
        let lines = told.0.into_inner().unwrap();
        let count = |line: &str| lines.iter().filter(|told| *told == line).count();
        // With one processor or little memory there is one lane, and each run has its own bar.
        if count("begin None") == 0 {
            assert_eq!((count("begin Some(3)"), count("at 3"), count("end")), (1, 1, 1), "{lines:?}");
            assert_eq!([1, 2, 3].map(|item| count(&format!("run {item}"))), [1, 1, 1], "{lines:?}");
        } else {
            assert_eq!((count("begin None"), count("end")), (3, 3), "{lines:?}");
        }
    }

    #[test]
    fn what_was_found_before_anything_began_is_not_on_the_bar() {
        let told = ProgressLog::default();
        let joined = CombinedProgress { shown: &told, lanes: 2, state: Mutex::new(BarState::Left(4)) };
        joined.item_done();
        joined.item_done();
        joined.begin("run 2", None);
        joined.item_done();
        joined.begin("run 3", None);
        joined.item_done();
        joined.finish();
        assert_eq!(*told.0.lock().unwrap(), ["begin Some(2)", "run 2", "at 1", "run 3", "at 2", "end"]);
    }

    #[test]
    fn guests_have_room_beside_each_other() {
        let gib = |count: u64| Some(count << 30);
        assert_eq!(fitting(8, gib(24), 1024), 8);
        assert_eq!(fitting(8, gib(24), 7 * 1024), 3);
        assert_eq!(fitting(8, gib(1), 1024), 1);
        // Available memory is not known.
        assert_eq!(fitting(8, None, 1024), 1);
    }
}
