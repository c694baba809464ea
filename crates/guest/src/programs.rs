//! C programs that run in the guest: embedded as source, compiled by the host's compiler.

use crate::{disk, Error, Result};
use kerntune_work::{IoContext, Job, Key, WorkDir};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kind of result in the work directory.
const KIND: &str = "guest-programs";

const FLAGS: [&str; 6] = ["-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror"];

/// Paths below `embedded/guest/`, and texts.
type SourceFiles = &'static [(&'static str, &'static str)];

/// A guest program: its name in the guest, and its files below `embedded/guest/`.
pub(crate) struct GuestProgram {
    pub name: &'static str,
    files: SourceFiles,
    /// For a suite, the output of `--list`, from `embedded/guest/NAME.rows`; a test checks that they agree.
    pub rows: Option<&'static str>,
    /// Common options of suites that the program takes ([`crate::Suite`]).
    pub options: &'static [&'static str],
}

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../embedded/guest/", $path)))),*]
    };
}

macro_rules! suite {
    ($name:literal, $options:expr, $($path:literal),*) => {
        GuestProgram {
            name: $name,
            files: sources!["kt_mark.h", $($path),*],
            rows: Some(include_str!(concat!("../../../embedded/guest/", $name, ".rows"))),
            options: $options,
        }
    };
}

/// Options that `embedded/guest/kt_suite.h` implements.
const FRAME: &[&str] = &["--check", "--only", "--scale"];

/// Sources of init with all of its extensions.
const INIT: SourceFiles = sources![
    "init/child.c",
    "init/collect.c",
    "init/command.c",
    "init/command.h",
    "init/init.h",
    "init/main.c",
    "init/modules.c",
    "init/modules.h",
    "init/plan.c",
    "init/proc.c",
    "init/proc.h",
    "init/stream.c",
    "init/system.c",
    "init/times.c",
    "init/times.h",
    "kt_counters.h",
    "kt_mark.h",
];

/// Starts init under the running kernel.
const CONTAIN: GuestProgram = GuestProgram {
    name: "contain",
    files: sources![
        "contain/contain.h",
        "contain/discover.c",
        "contain/limits.c",
        "contain/main.c",
        "contain/overlay.c",
        "contain/rights.c",
        "contain/root.c",
        "contain/support.c",
        "contain/unpack.c",
        "contain/users.c",
    ],
    rows: None,
    options: &[],
};

/// Functional checks, one file for each group.
const SELFTEST: GuestProgram = GuestProgram {
    name: "selftest",
    files: sources![
        "selftest/cgroups.c",
        "selftest/files.c",
        "selftest/futex.c",
        "selftest/io_uring.c",
        "selftest/ipc.c",
        "selftest/main.c",
        "selftest/memory.c",
        "selftest/namespaces.c",
        "selftest/processes.c",
        "selftest/selftest.h",
        "selftest/signals.c",
        "selftest/sockets.c",
        "selftest/support.c",
        "selftest/time.c",
    ],
    rows: None,
    options: &[],
};

/// Programs that workloads may run.
const PROGRAMS: [GuestProgram; 20] = [
    suite!("rr", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "rr.c"),
    suite!("paths", &[], "paths.c"),
    SELFTEST,
    GuestProgram { name: "kt-mark", files: sources!["kt_mark.h", "mark.c"], rows: None, options: &[] },
    GuestProgram { name: "smp", files: sources!["kt_mark.h", "smp.c"], rows: None, options: &[] },
    GuestProgram { name: disk::PROGRAM, files: sources!["disk.c"], rows: None, options: &[] },
    GuestProgram { name: "kgmon", files: sources!["kt_mark.h", "kgmon.c"], rows: None, options: &[] },
    GuestProgram {
        name: "tagged",
        files: sources!["kt_mark.h", "kt_tags.h", "tagged.c", "tagged_tags.h"],
        rows: None,
        options: &[],
    },
    suite!("kbx", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "kbx.c"),
    suite!("mckusick", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "mckusick.c"),
    suite!("netperf", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "kt_rr.h", "netperf.c"),
    suite!("remote", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "kt_rr.h", "remote.c"),
    suite!("osbench", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "osbench.c"),
    suite!("ipc", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "ipc.c"),
    suite!("tunings", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "tunings.c"),
    suite!("shuffle", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "shuffle.c"),
    suite!("nfs", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "nfs.c"),
    suite!("numa", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "numa.c"),
    suite!("operations", FRAME, "kt_counters.h", "kt_suite.h", "kt_peer.h", "operations.c"),
    suite!(
        "batched",
        &["--check", "--iterations", "--only", "--scale"],
        "kt_counters.h",
        "kt_suite.h",
        "batched.c"
    ),
];

/// Names that a workload may use.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.name)
}

/// Compiles a guest program for this machine, unless the same compiler has compiled the same
/// sources; `None` if there is no such program.
///
/// # Errors
/// A compiler that is missing or fails.
pub fn compile(work: &WorkDir, name: &str) -> Result<Option<PathBuf>> {
    named(name).map(|program| program.compile(work)).transpose()
}

/// Compiles the program that runs an image under the running kernel (`embedded/guest/contain`), like
/// [`compile`].
///
/// # Errors
/// As of [`compile`].
pub fn compile_contain(work: &WorkDir) -> Result<PathBuf> {
    CONTAIN.compile(work)
}

/// Finds a program by its name.
pub(crate) fn named(name: &str) -> Option<&'static GuestProgram> {
    PROGRAMS.iter().find(|program| program.name == name)
}

const HELP: &str = "install the compiler and the static C library: apt-get install gcc libc6-dev";

/// Extensions of init. They are left out where they are not used, so that runs without them stay
/// exactly the same.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InitExtensions {
    /// For commands: arguments of any bytes, a directory and a standard input for steps, files below
    /// `/tmp`.
    pub commands: bool,
    /// Reading /proc around steps.
    pub proc: bool,
    /// Loading kernel modules.
    pub modules: bool,
    /// Reading the clock around steps.
    pub times: bool,
}

/// Compiles init with these extensions.
pub(crate) fn compile_init(work: &WorkDir, extensions: InitExtensions) -> Result<PathBuf> {
    let InitExtensions { commands, proc, modules, times } = extensions;
    let extra = [
        ("init/command.", commands),
        ("init/proc.", proc),
        ("init/modules.", modules),
        ("init/times.", times),
        ("kt_counters.h", times),
    ];
    let has = |path: &str| extra.iter().all(|(name, is_used)| *is_used || !path.starts_with(name));
    let files: Vec<_> = INIT.iter().copied().filter(|(path, _)| has(path)).collect();
    compile_files(work, "init", &files)
}

impl GuestProgram {
    /// Compiles the program, unless the same compiler has compiled the same sources.
    pub fn compile(&self, work: &WorkDir) -> Result<PathBuf> {
        compile_files(work, self.name, self.files)
    }
}

fn compile_files(work: &WorkDir, name: &str, files: &[(&str, &str)]) -> Result<PathBuf> {
    let compiler = ask_compiler(&["-dumpfullversion", "-dumpmachine"])?;
    let library = PathBuf::from(ask_compiler(&["-print-file-name=libc.a"])?);
    if !library.is_absolute() {
        let output = "the compiler has no libc.a".to_owned();
        return Err(Error::Compile { program: name.into(), output, help: HELP });
    }
    let mut hash = Key::new("guest-program/2", "")
        .field("name", name)
        .field("compiler", compiler)
        .file("libc", &library)?
        .field("flags", FLAGS.join(" "));
    for (path, text) in files {
        hash = hash.field(path, text);
    }
    if let Some(done) = work.find_verified(KIND, &hash.id()) {
        return Ok(done.join(name));
    }
    let staged = work.stage(KIND, &hash)?;
    if let Some(done) = staged.already() {
        return Ok(done.join(name));
    }
    staged.clear()?;
    run_compiler(name, files, staged.path())?;
    Ok(staged.publish()?.join(name))
}

fn run_compiler(name: &str, files: &[(&str, &str)], dir: &Path) -> Result<()> {
    let source = dir.join("source");
    let mut command = Command::new("gcc");
    command.current_dir(&source).args(FLAGS).arg("-o").arg(dir.join(name));
    for (path, text) in files {
        let path_on_disk = source.join(path);
        let parent = path_on_disk.parent().unwrap_or(&source);
        std::fs::create_dir_all(parent).at("create", parent)?;
        std::fs::write(&path_on_disk, text).at("write", &path_on_disk)?;
        if path.ends_with(".c") {
            command.arg(path);
        }
    }
    let (end, output) = Job::new(command).output()?;
    if end.success() {
        Ok(())
    } else {
        Err(Error::Compile { program: name.into(), output, help: HELP })
    }
}

/// Returns the compiler's answers to options such as `--version`, joined by blanks.
fn ask_compiler(questions: &[&str]) -> Result<String> {
    let mut answers = Vec::new();
    for question in questions {
        let mut command = Command::new("gcc");
        command.arg(question);
        let (end, output) = Job::new(command).output()?;
        if !end.success() {
            return Err(Error::Compile { program: format!("(gcc {question})"), output, help: HELP });
        }
        answers.push(output.trim().to_owned());
    }
    Ok(answers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rr_compiles_once_and_counts_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let rr = named("rr").unwrap().compile(&work).unwrap();
        assert_eq!(rr, named("rr").unwrap().compile(&work).unwrap());
        let mut command = Command::new(&rr);
        command.args(["--scale", "0.01", "--only", "pipe_rr,getpid"]);
        let (end, output) = Job::new(command).output().unwrap();
        assert!(end.success(), "{output}");
        let rows: Vec<serde_json::Value> =
            output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["row"], "pipe_rr");
        assert_eq!(rows[0]["operations"], 25);
        assert_eq!(rows[1]["operations"], 400);
    }

    /// It runs only where io_uring is available, which many containers forbid.
    #[test]
    fn batched_compiles_and_lists_its_rows() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let batched = named("batched").unwrap().compile(&work).unwrap();
        let ask = |args: &[&str]| {
            let mut command = Command::new(&batched);
            command.args(args).env("KT_SCALE", "2").env("KT_ITERATIONS", "3");
            Job::new(command).output().unwrap()
        };
        let (end, output) = ask(&["--list"]);
        assert!(end.success(), "{output}");
        assert_eq!(output, include_str!("../../../embedded/guest/batched.rows"));
        for bad in [["--only", "tcp"], ["--scale", "0"], ["--iterations", "none"], ["--order", "random"]] {
            let (end, output) = ask(&bad);
            assert!(!end.success() && output.contains("batched: "), "{bad:?}: {output}");
        }
    }

    /// These numbers are all that recorder and guest share.
    #[test]
    fn marks_are_the_bytes_that_the_recorder_looks_for() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let code = std::fs::read(named("kt-mark").unwrap().compile(&work).unwrap()).unwrap();
        for kind in [1u8, 2, 4] {
            let mark = [0x0f, 0x1f, 0x80, kind, 0x00, 0x54, 0x4b];
            assert!(code.windows(7).any(|window| window == mark), "kind {kind}");
        }
    }

    /// The trigger is one instruction with the tag in its address, in C, C++ and assembler; with
    /// the other tag locations it compiles.
    #[test]
    fn triggers_are_what_the_recorder_looks_for() {
        const C: &str = "#define KT_TAG_f 1386\n#include \"kt_tags.h\"\nKT_TAG_SCOPE(f)\nint g(int);\n\
                         int f(int x);\nint f(int x) { KT_FUNCTION(f); if (x) return x; return g(x); }\n";
        const ASM: &str =
            "#define KT_TAG_f 1386\n#include \"kt_tags.h\"\nf: KT_ENTER(f)\n KT_EXIT(f)\n ret\n";
        let dir = tempfile::tempdir().unwrap();
        let tagged = named("tagged").unwrap();
        let (_, header) = tagged.files.iter().find(|(path, _)| *path == "kt_tags.h").unwrap();
        for (name, text) in [("kt_tags.h", *header), ("x.c", C), ("x.cc", C), ("x.S", ASM)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let built = |flags: &str, source: &str| {
            let mut command = Command::new("gcc");
            command.current_dir(dir.path()).args(["-Wall", "-Wextra", "-Werror"]);
            command.args(flags.split_whitespace()).args(["-c", "-o", "x.o", source]);
            Job::new(command).output().unwrap()
        };
        let compile = |flags: &str, source: &str| {
            let (end, output) = built(flags, source);
            assert!(end.success(), "{flags} {source}: {output}");
            std::fs::read(dir.path().join("x.o")).unwrap()
        };
        let testb = |tag: u8| [0x84, 0x04, 0x25, tag, 0x05, 0x54, 0x4b];
        let out = |tag: u8| [0xb8, tag, 0x05, 0x00, 0x00, 0x66, 0xe7, 0x80];
        let has = |code: &[u8], what: &[u8]| code.windows(what.len()).any(|window| window == what);
        for source in ["x.c", "x.cc", "x.S"] {
            for level in ["-O0", "-O2"] {
                let code = compile(&format!("{level} -DKT_TAGS_MEMORY=0x4b540000"), source);
                // 1386 at the entry, 1387 on the way out.
                assert!(has(&code, &testb(0x6a)) && has(&code, &testb(0x6b)), "{source} {level}");
                for place in ["MEMORY=base -DKT_TAGS_RELATIVE -fPIE", "PORT=0x3f8"] {
                    compile(&format!("{level} -DKT_TAGS_{place}"), source);
                    compile(&format!("{level} -DKT_TAGS_BITS=32 -DKT_TAGS_{place}"), source);
                }
                // Assembler cannot use these locations, and reports why.
                for place in
                    ["UART=0x3f8", "UART=0x3f8 -DKT_TAGS_BITS=32", "GPIO=0x280", "GPIO=0x280 -D__KERNEL__"]
                {
                    let (end, output) = built(&format!("{level} -DKT_TAGS_{place}"), source);
                    assert_eq!(end.success(), source != "x.S", "{source} {place}: {output}");
                    assert!(
                        source != "x.S" || output.contains("by KT_TAGS_MEMORY or KT_TAGS_PORT alone"),
                        "{output}"
                    );
                }
                for wrong in ["BITS=24", "BITS=32 -DKT_TAGS_GPIO=0x280"] {
                    let (end, output) = built(&format!("{level} -DKT_TAGS_{wrong}"), source);
                    assert!(!end.success() && output.contains("kt_tags.h: KT_TAGS_"), "{wrong}: {output}");
                }
                compile(level, source);
            }
        }
        let code = compile("-O2 -DKT_TAGS_PORT=0x80", "x.c");
        assert!(has(&code, &out(0x6a)) && has(&code, &out(0x6b)));
    }

    #[test]
    fn init_and_contain_compile_without_warnings() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        for bits in 0..16 {
            let [commands, proc, modules, times] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let extensions = InitExtensions { commands, proc, modules, times };
            assert!(compile_init(&work, extensions).unwrap().is_file());
        }
        assert!(compile_contain(&work).unwrap().is_file());
    }
}
