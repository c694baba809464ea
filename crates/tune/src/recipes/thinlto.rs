//! Modifier `thinlto`: code is generated at link time.

use super::clang_autofdo;
use crate::recipe_parts::part::{PartFacts, RecipePart};
use kerntune_kernel::Compiler;
use kerntune_optimize::clang_autofdo::check_thin_lto;

/// ThinLTO. It has no steps: `clang-autofdo` looks for it and links differently.
pub const ENTRY: ThinLto = ThinLto;

/// Type of the entry.
pub struct ThinLto;

impl RecipePart for ThinLto {
    fn facts(&self) -> &PartFacts {
        &PartFacts {
            name: "thinlto",
            about_after: " with hot functions inlined across objects (ThinLTO)",
            place: 20,
            elsewhere: Err(
                "linked so, a kernel for User-Mode Linux compiles and panics when it boots (\"Segfault with no mm\", Linux 7.3)",
            ),
            ..PartFacts::DEFAULT
        }
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        check_thin_lto(compiler)
    }

    fn follows(&self, before: &[&dyn RecipePart]) -> bool {
        matches!(before, [base] if base.facts().name == clang_autofdo::ENTRY.facts.name)
    }
}
