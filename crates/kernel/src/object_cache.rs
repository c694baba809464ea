//! Objects kept by ccache: a kernel that differs by a patch compiles what the patch changed.

use kerntune_work::{find_program, WorkDir};
use std::ffi::OsString;
use std::path::PathBuf;

/// What ccache may take of the disk. A small kernel takes some 20 MB.
const LIMIT: &str = "2G";

/// ccache with a directory of its own in the work directory, or the user's (`CCACHE_DIR`). It keeps an object by its source, its
/// headers, the flags and the compiler, each by content, and checks what it kept when it is used.
pub(crate) struct ObjectCache {
    dir: PathBuf,
}

impl ObjectCache {
    /// The cache, if ccache is installed.
    pub fn find(work: &WorkDir) -> Option<Self> {
        find_program("ccache", &[]).map(|_| Self { dir: work.root().join(".ccache") })
    }

    /// What runs the compiler, with a space behind.
    pub fn program(&self) -> &'static str {
        "ccache "
    }

    /// What ccache is told, unless the user tells it otherwise.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let ours: [(&str, OsString); 4] = [
            ("CCACHE_DIR", self.dir.clone().into()),
            ("CCACHE_MAXSIZE", LIMIT.into()),
            // Headers as the compiler lists them: the source is not preprocessed twice.
            ("CCACHE_DEPEND", "1".into()),
            // The compiler sees the same current directory in every build.
            ("CCACHE_NOHASHDIR", "1".into()),
        ];
        ours.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect()
    }
}
