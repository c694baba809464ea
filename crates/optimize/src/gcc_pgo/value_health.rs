//! Figures of the kernel's value counters about themselves, from the debugfs file `gcov/values`.

use crate::{Error, Result};
use kerntune_work::IoContext;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// Name of the file in the directory of a run.
const FILE: &str = "values";

/// Largest accepted share of the values in lists that found no free node. Totals stay correct, but
/// a value that arrives when all nodes are taken is in no list, so the usual target of a call that
/// is first made late is lost.
pub const MAX_UNLISTED_SHARE: f64 = 0.001;

/// Use of list nodes in one run (`docs/values.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ValueHealth {
    /// Nodes taken since boot.
    pub nodes: u64,
    /// Nodes in total: `CONFIG_GCOV_VALUES_NODES`.
    pub nodes_of: u64,
    /// Values that found no free node since the reset.
    pub unlisted: u64,
    /// Values that found their place's list full of 32 others since the reset.
    pub crowded: u64,
}

impl ValueHealth {
    /// Reads the figures of a run; `None` if its kernel has no such file.
    pub(super) fn of_run(run: &Path) -> Result<Option<Self>> {
        for file in [run.join(FILE), run.join("gcov").join(FILE)] {
            let text = match std::fs::read_to_string(&file) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text.at("read", &file)?,
            };
            return Self::parse(&text).map(Some).ok_or(Error::BadHealth { file });
        }
        Ok(None)
    }

    /// Parses the file:
    /// ```text
    /// nodes 11000 of 131072
    /// unlisted 0
    /// crowded 12
    /// ```
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let mut number = |name: &str| {
            (words.next()? == name).then_some(())?;
            words.next()?.parse().ok()
        };
        Some(Self {
            nodes: number("nodes")?,
            nodes_of: number("of")?,
            unlisted: number("unlisted")?,
            crowded: number("crowded")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernels_file_is_read_wherever_it_was_put() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ValueHealth::of_run(dir.path()).unwrap(), None);
        std::fs::create_dir(dir.path().join("gcov")).unwrap();
        let file = dir.path().join("gcov/values");
        std::fs::write(&file, "nodes 7 of 131072\nunlisted 0\ncrowded 12\n").unwrap();
        let health = ValueHealth { nodes: 7, nodes_of: 131_072, unlisted: 0, crowded: 12 };
        assert_eq!(ValueHealth::of_run(dir.path()).unwrap(), Some(health));
        std::fs::write(&file, "nodes 7 of many\n").unwrap();
        let text = ValueHealth::of_run(dir.path()).unwrap_err().to_string();
        assert!(text.contains("gcov/values"), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(nodes|of|unlisted|crowded|[0-9]{0,30}|\\PC| |\n)*") {
            let _ = ValueHealth::parse(&text);
        }
    }
}
