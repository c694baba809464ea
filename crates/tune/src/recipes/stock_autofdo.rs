//! Upstream baseline `stock-autofdo`: AutoFDO, linked as Linux 6.13's Kbuild does.

use super::clang_autofdo::{self, ClangAutofdo};
use crate::recipe_parts::part::PartFacts;
use kerntune_optimize::clang_autofdo::LinkMode;

/// AutoFDO as upstream has it.
pub const ENTRY: ClangAutofdo = ClangAutofdo {
    facts: PartFacts {
        name: "stock-autofdo",
        about: "to compare with: AutoFDO with the flags and the link of Linux 6.13's Kbuild",
        place: 110,
        is_upstream: true,
        ..clang_autofdo::ENTRY.facts
    },
    link: Some(LinkMode::Upstream),
    sorted_by_linker: false,
};
