//! Result of BOLT for a function that ran.

use serde::{Deserialize, Serialize};

/// Result of BOLT for a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionFate {
    /// Its code was changed.
    Rewritten,
    /// Skipped: with every order of blocks that was tried, its code is longer than its place.
    TooLong,
    /// Skipped: it has an entry in the exception table, which BOLT 19 leaves alone.
    Exceptions,
    /// Skipped: the kernel replaces instructions of it at boot, which BOLT 19 leaves alone.
    Alternatives,
    /// Withheld from BOLT: a table that BOLT 19 does not know refers into it.
    Referred,
    /// Withheld from BOLT: it is assembly.
    Assembly,
    /// Unchanged: BOLT could not analyze it, or found nothing to do.
    AsItWas,
}

impl FunctionFate {
    pub(super) fn text(self) -> &'static str {
        match self {
            FunctionFate::Rewritten => "rewritten",
            FunctionFate::TooLong => "not: longer than their place",
            FunctionFate::Exceptions => "not: in the exception table",
            FunctionFate::Alternatives => "not: changed by the kernel at boot",
            FunctionFate::Referred => "not: in a table BOLT does not know",
            FunctionFate::Assembly => "not: assembly",
            FunctionFate::AsItWas => "left as they were",
        }
    }
}
