//! Upstream baseline `stock-autofdo`: AutoFDO, linked as Linux 6.13's Kbuild does.

use super::{clang_autofdo, Entry};
use crate::part::{Job, Last, Made};
use crate::Result;
use kerntune_optimize::clang_autofdo::Link;
use kerntune_optimize::Unasked;

/// AutoFDO as upstream has it.
pub const ENTRY: Entry = Entry {
    name: "stock-autofdo",
    about: "to compare with: AutoFDO with the flags and the link of Linux 6.13's Kbuild",
    place: 110,
    is_upstream: true,
    make: |job, _| make(job, Link::Upstream, false),
    ..clang_autofdo::ENTRY
};

/// `movable`: whether each function has a section, which lld sorts by the profile's call graph.
pub(super) fn make<'a>(job: &Job<'a>, link: Link, movable: bool) -> Result<Made<'a>> {
    let Made { profile, mut last, prove, prove_ordered } = clang_autofdo::make(job, link)?;
    if let Last::Compile(request) = &mut last {
        request.movable |= movable;
    }
    let prove = Box::new(move |tuned: &_| Ok(Box::new(Unasked(prove(tuned)?)) as _));
    Ok(Made { profile, last, prove, prove_ordered })
}
