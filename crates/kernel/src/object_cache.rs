//! Objects kept by ccache: a kernel that differs by a patch compiles what the patch changed.

use kerntune_work::{find_program, WorkDir};
use std::ffi::OsString;
use std::path::PathBuf;

/// What ccache may take of the disk. A small kernel takes some 20 MB.
const LIMIT: &str = "2G";

/// Below the work directory. What `.ccache` had was found without a look for `.incbin`.
const DIRECTORY: &str = ".ccache2";

/// ccache with a directory of its own in the work directory, or the user's (`CCACHE_DIR`). It keeps an object by its source, its
/// headers, the flags and the compiler, each by content, and checks what it kept when it is used.
pub(crate) struct ObjectCache {
    dir: PathBuf,
}

impl ObjectCache {
    /// The cache, if ccache is installed.
    pub fn find(work: &WorkDir) -> Option<Self> {
        find_program("ccache", &[]).map(|_| Self { dir: work.root().join(DIRECTORY) })
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
            // A source is preprocessed before it is found, and so ccache sees that it has `.incbin` and leaves it alone. By the
            // headers that the compiler lists it would give one kernel's image, packed into the boot code, to another.
            ("CCACHE_NODEPEND", "1".into()),
            // The compiler sees the same current directory in every build.
            ("CCACHE_NOHASHDIR", "1".into()),
        ];
        ours.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// The boot code of x86 takes the kernel in so.
    #[test]
    fn what_a_file_takes_in_is_not_taken_from_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().join("work")).unwrap();
        let Some(cache) = ObjectCache::find(&work) else { return };
        let source = directory.path().join("piggy.S");
        fs::write(&source, ".section .rodata\n.incbin \"image\"\n").unwrap();
        let object = |image: &str| {
            fs::write(directory.path().join("image"), image).unwrap();
            let made = Command::new(cache.program().trim())
                .args(["gcc", "-Wp,-MMD,piggy.d", "-c", "piggy.S", "-o", "piggy.o"])
                .current_dir(directory.path())
                .envs(cache.environment())
                .status()
                .unwrap();
            assert!(made.success());
            fs::read(directory.path().join("piggy.o")).unwrap()
        };
        let has =
            |object: &[u8], image: &str| object.windows(image.len()).any(|part| part == image.as_bytes());
        let (one, two) = (object("first image"), object("other image"));
        assert!(has(&one, "first image") && has(&two, "other image"));
    }
}
