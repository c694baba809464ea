//! Compiler cache (ccache): a kernel that differs by a patch compiles only what the patch changed.

use kerntune_work::{find_program, WorkDir};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program that wraps the compiler. Commands name it without its directory, so that objects do not
/// depend on where the work directory is.
pub(crate) const PROGRAM: &str = "kerntune-cc";

/// Size limit of the cache. A small kernel takes some 20 MB.
const LIMIT: &str = "2G";

/// Directory below the work directory. Objects in the former `.ccache` were cached without the
/// check for `.incbin`.
const DIRECTORY: &str = ".ccache2";

/// Wrapper that runs the compiler through ccache, unless the compiler reads or writes more than
/// source and object: counters, a profile or a list of blocks beside them, or a file that the
/// source includes (`.incbin`). In depend mode ccache does not see such files, and would return the
/// boot code of one kernel, with its image, for another.
///
/// objtool is compiled by absolute paths, which name the kernel and its source, so no kernel would
/// find the objects of another. The wrapper compiles it in the build directory, by relative paths:
/// `..` leads to the source (`build_tree`). The dependency list is read by make in another
/// directory, so its paths are made absolute again.
const WRAPPER: &str = r#"#!/bin/sh
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

/// ccache with a directory in the work directory, or the user's (`CCACHE_DIR`). It finds an object
/// by the contents of source, headers, flags and compiler, and checks an object before returning
/// it.
#[derive(Debug, Clone)]
pub(crate) struct ObjectCache {
    dir: PathBuf,
    /// Let ccache recognize headers by inode and times.
    by_inode: bool,
}

impl ObjectCache {
    /// Returns the cache; `None` without ccache or with a read-only work directory.
    pub fn of(work: &WorkDir) -> Option<Self> {
        find_program("ccache", &[])?;
        let cache = Self { dir: work.root().join(DIRECTORY), by_inode: knows_inodes() };
        let script = cache.dir.join(PROGRAM);
        if !fs::read_to_string(&script).is_ok_and(|text| text == WRAPPER) {
            fs::create_dir_all(&cache.dir).ok()?;
            // The script is executable before another process finds it.
            let fresh = cache.dir.join(format!(".{PROGRAM}.{}", std::process::id()));
            fs::write(&fresh, WRAPPER).ok()?;
            fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).ok()?;
            fs::rename(&fresh, &script).ok()?;
        }
        Some(cache)
    }

    /// Returns the command that wraps the compiler, followed by a space.
    pub fn program(&self) -> String {
        format!("{PROGRAM} ")
    }

    /// Checks whether host tools of a build directory are compiled through the cache. Existing
    /// tools keep their command, because Kbuild rebuilds them, and all objects after them, when it
    /// changes.
    pub fn is_of_tools_in(&self, build: &Path) -> bool {
        self.runs_wrapper(&build.join("scripts/basic/.fixdep.cmd"))
    }

    /// Checks whether the kernel's objects are compiled through the cache. Existing objects keep
    /// their command.
    pub fn is_of_objects_in(&self, build: &Path) -> bool {
        self.runs_wrapper(&build.join("init/.main.o.cmd"))
    }

    /// Checks whether a recorded command runs the wrapper. What is not there yet will.
    fn runs_wrapper(&self, command: &Path) -> bool {
        fs::read(command).map_or(true, |text| String::from_utf8_lossy(&text).contains(&self.program()))
    }

    /// Returns environment variables for ccache, without those that the user has set, and the path to
    /// the wrapper.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = [self.dir.as_os_str(), OsStr::new(":"), &before].into_iter().collect();
        let ours: [(&str, OsString); 4] = [
            ("CCACHE_DIR", self.dir.clone().into()),
            ("CCACHE_MAXSIZE", LIMIT.into()),
            // Depend mode: ccache uses the compiler's dependency list, so sources are not
            // preprocessed separately.
            ("CCACHE_DEPEND", "1".into()),
            // The compiler sees the same current directory in every build.
            ("CCACHE_NOHASHDIR", "1".into()),
        ];
        // A header is hashed once for all objects that include it, and again when it changes.
        let inodes = self.by_inode.then(|| ("CCACHE_INODECACHE", "1".into()));
        let ours = ours.into_iter().chain(inodes).filter(|(name, _)| std::env::var_os(name).is_none());
        ours.chain([("PATH", path)]).collect()
    }
}

/// Checks whether ccache's inode cache is free of a race, which holds since 4.7.4.
fn knows_inodes() -> bool {
    let said = Command::new("ccache").arg("--version").output();
    said.is_ok_and(|said| is_since(&String::from_utf8_lossy(&said.stdout), [4, 7, 4]))
}

/// Checks whether the output of `ccache --version` names version `since` or a later one.
fn is_since(said: &str, since: [u32; 3]) -> bool {
    let version = said.lines().next().and_then(|line| line.strip_prefix("ccache version "));
    let parts: Option<Vec<u32>> =
        version.map(|version| version.split('.').map_while(|n| n.parse().ok()).collect());
    parts.is_some_and(|parts| parts.as_slice() >= since.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boot code of x86 includes the kernel this way, and a kernel its own configuration.
    #[test]
    fn what_a_file_takes_in_is_not_taken_from_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().join("work")).unwrap();
        let Some(cache) = ObjectCache::of(&work) else { return };
        let compiled = |source: &str, text: &str, flags: &[&str]| {
            fs::write(directory.path().join(source), text).unwrap();
            let program = cache.program();
            let mut words = program.split_whitespace();
            let status = Command::new(words.next().unwrap())
                .args(words)
                .args(["gcc", "-Wp,-MMD,made.d", "-c", source, "-o", "made.o"])
                .args(flags)
                .current_dir(directory.path())
                .envs(cache.environment())
                .status()
                .unwrap();
            assert!(status.success());
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
        // Nor is a compilation with a profile or counters beside it.
        for _ in 0..2 {
            compiled("counted.c", "int counted(int n) { return n ? n : 1; }\n", &["-fprofile-use"]);
        }
        // A source without includes is found again.
        let statistics = || {
            let printed =
                Command::new("ccache").arg("--print-stats").envs(cache.environment()).output().unwrap();
            String::from_utf8(printed.stdout).unwrap()
        };
        object("plain.c", "int plain;\n", "");
        object("plain.c", "int plain;\n", "");
        assert!(statistics().contains("direct_cache_hit\t1\n"), "{}", statistics());
    }

    /// objtool of another kernel and another source with the same tools.
    #[test]
    fn what_is_compiled_by_paths_of_a_kernel_is_found_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let work = WorkDir::open(directory.path().canonicalize().unwrap().join("work")).unwrap();
        let Some(cache) = ObjectCache::of(&work) else { return };
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
            command.current_dir(linux.join("tools/objtool")).env("PWD", crate::make::build_tree::CWD);
            let status = command.envs(cache.environment()).status().unwrap();
            assert!(status.success() && object.is_file());
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
        let Some(cache) = ObjectCache::of(&work) else { return };
        let build = directory.path().join("build");
        let is = || (cache.is_of_tools_in(&build), cache.is_of_objects_in(&build));
        assert_eq!(is(), (true, true), "nothing is there");
        let note = |name: &str, through: &str| {
            let path = build.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("savedcmd_x := env {through}gcc -c -o x x.c\n\n")).unwrap();
        };
        note("scripts/basic/.fixdep.cmd", "");
        note("init/.main.o.cmd", &cache.program());
        assert_eq!(is(), (false, true));
        note("scripts/basic/.fixdep.cmd", &cache.program());
        note("init/.main.o.cmd", "");
        assert_eq!(is(), (true, false));
    }
}
