//! The version in a kernel's key is raised with the code that makes kernels.
//!
//! A kernel takes minutes to build, so its key has a version that is raised by hand instead of a
//! hash of the code. This test fails whenever the code changes, as a reminder.

use std::path::{Path, PathBuf};

/// Files that decide the bytes of a kernel, given source, configuration and compiler.
const FILES: [&str; 26] = [
    "arch.rs",
    "build/attempt.rs",
    "build/configure.rs",
    "build/copied_objects.rs",
    "inputs/config.rs",
    "inputs/patch.rs",
    "inputs/patch_set.rs",
    "link/borrowed.rs",
    "link/install.rs",
    "link/link_script.rs",
    "link/mix.rs",
    "link/order.rs",
    "link/relink.rs",
    "link/repack.rs",
    "make/aside.rs",
    "make/build_tree.rs",
    "make/compiler.rs",
    "make/copy.rs",
    "make/kbuild.rs",
    "make/llvm.rs",
    "make/object_cache.rs",
    "make/object_flags.rs",
    "make/pool.rs",
    "request.rs",
    "tools.rs",
    "../../isa/src/x86_64/names.rs",
];

/// Hash of those files, for the rules kernel/4, configure/4, relink/3, repack/3 and
/// source-patched/2.
const HASH: &str = "42e387b93735a0a7";

#[test]
fn the_version_is_raised_with_the_code() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files: Vec<PathBuf> = FILES.iter().map(|name| source.join(name)).collect();
    let now = kerntune_code::of_files(&source, &files);
    assert_eq!(
        now, HASH,
        "the code that makes kernels changed. If a kernel comes out otherwise, raise RULE in build/attempt.rs (or the rule \
         in build/configure.rs, link/relink.rs, link/repack.rs, inputs/patch.rs). Then write the new hash into this test."
    );
}
