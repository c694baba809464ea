//! Kinds, each with the word that stands for it in tables and in JSON.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares kinds by the words for them.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word used in tables and in JSON.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The kind that a word stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

kinds! {
    /// How a function came to run.
    How {
        /// By a call instruction.
        Call = "call",
        /// By a jump (tail call): returns together with its caller.
        Jump = "jump",
        /// By an interrupt, of no concern to what it interrupted.
        Interrupt = "interrupt",
        /// By an exception of its caller's own making (page fault …).
        Exception = "exception",
        /// By a system call.
        Syscall = "syscall",
    }
}

kinds! {
    /// Whose time it was.
    ThreadKind {
        /// A thread, in user mode or in the kernel.
        Thread = "thread",
        /// All interrupts together, whichever thread they hit.
        Interrupt = "interrupt",
        /// An idle task while it was not halted.
        Idle = "idle",
    }
}

kinds! {
    /// What a row of the tree of call paths stands for.
    PathKind {
        /// Root: all threads of one name.
        Thread = "thread",
        /// Root: all interrupts, whichever thread they hit.
        Interrupt = "interrupt",
        /// Root: idle tasks while not halted.
        Idle = "idle",
        /// A function that was called.
        Function = "function",
        /// User mode outside of traced functions.
        User = "user",
        /// Kernel code with no function open.
        Unattributed = "unattributed",
    }
}

kinds! {
    /// How a thread lost the CPU.
    SwitchKind {
        /// It called the scheduler: it waits, or it ended.
        Voluntary = "voluntary",
        /// It was taken away.
        Preempted = "preempted",
    }
}

kinds! {
    /// What kind of instruction an edge leaves from.
    EdgeKind {
        /// Conditional branch, taken.
        Conditional = "conditional",
        /// Direct jump.
        Jump = "jump",
        /// Jump through a register or memory.
        IndirectJump = "indirect-jump",
        /// Direct call.
        Call = "call",
        /// Call through a register or memory.
        IndirectCall = "indirect-call",
        /// Return.
        Return = "return",
        /// A branch whose kind the source of the profile did not tell.
        Unknown = "unknown",
    }
}

kinds! {
    /// What a front-end model counts behind the first level.
    ModelEvent {
        /// A line that neither the L1I nor the L2 had.
        L2Miss = "l2_miss",
        /// A taken branch whose target only the second-level branch target buffer had.
        BtbL2Hit = "btb_l2_hit",
        /// A taken call, jump or return that no branch target buffer had.
        BtbMiss = "btb_miss",
        /// A taken branch after which something else was fetched.
        Misprediction = "misprediction",
        /// A conditional branch whose direction was guessed wrong.
        DirectionMisprediction = "direction_misprediction",
    }
}

kinds! {
    /// What a run was for.
    Run {
        /// To learn from.
        Training = "training",
        /// To be compared.
        Measured = "measured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_stands_for_one_kind() {
        for how in How::ALL {
            assert_eq!(How::from_word(how.word()), Some(*how));
            assert_eq!(serde_json::to_string(how).unwrap(), format!("\"{how}\""));
        }
        for kind in EdgeKind::ALL {
            assert_eq!(EdgeKind::from_word(kind.word()), Some(*kind));
        }
        assert_eq!(ThreadKind::from_word("process"), None);
    }
}
