//! Enums of a profile, each variant with its name in tables and in JSON.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an enum with the names of its variants in tables and JSON.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $name_of:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $name_of)] $variant,)*
        }

        impl $name {
            /// All variants, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in tables and in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name_of,)*
                }
            }

            /// Returns the variant of a name; `None` for an unknown name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name_of => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        /// The first variant.
        impl Default for $name {
            fn default() -> Self {
                Self::ALL[0]
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

kinds! {
    /// Mechanism by which control entered a function.
    CallKind {
        /// Call instruction.
        Call = "call",
        /// Jump (tail call): the function returns together with its caller.
        Jump = "jump",
        /// Interrupt, unrelated to the code that it interrupts.
        Interrupt = "interrupt",
        /// Exception that the caller itself caused (page fault …).
        Exception = "exception",
        /// System call.
        Syscall = "syscall",
    }
}

kinds! {
    /// Kind of thread that time is charged to.
    ThreadKind {
        /// Task, in user mode or in the kernel.
        Thread = "thread",
        /// All interrupts together, on any thread.
        Interrupt = "interrupt",
        /// Idle task while not halted.
        Idle = "idle",
    }
}

kinds! {
    /// Kind of a node in the call tree.
    PathKind {
        /// Root: all threads of one name.
        Thread = "thread",
        /// Root: all interrupts, on any thread.
        Interrupt = "interrupt",
        /// Root: idle tasks while not halted.
        Idle = "idle",
        /// Called function.
        Function = "function",
        /// User mode outside of traced functions.
        User = "user",
        /// Kernel code with an empty call stack.
        Unattributed = "unattributed",
    }
}

kinds! {
    /// Reason of a context switch.
    SwitchKind {
        /// The thread called the scheduler: it waits, or it ended.
        Voluntary = "voluntary",
        /// The kernel took the CPU from the thread.
        Preempted = "preempted",
    }
}

kinds! {
    /// Kind of the branch instruction of an edge.
    EdgeKind {
        /// Taken conditional branch.
        Conditional = "conditional",
        /// Direct jump.
        Jump = "jump",
        /// Jump through a register or memory.
        IndirectJump = "indirect-jump",
        /// Direct call.
        Call = "call",
        /// Call through a register or memory.
        IndirectCall = "indirect-call",
        /// Return instruction.
        Return = "return",
        /// Branch whose kind the profile's source does not give.
        Unknown = "unknown",
    }
}

kinds! {
    /// Event that a front-end model counts beyond first-level misses.
    ModelEvent {
        /// Line that was in neither the L1I nor the L2.
        L2Miss = "l2_miss",
        /// Taken branch whose target was only in the second level of the branch target buffer.
        BtbL2Hit = "btb_l2_hit",
        /// Taken call, jump or return whose target was in no branch target buffer.
        BtbMiss = "btb_miss",
        /// Taken branch after which the model fetched from another address than the target.
        Misprediction = "misprediction",
        /// Conditional branch whose direction was predicted wrong.
        DirectionMisprediction = "direction_misprediction",
    }
}

kinds! {
    /// Purpose of a run.
    RunPurpose {
        /// Training run: its profile shapes the tuned kernel.
        Training = "training",
        /// Measured run: its figures are compared.
        Measured = "measured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_stands_for_one_kind() {
        for how in CallKind::ALL {
            assert_eq!(CallKind::from_name(how.as_str()), Some(*how));
            assert_eq!(serde_json::to_string(how).unwrap(), format!("\"{how}\""));
        }
        for kind in EdgeKind::ALL {
            assert_eq!(EdgeKind::from_name(kind.as_str()), Some(*kind));
        }
        assert_eq!(ThreadKind::from_name("process"), None);
    }
}
