//! Upstream baseline `stock-gcov`: what the kernel's documentation of gcov (`Documentation/dev-tools/gcov.rst`) brings
//! out, compiled in with `-fprofile-use`. All of `gcc-pgo` but the summary that GCC looks for.

use super::{gcc_pgo, Entry};
use crate::part::{Job, Last, Made};
use crate::Result;
use kerntune_optimize::Unasked;

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

fn make<'a>(job: &Job<'a>, _: Option<Made<'a>>) -> Result<Made<'a>> {
    let Made { profile, mut last, prove, prove_ordered } = gcc_pgo::make(job, true)?;
    if let Last::Compile(request) = &mut last {
        request.recipe = Some(job.recipe.into());
    }
    let prove = Box::new(move |tuned: &_| Ok(Box::new(Unasked(prove(tuned)?)) as _));
    Ok(Made { profile, last, prove, prove_ordered })
}
