//! Config fragments of `embedded/kernel/`, compiled in so that an installed kerntune needs no checkout.

/// Lean VM kernel, merged over `make tinyconfig`.
pub const BASE: &str = include_str!("../../../../embedded/kernel/base.config");
/// Options that every kernel needs to run under kerntune, merged over everything else.
pub const REQUIRED: &str = include_str!("../../../../embedded/kernel/required.config");
/// Lean kernel for User-Mode Linux, merged over `make ARCH=um tinyconfig`.
pub const UML: &str = include_str!("../../../../embedded/kernel/uml.config");
/// The counterpart of [`REQUIRED`] for User-Mode Linux.
pub const UML_REQUIRED: &str = include_str!("../../../../embedded/kernel/uml-required.config");
/// Block devices in the guest's memory, and the file systems on them.
pub const DISK: &str = include_str!("../../../../embedded/kernel/disk.config");
/// Persistent memory and DAX, on top of [`DISK`].
pub const PMEM: &str = include_str!("../../../../embedded/kernel/pmem.config");
/// NUMA nodes, and the firmware's tables that describe them.
pub const NUMA: &str = include_str!("../../../../embedded/kernel/numa.config");
/// Mitigations of CPU vulnerabilities.
pub const MITIGATIONS: &str = include_str!("../../../../embedded/kernel/mitigations.config");
/// Function tracer and function profiler.
pub const FTRACE: &str = include_str!("../../../../embedded/kernel/ftrace.config");
/// Arc counters (gcov) in every object.
pub const GCOV: &str = include_str!("../../../../embedded/kernel/gcov.config");
/// Value counters on top of [`GCOV`], for a source with
/// [`PatchSet::gcov_values`](crate::PatchSet::gcov_values).
pub const GCOV_VALUES: &str = include_str!("../../../../embedded/kernel/gcov-values.config");

/// Returns the option lines of a fragment without comments, for
/// [`BuildRequest::extra`](crate::BuildRequest::extra).
///
/// ```
/// use kerntune_kernel::fragment;
/// assert!(fragment::lines(fragment::GCOV).contains(&"CONFIG_GCOV_KERNEL=y".to_string()));
/// ```
pub fn lines(fragment: &str) -> Vec<String> {
    let is_option = |line: &&str| {
        line.starts_with("CONFIG_") || (line.starts_with("# CONFIG_") && line.ends_with(" is not set"))
    };
    fragment.lines().map(str::trim).filter(is_option).map(str::to_string).collect()
}
