//! Flags of compiler and linker.

use kerntune_kernel::Compiler;

/// Name of the profile in the build directory, in which Kbuild runs the compiler.
pub(crate) const PROFILE_FILE: &str = "kerntune.afdo";

/// Flags of Makefile.autofdo, for sources without it. `-mllvm=` is one word, as Clang 15 and later
/// accept it.
pub(super) const SOURCE_FLAGS: &[&str] = &[
    "-fdebug-info-for-profiling",
    "-mllvm=-enable-fs-discriminator=true",
    "-mllvm=-improved-fs-discriminator=true",
];
/// Flag for line tables and nothing else: `llvm-profgen` reads no more.
pub(super) const LINE_TABLES: &str = "-gmlt";

/// Flags that make Clang report for each function how much of its profile was applied
/// ([`super::prove`] reads the log), without stopping a kernel with CONFIG_WERROR.
pub(super) const REPORT_FLAGS: &[&str] =
    &["-mllvm=-sample-profile-check-sample-coverage=101", "-Wno-error=backend-plugin"];

/// Flag that Makefile.autofdo adds to `-ffunction-sections`.
pub(super) const SPLIT_FLAG: &str = "-fsplit-machine-functions";
/// The same flag for lld when it generates the code.
pub(crate) const SPLIT_BY_LINKER: &str = "-plugin-opt=-split-machine-functions";

/// Returns lld with Makefile.autofdo's flags for code that it generates. Kbuild's own variable for
/// such flags (`KBUILD_LDFLAGS`) would be overwritten, not extended.
pub(super) fn thin_lto_linker(compiler: &Compiler) -> String {
    let flags = [
        &format!("--lto-sample-profile={PROFILE_FILE}"),
        "--mllvm=-enable-fs-discriminator=true",
        "--mllvm=-improved-fs-discriminator=true",
        "-plugin-opt=thinlto",
        SPLIT_BY_LINKER,
        // The kernel's Makefile limits inlining across objects to functions of 5 instructions, and
        // of ten times as many where the profile is hot. Exact counts can be trusted further.
        "-plugin-opt=-import-hot-multiplier=100",
    ];
    format!("{} {}", compiler.llvm_program("ld.lld"), flags.join(" "))
}

/// Returns the flag that makes Clang use the profile.
pub(super) fn use_profile() -> String {
    format!("-fprofile-sample-use={PROFILE_FILE}")
}

/// Returns the flags of the base kernel.
pub(super) fn source_flags() -> Vec<String> {
    [LINE_TABLES].iter().chain(SOURCE_FLAGS).map(ToString::to_string).collect()
}

/// Returns the flags of the tuned kernel.
pub(super) fn profile_flags() -> Vec<String> {
    let report = REPORT_FLAGS.iter().map(ToString::to_string);
    source_flags().into_iter().chain([use_profile()]).chain(report).collect()
}
