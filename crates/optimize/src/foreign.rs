//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::{bolt, clang_autofdo, gcc_pgo};

/// Notes of one object.
pub fn gcno(bytes: &[u8]) {
    gcc_pgo::read_notes(bytes);
}

/// Logs of BOLT and of compilers.
pub fn logs(text: &str) {
    bolt::read_log(text);
    clang_autofdo::read_log(text);
    gcc_pgo::read_log(text);
}
