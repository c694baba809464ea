//! Objects kept by ccache: a kernel that differs by a patch compiles what the patch changed.

use kerntune_work::{find_program, write_atomic, WorkDir};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What ccache may take of the disk. A small kernel takes some 20 MB.
const LIMIT: &str = "2G";

/// Below the work directory. What `.ccache` had was found without a look for `.incbin`.
const DIRECTORY: &str = ".ccache2";

/// Runs the compiler through ccache, unless it reads or writes more than source and object: counters, a profile or a list of blocks
/// beside them, or another file that the source takes in (`.incbin`). Of that ccache knows nothing when it goes by the headers that the compiler
/// lists, and would give one kernel's image, packed into the boot code, to another.
const THROUGH: &str = r#"#!/bin/sh
for word; do
    case $word in
    *.S | -fprofile-* | -fauto-profile* | -ftest-coverage | --coverage | -fbasic-block-sections=*) exec "$@" ;;
    *.c) ! grep -qs incbin "$word" || exec "$@" ;;
    esac
done
exec ccache "$@"
"#;

/// ccache with a directory of its own in the work directory, or the user's (`CCACHE_DIR`). It keeps an object by its source, its
/// headers, the flags and the compiler, each by content, and checks what it kept when it is used.
#[derive(Debug, Clone)]
pub(crate) struct ObjectCache {
    dir: PathBuf,
    /// Whether it keeps objects of the kernel, too.
    kernel: bool,
}

impl ObjectCache {
    /// The cache for the programs that Kbuild makes for itself (kconfig, objtool), if ccache is installed and the work directory can
    /// be written to.
    pub fn of_host_tools(work: &WorkDir) -> Option<Self> {
        find_program("ccache", &[])?;
        let cache = Self { dir: work.root().join(DIRECTORY), kernel: false };
        let script = cache.script();
        if !fs::read_to_string(&script).is_ok_and(|text| text == THROUGH) {
            fs::create_dir_all(&cache.dir).ok()?;
            write_atomic(&script, THROUGH.as_bytes()).ok()?;
        }
        Some(cache)
    }

    /// The cache for the kernel's objects as well.
    pub fn of_kernel(self) -> Self {
        Self { kernel: true, ..self }
    }

    fn script(&self) -> PathBuf {
        self.dir.join("through.sh")
    }

    /// What runs the compiler, with a space behind.
    pub fn program(&self) -> String {
        format!("sh {} ", self.script().display())
    }

    /// Whether the host's tools of a build directory are to be compiled through it: as they were, if they are there. Kbuild makes them
    /// anew when their command changes, and all objects after them.
    pub fn is_of_tools_in(&self, build: &Path) -> bool {
        self.made(&build.join("scripts/basic/.fixdep.cmd")).unwrap_or(true)
    }

    /// Whether the kernel's objects are; as those that are there, likewise.
    pub fn is_of_objects_in(&self, build: &Path) -> bool {
        self.made(&build.join("init/.main.o.cmd")).unwrap_or(self.kernel)
    }

    /// Whether the command that Kbuild noted has it; None if there is no note.
    fn made(&self, command: &Path) -> Option<bool> {
        let text = fs::read(command).ok()?;
        Some(String::from_utf8_lossy(&text).contains(&self.program()))
    }

    /// What ccache is told, unless the user tells it otherwise.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let ours: [(&str, OsString); 4] = [
            ("CCACHE_DIR", self.dir.clone().into()),
            ("CCACHE_MAXSIZE", LIMIT.into()),
            // By what Kbuild has the compiler list: a source need not be preprocessed a second time.
            ("CCACHE_DEPEND", "1".into()),
            // The compiler sees the same current directory in every build.
            ("CCACHE_NOHASHDIR", "1".into()),
        ];
        ours.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The boot code of x86 takes the kernel in so, and a kernel its own configuration.
    #[test]
    fn what_a_file_takes_in_is_not_taken_from_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().join("work")).unwrap();
        let Some(cache) = ObjectCache::of_host_tools(&work) else { return };
        let compiled = |source: &str, text: &str, flags: &[&str]| {
            fs::write(directory.path().join(source), text).unwrap();
            let program = cache.program();
            let mut words = program.split_whitespace();
            let made = Command::new(words.next().unwrap())
                .args(words)
                .args(["gcc", "-Wp,-MMD,made.d", "-c", source, "-o", "made.o"])
                .args(flags)
                .current_dir(directory.path())
                .envs(cache.environment())
                .status()
                .unwrap();
            assert!(made.success());
            fs::read(directory.path().join("made.o")).unwrap()
        };
        let object = |source: &str, text: &str, image: &str| {
            fs::write(directory.path().join("image"), image).unwrap();
            compiled(source, text, &[])
        };
        let has =
            |object: &[u8], image: &str| object.windows(image.len()).any(|part| part == image.as_bytes());
        let assembler = ".section .rodata\n.incbin \"image\"\n";
        let c = "asm(\".section .rodata; .incbin \\\"image\\\"\");\n";
        for (source, text) in [("piggy.S", assembler), ("configs.c", c)] {
            let (one, two) = (object(source, text, "first image"), object(source, text, "other image"));
            assert!(has(&one, "first image") && has(&two, "other image"), "{source}");
        }
        // Nor is what a profile or counters lie beside.
        for _ in 0..2 {
            compiled("counted.c", "int counted(int n) { return n ? n : 1; }\n", &["-fprofile-use"]);
        }
        // What takes in nothing is found again.
        let statistics = || {
            let printed =
                Command::new("ccache").arg("--print-stats").envs(cache.environment()).output().unwrap();
            String::from_utf8(printed.stdout).unwrap()
        };
        object("plain.c", "int plain;\n", "");
        object("plain.c", "int plain;\n", "");
        assert!(statistics().contains("direct_cache_hit\t1\n"), "{}", statistics());
    }

    #[test]
    fn a_build_goes_on_as_it_began() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().join("work")).unwrap();
        let find = || ObjectCache::of_host_tools(&work);
        let (Some(of_tools), Some(of_all)) = (find(), find().map(ObjectCache::of_kernel)) else { return };
        let build = directory.path().join("build");
        let is = |cache: &ObjectCache| (cache.is_of_tools_in(&build), cache.is_of_objects_in(&build));
        assert_eq!((is(&of_tools), is(&of_all)), ((true, false), (true, true)), "nothing is there");
        let note = |name: &str, through: &str| {
            let path = build.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("savedcmd_x := env {through}gcc -c -o x x.c\n\n")).unwrap();
        };
        note("scripts/basic/.fixdep.cmd", "");
        note("init/.main.o.cmd", &of_all.program());
        assert_eq!((is(&of_tools), is(&of_all)), ((false, true), (false, true)));
        note("scripts/basic/.fixdep.cmd", &of_all.program());
        note("init/.main.o.cmd", "");
        assert_eq!((is(&of_tools), is(&of_all)), ((true, false), (true, false)));
    }
}
