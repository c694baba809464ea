//! What became of a function that ran.

use serde::{Deserialize, Serialize};

/// What became of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its code is another.
    Rewritten,
    /// BOLT made it longer than its place in every order that was tried.
    TooLong,
    /// An entry of the exception table is in it, which BOLT 19 leaves alone.
    Exceptions,
    /// The kernel replaces instructions of it at boot, which BOLT 19 leaves alone.
    Alternatives,
    /// A table that BOLT 19 does not know refers into it; it was not given to BOLT.
    Referred,
    /// It is assembly; it was not given to BOLT.
    Assembly,
    /// BOLT could not follow it or found nothing to do.
    AsItWas,
}

impl Fate {
    pub(super) fn text(self) -> &'static str {
        match self {
            Fate::Rewritten => "rewritten",
            Fate::TooLong => "not: longer than their place",
            Fate::Exceptions => "not: in the exception table",
            Fate::Alternatives => "not: changed by the kernel at boot",
            Fate::Referred => "not: in a table BOLT does not know",
            Fate::Assembly => "not: assembly",
            Fate::AsItWas => "left as they were",
        }
    }
}
