//! Upstream baseline `stock-gcov`: counters exported as the kernel documents
//! (`Documentation/dev-tools/gcov.rst`), compiled in with `-fprofile-use`. Differs from `gcc-pgo`
//! by the summary that GCC needs.

use super::{gcc_pgo, Entry};
use crate::recipe_parts::recipe_spec::{FinalStep, PreparedBuild, RecipeContext};
use crate::Result;
use kerntune_optimize::BaselineProof;

/// gcov counters as the kernel exports them.
pub const ENTRY: Entry = Entry {
    name: "stock-gcov",
    about: "to compare with: GCC with the counters as gcov exports them, without a summary",
    place: 100,
    is_upstream: true,
    counts_values: false,
    make,
    ..gcc_pgo::ENTRY
};

fn make<'a>(context: &RecipeContext<'a>, _: Option<PreparedBuild<'a>>) -> Result<PreparedBuild<'a>> {
    let PreparedBuild { profile, mut final_step, prove, prove_ordered } = gcc_pgo::make(context, true)?;
    if let FinalStep::Compile(request) = &mut final_step {
        request.recipe = Some(context.recipe.into());
    }
    let prove = Box::new(move |tuned: &_| Ok(Box::new(BaselineProof(prove(tuned)?)) as _));
    Ok(PreparedBuild { profile, final_step, prove, prove_ordered })
}
