//! The second level: the second-level cache and the prediction of where branches lead and whether they are taken. Only of
//! models that have such parts, and asked only for lines that the L1I misses and for branches that are taken, and where
//! directions are guessed for those that are not.

use crate::config::{BranchConfig, BtbConfig, FrontEndConfig};
use crate::direction::Direction;
use crate::lru::LruSets;
use crate::Mode;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// What is counted behind the first level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecondLevelEvent {
    /// [`SecondLevelModeCounts::l2_misses`].
    L2Miss,
    /// [`SecondLevelModeCounts::btb_l2_hits`].
    BtbL2Hit,
    /// [`SecondLevelModeCounts::btb_misses`].
    BtbMiss,
    /// [`SecondLevelModeCounts::mispredictions`].
    Misprediction,
    /// [`SecondLevelModeCounts::direction_mispredictions`].
    DirectionMisprediction,
}

impl SecondLevelEvent {
    /// The name in recordings and profiles, `l2_miss`; that of its cost in model files, where both mispredictions have one.
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

/// Events of one mode. Parts that the model does not have count nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLevelModeCounts {
    /// Lines that neither the L1I nor the L2 had.
    pub l2_misses: u64,
    /// Predicted taken branches whose target only the second-level BTB had.
    pub btb_l2_hits: u64,
    /// Taken calls, jumps and returns that no BTB had: the decoder is the first to see them.
    pub btb_misses: u64,
    /// Taken branches after which something else was fetched: conditional and indirect ones that no BTB had,
    /// indirect ones with a target that they did not have lately, returns to elsewhere than the return stack says.
    pub mispredictions: u64,
    /// Conditional branches whose direction was guessed wrong.
    pub direction_mispredictions: u64,
}

/// Events by mode. The difference of two readings is what happened between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLevelCounts {
    /// In [`Mode::Kernel`].
    pub kernel: SecondLevelModeCounts,
    /// In [`Mode::User`].
    pub user: SecondLevelModeCounts,
}

impl SecondLevelModeCounts {
    /// The number of events of a kind.
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

/// What kind of branch it is: how its target can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// A jump on a condition; the target is in the instruction.
    Conditional,
    /// A jump; the target is in the instruction.
    Jump,
    /// A jump to what a register or memory says.
    IndirectJump,
    /// A call; the target is in the instruction.
    Call,
    /// A call of what a register or memory says.
    IndirectCall,
    /// A return.
    Return,
}

/// A branch that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBranch {
    /// Address of the branch instruction.
    pub source: u64,
    /// Address of the instruction behind it: where a call returns to.
    pub after: u64,
    /// Where it went.
    pub target: u64,
    /// What kind it is.
    pub kind: BranchKind,
}

/// The parts that a model has.
#[derive(Debug, Clone)]
pub(crate) struct SecondLevel {
    l2: Option<LruSets>,
    targets: Option<Targets>,
    direction: Option<Direction>,
    counts: SecondLevelCounts,
}

impl SecondLevel {
    /// None if the model has no such part. The configuration is valid.
    pub(crate) fn new(config: &FrontEndConfig) -> Option<Self> {
        let line_bytes = config.l1i.line_bytes;
        let l2 = config.l2.map(|l2| LruSets::new(l2.size_bytes / line_bytes, l2.ways, line_bytes));
        let targets = config.branch.as_ref().map(Targets::new);
        let direction = config.direction.as_ref().map(Direction::new);
        (l2.is_some() || targets.is_some() || direction.is_some()).then_some(Self {
            l2,
            targets,
            direction,
            counts: SecondLevelCounts::default(),
        })
    }

    /// The L1I misses a line.
    pub(crate) fn line(&mut self, line: u64, salt: u64, mode: Mode) {
        let Some(l2) = &mut self.l2 else { return };
        let missed = l2.misses(line, salt);
        self.counts.mode(mode).l2_misses += u64::from(missed);
    }

    /// A line was fetched ahead of time: nobody waits for it, wherever it is.
    pub(crate) fn line_ahead(&mut self, line: u64, salt: u64) {
        if let Some(l2) = &mut self.l2 {
            l2.misses(line, salt);
        }
    }

    /// A branch is taken. True if what it leads to was fetched behind it at once.
    pub(crate) fn branch(&mut self, branch: &TakenBranch, salt: u64, mode: Mode) -> bool {
        let wrong_way = branch.kind == BranchKind::Conditional
            && self
                .direction
                .as_mut()
                .is_some_and(|direction| !direction.guess(branch.source, branch.target, true, salt));
        let outcome = self.targets.as_mut().map_or(Outcome::InTime, |targets| targets.predict(branch, salt));
        let counts = self.counts.mode(mode);
        match outcome {
            // What follows in memory was fetched, whether its target was known or not.
            _ if wrong_way => counts.direction_mispredictions += 1,
            Outcome::InTime => {}
            Outcome::Late => counts.btb_l2_hits += 1,
            Outcome::Decoded => counts.btb_misses += 1,
            Outcome::Wrong => counts.mispredictions += 1,
        }
        !wrong_way && matches!(outcome, Outcome::InTime | Outcome::Late)
    }

    pub(crate) fn guesses_directions(&self) -> bool {
        self.direction.is_some()
    }

    /// A conditional branch is not taken. If it was guessed to be, its target was fetched; but not where branch target
    /// buffers are all that tells where branches are, and none knows it. True if what follows was fetched.
    pub(crate) fn not_taken(&mut self, source: u64, target: u64, salt: u64, mode: Mode) -> bool {
        let Some(direction) = &mut self.direction else { return true };
        let wrong = direction.guess(source, target, false, salt)
            && self.targets.as_ref().is_none_or(|targets| targets.knows(source, salt));
        self.counts.mode(mode).direction_mispredictions += u64::from(wrong);
        !wrong
    }

    pub(crate) fn counts(&self) -> SecondLevelCounts {
        self.counts
    }

    /// The kinds of events that these parts can have.
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
    fn mode(&mut self, mode: Mode) -> &mut SecondLevelModeCounts {
        match mode {
            Mode::Kernel => &mut self.kernel,
            Mode::User => &mut self.user,
        }
    }
}

/// What became of a taken branch in the front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Followed as fast as can be.
    InTime,
    /// Followed, but the target came from the second level.
    Late,
    /// Found by the decoder.
    Decoded,
    /// Found when it was executed.
    Wrong,
}

/// Branch target buffers, indexed by the lowest bits of the branch's address; the return stack; and the targets of
/// indirect branches.
///
/// Of an indirect branch any target that it had lately and that still has an entry is taken to be predicted: which
/// one comes next, histories tell that nobody has published. Directions of conditional branches are [`Direction`]'s, or
/// taken to be predicted likewise, once the branch is known.
#[derive(Debug, Clone)]
struct Targets {
    btb: LruSets,
    btb_l2: Option<LruSets>,
    returns: Option<ReturnStack>,
    indirect: Option<LruSets>,
}

impl Targets {
    fn new(config: &BranchConfig) -> Self {
        let table = |table: BtbConfig| LruSets::new(table.entries, table.ways(), 1);
        Self {
            btb: table(config.btb),
            btb_l2: config.btb_l2.map(table),
            returns: config.return_stack.map(ReturnStack::new),
            indirect: config.indirect.map(table),
        }
    }

    /// Whether a branch target buffer has the branch.
    fn knows(&self, source: u64, salt: u64) -> bool {
        self.btb.has(source, salt) || self.btb_l2.as_ref().is_some_and(|l2| l2.has(source, salt))
    }

    fn predict(&mut self, branch: &TakenBranch, salt: u64) -> Outcome {
        let &TakenBranch { source, after, target, kind } = branch;
        let missed = self.btb.misses(source, salt);
        let nowhere = missed && self.btb_l2.as_mut().is_none_or(|l2| l2.misses(source, salt));
        let elsewhere = match kind {
            BranchKind::Return => self.returns.as_mut().is_some_and(|stack| stack.pop() != Some(target)),
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                self.indirect.as_mut().is_some_and(|known| known.misses(pair(source, target), salt)) | nowhere
            }
            // Nobody knew that there is a branch: what follows it in memory was fetched.
            BranchKind::Conditional => nowhere,
            BranchKind::Jump | BranchKind::Call => false,
        };
        if let (BranchKind::Call | BranchKind::IndirectCall, Some(stack)) = (kind, &mut self.returns) {
            stack.push(after);
        }
        match (elsewhere, missed, nowhere) {
            (true, ..) => Outcome::Wrong,
            (_, _, true) => Outcome::Decoded,
            (_, true, _) => Outcome::Late,
            _ => Outcome::InTime,
        }
    }
}

/// One word for a branch and a target, spread over all bits.
fn pair(source: u64, target: u64) -> u64 {
    (source.rotate_left(24) ^ target).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// Return addresses, of which the oldest is lost when there is no room.
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
        fe.branch(&TakenBranch { source, after: source + 5, target, kind }, Mode::Kernel, 0);
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
        fe.fetch(TEXT, TEXT, Mode::Kernel, 0);
        fe.branch(
            &TakenBranch { source: TEXT, after: TEXT + 2, target: TEXT, kind: BranchKind::Jump },
            Mode::Kernel,
            0,
        );
        assert_eq!((fe.second_level_counts(), fe.second_level_events()), (None, vec![]));
    }

    #[test]
    fn the_second_level_sees_what_the_first_misses() {
        let mut fe = front_end("[l2]\nsize_bytes = 4096\nways = 4\n");
        let lines = |fe: &mut FrontEnd, n: u64| {
            (0..n).for_each(|i| fe.fetch(TEXT + i * 64, TEXT + i * 64, Mode::Kernel, 0))
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
        fe.fetch(TEXT, TEXT, Mode::User, 7);
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
        // A conditional branch that nobody knows of: the code behind it was fetched.
        assert_eq!(take(&mut fe, BranchKind::Conditional, TEXT + 7, TEXT), WRONG);
        assert_eq!(take(&mut fe, BranchKind::Conditional, TEXT + 7, TEXT), IN_TIME);
    }

    #[test]
    fn returns_and_indirect_branches() {
        let mut fe = front_end(
            "[branch]\nreturn_stack = 2\n[branch.btb]\nentries = 64\n[branch.indirect]\nentries = 8\n",
        );
        // Warm up: what is in the BTB is followed in time.
        let (call, ret) = (TEXT + 0x100, TEXT + 0x200);
        take(&mut fe, BranchKind::Call, call, ret);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), DECODED);
        take(&mut fe, BranchKind::Call, call, ret);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), IN_TIME);
        assert_eq!(take(&mut fe, BranchKind::Return, ret, call + 5), WRONG, "the stack is empty");
        // Three calls deep with room for two: the outermost return is lost.
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

    /// A conditional branch that is taken or not: whether its direction was guessed wrong, and whether its target was.
    fn way(fe: &mut FrontEnd, source: u64, target: u64, taken: bool) -> (u64, u64) {
        let before = fe.second_level_counts().unwrap();
        if taken {
            take(fe, BranchKind::Conditional, source, target);
        } else {
            fe.not_taken(source, target, Mode::Kernel, 0);
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
        // Guessed to be taken, but nobody knew that there is a branch.
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, true), (0, 1));
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, true), (0, 0));
        assert_eq!(way(&mut fe, TEXT + 64, TEXT, false), (1, 0));
        // Not known, and so not followed.
        assert_eq!(way(&mut fe, TEXT + 128, TEXT, false), (0, 0));
        // Guessed not to be taken: one event, and the target is known from now on.
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
