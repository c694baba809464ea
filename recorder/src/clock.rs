//! Virtual time from instruction counts.

/// Ties the count of executed instructions to the guest's virtual clock.
///
/// Under `-icount shift=0` the guest's TSC advances by one per instruction, and jumps over idle
/// time. Each `rdtsc` that the guest executes shows both: the difference to the count is constant
/// but for idle time.
#[derive(Debug, Default)]
pub struct Clock {
    offset: i64,
    synced: bool,
    halted: bool,
    /// How often the guest has read its clock.
    reads: u64,
    /// Idle nanoseconds so far.
    pub idle_ns: u64,
}

/// Of how many reads of the clock with nothing to be learned one is looked at all the same, as a check.
const ONE_LOOK_IN: u64 = 16;

/// What a look at the guest's clock showed.
#[derive(Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing but instructions since the last look.
    Agrees,
    /// So many ns passed while the CPU was halted.
    Idle(u64),
    /// The guest's clock is so many ns ahead, and the CPU was not halted.
    Error(i64),
}

impl Clock {
    /// The CPU halts.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// The guest has read its clock: whether to look at what it read. To read registers costs more than
    /// all else that is done there, and only time that passed while the CPU was halted is news.
    ///
    /// Before the CPU halts each read is looked at: the kernel's idle task reads the clock on its way to
    /// `hlt`, so that a difference from before is found there and not taken for idle time.
    pub fn due(&mut self, before_halt: bool) -> bool {
        self.reads += 1;
        self.halted || before_halt || !self.synced || self.reads % ONE_LOOK_IN == 0
    }

    /// The guest read `tsc` when `instructions` had been executed.
    pub fn check(&mut self, tsc: u64, instructions: u64) -> Check {
        let offset = tsc.wrapping_sub(instructions) as i64;
        let moved = offset.wrapping_sub(self.offset);
        self.offset = offset;
        if !std::mem::replace(&mut self.synced, true) {
            self.halted = false;
            return Check::Agrees;
        }
        let halted = std::mem::take(&mut self.halted);
        match moved {
            0 => Check::Agrees,
            1.. if halted => {
                self.idle_ns += moved as u64;
                Check::Idle(moved as u64)
            }
            _ => Check::Error(moved),
        }
    }

    /// Virtual time when `instructions` had been executed.
    pub fn at(&self, instructions: u64) -> u64 {
        instructions.wrapping_add(self.offset as u64)
    }
}

/// Differences between the guest's clock and the count, by the thread in which they were seen.
#[derive(Debug, Default)]
pub struct Differences {
    /// In the order in which they came.
    threads: Vec<Difference>,
}

#[derive(Debug)]
struct Difference {
    thread: String,
    /// Their sum, ns.
    ns: i64,
    /// Guest time of the first, ns.
    first: u64,
}

/// How many threads a note names.
const NAMED: usize = 8;

impl Differences {
    /// The guest's clock was found so many ns ahead in a thread, at a guest time.
    pub fn add(&mut self, thread: String, ns: i64, at: u64) {
        match self.threads.iter_mut().find(|known| known.thread == thread) {
            Some(known) => known.ns += ns,
            None => self.threads.push(Difference { thread, ns, first: at }),
        }
    }

    /// All of them in one line; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let sum = self.threads.iter().map(|thread| thread.ns).sum::<i64>();
        let named = self.threads.iter().take(NAMED);
        let mut places: Vec<String> = named
            .map(|Difference { thread, ns, first }| format!("{ns:+} ns in {thread} from {first} ns on"))
            .collect();
        match self.threads.len().saturating_sub(NAMED) {
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
        let mut clock = Clock::default();
        assert!(clock.due(false), "nothing is known yet");
        assert_eq!(clock.check(1_000, 400), Check::Agrees);
        assert!(!clock.due(false));
        assert!(clock.due(true), "the idle task reads the clock before it halts");
        assert_eq!(clock.check(1_103, 500), Check::Error(3));
        clock.halt();
        assert!(clock.due(false));
        assert_eq!(clock.check(5_203, 600), Check::Idle(4_000));
        assert_eq!(clock.idle_ns, 4_000);
    }

    #[test]
    fn differences_are_one_note() {
        let mut differences = Differences::default();
        assert_eq!(differences.note(), None);
        differences.add("ab [40]".into(), 3, 1_000);
        differences.add("date [41]".into(), -1, 2_000);
        differences.add("ab [40]".into(), 2, 3_000);
        let text = "the guest's clock is +4 ns from the count: +5 ns in ab [40] from 1000 ns on, \
                    -1 ns in date [41] from 2000 ns on";
        assert_eq!(differences.note().as_deref(), Some(text));
        (0..9).for_each(|pid| differences.add(format!("sh [{pid}]"), 1, 4_000));
        assert!(differences.note().is_some_and(|note| note.ends_with(", 3 more threads")));
    }

    #[test]
    fn idle_is_what_the_guest_clock_has_more() {
        let mut clock = Clock::default();
        assert_eq!(clock.check(1_000, 400), Check::Agrees);
        assert_eq!(clock.check(1_100, 500), Check::Agrees);
        clock.halt();
        assert_eq!(clock.check(5_200, 600), Check::Idle(4_000));
        assert_eq!(clock.check(5_303, 700), Check::Error(3));
        assert_eq!((clock.idle_ns, clock.at(700)), (4_000, 5_303));
    }
}
