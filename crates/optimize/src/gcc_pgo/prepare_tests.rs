//! Tests with a program in place of a kernel: its objects are instrumented, and libgcov's counters
//! are converted to the form in which a kernel exports them.

use super::*;
use kerntune_convert::gcda::CounterValues;
use kerntune_kernel::{CompilerIdentity, KernelManifest};
use std::process::Command;
use tempfile::TempDir;

const FORK: &str = "int twice(int x) { return x > 2 ? 2 * x : x; }\nint never(int x) { return x ? 1 : 2; }\n";
const MAIN: &str =
    "int twice(int);\nint main(int c, char **v) { int s = 0; for (int i = 0; i < 100 * c; i++) \
                    s += twice(i); return s == 1; }\n";

struct Fixture {
    dir: TempDir,
    work: WorkDir,
    gcov: Kernel,
}

impl Fixture {
    /// Creates the published gcov kernel in `dir/kernel`, and the export of one run in `dir/run`.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let build = dir.path().join("kernel/build");
        compile(&build);
        let run = |program: &Path, args: &[&str]| {
            assert!(Command::new(program).current_dir(&build).args(args).status().unwrap().success());
        };
        run(&build.join("program"), &[]);
        for name in ["bzImage", "objects.b3"] {
            fs::write(dir.path().join("kernel").join(name), "").unwrap();
        }
        fs::copy(build.join("program"), dir.path().join("kernel/vmlinux")).unwrap();
        let identity = kerntune_kernel::Compiler::default().identify().unwrap();
        let gcov = Kernel {
            dir: dir.path().join("kernel"),
            manifest: manifest(identity, "/w/k.partial/build".into()),
        };
        let fixture = Self { work: WorkDir::open(dir.path().join("work")).unwrap(), dir, gcov };
        for name in ["main.gcda", "kernel/fork.gcda"] {
            let gcda = Gcda::parse(&fs::read(build.join(name)).unwrap()).unwrap();
            fixture.export(name, &as_a_kernel_exports(gcda));
        }
        fixture
    }

    fn run(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn exported(&self, name: &str) -> PathBuf {
        self.run().join("gcov/w/k.partial/build").join(name)
    }

    fn export(&self, name: &str, gcda: &Gcda) {
        fs::create_dir_all(self.exported(name).parent().unwrap()).unwrap();
        fs::write(self.exported(name), gcda.to_bytes()).unwrap();
    }

    /// Changes one exported file.
    fn change(&self, name: &str, change: impl FnOnce(&mut Gcda)) {
        let mut gcda = Gcda::parse(&fs::read(self.exported(name)).unwrap()).unwrap();
        change(&mut gcda);
        self.export(name, &gcda);
    }

    fn prepare(&self, runs: usize) -> Result<GccPgoProfile> {
        prepare_profile(&self.work, &vec![WeightedRun::from(&*self.run()); runs], &self.gcov)
    }

    fn refusal(&self) -> String {
        self.prepare(1).unwrap_err().to_string()
    }
}

fn compile(build: &Path) {
    fs::create_dir_all(build.join("kernel")).unwrap();
    fs::write(build.join("kernel/fork.c"), FORK).unwrap();
    fs::write(build.join("main.c"), MAIN).unwrap();
    let gcc = |args: &[&str]| {
        assert!(Command::new("gcc").current_dir(build).args(args).status().unwrap().success());
    };
    let flags = ["-O1", "-fprofile-arcs", "-ftest-coverage", "-c"];
    gcc(&[&flags[..], &["kernel/fork.c", "-o", "kernel/fork.o"]].concat());
    gcc(&[&flags[..], &["main.c", "-o", "main.o"]].concat());
    gcc(&["--coverage", "main.o", "kernel/fork.o", "-o", "program"]);
}

fn as_a_kernel_exports(mut gcda: Gcda) -> Gcda {
    (gcda.summary, gcda.end_marker, gcda.checksum) = (None, false, 0);
    for counters in gcda.functions.iter_mut().flat_map(|f| &mut f.counters) {
        counters.values = CounterValues::Listed(counters.values.iter().collect());
    }
    gcda
}

fn manifest(compiler: CompilerIdentity, build_path: PathBuf) -> KernelManifest {
    KernelManifest {
        label: "base-gcov".into(),
        compiler,
        cc: "gcc".into(),
        build_path,
        ..crate::test_kernel::kernel("/w/k".as_ref(), "aa11", "6.12.117").manifest
    }
}

#[test]
fn a_run_becomes_a_profile_that_gcc_takes() {
    let fixture = Fixture::new();
    let profile = fixture.prepare(1).unwrap();
    let expected = GccPgoSummary { files: 2, functions: 3, executed_functions: 2, ..profile.summary };
    assert_eq!(profile.summary, expected);
    assert!(profile.summary.sum_max >= 97, "{:?}", profile.summary);
    let fork = Gcda::parse(&fs::read(profile.tree().join("kernel/fork.gcda")).unwrap()).unwrap();
    assert_eq!(u64::from(fork.summary.unwrap().sum_max), profile.summary.sum_max);

    let counts = profile.counts().unwrap();
    let named: Vec<_> =
        counts.iter().flat_map(|o| o.functions.iter().map(|f| (&*o.object, &*f.name))).collect();
    assert_eq!(named.len(), 3);
    assert!(named.contains(&("kernel/fork.o", "twice")) && named.contains(&("main.o", "main")));
    let total = |name: &str| counts.iter().flat_map(|o| &o.functions).find(|f| f.name == name).unwrap().total;
    assert_eq!(total("never"), 0);
    assert!(total("twice") >= 100);

    // Equal inputs give an equal result; further runs add up.
    assert_eq!(fixture.prepare(1).unwrap(), profile);
    let twice = fixture.prepare(2).unwrap();
    assert_ne!(twice.id, profile.id);
    assert_eq!((twice.runs, twice.summary.total), (2, 2 * profile.summary.total));

    // GCC itself reads the profile, in the build directory beside the object, as in the tuned
    // build.
    let build = fixture.gcov.build_dir().unwrap();
    fs::copy(profile.tree().join("kernel/fork.gcda"), build.join("kernel/fork.gcda")).unwrap();
    let args =
        ["-O1", "-fprofile-use", "-fdump-ipa-profile=dump.txt", "-c", "kernel/fork.c", "-o", "kernel/fork.o"];
    assert!(Command::new("gcc").current_dir(&build).args(args).status().unwrap().success());
    let dump = fs::read_to_string(build.join("dump.txt")).unwrap();
    assert_eq!(dump.matches("Profile feedback for function is available").count(), 2, "{dump}");
}

#[test]
fn another_build_is_refused() {
    let fixture = Fixture::new();
    fixture.change("kernel/fork.gcda", |g| g.stamp ^= 1);
    let text = fixture.refusal();
    assert!(text.starts_with(".gcda from another build: ") && text.contains("kernel/fork.gcda"), "{text}");
    assert!(text.contains("compilation") && text.contains("base-gcov"), "{text}");

    fixture.change("kernel/fork.gcda", |g| {
        g.stamp ^= 1;
        g.functions[0].cfg_checksum ^= 1;
    });
    assert!(fixture.refusal().contains("another control flow"), "{}", fixture.refusal());
    fs::rename(fixture.exported("kernel/fork.gcda"), fixture.exported("kernel/exit.gcda")).unwrap();
    assert!(fixture.refusal().contains("no instrumented object of that name"), "{}", fixture.refusal());

    let fixture = Fixture::new();
    fs::rename(fixture.exported(""), fixture.run().join("gcov/elsewhere")).unwrap();
    let text = fixture.refusal();
    assert!(text.contains(".gcda from another build") && text.contains("/w/k.partial/build"), "{text}");
}

/// Files collected by the script of `Documentation/dev-tools/gcov.rst`, with a module of another
/// tree.
#[test]
fn a_gathered_tree_is_taken_and_another_tree_left_out() {
    let fixture = Fixture::new();
    let profile = fixture.prepare(1).unwrap();
    let gathered = fixture.run().join("sys/kernel/debug");
    fs::create_dir_all(&gathered).unwrap();
    fs::rename(fixture.run().join("gcov"), gathered.join("gcov")).unwrap();
    let same = |run: PathBuf| {
        prepare_profile(&fixture.work, &[WeightedRun::from(&*run)], &fixture.gcov).unwrap().id == profile.id
    };
    assert!(same(fixture.run()) && same(gathered.clone()) && same(gathered.join("gcov")));

    let foreign = gathered.join("gcov/var/lib/dkms/foo/1.0/build");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("foo.gcda"), "").unwrap();
    let mut said = Vec::new();
    let mut note = |text: &str| said.push(text.to_owned());
    MergedCounters::read(&[WeightedRun::from(&*fixture.run())], &fixture.gcov, true, &mut note).unwrap();
    let [said] = &said[..] else { panic!("{said:?}") };
    assert!(
        said.starts_with("1 of 3 .gcda files are of other trees than kernel base-gcov's and were left out: "),
        "{said}"
    );
    assert!(said.ends_with("gcov/var/lib/dkms/foo/1.0/build/foo.gcda"), "{said}");
    check_files(&fixture.run()).unwrap();

    for name in ["bar.gcda", "baz.gcda"] {
        fs::write(foreign.join(name), "").unwrap();
    }
    let text = fixture.refusal();
    assert!(text.starts_with(".gcda from another build: ") && text.contains("3 of 5 files"), "{text}");
    assert!(check_files(&fixture.run()).is_err());
}

/// Counters of a kernel that has loaded two modules: one of the same build, one of another.
#[test]
fn modules_of_the_build_are_used_and_others_left_out() {
    let fixture = Fixture::new();
    let sources = "# kerntune-sources/1: functions from this address on are of this file\n100\tmain.c\n";
    fs::write(fixture.gcov.dir.join("sources.tsv"), sources).unwrap();
    let build = fixture.gcov.build_dir().unwrap();
    fs::write(build.join("modules.order"), "kernel/forks.o\n").unwrap();
    fs::write(build.join("kernel/forks.mod"), "kernel/fork.o\n").unwrap();
    let read = |runs: &[WeightedRun]| {
        let mut said = Vec::new();
        let merged =
            MergedCounters::read(runs, &fixture.gcov, true, &mut |text| said.push(text.to_owned())).unwrap();
        (merged, said)
    };
    let run = WeightedRun::from(&*fixture.run());
    let (merged, said) = read(std::slice::from_ref(&run));
    assert_eq!(merged.files.len(), 2);
    assert_eq!(said, ["1 of 2 .gcda files are of modules of kernel base-gcov"]);

    // Weights count like repetitions, also the first one.
    let of = |weights: &[u32]| {
        let runs: Vec<WeightedRun> =
            weights.iter().map(|weight| WeightedRun { weight: *weight, ..run.clone() }).collect();
        let merged = read(&runs).0;
        (merged.summary.total, merged.summary.sum_max, merged.run_count)
    };
    assert_eq!(of(&[1, 1, 1]), of(&[2, 1]));
    assert_eq!(of(&[3]), of(&[1, 2]));
    assert_eq!(of(&[3]).0, 3 * merged.summary.total);

    // A module that was built at another time, and one that is not in the build at all.
    fixture.change("kernel/fork.gcda", |g| g.stamp ^= 1);
    let other = fixture.exported("kernel/fork.gcda").with_file_name("other.gcda");
    fs::copy(fixture.exported("kernel/fork.gcda"), other).unwrap();
    let (merged, said) = read(&[run]);
    assert_eq!(merged.files.len(), 1);
    let [said] = &said[..] else { panic!("{said:?}") };
    let start =
        "2 of 3 .gcda files are of modules that were not built with kernel base-gcov and were left out: ";
    assert!(
        said.starts_with(start) && said.contains("kernel/fork.gcda, ") && said.ends_with("other.gcda"),
        "{said}"
    );

    // The image's own counters must be of this build.
    fixture.change("main.gcda", |g| g.stamp ^= 1);
    assert!(fixture.refusal().contains("main.gcda"));
}

#[test]
fn a_sum_that_overflows_is_refused() {
    let fixture = Fixture::new();
    fixture.change("main.gcda", |g| {
        for counters in g.functions.iter_mut().flat_map(|f| &mut f.counters) {
            counters.values = CounterValues::Listed(vec![i64::MAX / 2; counters.values.len()]);
        }
    });
    let run = WeightedRun { weight: 3, ..WeightedRun::from(&*fixture.run()) };
    let text = prepare_profile(&fixture.work, &[run], &fixture.gcov).unwrap_err().to_string();
    assert!(text.contains("main.gcda") && text.contains("smaller weights"), "{text}");
}

#[test]
fn a_part_of_the_counters_is_refused() {
    let fixture = Fixture::new();
    let sources = "# kerntune-sources/1: functions from this address on are of this file\n\
                   100\tkernel/fork.c\n200\tmain.c\n300\tkernel/entry.S\n";
    fs::write(fixture.gcov.dir.join("sources.tsv"), sources).unwrap();
    fixture.prepare(1).unwrap();
    fs::remove_file(fixture.exported("kernel/fork.gcda")).unwrap();
    let text = fixture.refusal();
    assert!(text.starts_with("1 of 2 .gcda files of kernel base-gcov are missing"), "{text}");
    assert!(text.contains("kernel/fork.gcda") && text.contains("run the training again"), "{text}");
}

#[test]
fn another_compiler_is_refused() {
    let fixture = Fixture::new();
    fixture.change("main.gcda", |g| g.version = GcovVersion(u32::from_be_bytes(*b"B39*")));
    let text = fixture.refusal();
    assert!(text.contains("GCC 13.9") && text.contains("one compiler"), "{text}");
}

#[test]
fn emptiness_in_each_of_its_forms_is_refused() {
    let fixture = Fixture::new();
    for name in ["main.gcda", "kernel/fork.gcda"] {
        fixture.change(name, |g| {
            for counters in g.functions.iter_mut().flat_map(|f| &mut f.counters) {
                counters.values = CounterValues::Listed(vec![0; counters.values.len()]);
            }
        });
    }
    let text = fixture.refusal();
    assert!(text.contains("nothing was executed") && text.contains("2 .gcda files"), "{text}");

    fs::write(fixture.exported("main.gcda"), "").unwrap();
    let text = fixture.refusal();
    assert!(text.contains("main.gcda"), "{text}");

    fs::remove_dir_all(fixture.run()).unwrap();
    fs::create_dir(fixture.run()).unwrap();
    assert!(fixture.refusal().contains("exported nothing"), "{}", fixture.refusal());
    let error = prepare_profile(&fixture.work, &[], &fixture.gcov).unwrap_err().to_string();
    assert!(error.contains("no training run"), "{error}");
}

#[test]
fn a_gcov_kernel_without_objects_cannot_vouch() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.gcov.build_dir().unwrap()).unwrap();
    assert!(fixture.refusal().contains("objects kept"), "{}", fixture.refusal());
}

#[test]
fn counters_that_overflowed_are_refused() {
    let fixture = Fixture::new();
    fixture.change("kernel/fork.gcda", |g| {
        let arcs = g.functions[0].counters.iter_mut().find(|c| c.kind == CounterKind::Arcs).unwrap();
        let CounterValues::Listed(values) = &mut arcs.values else {
            panic!("spelt out by as_a_kernel_exports")
        };
        values[0] = i64::MIN + 5;
    });
    let text = fixture.refusal();
    assert!(
        text.contains("kernel/fork.gcda: counters of function 0x") && text.contains("overflowed"),
        "{text}"
    );
}

#[test]
fn lists_of_values_without_room_are_refused() {
    let fixture = Fixture::new();
    let call = CounterKind::IndirectCall;
    fixture.change("main.gcda", |g| {
        let values = CounterValues::Listed(vec![10_000, 1, 77, 9_000]);
        g.functions[0].counters.push(kerntune_convert::gcda::CounterRecord { kind: call, values });
    });
    let health = |unlisted: u64| {
        let text = format!("nodes 64 of 64\nunlisted {unlisted}\ncrowded 3\n");
        fs::write(fixture.run().join("gcov/values"), text).unwrap();
    };
    health(10);
    let values = fixture.prepare(1).unwrap().values.unwrap();
    assert_eq!((values.listed, values.health[0].unlisted, values.sites.len()), (10_000, 10, 1));
    health(11);
    let text = fixture.refusal();
    assert!(text.contains("11 of 10000 values found none of the 64 nodes free"), "{text}");
    assert!(text.contains("CONFIG_GCOV_VALUES_NODES") && text.contains("--values"), "{text}");
}
