//! Upstream baseline `stock-gcov`: counters exported as the kernel documents
//! (`Documentation/dev-tools/gcov.rst`), compiled in with `-fprofile-use`. Differs from `gcc-pgo`
//! by the summary that GCC needs.

use super::gcc_pgo::{self, GccPgo};
use crate::recipe_parts::part::PartFacts;

/// gcov counters as the kernel exports them.
pub const ENTRY: GccPgo = GccPgo {
    facts: PartFacts {
        name: "stock-gcov",
        about: "to compare with: GCC with the counters as gcov exports them, without a summary",
        place: 100,
        is_upstream: true,
        steps: gcc_pgo::STEPS,
        counts_values: false,
        tells_untrained: false,
        ..gcc_pgo::ENTRY.facts
    },
    as_exported: true,
};
