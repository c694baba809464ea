//! Entry points for tests with damaged input: readers of this crate that are not public otherwise.

use crate::{bolt, clang_autofdo, gcc_pgo};

/// Parses a `.gcno` file.
pub fn gcno(bytes: &[u8]) {
    gcc_pgo::read_notes(bytes);
}

/// Parses logs of BOLT and of compilers.
pub fn logs(text: &str) {
    bolt::read_log(text);
    clang_autofdo::read_log(text);
    gcc_pgo::read_log(text);
}
