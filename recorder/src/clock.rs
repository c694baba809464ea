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
    pub fn due(&mut self) -> bool {
        self.reads += 1;
        self.halted || !self.synced || self.reads % ONE_LOOK_IN == 0
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

#[cfg(test)]
mod tests {
    use super::*;

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
