//! Second level of the front end: the L2 and the predictors of branch targets and directions.
//!
//! Only models that have such parts use it. It is consulted for lines that miss the L1I, for taken
//! branches, and, if directions are predicted, for branches that are not taken.

use crate::config::{BranchConfig, BtbConfig, FrontEndConfig};
use crate::direction::DirectionPredictor;
use crate::lru::LruSets;
use crate::CpuMode;
use kerntune_trace::counts::BranchKind;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Kind of second-level event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecondLevelEvent {
    /// Counted in [`SecondLevelModeCounts::l2_misses`].
    L2Miss,
    /// Counted in [`SecondLevelModeCounts::btb_l2_hits`].
    BtbL2Hit,
    /// Counted in [`SecondLevelModeCounts::btb_misses`].
    BtbMiss,
    /// Counted in [`SecondLevelModeCounts::mispredictions`].
    Misprediction,
    /// Counted in [`SecondLevelModeCounts::direction_mispredictions`].
    DirectionMisprediction,
}

impl SecondLevelEvent {
    /// Returns the name used in recordings and profiles, such as `l2_miss`. In model files the cost
    /// has the same name, except that both kinds of misprediction share one cost.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2Miss => "l2_miss",
            Self::BtbL2Hit => "btb_l2_hit",
            Self::BtbMiss => "btb_miss",
            Self::Misprediction => "misprediction",
            Self::DirectionMisprediction => "direction_misprediction",
        }
    }
}

/// Second-level events of one CPU mode. Parts that the model lacks count nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLevelModeCounts {
    /// Lines that missed both the L1I and the L2.
    pub l2_misses: u64,
    /// Predicted taken branches whose target came from the second-level BTB.
    pub btb_l2_hits: u64,
    /// Taken calls, jumps and returns that missed all BTBs and were first seen by the decoder.
    pub btb_misses: u64,
    /// Taken branches after which the wrong code was fetched: conditional and indirect branches
    /// that missed all BTBs, indirect branches with a target that is not among their recent ones,
    /// and returns that differ from the return stack.
    pub mispredictions: u64,
    /// Conditional branches with a mispredicted direction.
    pub direction_mispredictions: u64,
}

/// Second-level events by CPU mode. Subtract two readings for the events between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLevelCounts {
    /// Events in [`CpuMode::Kernel`].
    pub kernel: SecondLevelModeCounts,
    /// Events in [`CpuMode::User`].
    pub user: SecondLevelModeCounts,
}

impl SecondLevelModeCounts {
    /// Returns the number of events of a kind.
    pub fn of(&self, event: SecondLevelEvent) -> u64 {
        match event {
            SecondLevelEvent::L2Miss => self.l2_misses,
            SecondLevelEvent::BtbL2Hit => self.btb_l2_hits,
            SecondLevelEvent::BtbMiss => self.btb_misses,
            SecondLevelEvent::Misprediction => self.mispredictions,
            SecondLevelEvent::DirectionMisprediction => self.direction_mispredictions,
        }
    }
}

impl Sub for SecondLevelModeCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            l2_misses: self.l2_misses - before.l2_misses,
            btb_l2_hits: self.btb_l2_hits - before.btb_l2_hits,
            btb_misses: self.btb_misses - before.btb_misses,
            mispredictions: self.mispredictions - before.mispredictions,
            direction_mispredictions: self.direction_mispredictions - before.direction_mispredictions,
        }
    }
}

impl Add for SecondLevelCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { kernel: self.kernel + other.kernel, user: self.user + other.user }
    }
}

impl Add for SecondLevelModeCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            l2_misses: self.l2_misses + other.l2_misses,
            btb_l2_hits: self.btb_l2_hits + other.btb_l2_hits,
            btb_misses: self.btb_misses + other.btb_misses,
            mispredictions: self.mispredictions + other.mispredictions,
            direction_mispredictions: self.direction_mispredictions + other.direction_mispredictions,
        }
    }
}

impl Sub for SecondLevelCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { kernel: self.kernel - before.kernel, user: self.user - before.user }
    }
}

/// Taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBranch {
    /// Address of the branch instruction.
    pub source: u64,
    /// Address of the next instruction, to which a call returns.
    pub after: u64,
    /// Address of the branch target.
    pub target: u64,
    /// Kind of the branch.
    pub kind: BranchKind,
}

/// Second-level parts of a model; absent ones are `None`.
#[derive(Debug, Clone)]
pub(crate) struct SecondLevel {
    l2: Option<LruSets>,
    targets: Option<TargetPredictor>,
    direction: Option<DirectionPredictor>,
    counts: SecondLevelCounts,
}

impl SecondLevel {
    /// Creates the parts of a validated configuration; `None` if it has none.
    pub(crate) fn new(config: &FrontEndConfig) -> Option<Self> {
        let line_bytes = config.l1i.line_bytes;
        let l2 = config.l2.map(|l2| LruSets::new(l2.size_bytes / line_bytes, l2.ways, line_bytes));
        let targets = config.branch.as_ref().map(TargetPredictor::new);
        let direction = config.direction.as_ref().map(DirectionPredictor::new);
        (l2.is_some() || targets.is_some() || direction.is_some()).then_some(Self {
            l2,
            targets,
            direction,
            counts: SecondLevelCounts::default(),
        })
    }

    /// Looks up a line that missed the L1I.
    pub(crate) fn line(&mut self, line: u64, salt: u64, mode: CpuMode) {
        let Some(l2) = &mut self.l2 else { return };
        let missed = l2.misses(line, salt);
        self.counts.mode(mode).l2_misses += u64::from(missed);
    }

    /// Allocates a prefetched line. Nothing waits for it, so it is not counted.
    pub(crate) fn line_ahead(&mut self, line: u64, salt: u64) {
        if let Some(l2) = &mut self.l2 {
            l2.misses(line, salt);
        }
    }

    /// Predicts and records a taken branch. Returns true if its target was fetched at once.
    pub(crate) fn branch(&mut self, branch: &TakenBranch, salt: u64, mode: CpuMode) -> bool {
        let wrong_way = branch.kind == BranchKind::Conditional
            && self
                .direction
                .as_mut()
                .is_some_and(|direction| !direction.guess(branch.source, branch.target, true, salt));
        let outcome =
            self.targets.as_mut().map_or(TargetOutcome::InTime, |targets| targets.predict(branch, salt));
        let counts = self.counts.mode(mode);
        match outcome {
            // The code after the branch was fetched, so it does not matter whether the target was
            // known.
            _ if wrong_way => counts.direction_mispredictions += 1,
            TargetOutcome::InTime => {}
            TargetOutcome::Late => counts.btb_l2_hits += 1,
            TargetOutcome::Decoded => counts.btb_misses += 1,
            TargetOutcome::Wrong => counts.mispredictions += 1,
        }
        !wrong_way && matches!(outcome, TargetOutcome::InTime | TargetOutcome::Late)
    }

    pub(crate) fn guesses_directions(&self) -> bool {
        self.direction.is_some()
    }

    /// Predicts and records a conditional branch that is not taken. Returns true if the code after
    /// it was fetched.
    ///
    /// A branch that is predicted as taken counts as mispredicted, unless the model finds branches
    /// only in its BTBs and none holds it: then nothing fetched the target.
    pub(crate) fn not_taken(&mut self, source: u64, target: u64, salt: u64, mode: CpuMode) -> bool {
        let Some(direction) = &mut self.direction else { return true };
        let wrong = direction.guess(source, target, false, salt)
            && self.targets.as_ref().is_none_or(|targets| targets.knows(source, salt));
        self.counts.mode(mode).direction_mispredictions += u64::from(wrong);
        !wrong
    }

    pub(crate) fn counts(&self) -> SecondLevelCounts {
        self.counts
    }

    /// Returns the kinds of events that these parts can have.
    pub(crate) fn events(&self) -> Vec<SecondLevelEvent> {
        let l2 = self.l2.is_some().then_some(SecondLevelEvent::L2Miss);
        let late = self.targets.as_ref().filter(|targets| targets.btb_l2.is_some());
        let branches =
            self.targets.as_ref().map(|_| [SecondLevelEvent::BtbMiss, SecondLevelEvent::Misprediction]);
        l2.into_iter()
            .chain(late.map(|_| SecondLevelEvent::BtbL2Hit))
            .chain(branches.into_iter().flatten())
            .chain(self.direction.as_ref().map(|_| SecondLevelEvent::DirectionMisprediction))
            .collect()
    }
}

impl SecondLevelCounts {
    fn mode(&mut self, mode: CpuMode) -> &mut SecondLevelModeCounts {
        match mode {
            CpuMode::Kernel => &mut self.kernel,
            CpuMode::User => &mut self.user,
        }
    }
}

/// Time at which the target of a taken branch became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetOutcome {
    /// From the first-level BTB, in time.
    InTime,
    /// From the second-level BTB.
    Late,
    /// From the decoder.
    Decoded,
    /// From execution: mispredicted.
    Wrong,
}

/// Branch target buffers (indexed by the lowest bits of the branch's address), return stack, and
/// table of indirect targets.
///
/// An indirect branch counts as predicted if the target is in the table. Real CPUs choose among the
/// targets by histories that are not published. [`DirectionPredictor`] predicts directions; without
/// it, a conditional branch counts as predicted once a BTB holds it.
#[derive(Debug, Clone)]
struct TargetPredictor {
    btb: LruSets,
    btb_l2: Option<LruSets>,
    returns: Option<ReturnStack>,
    indirect: Option<LruSets>,
}

impl TargetPredictor {
    fn new(config: &BranchConfig) -> Self {
        let table = |table: BtbConfig| LruSets::new(table.entries, table.ways(), 1);
        Self {
            btb: table(config.btb),
            btb_l2: config.btb_l2.map(table),
            returns: config.return_stack.map(ReturnStack::new),
            indirect: config.indirect.map(table),
        }
    }

    /// Returns true if a branch target buffer holds the branch.
    fn knows(&self, source: u64, salt: u64) -> bool {
        self.btb.has(source, salt) || self.btb_l2.as_ref().is_some_and(|l2| l2.has(source, salt))
    }

    fn predict(&mut self, branch: &TakenBranch, salt: u64) -> TargetOutcome {
        let &TakenBranch { source, after, target, kind } = branch;
        let missed = self.btb.misses(source, salt);
        let nowhere = missed && self.btb_l2.as_mut().is_none_or(|l2| l2.misses(source, salt));
        let elsewhere = match kind {
            BranchKind::Return => self.returns.as_mut().is_some_and(|stack| stack.pop() != Some(target)),
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                self.indirect.as_mut().is_some_and(|known| known.misses(pair(source, target), salt)) | nowhere
            }
            // An unknown branch: the code after it was fetched.
            BranchKind::Conditional => nowhere,
            BranchKind::Jump | BranchKind::Call => false,
        };
        if let (BranchKind::Call | BranchKind::IndirectCall, Some(stack)) = (kind, &mut self.returns) {
            stack.push(after);
        }
        match (elsewhere, missed, nowhere) {
            (true, ..) => TargetOutcome::Wrong,
            (_, _, true) => TargetOutcome::Decoded,
            (_, true, _) => TargetOutcome::Late,
            _ => TargetOutcome::InTime,
        }
    }
}

/// Hashes a branch and its target into one word.
fn pair(source: u64, target: u64) -> u64 {
    (source.rotate_left(24) ^ target).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// Stack of return addresses that drops the oldest one when full.
#[derive(Debug, Clone)]
struct ReturnStack {
    addresses: Box<[u64]>,
    top: usize,
    depth: usize,
}

impl ReturnStack {
    fn new(entries: u64) -> Self {
        Self { addresses: vec![0; entries as usize].into_boxed_slice(), top: 0, depth: 0 }
    }

    fn push(&mut self, address: u64) {
        self.top = (self.top + 1) % self.addresses.len();
        self.addresses[self.top] = address;
        self.depth = (self.depth + 1).min(self.addresses.len());
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        let address = self.addresses[self.top];
        self.top = self.top.checked_sub(1).unwrap_or(self.addresses.len() - 1);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrontEnd;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn front_end(parts: &str) -> FrontEnd {
        let sizes = "name = \"test\"\ndescription = \"\"\nkernel_text_page_bytes = 4096\n\
                     [l1i]\nsize_bytes = 1024\nways = 2\nline_bytes = 64\n[itlb]\nentries = 4\nways = 4\n";
        FrontEnd::new(&FrontEndConfig::parse(&format!("{sizes}{parts}")).unwrap()).unwrap()
    }

    fn take(fe: &mut FrontEnd, kind: BranchKind, source: u64, target: u64) -> SecondLevelModeCounts {
        let before = fe.second_level_counts().unwrap();
        fe.branch(&TakenBranch { source, after: source + 5, target, kind }, CpuMode::Kernel, 0);
        (fe.second_level_counts().unwrap() - before).kernel
    }

    const IN_TIME: SecondLevelModeCounts = SecondLevelModeCounts {
        l2_misses: 0,
        btb_l2_hits: 0,
        btb_misses: 0,
        mispredictions: 0,
        direction_mispredictions: 0,
    };
    const LATE: SecondLevelModeCounts = SecondLevelModeCounts { btb_l2_hits: 1, ..IN_TIME };
    const DECODED: SecondLevelModeCounts = SecondLevelModeCounts { btb_misses: 1, ..IN_TIME };
    const WRONG: SecondLevelModeCounts = SecondLevelModeCounts { mispredictions: 1, ..IN_TIME };

    #[test]
    fn models_without_such_parts_count_nothing() {
        let mut fe = front_end("");
        fe.fetch(TEXT, TEXT, CpuMode::Kernel, 0);
        fe.branch(
            &TakenBranch { source: TEXT, after: TEXT + 2, target: TEXT, kind: BranchKind::Jump },
            CpuMode::Kernel,
            0,
        );
        assert_eq!((fe.second_level_counts(), fe.second_level_events()), (None, vec![]));
    }

    #[test]
    fn the_second_level_sees_what_the_first_misses() {
        let mut fe = front_end("[l2]\nsize_bytes = 4096\nways = 4\n");
        let lines = |fe: &mut FrontEnd, n: u64| {
            (0..n).for_each(|i| fe.fetch(TEXT + i * 64, TEXT + i * 64, CpuMode::Kernel, 0))
        };
        lines(&mut fe, 32);
        assert_eq!(
            (fe.counts().kernel.l1i_misses, fe.second_level_counts().unwrap().kernel.l2_misses),
            (32, 32)
        );
        lines(&mut fe, 32); // twice the L1I: it misses all again, the L2 none
        assert_eq!(
            (fe.counts().kernel.l1i_misses, fe.second_level_counts().unwrap().kernel.l2_misses),
            (64, 32)
        );
        fe.fetch(TEXT, TEXT, CpuMode::User, 7);
        assert_eq!(fe.second_level_counts().unwrap().user.l2_misses, 1);
        assert_eq!(fe.second_level_events(), [SecondLevelEvent::L2Miss]);
    }

    #[test]
    fn targets_come_from_the_first_level_the_second_or_the_decoder() {
        let mut fe = front_end(
            "[branch]\n[branch.btb]\nentries = 4\nways = 4\n[branch.btb_l2]\nentries = 8\nways = 8\n",
        );
        let jump = |fe: &mut FrontEnd, n: u64| take(fe, BranchKind::Jump, TEXT + n * 16, TEXT);
        for n in 0..6 {
            assert_eq!(jump(&mut fe, n), DECODED);
        }
        assert_eq!(jump(&mut fe, 5), IN_TIME);
        assert_eq!(jump(&mut fe, 0), LATE);
        assert_eq!(jump(&mut fe, 0), IN_TIME);
        use SecondLevelEvent::*;
        assert_eq!(fe.second_level_events(), [BtbL2Hit, BtbMiss, Misprediction]);
        assert_eq!(
            (LATE.of(BtbL2Hit), DECODED.of(BtbMiss), WRONG.of(Misprediction), WRONG.of(L2Miss)),
            (1, 1, 1, 0)
        );
        // An unknown conditional branch: the code after it was fetched.
        assert_eq!(take(&mut fe, BranchKind::Conditional, TEXT + 7, TEXT), WRONG);
        assert_eq!(take(&mut fe, BranchKind::Conditional, TEXT + 7, TEXT), IN_TIME);
    }

    #[test]
    fn returns_and_indirect_branches() {
        let mut fe = front_end(
            "[branch]\nreturn_stack = 2\n[branch.btb]\nentries = 64\n[branch.indirect]\nentries = 8\n",
        );
        // Warm-up: branches in the BTB are followed in time.
        let (call, ret) = (TEXT + 0x100, TEXT + 0x200);
        take(&mut fe, BranchKind::Call, call, ret);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), DECODED);
        take(&mut fe, BranchKind::Call, call, ret);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), IN_TIME);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), WRONG, "the stack is empty");
        // Three nested calls with room for two: the outermost return address is lost.
        let calls = [TEXT + 0x300, TEXT + 0x310, TEXT + 0x320];
        for call in calls {
            take(&mut fe, BranchKind::Call, call, ret);
        }
        assert_eq!(take(&mut fe, BranchKind::Return, ret, calls[2] + 5), IN_TIME);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, calls[1] + 5), IN_TIME);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, calls[0] + 5), WRONG);
        let through = |fe: &mut FrontEnd, target| take(fe, BranchKind::IndirectCall, TEXT + 0x401, target);
        assert_eq!(
            [TEXT, TEXT, TEXT + 64, TEXT].map(|target| through(&mut fe, target)),
            [WRONG, IN_TIME, WRONG, IN_TIME]
        );
    }

    /// Executes a conditional branch. Returns the mispredictions of its direction and of its
    /// target.
    fn way(fe: &mut FrontEnd, source: u64, target: u64, taken: bool) -> (u64, u64) {
        let before = fe.second_level_counts().unwrap();
        if taken {
            take(fe, BranchKind::Conditional, source, target);
        } else {
            fe.not_taken(source, target, CpuMode::Kernel, 0);
        }
        let counts = (fe.second_level_counts().unwrap() - before).kernel;
        (counts.direction_mispredictions, counts.mispredictions)
    }

    #[test]
    fn directions_alone_are_guessed_of_every_conditional_branch() {
        let mut fe = front_end("[direction]\nkind = \"static\"\n");
        assert_eq!(fe.second_level_events(), [SecondLevelEvent::DirectionMisprediction]);
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, true), (0, 0));
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, false), (1, 0));
        assert_eq!(way(&mut fe, TEXT, TEXT + 64, true), (1, 0));
        assert_eq!(way(&mut fe, TEXT, TEXT + 64, false), (0, 0));
        assert_eq!(take(&mut fe, BranchKind::Jump, TEXT, TEXT + 64), IN_TIME);
    }

    #[test]
    fn a_wrong_direction_and_an_unknown_target_are_one_event() {
        let mut fe =
            front_end("[direction]\nkind = \"static\"\n[branch]\n[branch.btb]\nentries = 4\nways = 4\n");
        // Predicted as taken, but no BTB holds the branch.
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, true), (0, 1));
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, true), (0, 0));
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, false), (1, 0));
        // No BTB holds the branch, so it is not followed.
        assert_eq!(way(&mut fe, TEXT + 128, TEXT, false), (0, 0));
        // Predicted as not taken: one event, and the target is known from now on.
        assert_eq!(way(&mut fe, TEXT, TEXT + 64, true), (1, 0));
        assert_eq!(take(&mut fe, BranchKind::Jump, TEXT, TEXT + 64), IN_TIME);
    }

    #[test]
    fn without_a_return_stack_returns_are_taken_to_be_predicted() {
        let mut fe = front_end("[branch]\n[branch.btb]\nentries = 64\n");
        assert_eq!(take(&mut fe, BranchKind::Return, TEXT, TEXT + 64), DECODED);
        assert_eq!(take(&mut fe, BranchKind::Return, TEXT, TEXT + 128), IN_TIME);
        assert_eq!(take(&mut fe, BranchKind::IndirectJump, TEXT + 1, TEXT + 128), WRONG);
        assert_eq!(take(&mut fe, BranchKind::IndirectJump, TEXT + 1, TEXT), IN_TIME);
    }
}
