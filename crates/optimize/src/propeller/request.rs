//! What to build: a kernel that says where its blocks are, and one that has them in order.

use super::PreparedBlocks;
use crate::clang_autofdo::{tuned_request, Link, PreparedProfile};
use crate::Result;
use kerntune_kernel::{BuildRequest, Kernel, ObjectFlags};

/// The list in the build directory, in which Kbuild runs the compiler.
pub(super) const LIST_FILE: &str = "kerntune-blocks.txt";

/// Makes Clang write down where each block of each function is, with the number by which a list names it.
const MAP: &str = "-fbasic-block-address-map";
/// The same of lld, where it makes the code.
const MAP_BY_LINKER: &str = "--lto-basic-block-address-map";

/// Code that runs in programs. Its image is checked for addresses that would have to be changed when it is loaded, and a
/// map has one for each function.
const NOT_KERNEL: &str = "arch/x86/entry/vdso/";

/// The kernel of recipe `clang-autofdo` with a map of its blocks. `base` and `kernel` are as for [`tuned_request`].
///
/// Nothing is split and nothing has another order, so that a block is where the compiler alone would have it.
///
/// # Errors
/// As [`tuned_request`].
pub fn mapped_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &PreparedProfile,
    link: Link,
) -> Result<BuildRequest> {
    let mut request = tuned_request(base, kernel, profile, link)?;
    add(&mut request, link, MAP, MAP_BY_LINKER);
    if link != Link::ThinLto {
        let leave_out = vec![MAP.to_string()];
        let path = NOT_KERNEL.to_string();
        let reason = Some("addresses in the vDSO's image".into());
        request.object_flags.push(ObjectFlags { path, add: Vec::new(), leave_out, reason });
    }
    Ok(request)
}

/// The same with the blocks of each function in the order of `blocks`, in place of the map.
///
/// # Errors
/// As [`tuned_request`].
pub fn ordered_request(
    base: &BuildRequest,
    kernel: &Kernel,
    blocks: &PreparedBlocks,
    link: Link,
) -> Result<BuildRequest> {
    let mut request = tuned_request(base, kernel, &blocks.profile()?, link)?;
    let (by_compiler, by_linker) =
        (format!("-fbasic-block-sections=list={LIST_FILE}"), format!("--lto-basic-block-sections={LIST_FILE}"));
    add(&mut request, link, &by_compiler, &by_linker);
    request.profile_dir = Some(blocks.tree());
    request.profile_id = Some(blocks.id.clone());
    Ok(request)
}

/// Asks for a flag of who makes the code.
fn add(request: &mut BuildRequest, link: Link, by_compiler: &str, by_linker: &str) {
    // Blocks that are apart need places in the linker script, as functions do.
    request.movable = true;
    let linker = request.make_vars.iter_mut().find(|(name, _)| name == "LD");
    match (link, linker) {
        (Link::ThinLto, Some((_, linker))) => linker.push_str(&format!(" {by_linker}")),
        _ => request.kcflags.push(by_compiler.into()),
    }
}
