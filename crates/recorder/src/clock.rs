//! Computation of virtual time from instruction counts.

/// Relation between the number of executed instructions and the guest's virtual clock.
///
/// Under `-icount shift=0` the guest's TSC advances by one per instruction and jumps over idle
/// time. Each `rdtsc` of the guest shows both: its difference from the count changes only by idle
/// time.
#[derive(Debug, Default)]
pub struct GuestClock {
    offset: i64,
    synced: bool,
    halted: bool,
    /// Number of times the guest has read its clock.
    reads: u64,
    /// Idle time so far, in ns.
    pub idle_ns: u64,
}

/// One in this many clock reads is checked even if no idle time is expected.
const CHECK_INTERVAL: u64 = 16;

/// Result of a comparison with the guest's clock.
#[derive(Debug, PartialEq, Eq)]
pub enum ClockCheck {
    /// Only instructions since the last comparison.
    Agrees,
    /// The CPU was halted for this many ns.
    Idle(u64),
    /// The guest's clock is ahead by this many ns although the CPU was not halted.
    Error(i64),
}

impl GuestClock {
    /// Notes that the CPU halts.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// Counts a clock read of the guest and returns true if its value is to be compared. Reading
    /// registers costs more than all other work here, and only idle time is news.
    ///
    /// Every read before the CPU halts is compared: the idle task reads the clock on its way to
    /// `hlt`, so that an earlier difference shows there and is not taken for idle time.
    pub fn due(&mut self, before_halt: bool) -> bool {
        self.reads += 1;
        self.halted || before_halt || !self.synced || self.reads % CHECK_INTERVAL == 0
    }

    /// Compares `tsc`, which the guest read after `instructions` had executed, with the count.
    pub fn check(&mut self, tsc: u64, instructions: u64) -> ClockCheck {
        let offset = tsc.wrapping_sub(instructions) as i64;
        let moved = offset.wrapping_sub(self.offset);
        self.offset = offset;
        if !std::mem::replace(&mut self.synced, true) {
            self.halted = false;
            return ClockCheck::Agrees;
        }
        let halted = std::mem::take(&mut self.halted);
        match moved {
            0 => ClockCheck::Agrees,
            1.. if halted => {
                self.idle_ns += moved as u64;
                ClockCheck::Idle(moved as u64)
            }
            _ => ClockCheck::Error(moved),
        }
    }

    /// Returns the virtual time after `instructions` have executed.
    pub fn at(&self, instructions: u64) -> u64 {
        instructions.wrapping_add(self.offset as u64)
    }
}

/// Unexplained differences between the guest's clock and the count, summed by thread.
#[derive(Debug, Default)]
pub struct ClockErrors {
    /// Differences in the order of their first occurrence.
    threads: Vec<ThreadClockError>,
}

#[derive(Debug)]
struct ThreadClockError {
    thread: String,
    /// Sum of the differences, in ns.
    ns: i64,
    /// Guest time of the first difference, in ns.
    first: u64,
}

/// Number of threads that a note names.
const MAX_NAMED_THREADS: usize = 8;

impl ClockErrors {
    /// Adds a difference of `ns`, found in a thread at guest time `at`.
    pub fn add(&mut self, thread: String, ns: i64, at: u64) {
        match self.threads.iter_mut().find(|known| known.thread == thread) {
            Some(known) => known.ns += ns,
            None => self.threads.push(ThreadClockError { thread, ns, first: at }),
        }
    }

    /// Describes all differences in one line; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let sum = self.threads.iter().map(|thread| thread.ns).sum::<i64>();
        let named = self.threads.iter().take(MAX_NAMED_THREADS);
        let mut places: Vec<String> = named
            .map(|ThreadClockError { thread, ns, first }| format!("{ns:+} ns in {thread} from {first} ns on"))
            .collect();
        match self.threads.len().saturating_sub(MAX_NAMED_THREADS) {
            0 if places.is_empty() => return None,
            0 => {}
            more => places.push(format!("{more} more threads")),
        }
        Some(format!("the guest's clock is {sum:+} ns from the count: {}", places.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_before_idle_is_no_idle_time() {
        let mut clock = GuestClock::default();
        assert!(clock.due(false), "nothing is known yet");
        assert_eq!(clock.check(1_000, 400), ClockCheck::Agrees);
        assert!(!clock.due(false));
        assert!(clock.due(true), "the idle task reads the clock before it halts");
        assert_eq!(clock.check(1_103, 500), ClockCheck::Error(3));
        clock.halt();
        assert!(clock.due(false));
        assert_eq!(clock.check(5_203, 600), ClockCheck::Idle(4_000));
        assert_eq!(clock.idle_ns, 4_000);
    }

    #[test]
    fn differences_are_one_note() {
        let mut clock_errors = ClockErrors::default();
        assert_eq!(clock_errors.note(), None);
        clock_errors.add("ab [40]".into(), 3, 1_000);
        clock_errors.add("date [41]".into(), -1, 2_000);
        clock_errors.add("ab [40]".into(), 2, 3_000);
        let text = "the guest's clock is +4 ns from the count: +5 ns in ab [40] from 1000 ns on, \
                    -1 ns in date [41] from 2000 ns on";
        assert_eq!(clock_errors.note().as_deref(), Some(text));
        (0..9).for_each(|pid| clock_errors.add(format!("sh [{pid}]"), 1, 4_000));
        assert!(clock_errors.note().is_some_and(|note| note.ends_with(", 3 more threads")));
    }

    #[test]
    fn idle_is_what_the_guest_clock_has_more() {
        let mut clock = GuestClock::default();
        assert_eq!(clock.check(1_000, 400), ClockCheck::Agrees);
        assert_eq!(clock.check(1_100, 500), ClockCheck::Agrees);
        clock.halt();
        assert_eq!(clock.check(5_200, 600), ClockCheck::Idle(4_000));
        assert_eq!(clock.check(5_303, 700), ClockCheck::Error(3));
        assert_eq!((clock.idle_ns, clock.at(700)), (4_000, 5_303));
    }
}
