//! Tests of the value counters' kernel patches that need no kernel: the hooks in a program beside
//! libgcov's own, and the assembler.

use kerntune_convert::gcda::{CounterKind, Gcda};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const FLAGS: &[&str] = &[
    "-O2",
    "-frandom-seed=7",
    "-fprofile-arcs",
    "-ftest-coverage",
    "-fprofile-values",
    "-fprofile-update=prefer-atomic",
    "-ftls-model=local-exec",
    "-fno-tree-loop-im",
];

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns a file that the patches create.
fn created(name: &str) -> String {
    let patches = place("../../embedded/kernel/patches/6.12/gcov-values");
    for patch in fs::read_dir(patches).unwrap() {
        let text = fs::read_to_string(patch.unwrap().path()).unwrap();
        let head = format!("--- /dev/null\n+++ b/{name}\n");
        let Some((_, rest)) = text.split_once(&head) else { continue };
        let lines = rest.lines().skip(1).map_while(|line| line.strip_prefix('+'));
        return lines.map(|line| format!("{line}\n")).collect();
    }
    panic!("no patch creates {name}")
}

fn gcc(dir: &Path, args: &[&[&str]]) -> Output {
    Command::new("gcc").current_dir(dir).args(args.concat()).output().expect("gcc is needed for this test")
}

fn compiled(dir: &Path, args: &[&[&str]]) {
    let output = gcc(dir, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn read(dir: &Path, name: &str) -> Gcda {
    Gcda::parse(&fs::read(dir.join(name)).unwrap()).unwrap()
}

/// Runs the program with the kernel's hooks and so many nodes; returns the directory of the
/// exported files.
fn by_the_kernels_hooks(nodes: u32) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    fs::create_dir(path.join("linux")).unwrap();
    for header in ["debugfs", "export", "init", "percpu", "mm", "seq_file", "slab", "types"] {
        fs::write(path.join(format!("linux/{header}.h")), "#include \"shim.h\"\n").unwrap();
    }
    fs::write(path.join("gcov.h"), "#include \"shim.h\"\n").unwrap();
    fs::write(path.join("linux/gcov-values.h"), created("include/linux/gcov-values.h")).unwrap();
    for name in ["values.c", "values.h"] {
        fs::write(path.join(name), created(&format!("kernel/gcov/{name}"))).unwrap();
    }
    for name in ["shim.h", "main.c", "program.c"] {
        fs::copy(place("tests/value_hooks").join(name), path.join(name)).unwrap();
    }
    let version = gcc(path, &[&["-dumpversion"]]).stdout;
    let major: u32 = String::from_utf8_lossy(&version).trim().split('.').next().unwrap().parse().unwrap();
    let kinds = match major {
        ..=13 => "-DKINDS=8",
        14 => "-DKINDS=9",
        _ => "-DKINDS=10",
    };
    compiled(path, &[FLAGS, &["-c", "program.c"]]);
    let nodes = format!("-DNODES={nodes}");
    let own = ["-O2", "-Wall", "-I.", kinds, &nodes];
    compiled(path, &[&own, &["-pthread", "main.c", "values.c", "program.o", "-o", "program"]]);
    let status = Command::new(path.join("program")).current_dir(path).status().unwrap();
    assert!(status.success(), "{status}: see main.c for what it means");
    dir
}

/// Runs the program with libgcov.
fn by_libgcov() -> Gcda {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    fs::copy(place("tests/value_hooks/program.c"), path.join("program.c")).unwrap();
    fs::write(path.join("start.c"), "int program(void);\nint main(void) { return program(); }\n").unwrap();
    compiled(path, &[FLAGS, &["-c", "program.c"]]);
    compiled(path, &[&["start.c", "program.o", "-lgcov", "-o", "program"]]);
    assert!(Command::new(path.join("program")).current_dir(path).status().unwrap().success());
    read(path, "program.gcda")
}

/// Returns counters by function and kind; lists as totals and sorted values. Counters computed from
/// addresses (averages, unions) differ between two programs, so only their presence is compared.
fn comparable(gcda: &Gcda, factor: i64) -> Vec<(u32, CounterKind, Vec<i64>)> {
    let mut all = Vec::new();
    for function in &gcda.functions {
        for counters in &function.counters {
            let values: Vec<i64> = counters.values.iter().collect();
            let values = match counters.kind {
                CounterKind::Average => values.chunks(2).map(|pair| pair[1] * factor).collect(),
                CounterKind::Ior => values.iter().map(|v| i64::from(*v != 0)).collect(),
                CounterKind::TimeProfiler => values,
                CounterKind::TopN | CounterKind::IndirectCall => {
                    let lists = counters.top_n().expect("lists of values");
                    let flat = lists.into_iter().flat_map(|mut list| {
                        list.pairs.sort();
                        let pairs = list.pairs.into_iter().flat_map(move |(v, n)| [v, n * factor]);
                        [list.total as i64 * factor].into_iter().chain(pairs).collect::<Vec<_>>()
                    });
                    flat.collect()
                }
                _ => values.iter().map(|v| v * factor).collect(),
            };
            all.push((function.ident, counters.kind, values));
        }
    }
    all
}

#[test]
fn the_hooks_count_what_libgcov_counts() {
    let dir = by_the_kernels_hooks(1000);
    let theirs = by_libgcov();
    let ours = |name| comparable(&read(dir.path(), name), 1);
    assert_eq!(ours("first.gcda"), comparable(&theirs, 1));
    assert_eq!(ours("twice.gcda"), comparable(&theirs, 2));
    let kinds: Vec<CounterKind> = theirs.functions.iter().flat_map(|f| &f.counters).map(|c| c.kind).collect();
    for kind in [CounterKind::Interval, CounterKind::TopN, CounterKind::IndirectCall, CounterKind::Average] {
        assert!(kinds.contains(&kind), "the program has no {kind:?} counters");
    }
    let dump = Command::new("gcov-dump").arg("-l").arg(dir.path().join("first.gcda")).output().unwrap();
    let dump = String::from_utf8_lossy(&dump.stdout).into_owned();
    assert!(dump.contains("COUNTERS indirect_call") && dump.contains("COUNTERS topn"), "{dump}");
}

#[test]
fn a_reset_leaves_nothing_and_what_follows_is_counted_anew() {
    let dir = by_the_kernels_hooks(1000);
    let reset = read(dir.path(), "reset.gcda");
    let counts = reset.functions.iter().flat_map(|f| &f.counters).flat_map(|c| c.values.iter());
    assert_eq!(counts.filter(|v| *v != 0).count(), 0);
    let of = |name, kind| {
        let all = comparable(&read(dir.path(), name), 1).into_iter();
        all.filter(|(_, k, _)| *k == kind).map(|(_, _, values)| values).collect::<Vec<_>>()
    };
    for kind in [CounterKind::Arcs, CounterKind::IndirectCall, CounterKind::Interval] {
        assert_eq!(of("again.gcda", kind), of("first.gcda", kind), "{kind:?}");
    }
}

#[test]
fn without_nodes_totals_stay_right_and_no_value_is_invented() {
    let dir = by_the_kernels_hooks(3);
    let (few, all) = (read(dir.path(), "first.gcda"), by_libgcov());
    let mut listed = 0;
    for (few, all) in few.functions.iter().zip(&all.functions) {
        for (few, all) in few.counters.iter().zip(&all.counters) {
            let (Some(few), Some(all)) = (few.top_n(), all.top_n()) else { continue };
            for (few, all) in few.iter().zip(&all) {
                assert_eq!(few.total, all.total);
                assert!(few.pairs.iter().all(|pair| all.pairs.contains(pair)), "{few:?} {all:?}");
                listed += few.pairs.len();
            }
        }
    }
    assert_eq!(listed, 3);
}

/// Builds the patches' assembler in a directory for `-B`.
fn assembler() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("as");
    fs::write(&path, created("scripts/gcov-values/as")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

const KERNEL: &[&str] = &["-mcmodel=kernel", "-fno-pic", "-fno-pie", "-mno-red-zone", "-mno-sse"];

#[test]
fn no_reference_to_the_thread_pointer_remains() {
    let dir = assembler();
    let b = format!("-B{}/", dir.path().display());
    fs::copy(place("tests/value_hooks/program.c"), dir.path().join("program.c")).unwrap();
    for more in [&["-ftls-model=local-exec"][..], &[], &["-O1"], &["-Os"], &["-O3", "-g"]] {
        let flags: Vec<&str> = FLAGS.iter().copied().filter(|f| !f.starts_with("-ftls")).collect();
        compiled(dir.path(), &[&flags, KERNEL, more, &[&b, "-c", "program.c"]]);
        let said =
            Command::new("objdump").args(["-dr", "program.o"]).current_dir(dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("%gs:") && said.contains("32S\t__gcov_indirect_call"), "{more:?}: {said}");
        assert!(!said.contains("%fs") && !said.contains("TPOFF"), "{more:?}: {said}");
    }
}

#[test]
fn what_the_assembler_does_not_understand_ends_the_compilation() {
    let dir = assembler();
    let b = format!("-B{}/", dir.path().display());
    let refused = |source: &str, more: &[&str]| {
        fs::write(dir.path().join("a.c"), source).unwrap();
        let output = gcc(dir.path(), &[FLAGS, KERNEL, more, &[&b, "-c", "a.c"]]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(!output.status.success(), said.contains("scripts/gcov-values/as"), "{said}");
        !output.status.success()
    };
    assert!(refused("extern __thread int x;\nint f(void) { return x; }\n", &[]));
    assert!(refused("extern __thread int x;\nint *f(void) { return &x; }\n", &[]));
    let call = "int f(int (**g)(void)) { return g[1]() + 1; }\n";
    assert!(!refused(call, &[]));
    assert!(refused(call, &["-mno-tls-direct-seg-refs", "-ftls-model=initial-exec"]));
    assert!(refused(call, &["-pipe"]));
    // Inline assembler and strings stay unchanged.
    let own = "int f(int x) { asm(\"movl %%fs:0, %0\" : \"=r\"(x)); return x; }\nconst char *s = \"\\t%fs:a@tpoff\";\n";
    assert!(!refused(own, &[]));
    // The kernel's own C, with per-CPU variables in a named address space: entry/common.c.
    let kernel = "extern void *__seg_gs __gcov_indirect_call[2];\n\
                  void f(void **saved) { *saved = __gcov_indirect_call[1]; __gcov_indirect_call[0] = 0; }\n";
    assert!(!refused(kernel, &[]));
    // If registers are scarce, the offset is spilled to the stack: fs/ext4/hash.c.
    let assembles = |line: &str| {
        fs::write(dir.path().join("a.s"), format!("\t{line}\n")).unwrap();
        gcc(dir.path(), &[&[&b, "-c", "a.s"]]).status.success()
    };
    assert!(assembles("movq\t$__gcov_indirect_call@tpoff, 16(%rsp)"));
    assert!(assembles("movq\t$__gcov_indirect_call@tpoff+8, -8(%rbp)"));
    assert!(!assembles("movq\t$__gcov_indirect_call@tpoff, place(%rip)"));
}
