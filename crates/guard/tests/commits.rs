//! Guarding a git tree: commits of the stand-in kernel (`crates/rehearsal`), some of which plant
//! regressions, do not build, or do not boot. Compiler, objects, recorder and git are real.

use kerntune_guard::cell::{build_kernel, measure_kernel, MeasuredCell};
use kerntune_guard::judge::RowVerdict;
use kerntune_guard::{
    bisect, check, measure_commit, subject_of, Baseline, BisectRequest, BisectResult, BuildVariant,
    CheckBase, CheckFormat, CheckReport, CheckedRow, CommitLedger, CommitVerdict, GitTree, GuardFile,
    GuardProject, GuardedWorkload, HistoryPoint, RowHistory, WatchedBranch,
};
use kerntune_guest::Workload;
use kerntune_kernel::KernelSource;
use kerntune_machine::{Machine, ReplayMachine};
use kerntune_rehearsal::Rehearsal;
use kerntune_tune::{model, Session};
use kerntune_work::{NoProgress, WorkDir};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const WORKLOAD: &str = "name = \"stand-in\"\n[[measured.step]]\ncommand = [\"rr\", \"--seed\", \"1\"]\nexpect = [\"rr: done\"]\n";
const ROW: &str = "packet_rr";

/// A file, a text in it, and its replacement.
type Edit = (&'static str, &'static str, &'static str);

const SLOW: [Edit; 3] = [
    (
        "net/packet.c",
        "static u16 big16",
        "static u32 turns;\n\nstatic noinline void slow(void)\n{\n\tu32 left = 40;\n\n\tdo\n\t\tasm volatile(\"\" : \"+r\"(left));\n\twhile (--left);\n}\n\nstatic u16 big16",
    ),
    ("net/packet.c", "\tdelivered[socket]++;\n", "\tif (!(++turns & 15))\n\t\tslow();\n\tdelivered[socket]++;\n"),
    ("net/packet.c", "\tif (bytes < 20)\n", "\tasm volatile(\".rept 9\\n\\tnop\\n\\t.endr\");\n\tif (bytes < 20)\n"),
];

/// Each commit: its subject and its edits. The numbers are used below.
const COMMITS: [(&str, &[Edit]); 13] = [
    ("the beginning", &SLOW),
    ("a comment", &[("fs/dir.c", "#include <linux/kernel.h>\n", "/* One. */\n#include <linux/kernel.h>\n")]),
    ("a function that nobody calls", &[("fs/file.c", "#include <linux/kernel.h>\n", "#include <linux/kernel.h>\n\nvoid padded(void)\n{\n\tasm volatile(\".rept 50\\n\\tnop\\n\\t.endr\");\n}\n")]),
    ("does not build", &[("lib/sort.c", "static void swap(", "int broken = ;\n\nstatic void swap(")]),
    ("still does not build", &[("fs/dir.c", "/* One. */", "/* Two. */")]),
    ("builds again", &[("lib/sort.c", "int broken = ;\n\n", "")]),
    ("three instructions more for each packet", &[("net/packet.c", "\tif (bytes < HEADER)\n", "\tasm volatile(\"nop; nop; nop\");\n\tif (bytes < HEADER)\n")]),
    ("does not boot", &[("init/main.c", "\tdo_ctors();\n\tprintk", "\tdo_ctors();\n\tpanic(\"planted\");\n\tprintk")]),
    ("still does not boot", &[("fs/dir.c", "/* Two. */", "/* Three. */")]),
    ("boots again", &[("init/main.c", "\tpanic(\"planted\");\n", "")]),
    ("the slow path twice as often", &[("net/packet.c", "++turns & 15", "++turns & 7")]),
    (
        "as much in the checksum as less for TCP",
        &[
            ("net/packet.c", "\tasm volatile(\".rept 9\\n\\tnop\\n\\t.endr\");\n", ""),
            ("net/checksum.c", "\tfor (; count > 1;", "\tasm volatile(\".rept 8\\n\\tnop\\n\\t.endr\");\n\tfor (; count > 1;"),
        ],
    ),
    ("another comment", &[("fs/dir.c", "/* Three. */", "/* Four. */")]),
];

struct Bench {
    dir: TempDir,
    origin: PathBuf,
    ids: Vec<String>,
    project: GuardProject,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let origin = dir.path().join("linux");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../rehearsal/kernel"), &origin);
        git(&origin, &["init", "--quiet", "-b", "main"]);
        let mut ids = Vec::new();
        for (subject, edits) in COMMITS {
            for (file, before, after) in edits {
                let path = origin.join(file);
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.contains(before), "{file}: {before}");
                fs::write(&path, text.replacen(before, after, 1)).unwrap();
            }
            git(&origin, &["add", "--all"]);
            git(
                &origin,
                &["-c", "user.name=k", "-c", "user.email=k@example.org", "commit", "--quiet", "-m", subject],
            );
            ids.push(git(&origin, &["rev-parse", "HEAD"]).trim().to_owned());
        }
        let rows_of = |_: &str| Ok(Vec::new());
        let file = GuardFile::parse("[[workload]]\nname = \"stand-in\"\n", &rows_of).unwrap();
        let workload = Workload::parse(WORKLOAD, Path::new("stand-in.toml")).unwrap();
        let works = vec![GuardedWorkload {
            name: "stand-in".into(),
            workload,
            rows: Vec::new(),
            programs: Vec::new(),
        }];
        let project = GuardProject {
            dir: dir.path().to_owned(),
            file,
            works,
            model: model::find(model::DEFAULT).unwrap(),
        };
        Self { dir, origin, ids, project }
    }

    /// A work directory that shares only the programs of guest images.
    fn work(&self, name: &str) -> WorkDir {
        let work = WorkDir::open(self.dir.path().join(name)).unwrap();
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest-programs");
        fs::create_dir_all(&shared).unwrap();
        symlink(shared, work.root().join("guest-programs")).unwrap();
        work
    }

    fn machine(&self) -> Box<dyn Machine> {
        Box::new(Rehearsal::new(self.dir.path()).unwrap())
    }

    fn variant(&self) -> BuildVariant {
        self.project.variant("bisect", [None, None]).unwrap()
    }

    fn search(&self, session: &Session, tree: &GitTree, ends: [usize; 2], row: Option<&str>) -> BisectResult {
        let variant = self.variant();
        let [good, bad] = ends.map(|at| self.ids[at].as_str());
        let search = BisectRequest { good, bad, workload: None, row, variant: &variant };
        bisect(session, &self.project, tree, &search, &|_| {}).unwrap()
    }

    fn number(&self, id: &str) -> usize {
        self.ids.iter().position(|known| known == id).unwrap()
    }
}

fn session<'a>(machine: Box<dyn Machine>, work: &'a WorkDir) -> Session<'a> {
    Session::with(machine, work, &NoProgress).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn git(tree: &Path, words: &[&str]) -> String {
    let out = Command::new("git").arg("-C").arg(tree).args(words).output().unwrap();
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn row<'a>(check: &'a CheckReport, name: &str) -> &'a CheckedRow {
    check.cells[0].rows.iter().find(|row| row.row == name).unwrap()
}

/// One test, because each part reuses what the others built.
#[test]
fn commits_are_searched_checked_drawn_and_watched() {
    let bench = Bench::new();
    let (work, machine) = (bench.work("work"), bench.machine());
    let identity = machine.identity().unwrap();
    let session = session(machine, &work);
    let tree = GitTree::open(&work, &bench.origin).unwrap();

    // The first of ten commits by which packets take longer; two of them do not build, two do not
    // boot.
    let found = bench.search(&session, &tree, [0, 9], None);
    assert_eq!(found.first_bad.as_ref().map(|commit| bench.number(&commit.id)), Some(6), "{found:#?}");
    assert_eq!((found.row.as_str(), found.commits), (ROW, 9));
    assert!(found.tried.iter().any(|tried| tried.judged == CommitVerdict::Skipped), "{found:#?}");
    let skipped = |tried: &&kerntune_guard::TriedCommit| tried.judged == CommitVerdict::Skipped;
    for tried in found.tried.iter().filter(skipped) {
        let why = tried.because.as_deref().unwrap();
        let built = [3, 4].contains(&bench.number(&tried.commit.id));
        assert!(why.contains(if built { "sort.c" } else { "planted" }), "{why}");
    }
    // One directory of objects: unchanged files are not compiled again.
    let objects: Vec<u64> = found.tried.iter().filter_map(|tried| tried.objects).collect();
    assert!(objects[0] >= 12 && objects[1..].iter().all(|count| *count <= 5), "{objects:?}");
    let explained = found.explained.as_ref().unwrap();
    assert_eq!(explained.rest, 0);
    let first = &explained.functions[0];
    assert_eq!(
        (first.function.as_str(), first.change()),
        ("receive", 3 * i128::from(explained.operations[0]))
    );
    assert!(
        first.path.ends_with(&["sys_send".into(), "receive".into()])
            || first.path.ends_with(&["do_syscall_64".into(), "receive".into()]),
        "{:?}",
        first.path
    );
    let place = first.source.as_ref().unwrap();
    assert_eq!(
        (place.file.as_str(), place.added.len(), place.removed.len()),
        ("net/packet.c", 1, 0),
        "{place:?}"
    );
    assert!(place.added[0].text.contains("nop; nop; nop"), "{place:?}");

    // Again, on a machine that runs nothing: everything is in the ledger.
    let nothing = bench.dir.path().join("nothing");
    let replay = self::session(Box::new(ReplayMachine::new("rehearsal", identity, &nothing).unwrap()), &work);
    assert_eq!(bench.search(&replay, &tree, [0, 9], None), found);

    // The kernel equals one that is built from scratch.
    let kernel = kerntune_kernel::find(&work, &explained_kernel(&bench, &session, &tree, 6)).unwrap();
    let elsewhere = bench.work("elsewhere");
    let other = self::session(bench.machine(), &elsewhere);
    git(&bench.origin, &["checkout", "--quiet", "--detach", &bench.ids[6]]);
    let source = (KernelSource::Directory(bench.origin.clone()), "clean");
    let clean = build_kernel(&other, &bench.project, source, &bench.variant(), None).unwrap();
    git(&bench.origin, &["checkout", "--quiet", "main"]);
    assert_eq!(
        (clean.manifest.id.as_str(), clean.content().unwrap()),
        (kernel.manifest.id.as_str(), kernel.content().unwrap())
    );

    slow_path(&bench, &session, &tree);
    files_of_figures(&bench, &session, &tree);
    branches(&bench, &session, &tree);
    nothing_to_find(&bench, &session, &tree);
}

fn of(bench: &Bench, session: &Session, tree: &GitTree, at: usize) -> Vec<MeasuredCell> {
    let commit = tree.commit(&bench.ids[at]).unwrap();
    measure_commit(session, &bench.project, tree, &commit).unwrap().unwrap()
}

fn explained_kernel(bench: &Bench, session: &Session, tree: &GitTree, at: usize) -> String {
    of(bench, session, tree, at)[0].kernel.manifest.id.clone()
}

/// Compares the second of two commits with the first.
fn held(bench: &Bench, session: &Session, tree: &GitTree, [base, new]: [usize; 2]) -> CheckReport {
    let subjects = [base, new].map(|at| subject_of(&tree.commit(&bench.ids[at]).unwrap()));
    let sides = [base, new].map(|at| of(bench, session, tree, at));
    check(
        session,
        &bench.project,
        &CheckBase::Measured(&subjects[0], &sides[0]),
        (&subjects[1], &sides[1]),
        false,
    )
    .unwrap()
}

/// A slow path that is taken twice as often, and a compensated regression.
fn slow_path(bench: &Bench, session: &Session, tree: &GitTree) {
    let found = bench.search(session, tree, [9, 12], Some(ROW));
    assert_eq!(found.first_bad.as_ref().map(|commit| bench.number(&commit.id)), Some(10), "{found:#?}");
    let check = held(bench, session, tree, [9, 10]);
    let slow = row(&check, ROW);
    assert_eq!((check.findings, slow.verdict), (1, RowVerdict::Longer), "{check:#?}");
    let function = &slow.explained.as_ref().unwrap().functions[0];
    assert_eq!(function.function, "slow", "{function:?}");
    assert!((0..=1).contains(&(function.calls[1] - 2 * function.calls[0])), "{function:?}");
    let names: Vec<&str> = function.path.iter().map(String::as_str).collect();
    assert!(names.contains(&"receive") && names.last() == Some(&"slow"), "{function:?}");
    assert!(function.what.starts_with("called 2.0"), "{function:?}");

    let check = held(bench, session, tree, [10, 11]);
    let compensated = row(&check, ROW);
    assert_eq!((check.findings, compensated.verdict), (1, RowVerdict::Compensated), "{check:#?}");
    let place = &compensated.explained.as_ref().unwrap().compensated[0];
    assert_eq!(
        (place.longer[0].0.as_str(), place.shorter[0].0.as_str()),
        ("checksum", "receive"),
        "{place:?}"
    );
    assert!(place.within.ends_with(&["receive".into()]), "{place:?}");
    let text = CheckFormat::Junit.render(&check.suites(), Path::new("guard.toml"));
    assert!(
        text.contains("failures=\"1\"")
            && text.contains("made up for elsewhere")
            && text.contains("net/checksum.c:"),
        "{text}"
    );

    // A change of the layout alone is no finding.
    let check = held(bench, session, tree, [1, 2]);
    assert_eq!(check.findings, 0, "{check:#?}");
    assert!(
        check.cells[0].rows.iter().all(|row| row.verdict == RowVerdict::Same && row.path[0] == row.path[1]),
        "{check:#?}"
    );
}

/// Baseline files, from one work directory to another.
fn files_of_figures(bench: &Bench, session: &Session, tree: &GitTree) {
    let path = bench.dir.path().join("figures.json");
    let commit = tree.commit(&bench.ids[5]).unwrap();
    Baseline::of(subject_of(&commit), &of(bench, session, tree, 5)).write(&path).unwrap();
    let baseline = Baseline::read(&path).unwrap();
    let new = of(bench, session, tree, 6);
    let subject = subject_of(&tree.commit(&bench.ids[6]).unwrap());
    let found =
        check(session, &bench.project, &CheckBase::File(&baseline, &path), (&subject, &new), false).unwrap();
    let found_with_file = found.clone();
    let found_row = row(&found, ROW);
    assert_eq!((found.findings, found_row.verdict), (1, RowVerdict::Longer));
    assert_eq!(found_row.path[1] - found_row.path[0], 3.0);
    assert!(found_row.explained.as_ref().unwrap().functions[0].function == "receive");

    // Another work directory has neither the base kernel nor its recording: the row is judged, and
    // the report says that nothing is explained.
    let elsewhere = bench.work("third");
    let other = self::session(bench.machine(), &elsewhere);
    let kernel = &new[0].kernel;
    let moved =
        measure_kernel(&other, &bench.project, kernel, Some(&bench.variant()), &bench.project.works[0])
            .unwrap();
    let found = check(
        &other,
        &bench.project,
        &CheckBase::File(&baseline, &path),
        (&subject, std::slice::from_ref(&moved)),
        false,
    )
    .unwrap();
    assert_eq!((found.findings, row(&found, ROW).explained.is_none()), (1, true));
    assert!(found.cells[0].unexplained.as_ref().unwrap().contains("nothing is explained"), "{found:?}");

    // Figures with other inputs are refused there, and measured again where the kernel is.
    let mut foreign = baseline.clone();
    foreign.cells[0].making = "another".into();
    foreign.cells[0].means.as_mut().unwrap().workload = "another".into();
    let refused =
        check(&other, &bench.project, &CheckBase::File(&foreign, &path), (&subject, &[moved]), false)
            .unwrap_err();
    assert!(
        refused.to_string().contains("made with another guest (stand-in changed), and kernel"),
        "{refused}"
    );
    let again =
        check(session, &bench.project, &CheckBase::File(&foreign, &path), (&subject, &new), false).unwrap();
    assert_eq!(again.findings, 1);
    // Both commands say that the file's figures were not used; matching figures are used silently.
    let kernel = &foreign.cells[0].kernel;
    let said = format!(
        "figures.json was made with another guest (stand-in changed): measured its kernel {} ({}) again",
        kernel.label, kernel.id
    );
    assert_eq!(again.remeasured(), [said.as_str()]);
    assert_eq!(serde_json::to_value(&again).unwrap()["cells"][0]["remeasured"], said.as_str());
    assert!(CheckFormat::Junit
        .render(&again.suites(), Path::new("guard.toml"))
        .contains("made with another guest"));
    assert_eq!((found_with_file.remeasured(), found_with_file.cells[0].remeasured.as_ref()), (vec![], None));
    // An older file without the parts of the hash names everything that may differ.
    foreign.cells[0].means = None;
    let old =
        check(session, &bench.project, &CheckBase::File(&foreign, &path), (&subject, &new), false).unwrap();
    assert!(
        old.remeasured()[0].contains("another machine, guest, workload or version of kerntune"),
        "{old:?}"
    );
    // A changed figure is refused.
    let mut forged = baseline;
    forged.cells[0].rows[0].kernel_instructions += 1;
    assert!(
        check(session, &bench.project, &CheckBase::File(&forged, &path), (&subject, &new), false).is_err()
    );
}

/// Every commit of a branch, watched and drawn.
fn branches(bench: &Bench, session: &Session, tree: &GitTree) {
    let branch = WatchedBranch { tree, name: "main", since: Some(&bench.ids[0]) };
    let seen = RefCell::new(Vec::new());
    let mut tell = |watched: &kerntune_guard::WatchedCommit| {
        seen.borrow_mut().push((
            bench.number(&watched.commit.id),
            watched.is_finding(),
            watched.failure.is_some(),
        ));
        Ok(())
    };
    branch.check_new_commits(session, &bench.project, &mut tell).unwrap();
    let all = seen.borrow().clone();
    let of = |of: fn(&(usize, bool, bool)) -> bool| {
        all.iter().filter(|of_one| of(of_one)).map(|(at, ..)| *at).collect::<Vec<_>>()
    };
    assert_eq!(of(|_| true), (1..13).collect::<Vec<_>>());
    assert_eq!(
        (of(|(_, finding, _)| *finding), of(|(.., failed)| *failed)),
        (vec![6, 10, 11], vec![3, 4, 7, 8])
    );
    // No commit is new.
    branch.check_new_commits(session, &bench.project, &mut tell).unwrap();
    assert_eq!(seen.borrow().len(), 12);

    let variant = bench.variant();
    let ledger =
        CommitLedger::open(session, &bench.project, tree, &variant, &bench.project.works[0]).unwrap();
    let points = bench.ids.iter().map(|id| {
        let (commit, entry) = (tree.commit(id).unwrap(), ledger.lookup(id).unwrap());
        let point = HistoryPoint {
            label: commit.short().into(),
            about: commit.subject.clone(),
            commit: Some(commit),
            failure: entry.failure,
        };
        (point, entry.cell.into_iter().collect())
    });
    let history = RowHistory::of(&bench.project, points.collect());
    assert_eq!((history.points.len(), history.series.len()), (13, 5));
    for of in &history.series {
        let steps: Vec<(usize, usize)> = of.steps.iter().map(|step| (step.from, step.at)).collect();
        let wanted: &[(usize, usize)] = if of.row == ROW { &[(5, 6), (9, 10)] } else { &[] };
        assert_eq!(steps, wanted, "{of:#?}");
        assert!(of.path[3].is_none() && of.path[7].is_none());
    }
}

fn nothing_to_find(bench: &Bench, session: &Session, tree: &GitTree) {
    let variant = bench.variant();
    let look = |ends: [usize; 2], row: Option<&str>| {
        let [good, bad] = ends.map(|at| bench.ids[at].as_str());
        let search = BisectRequest { good, bad, workload: None, row, variant: &variant };
        bisect(session, &bench.project, tree, &search, &|_| {}).unwrap_err().to_string()
    };
    for (ends, row, said) in [
        ([0, 2], None, "there is nothing to find"),
        ([2, 0], None, "not an ancestor"),
        ([0, 0], None, "not an ancestor"),
        ([0, 3], None, "cannot be an end of the search"),
        ([0, 2], Some(ROW), "did not grow"),
        ([0, 6], Some("nothing"), "has no row \"nothing\""),
    ] {
        let message = look(ends, row);
        assert!(message.contains(said), "{ends:?}: {message}");
    }
}
