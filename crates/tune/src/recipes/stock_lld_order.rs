//! Upstream baseline `stock-lld-order`: AutoFDO with functions in the order of lld's own sort.

use super::clang_autofdo::{self, ClangAutofdo};
use crate::recipe_parts::part::PartFacts;
use kerntune_optimize::clang_autofdo::LinkMode;

/// AutoFDO with functions ordered by lld.
pub const ENTRY: ClangAutofdo = ClangAutofdo {
    facts: PartFacts {
        name: "stock-lld-order",
        about: "to compare with: clang-autofdo with functions in the order of lld's own sort",
        place: 120,
        is_upstream: true,
        elsewhere: Err(
            "User-Mode Linux is linked by the compiler with the host's own linker, and not by lld",
        ),
        ..clang_autofdo::ENTRY.facts
    },
    link: Some(LinkMode::Objects),
    sorted_by_linker: true,
};
