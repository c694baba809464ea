//! The version in a kernel's key is raised with the code that makes kernels.
//!
//! A kernel takes minutes to build, so its key holds a version that is raised by hand instead of a hash of the code. This
//! test fails whenever the code changes, so that nobody forgets to think about it.

use std::path::{Path, PathBuf};

/// What decides the bytes of a kernel, given source, configuration and compiler.
const FILES: [&str; 22] = [
    "arch.rs",
    "aside.rs",
    "borrowed.rs",
    "build.rs",
    "build_tree.rs",
    "compiler.rs",
    "config.rs",
    "configure.rs",
    "kbuild.rs",
    "link_script.rs",
    "mix.rs",
    "object_cache.rs",
    "object_flags.rs",
    "order.rs",
    "patch.rs",
    "patch_set.rs",
    "pool.rs",
    "relink.rs",
    "repack.rs",
    "request.rs",
    "tools.rs",
    "../../isa/src/x86_64/names.rs",
];

/// Of those files, for the rules kernel/4, configure/4, relink/3, repack/3 and source-patched/2.
const HASH: &str = "0dfccc48f267858d";

#[test]
fn the_version_is_raised_with_the_code() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files: Vec<PathBuf> = FILES.iter().map(|name| source.join(name)).collect();
    let now = kerntune_code::of_files(&source, &files);
    assert_eq!(
        now, HASH,
        "the code that makes kernels changed. If a kernel comes out otherwise, raise RULE in src/build.rs (or the rule \
         in configure.rs, relink.rs, repack.rs, patch.rs). Then write the new hash into this test."
    );
}
