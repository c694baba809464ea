//! Upstream baseline `stock-autofdo`: AutoFDO, linked as Linux 6.13's Kbuild does.

use super::{clang_autofdo, Entry};
use crate::recipe_parts::recipe_spec::{FinalStep, PreparedBuild, RecipeContext};
use crate::Result;
use kerntune_optimize::clang_autofdo::LinkMode;
use kerntune_optimize::BaselineProof;

/// AutoFDO as upstream has it.
pub const ENTRY: Entry = Entry {
    name: "stock-autofdo",
    about: "to compare with: AutoFDO with the flags and the link of Linux 6.13's Kbuild",
    place: 110,
    is_upstream: true,
    make: |context, _| make(context, LinkMode::Upstream, false),
    ..clang_autofdo::ENTRY
};

/// Carries out AutoFDO. With `movable`, each function has a section, and lld sorts them by the
/// profile's call graph.
pub(super) fn make<'a>(
    context: &RecipeContext<'a>,
    link: LinkMode,
    movable: bool,
) -> Result<PreparedBuild<'a>> {
    let PreparedBuild { profile, mut final_step, prove, prove_ordered } = clang_autofdo::make(context, link)?;
    if let FinalStep::Compile(request) = &mut final_step {
        request.movable |= movable;
    }
    let prove = Box::new(move |tuned: &_| Ok(Box::new(BaselineProof(prove(tuned)?)) as _));
    Ok(PreparedBuild { profile, final_step, prove, prove_ordered })
}
