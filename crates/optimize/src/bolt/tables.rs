//! Check of tables whose entries BOLT reads by a fixed size, before it runs.
//!
//! BOLT 19 to 24 take 12 bytes for an entry (`LinuxKernelRewriter.cpp`). Linux 7.0 and later have a
//! format string in each `struct bug_entry` (`HAVE_ARCH_BUG_FORMAT`), which then takes 16. BOLT fails
//! on such a table, or, if its size happens to be a multiple of 12, changes other bytes of it.

use super::guard::offsets;
use super::image::ElfImage;

/// Tables that begin each entry with the self-relative address of an instruction, with the bytes of
/// an entry for BOLT and the C structure.
const TABLES: [(&str, usize, &str); 2] =
    [("__bug_table", 12, "struct bug_entry"), ("__ex_table", 12, "struct exception_table_entry")];

/// Sizes of entries in the kernels that there are, with and without file names and formats.
const SIZES: [usize; 5] = [8, 12, 16, 20, 24];

/// Returns the reason if BOLT cannot read a table of the kernel.
pub(super) fn problem(image: &ElfImage) -> Option<String> {
    TABLES.into_iter().find_map(|(table, expected, structure)| {
        let section = image.section(table)?;
        let contents = image.contents(section);
        let is_size = |size: usize| {
            contents.len() % size == 0
                && offsets(section.address, contents, size, 0).all(|address| image.is_code(address))
        };
        if is_size(expected) {
            return None;
        }
        let found = match SIZES.into_iter().find(|size| is_size(*size)) {
            Some(bytes) => format!("entries of {bytes} bytes ({structure})"),
            None => format!("{} bytes, and entries of no known size ({structure})", contents.len()),
        };
        Some(format!(
            "its {table} has {found}, and BOLT reads entries of {expected}; the recipe layout orders this kernel's \
             functions, and clang-autofdo+propeller its blocks"
        ))
    })
}
