//! Checks with the compiler itself: files that real programs wrote, `gcov-dump`, `gcov-tool`, and
//! GCC's use of a completed profile. Needs gcc with gcov-dump and gcov-tool.

use crate::run::run;
use kerntune_convert::gcda::{summarize, CounterKind, CounterValues, Gcda, MergeWeights, TopN};
use std::fmt::Write;
use std::path::Path;

/// An indirect call, a division by a common value, a function that never runs.
const PROGRAM: &str = r#"
int never(int x);
static int up(int x) { return x + 1; }
static int down(int x) { return x - 1; }
int (*step[2])(int) = {up, down};
int work(int n, int by) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum = step[i % 3 == 0](sum);
        if (i % 7 == 0)
            sum /= by;
        if (sum < -1000000)
            sum = never(sum);
    }
    return sum;
}
int main(int argc, char **argv) { return work(argc > 1 ? 500 : 1000, argc + 1) == 123456; }
"#;
const OTHER: &str = "int never(int x) { for (int i = 0; i < x; i++) if (i > 3) return 4; return x; }\n";

/// Builds the program instrumented, runs it, and returns its directory.
fn instrumented(flags: &[&str], arguments: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("main.c"), PROGRAM).unwrap();
    std::fs::write(dir.path().join("other.c"), OTHER).unwrap();
    for object in ["main", "other"] {
        let source = format!("{object}.c");
        let own = ["-O2", "-fprofile-generate", "-frandom-seed=1", "-c", &source];
        run(dir.path(), "gcc", &[&own[..], flags].concat());
    }
    run(dir.path(), "gcc", &["-fprofile-generate", "main.o", "other.o", "-o", "program"]);
    run(dir.path(), "./program", arguments);
    dir
}

fn read(dir: &Path, name: &str) -> (Vec<u8>, Gcda) {
    let bytes = std::fs::read(dir.join(name)).unwrap();
    let gcda = Gcda::parse(&bytes).unwrap();
    (bytes, gcda)
}

/// Formats a file like `gcov-dump -l`.
fn dump(name: &str, gcda: &Gcda) -> String {
    let mut out =
        format!("{name}:data:magic `gcda':version `{}'\n", gcda.version.0.to_be_bytes().escape_ascii());
    let mut line = |text: String| writeln!(out, "{name}:{text}").unwrap();
    line(format!("stamp {}", gcda.stamp));
    line(format!("checksum {}", gcda.checksum));
    if let Some(s) = gcda.summary {
        line(format!("  a1000000:   8:OBJECT_SUMMARY runs={}, sum_max={}", s.runs, s.sum_max));
    }
    for f in &gcda.functions {
        line(format!(
            "  01000000:  12:FUNCTION ident={}, lineno_checksum={:#010x}, cfg_checksum={:#010x}",
            f.ident, f.lineno_checksum, f.cfg_checksum
        ));
        for c in &f.counters {
            let (tag, kind) = match c.kind {
                CounterKind::Arcs => (0x01a1_0000, "arcs"),
                CounterKind::TopN => (0x01a7_0000, "topn"),
                CounterKind::IndirectCall => (0x01a9_0000, "indirect_call"),
                CounterKind::TimeProfiler => (0x01af_0000, "time_profiler"),
                other => panic!("{other:?} is not expected of this program"),
            };
            let count = c.values.len();
            let zero = if matches!(c.values, CounterValues::Zeros(_)) { " (all zero)" } else { "" };
            line(format!("    {tag:08x}:{:>4}:COUNTERS {kind} {count} counts{zero}", count * 8));
            for (row, values) in c.values.iter().collect::<Vec<_>>().chunks(8).enumerate() {
                let values: String = values.iter().map(|v| format!("{v} ")).collect();
                line(format!("{:>20}: {values}", row * 8));
            }
        }
    }
    out
}

/// Converts a file to what a kernel would have exported.
fn as_exported_by_a_kernel(gcda: &Gcda) -> Gcda {
    let mut gcda = Gcda { summary: None, end_marker: false, checksum: 0, ..gcda.clone() };
    for counters in gcda.functions.iter_mut().flat_map(|f| &mut f.counters) {
        counters.values = CounterValues::Listed(counters.values.iter().collect());
    }
    gcda
}

#[test]
fn real_files_read_like_gcov_dump_reads_them() {
    let dir = instrumented(&[], &[]);
    for name in ["main.gcda", "other.gcda"] {
        let (bytes, gcda) = read(dir.path(), name);
        assert_eq!(gcda.to_bytes(), bytes, "{name}");
        let theirs = run(dir.path(), "gcov-dump", &["-l", name]);
        let without_spaces = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(without_spaces(&dump(name, &gcda)), without_spaces(&theirs), "{name}");
    }
    let (main, other) = (read(dir.path(), "main.gcda").1, read(dir.path(), "other.gcda").1);
    let summary = summarize([&main, &other]);
    // libgcov computed the same over both objects, and wrote it into each.
    assert_eq!(main.summary.unwrap().sum_max, 1000);
    assert_eq!(summary.sum_max, 1000);
    assert_eq!((summary.files, summary.functions, summary.executed_functions), (2, 5, 4));
    assert!(summary.total >= 2000 && summary.counters >= 7, "{summary:?}");
}

#[test]
fn gcov_dump_reads_what_we_completed() {
    let dir = instrumented(&[], &[]);
    let mut exported = as_exported_by_a_kernel(&read(dir.path(), "main.gcda").1);
    let bare = exported.to_bytes();
    assert_eq!(Gcda::parse(&bare).unwrap().to_bytes(), bare);
    exported.set_summary(1, 1000);
    std::fs::write(dir.path().join("main.gcda"), exported.to_bytes()).unwrap();
    let theirs = run(dir.path(), "gcov-dump", &["-l", "main.gcda"]);
    assert!(theirs.contains("OBJECT_SUMMARY runs=1, sum_max=1000"), "{theirs}");
    assert_eq!(theirs.matches("FUNCTION").count(), 4);
}

#[test]
fn gcc_takes_a_profile_with_our_summary_and_ignores_it_without() {
    let dir = instrumented(&[], &[]);
    let exported = as_exported_by_a_kernel(&read(dir.path(), "main.gcda").1);
    let functions_with_feedback = |bytes: Option<Vec<u8>>| {
        let gcda = dir.path().join("main.gcda");
        match bytes {
            Some(bytes) => std::fs::write(gcda, bytes).unwrap(),
            None => std::fs::remove_file(gcda).unwrap(),
        }
        let flags = ["-O2", "-fprofile-use", "-Wno-missing-profile", "-frandom-seed=1"];
        run(dir.path(), "gcc", &[&flags[..], &["-fdump-ipa-profile=dump.txt", "-c", "main.c"]].concat());
        let dump = std::fs::read_to_string(dir.path().join("dump.txt")).unwrap();
        dump.matches("Profile feedback for function is available").count()
    };
    // GCC ignores a profile without summary. If this fails, GCC has fixed it.
    assert_eq!(functions_with_feedback(Some(exported.to_bytes())), 0);
    let mut completed = exported;
    completed.set_summary(1, completed.sum_max());
    assert_eq!(functions_with_feedback(Some(completed.to_bytes())), 4);
    assert_eq!(functions_with_feedback(None), 0);
}

#[test]
fn merging_agrees_with_gcov_tool() {
    merge_as_gcov_tool(&[], MergeWeights::EQUAL, 1500);
    // gcov-tool 12 crashes on value lists when the weights are not 1.
    merge_as_gcov_tool(&["-fno-profile-values"], MergeWeights { a: 2, b: 3 }, 3500);
}

fn merge_as_gcov_tool(flags: &[&str], weights: MergeWeights, sum_max: u64) {
    let (one, two) = (instrumented(flags, &[]), instrumented(flags, &["fewer"]));
    let (a, mut b) = (read(one.path(), "main.gcda").1, read(two.path(), "main.gcda").1);
    // Stamps are times of compilation; make both files of one build that ran twice.
    (b.stamp, b.checksum) = (a.stamp, a.checksum);
    let dir = tempfile::tempdir().unwrap();
    for (sub, gcda) in [("a", &a), ("b", &b)] {
        std::fs::create_dir(dir.path().join(sub)).unwrap();
        std::fs::write(dir.path().join(sub).join("main.gcda"), gcda.to_bytes()).unwrap();
    }
    let text = format!("{},{}", weights.a, weights.b);
    run(dir.path(), "gcov-tool", &["merge", "-w", &text, "-o", "merged", "a", "b"]);
    let theirs = read(&dir.path().join("merged"), "main.gcda").1;
    let ours = Gcda::merge(&a, &b, weights).unwrap();
    assert_eq!(ours.sum_max(), sum_max);
    assert_eq!(comparable(&ours), comparable(&theirs));
}

/// Ident, kind, values, and value lists in one order.
type Comparable = (u32, CounterKind, Vec<i64>, Option<Vec<TopN>>);

fn comparable(gcda: &Gcda) -> Vec<Comparable> {
    let mut all = Vec::new();
    for function in &gcda.functions {
        for counters in &function.counters {
            let mut lists = counters.top_n();
            lists.iter_mut().flatten().for_each(|list| list.pairs.sort());
            let values = if lists.is_some() { Vec::new() } else { counters.values.iter().collect() };
            all.push((function.ident, counters.kind, values, lists));
        }
    }
    all
}
