//! Objects kept by ccache: a kernel that differs by a patch compiles what the patch changed.

use kerntune_work::{find_program, write_atomic, WorkDir};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What ccache may take of the disk. A small kernel takes some 20 MB.
const LIMIT: &str = "2G";

/// Below the work directory. What `.ccache` had was found without a look for `.incbin`.
const DIRECTORY: &str = ".ccache2";

/// Runs the compiler through ccache, unless it reads or writes more than source and object: counters, a profile or a list of blocks
/// beside them, or another file that the source takes in (`.incbin`). Of that ccache knows nothing when it goes by the headers that the compiler
/// lists, and would give one kernel's image, packed into the boot code, to another.
///
/// objtool is compiled by absolute paths, which name the kernel and its source, so that no kernel would find the objects of another. Here
/// it is compiled in the build directory and by paths from there: `..` leads to the source (`build_tree`). What the compiler lists is for
/// make, in another directory, and is made absolute again.
const THROUGH: &str = r#"#!/bin/sh
object=
for word; do
    case $word in
    *.S | -fprofile-* | -fauto-profile* | -ftest-coverage | --coverage | -fbasic-block-sections=*) exec "$@" ;;
    *.c) ! grep -qs incbin "$word" || exec "$@" ;;
    /*/build/tools/*.o) object=$word ;;
    # With the next word, which is no path.
    -[ADTUux] | -X*) exec ccache "$@" ;;
    esac
done
[ "$object" ] || exec ccache "$@"
build=${object%/build/tools/*}/build
here=$(pwd -P)
source=${here%/tools/*}
[ "$build/../tools" -ef "$source/tools" ] || exec ccache "$@"
compiler=$1 list=
shift
left=$#
while [ "$left" -gt 0 ]; do
    word=$1 option= path=
    shift
    left=$((left - 1))
    case $word in
    -I?*) option=-I path=${word#-I} ;;
    -Wp,-M[DT],*) path=${word#-Wp,-M?,} option=${word%"$path"} ;;
    -*) option=$word ;;
    *) path=$word ;;
    esac
    case $path in
    "$build"/*) path=${path#"$build"/} ;;
    "$source"/*) path=../${path#"$source"/} ;;
    "" | /*) ;;
    *) path=..${here#"$source"}/$path ;;
    esac
    [ "$option" != -Wp,-MD, ] || list=$path
    set -- "$@" "$option$path"
done
cd "$build" && ccache "$compiler" "$@" || exit
# Where ccache found the list, the target has not its whole name.
[ -z "$list" ] || sed -E -i "1s,^[^:]*:,$object:,; s,(^| )\.\./,\1$source/,g; s,(^| )([^/ \\]),\1$build/\2,g" "$list"
"#;

/// ccache with a directory of its own in the work directory, or the user's (`CCACHE_DIR`). It keeps an object by its source, its
/// headers, the flags and the compiler, each by content, and checks what it kept when it is used.
#[derive(Debug, Clone)]
pub(crate) struct ObjectCache {
    dir: PathBuf,
    /// Whether it keeps objects of the kernel, too.
    kernel: bool,
    /// Whether it may know a header again by the times of its inode.
    by_inode: bool,
}

impl ObjectCache {
    /// The cache for the programs that Kbuild makes for itself (kconfig, objtool), if ccache is installed and the work directory can
    /// be written to.
    pub fn of_host_tools(work: &WorkDir) -> Option<Self> {
        find_program("ccache", &[])?;
        let cache = Self { dir: work.root().join(DIRECTORY), kernel: false, by_inode: knows_inodes() };
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
        // A header is hashed once for all objects that see it, and again when it was touched.
        let inodes = self.by_inode.then(|| ("CCACHE_INODECACHE", "1".into()));
        ours.into_iter().chain(inodes).filter(|(name, _)| std::env::var_os(name).is_none()).collect()
    }
}

/// Whether ccache knows files by their inodes without a race, as it does since 4.7.4.
fn knows_inodes() -> bool {
    let said = Command::new("ccache").arg("--version").output();
    said.is_ok_and(|said| is_since(&String::from_utf8_lossy(&said.stdout), [4, 7, 4]))
}

/// Whether what `ccache --version` says first is no older version.
fn is_since(said: &str, since: [u32; 3]) -> bool {
    let version = said.lines().next().and_then(|line| line.strip_prefix("ccache version "));
    let parts: Option<Vec<u32>> =
        version.map(|version| version.split('.').map_while(|n| n.parse().ok()).collect());
    parts.is_some_and(|parts| parts.as_slice() >= since.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// objtool of another kernel and another source, whose tools are the same.
    #[test]
    fn what_is_compiled_by_paths_of_a_kernel_is_found_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().canonicalize().unwrap().join("work")).unwrap();
        let Some(cache) = ObjectCache::of_host_tools(&work) else { return };
        let hits = || {
            let printed =
                Command::new("ccache").arg("--print-stats").envs(cache.environment()).output().unwrap();
            let text = String::from_utf8(printed.stdout).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("direct_cache_hit\t")).unwrap();
            line.parse::<u32>().unwrap()
        };
        let compiled = |kernel: &str, source: &str, value: &str| {
            let source = work.root().join("sources").join(source);
            let linux = work.root().join(format!("kernels/{kernel}.partial/linux"));
            let tool = linux.join("build/tools/objtool");
            for path in ["include", "objtool"] {
                fs::create_dir_all(source.join("tools").join(path)).unwrap();
            }
            fs::create_dir_all(tool.join("made")).unwrap();
            std::os::unix::fs::symlink(source.join("tools"), linux.join("tools")).unwrap();
            fs::write(source.join("tools/include/shared.h"), format!("#define VALUE {value}\n")).unwrap();
            fs::write(source.join("tools/objtool/beside.h"), "").unwrap();
            fs::write(tool.join("made/made.h"), "").unwrap();
            let text =
                "#include \"beside.h\"\n#include <shared.h>\n#include <made.h>\nint value = VALUE NAME;\n";
            fs::write(source.join("tools/objtool/check.c"), text).unwrap();
            let (object, list) = (tool.join("check.o"), tool.join(".check.o.d"));
            let program = cache.program();
            let mut words = program.split_whitespace();
            let mut command = Command::new(words.next().unwrap());
            command.args(words).args(["gcc", "-O2", "-DNAME=+ 1 + 1", "-I", "../nowhere", "-c"]);
            command.arg(format!("-Wp,-MD,{}", list.display())).arg(format!("-Wp,-MT,{}", object.display()));
            command.arg(format!("-I{}", source.join("tools/include").display()));
            command.arg(format!("-I{}", tool.join("made").display()));
            command.arg("-o").arg(&object).arg("check.c");
            command.current_dir(linux.join("tools/objtool")).env("PWD", crate::build_tree::CWD);
            let made = command.envs(cache.environment()).status().unwrap();
            assert!(made.success() && object.is_file());
            let listed = fs::read_to_string(list).unwrap();
            let (target, listed) = listed.split_once(':').unwrap();
            assert_eq!(Path::new(target), object);
            let listed = listed.split_whitespace().filter(|word| *word != "\\").map(PathBuf::from);
            let ours: Vec<PathBuf> = listed.filter(|path| !path.starts_with("/usr")).collect();
            let tools = source.join("tools");
            let sources =
                ["objtool/check.c", "objtool/beside.h", "include/shared.h"].map(|name| tools.join(name));
            assert_eq!(ours, [&sources[..], &[tool.join("made/made.h")]].concat());
            fs::read(object).unwrap()
        };
        let one = compiled("aa", "11", "3");
        assert_eq!(hits(), 0);
        assert!(compiled("bbbb", "22", "3") == one && hits() == 1);
        assert!(compiled("cc", "33", "4") != one && hits() == 1);
    }

    #[test]
    fn inodes_are_left_to_versions_that_have_no_race_there() {
        let is = |said: &str| is_since(said, [4, 7, 4]);
        assert!(is("ccache version 4.7.5\nFeatures: file-storage\n") && is("ccache version 4.10\n"));
        assert!(
            !is("ccache version 4.7.3\n") && !is("ccache version 4.7\n") && !is("ccache version 3.9.9\n")
        );
        assert!(!is("ccache version v4.8-dirty\n") && !is(""));
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
