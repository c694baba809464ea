//! Processes, and which of them goes on when a context switch ends.
//!
//! A dump does not say who runs. What it says is which functions are exited, and a process can only
//! exit what it has entered: of the processes that lie in the context switch, the one goes on whose
//! open functions are those that are exited next.

use super::names::Role;

/// Number of the process that stands for no process: the processor is in the context switch.
pub(super) const IDLE: usize = 0;

/// The open functions of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    /// Functions that were seen to begin, outermost first. While it does not run, the last is the
    /// context switch's.
    pub stack: Vec<u32>,
    /// Functions that ended without having begun: they were open from the beginning, below all
    /// others; the innermost first.
    pub bottom: Vec<u32>,
    /// When it was left last, in context switches.
    parked: u64,
}

/// What is known of a block of activity that follows a context switch: the functions that are exited
/// in it below where it begins.
pub(super) struct Evidence {
    exits: Vec<u32>,
}

impl Evidence {
    /// Looks ahead over `roles`, up to the next context switch. `is_switch` knows the functions.
    pub fn ahead(roles: impl Iterator<Item = Option<Role>>, is_switch: impl Fn(usize) -> bool) -> Self {
        let (mut open, mut exits) = (Vec::new(), Vec::new());
        for role in roles {
            match role {
                Some(Role::Entry(f) | Role::Exit(f)) if is_switch(f) => break,
                Some(Role::Entry(f)) => open.push(f as u32),
                Some(Role::Exit(f)) => match open.iter().rposition(|&function| function == f as u32) {
                    Some(at) => open.truncate(at),
                    None if open.is_empty() => exits.push(f as u32),
                    // Of no use: it may be of a trigger that is missing elsewhere.
                    None => {}
                },
                Some(Role::Point(_)) | None => {}
            }
        }
        Self { exits }
    }

    /// The functions, the first that is exited first.
    pub fn into_exits(self) -> Vec<u32> {
        self.exits
    }

    /// How many of the exits `open` explains, innermost last; None if it contradicts them.
    fn explained(&self, open: &[u32]) -> Option<usize> {
        let same = open.iter().rev().zip(&self.exits).take_while(|(open, exit)| open == exit).count();
        (same == open.len().min(self.exits.len())).then_some(same)
    }
}

/// Who goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Number of the process.
    pub process: usize,
    /// It was not seen before.
    pub new: bool,
    /// Others would have done as well, or more was exited than was known of it.
    pub uncertain: bool,
}

/// All processes; the first is [`IDLE`].
pub(super) struct Processes {
    all: Vec<Process>,
    switches: u64,
}

impl Processes {
    pub fn new() -> Self {
        Self { all: vec![Process::default()], switches: 0 }
    }

    pub fn add(&mut self) -> usize {
        self.all.push(Process::default());
        self.all.len() - 1
    }

    pub fn get(&mut self, process: usize) -> &mut Process {
        &mut self.all[process]
    }

    pub fn into_all(self) -> Vec<Process> {
        self.all
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// A process has entered the context switch, which is on its stack already.
    pub fn park(&mut self, process: usize) {
        self.switches += 1;
        self.all[process].parked = self.switches;
    }

    /// Who comes out of `switch`, and makes a new process if it can be none of those that are known.
    ///
    /// Without a single exit as evidence only a process of which nothing is open is taken: the
    /// activity of one that is deep in the kernel would be credited to the wrong functions.
    pub fn resume(&mut self, switch: u32, evidence: &Evidence) -> Found {
        let mut best: Option<(usize, usize)> = None;
        let mut equals = 0;
        for (number, process) in self.all.iter().enumerate() {
            let Some((&top, below)) = process.stack.split_last() else { continue };
            if top != switch {
                continue;
            }
            // Interrupts of the idle loop in which a switch began lie above one another.
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
                Some((most, _)) if explained < most => {}
                Some((most, first)) if explained == most => {
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
                Found { process, new: false, uncertain }
            }
            None => Found { process: self.add(), new: true, uncertain: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: u32 = 9;

    fn evidence(exits: &[u32]) -> Evidence {
        Evidence { exits: exits.to_vec() }
    }

    /// Processes 1, 2, … parked in this order with these functions open.
    fn parked(stacks: &[&[u32]]) -> Processes {
        let mut processes = Processes::new();
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
        // Not far enough to tell: the one that waits longest, and that is said.
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5]), (1, false, true));
        // In neither.
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[5, 4]), (3, true, false));
        assert_eq!(found(&[&[2, 5], &[3, 5]], &[4]), (3, true, false));
        // More was open than was seen to begin.
        assert_eq!(found(&[&[5], &[3, 5]], &[5, 2]), (1, false, true));
        // The more is explained the better.
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
            Role::Entry(1),
            Role::Point(8),
            Role::Exit(1),
            Role::Exit(5),
            Role::Entry(2),
            Role::Entry(3), // its exit is missing
            Role::Exit(2),
            Role::Exit(6),
            Role::Entry(9),
            Role::Exit(7),
        ];
        let evidence = Evidence::ahead(roles.into_iter().map(Some), |f| f == 9);
        assert_eq!(evidence.exits, [5, 6]);
    }
}
