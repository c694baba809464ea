//! Upstream baseline `stock-lld-order`: AutoFDO with functions in the order of lld's own sort.

use super::{stock_autofdo, Entry};
use kerntune_optimize::clang_autofdo::LinkMode;

/// AutoFDO with functions ordered by lld.
pub const ENTRY: Entry = Entry {
    name: "stock-lld-order",
    about: "to compare with: clang-autofdo with functions in the order of lld's own sort",
    place: 120,
    elsewhere: Err("User-Mode Linux is linked by the compiler with the host's own linker, and not by lld"),
    make: |context, _| stock_autofdo::make(context, LinkMode::Objects, true),
    ..stock_autofdo::ENTRY
};
