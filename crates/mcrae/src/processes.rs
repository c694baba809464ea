//! Processes, and the choice of the one that resumes after a context switch.
//!
//! A dump does not name the running process, only the functions that are exited. A process can only
//! exit functions that it has entered. So the process that resumes is the waiting one whose open
//! functions are exited next.

use super::names::TagRole;

/// Index of the idle process, which stands for a processor inside the context switch.
pub(super) const IDLE: usize = 0;

/// Process with its open functions.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplayedProcess {
    /// Functions that were seen to begin, outermost first. While the process waits, the last is the
    /// context switch.
    pub stack: Vec<u32>,
    /// Functions that ended without having begun, innermost first: they were open from the
    /// beginning, below all others.
    pub bottom: Vec<u32>,
    /// Time of its last switch, counted in context switches.
    parked: u64,
}

/// Exits after a context switch of functions that were open before it.
pub(super) struct UpcomingExits {
    exits: Vec<u32>,
}

impl UpcomingExits {
    /// Reads ahead over `roles`, up to the next context switch. `is_switch` recognizes its
    /// functions.
    pub fn ahead(roles: impl Iterator<Item = Option<TagRole>>, is_switch: impl Fn(usize) -> bool) -> Self {
        let (mut open, mut exits) = (Vec::new(), Vec::new());
        for role in roles {
            match role {
                Some(TagRole::Entry(f) | TagRole::Exit(f)) if is_switch(f) => break,
                Some(TagRole::Entry(f)) => open.push(f as u32),
                Some(TagRole::Exit(f)) => match open.iter().rposition(|&function| function == f as u32) {
                    Some(at) => open.truncate(at),
                    None if open.is_empty() => exits.push(f as u32),
                    // Not usable: it may belong to an entry whose trigger is missing.
                    None => {}
                },
                Some(TagRole::Point(_)) | None => {}
            }
        }
        Self { exits }
    }

    /// Returns the functions, in the order of their exits.
    pub fn into_exits(self) -> Vec<u32> {
        self.exits
    }

    /// Counts the exits that `open` (innermost last) explains; `None` if it contradicts them.
    fn explained(&self, open: &[u32]) -> Option<usize> {
        let same = open.iter().rev().zip(&self.exits).take_while(|(open, exit)| open == exit).count();
        (same == open.len().min(self.exits.len())).then_some(same)
    }
}

/// Process that resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResumedProcess {
    /// Index of the process.
    pub process: usize,
    /// The process was not seen before.
    pub new: bool,
    /// Other processes would match as well, or more was exited than was known to be open.
    pub uncertain: bool,
}

/// All processes; the first is [`IDLE`].
pub(super) struct ProcessTable {
    all: Vec<ReplayedProcess>,
    switches: u64,
}

impl ProcessTable {
    pub fn new() -> Self {
        Self { all: vec![ReplayedProcess::default()], switches: 0 }
    }

    pub fn add(&mut self) -> usize {
        self.all.push(ReplayedProcess::default());
        self.all.len() - 1
    }

    pub fn get(&mut self, process: usize) -> &mut ReplayedProcess {
        &mut self.all[process]
    }

    pub fn into_all(self) -> Vec<ReplayedProcess> {
        self.all
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Records that a process enters the context switch, which is already on its stack.
    pub fn park(&mut self, process: usize) {
        self.switches += 1;
        self.all[process].parked = self.switches;
    }

    /// Chooses the process that comes out of `switch`, or creates one if no known process matches.
    ///
    /// Without any exit as evidence, only a process without other open functions is chosen: the
    /// time of a process that is deep in the kernel would go to the wrong functions.
    pub fn resume(&mut self, switch: u32, evidence: &UpcomingExits) -> ResumedProcess {
        let mut best: Option<(usize, usize)> = None;
        let mut equals = 0;
        for (number, process) in self.all.iter().enumerate() {
            let Some((&top, below)) = process.stack.split_last() else { continue };
            if top != switch {
                continue;
            }
            // Interrupts of the idle loop in which a switch began are stacked.
            let from = match number {
                IDLE => below.iter().rposition(|&f| f == switch).map_or(0, |at| at + 1),
                _ => 0,
            };
            let open = &below[from..];
            let Some(explained) = evidence.explained(open) else { continue };
            let beyond = evidence.exits.len() > open.len();
            if explained == 0 && evidence.exits.is_empty() != open.is_empty() || number == IDLE && beyond {
                continue;
            }
            match best {
                Some((max, _)) if explained < max => {}
                Some((max, first)) if explained == max => {
                    equals += 1;
                    if process.parked < self.all[first].parked {
                        best = Some((explained, number));
                    }
                }
                _ => {
                    best = Some((explained, number));
                    equals = 1;
                }
            }
        }
        match best {
            Some((explained, process)) => {
                let uncertain = equals > 1 || explained < evidence.exits.len();
                ResumedProcess { process, new: false, uncertain }
            }
            None => ResumedProcess { process: self.add(), new: true, uncertain: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: u32 = 9;

    fn evidence(exits: &[u32]) -> UpcomingExits {
        UpcomingExits { exits: exits.to_vec() }
    }

    /// Processes 1, 2, … parked in this order with these functions open.
    fn parked(stacks: &[&[u32]]) -> ProcessTable {
        let mut processes = ProcessTable::new();
        for stack in stacks {
            let number = processes.add();
            processes.get(number).stack = stack.iter().copied().chain([SWITCH]).collect();
            processes.park(number);
        }
        processes
    }

    fn found(stacks: &[&[u32]], exits: &[u32]) -> (usize, bool, bool) {
        let found = parked(stacks).resume(SWITCH, &evidence(exits));
        (found.process, found.new, found.uncertain)
    }

    #[test]
    fn exits_tell_who_goes_on() {
        // 1 sleeps in read (2) through tsleep (5), 2 in select (3) through tsleep.
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5, 3]), (2, false, false));
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5, 2]), (1, false, false));
        // Not enough evidence: the one that waits longest is chosen and marked uncertain.
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5]), (1, false, true));
        // Matches neither.
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5, 4]), (3, true, false));
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[4]), (3, true, false));
        // More was open than was seen to begin.
        assert_eq!(found(&[&[5], &[3, 5]], &[5, 2]), (1, false, true));
        // The process that explains more exits is chosen.
        assert_eq!(found(&[&[5], &[3, 5]], &[5, 3]), (2, false, false));
    }

    #[test]
    fn without_evidence_nobody_gets_the_time_of_his_functions() {
        assert_eq!(found(&[&[2, 5]], &[]), (2, true, false));
        assert_eq!(found(&[&[2, 5], &[]], &[]), (2, false, false));
        assert_eq!(found(&[&[], &[]], &[]), (1, false, true));
        assert_eq!(found(&[&[]], &[5]), (2, true, false));
    }

    #[test]
    fn the_look_ahead_ends_at_the_next_switch_and_skips_whole_calls() {
        let roles = [
            TagRole::Entry(1),
            TagRole::Point(8),
            TagRole::Exit(1),
            TagRole::Exit(5),
            TagRole::Entry(2),
            TagRole::Entry(3), // its exit is missing
            TagRole::Exit(2),
            TagRole::Exit(6),
            TagRole::Entry(9),
            TagRole::Exit(7),
        ];
        let evidence = UpcomingExits::ahead(roles.into_iter().map(Some), |f| f == 9);
        assert_eq!(evidence.exits, [5, 6]);
    }
}
