//! Build requests: a kernel with a map of its blocks, and one with ordered blocks.

use super::prepare::LIST_FILE;
use super::PreparedBlocks;
use crate::clang_autofdo::{request_with, tuned_request, AutofdoProfile, LinkMode, SPLIT_BY_LINKER};
use crate::Result;
use kerntune_kernel::{BuildRequest, Kernel, ObjectFlags};

/// Flag that makes Clang write the position of each block, with the number by which a list names
/// it.
const MAP: &str = "-fbasic-block-address-map";
/// The same flag for lld when it generates the code.
const MAP_BY_LINKER: &str = "--lto-basic-block-address-map";

/// Flag that sets the build directory in debug information to `.`.
const NO_DIRECTORY: &str = "-fdebug-compilation-dir=.";

/// Code that runs in programs. Its image is checked for addresses to relocate at load time, and a
/// map has one for each function.
const NOT_KERNEL: &str = "arch/x86/entry/vdso/";

/// Returns the request for the kernel of recipe `clang-autofdo` with a map of its blocks. `base`
/// and `kernel` are as for [`tuned_request`].
///
/// Nothing is split or reordered, so that blocks are where the compiler alone puts them.
///
/// # Errors
/// As [`tuned_request`].
pub fn mapped_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &AutofdoProfile,
    link: LinkMode,
) -> Result<BuildRequest> {
    let mut request = tuned_request(base, kernel, profile, link)?;
    add(&mut request, link, MAP, MAP_BY_LINKER);
    if link != LinkMode::ThinLto {
        let leave_out = vec![MAP.to_string()];
        let path = NOT_KERNEL.to_string();
        let reason = Some("addresses in the vDSO's image".into());
        request.object_flags.push(ObjectFlags { path, add: Vec::new(), leave_out, reason });
    }
    Ok(request)
}

/// Returns the request for the same kernel with the blocks of each function in the order of
/// `blocks`, without the map.
///
/// # Errors
/// As [`tuned_request`].
pub fn ordered_request(
    base: &BuildRequest,
    kernel: &Kernel,
    blocks: &PreparedBlocks,
    link: LinkMode,
) -> Result<BuildRequest> {
    let mut request = request_with(base, kernel, (blocks.tree(), &blocks.id), link)?;
    let by_compiler = format!("-fbasic-block-sections=list={LIST_FILE}");
    let by_linker = format!("--lto-basic-block-sections={LIST_FILE}");
    add(&mut request, link, &by_compiler, &by_linker);
    Ok(request)
}

/// Adds a flag for the compiler or for lld, whichever generates the code.
fn add(request: &mut BuildRequest, link: LinkMode, by_compiler: &str, by_linker: &str) {
    // Split blocks need places in the linker script, as functions do.
    request.movable = true;
    if link == LinkMode::ThinLto {
        // A static function that ThinLTO exports to another object is renamed by a hash of its
        // object, debug information included. So the build directory must not be part of it: the
        // list has names of one build for another.
        request.kcflags.push(NO_DIRECTORY.into());
    }
    let linker = request.make_vars.iter_mut().find(|(name, _)| name == "LD");
    match (link, linker) {
        (LinkMode::ThinLto, Some((_, linker))) => {
            // The list determines splitting, and the map is of functions in one piece.
            *linker = linker.replace(&format!(" {SPLIT_BY_LINKER}"), "");
            linker.push_str(&format!(" {by_linker}"));
        }
        _ => request.kcflags.push(by_compiler.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clang_autofdo::{base_request, default_compiler, AutofdoSummary};
    use crate::propeller::BlocksSummary;
    use kerntune_kernel::KernelSource;
    use std::path::Path;

    fn blocks() -> PreparedBlocks {
        PreparedBlocks {
            dir: "/w/blocks/b1".into(),
            id: "b1".into(),
            kernel: "k2".into(),
            recording: "r2".into(),
            profile: "p1".into(),
            summary: BlocksSummary::default(),
        }
    }

    #[test]
    fn both_kernels_have_the_same_flags_but_for_map_and_list() {
        let profile = AutofdoProfile {
            dir: "/w/clang-autofdo/p1".into(),
            id: "p1".into(),
            kernel: "k1".into(),
            recording: "r1".into(),
            summary: AutofdoSummary::default(),
        };
        let kernel = crate::test_kernel::kernel("/w/kernels/k1".as_ref(), "k1", "6.12.117");
        let mut request = BuildRequest::new(KernelSource::Debian("6.12".into()), "base");
        request.compiler = default_compiler();
        let base = base_request(&request, "6.12.117").unwrap();

        let mapped = mapped_request(&base, &kernel, &profile, LinkMode::Objects).unwrap();
        let ordered = ordered_request(&base, &kernel, &blocks(), LinkMode::Objects).unwrap();
        assert!(mapped.movable && ordered.movable);
        assert_eq!(mapped.kcflags.last().unwrap(), "-fbasic-block-address-map");
        assert_eq!(ordered.kcflags.last().unwrap(), "-fbasic-block-sections=list=kerntune-blocks.txt");
        let all_but_last = |request: &BuildRequest| request.kcflags[..request.kcflags.len() - 1].to_vec();
        assert_eq!(all_but_last(&mapped), all_but_last(&ordered));
        assert_eq!((mapped.object_flags[0].path.as_str(), ordered.object_flags.len()), (NOT_KERNEL, 0));
        assert_eq!(ordered.profile_dir.as_deref(), Some(Path::new("/w/blocks/b1/tree")));
        assert_eq!((mapped.profile_id.as_deref(), ordered.profile_id.as_deref()), (Some("p1"), Some("b1")));

        let mapped = mapped_request(&base, &kernel, &profile, LinkMode::ThinLto).unwrap();
        let ordered = ordered_request(&base, &kernel, &blocks(), LinkMode::ThinLto).unwrap();
        let linker = |request: &BuildRequest| request.make_vars.last().unwrap().1.clone();
        assert!(linker(&mapped).ends_with(" --lto-basic-block-address-map"));
        assert!(linker(&ordered).ends_with(" --lto-basic-block-sections=kerntune-blocks.txt"));
        assert!(![&mapped, &ordered].iter().any(|request| linker(request).contains(SPLIT_BY_LINKER)));
        assert_eq!(mapped.kcflags, ordered.kcflags);
        assert!(mapped.kcflags.contains(&NO_DIRECTORY.to_string()));
    }
}
