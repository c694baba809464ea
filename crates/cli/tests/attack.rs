//! Fault injection for the store: the program is killed at every place where it changes the disk
//! and at random times, the disk is full at every write, files of results are changed, and two
//! processes run at once.
//!
//! In all cases no result may be incomplete or wrong, and the same command must still succeed. The
//! operations need no emulator, but use the same store as all others. `make attack` runs many more
//! cases: `KERNTUNE_ATTACK` is the factor.

use crate::support::said;
use kerntune_mcrae::{DumpRecord, TagDump};
use kerntune_stats::SplitMix64;
use kerntune_trace::TagLayout;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Factor for the number of cases, compared with `make test`.
fn effort() -> u64 {
    std::env::var("KERNTUNE_ATTACK").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Input files, and a work directory that can be recreated.
struct AttackedStore {
    dir: tempfile::TempDir,
}

impl AttackedStore {
    fn new() -> Self {
        let field = Self { dir: tempfile::tempdir().unwrap() };
        fs::write(field.path("names"), "main/2\nread/4\nbread/6\n").unwrap();
        for (name, seed) in [("one.dump", 1), ("two.dump", 2)] {
            fs::write(field.path(name), dump(seed)).unwrap();
        }
        let plan = "workloads = []\n[[command]]\nname = \"x\"\narguments = [\"fleet\", \"--help\"]\nfiles = [\"names\"]\n";
        fs::write(field.path("plan.toml"), plan).unwrap();
        field.source();
        field
    }

    /// Creates a fake kernel source, whose Makefile answers as Kbuild does.
    fn source(&self) {
        let gate = self.path("gate");
        for name in ["src/kernel", "src/include/linux", "gate"] {
            fs::create_dir_all(self.path(name)).unwrap();
        }
        let makefile = include_str!("../../kernel/tests/stand_in/Makefile");
        let put = |name: &str, text: &str| fs::write(self.path(name), text).unwrap();
        put("src/Makefile", &makefile.replace("GATE", gate.to_str().unwrap()));
        put("src/Kconfig", "config BLOCKED\n\tbool\nconfig TINY\n\tbool\n");
        put("src/kernel/fork.c", "int copy_process(void) { return 1; }\n");
        put("src/kernel/exit.c", "int do_exit(void) { return 2; }\n");
        put(
            "src/include/linux/kbuild.h",
            "#include <stddef.h>\n#define __used __attribute__((used))\n#define DEFINE(s, v) asm volatile(\"\\n.ascii \
             \\\"->\" #s \" %0 \" #v \"\\\"\" : : \"i\"(v))\n",
        );
        let task = "struct task_struct { char state[1240]; int pid, tgid; char stack[8], comm[16]; };\n";
        put("src/include/linux/sched.h", task);
        put("gate/open", "");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Returns a command that runs `kerntune` with this work directory.
    fn kerntune(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
        command.current_dir(self.dir.path()).env("KERNTUNE_DIR", self.work()).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.kerntune(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command and returns the id in its JSON output.
    fn id(&self, arguments: &[&str]) -> String {
        let found: Value = serde_json::from_str(&self.run(arguments)).unwrap();
        let id = found.pointer("/manifest/id").or(found.get("profile")).or(found.get("id"));
        id.and_then(Value::as_str).unwrap_or_else(|| panic!("{arguments:?}: {found}")).to_string()
    }

    /// Recreates the work directory with two profiles, without a store or a fleet; returns the
    /// profiles.
    fn begin(&self) -> [String; 2] {
        for name in ["work", "store", "fleet"] {
            let _ = fs::remove_dir_all(self.path(name));
        }
        let import = |dump: &str| self.id(&["import", "mcrae", "names", dump, "--json"]);
        [import("one.dump"), import("two.dump")]
    }
}

/// Makes 300 records of nested calls.
fn dump(seed: u64) -> Vec<u8> {
    let mut random = SplitMix64(seed);
    let (mut records, mut open, mut time) = (Vec::new(), Vec::new(), 0);
    for _ in 0..300 {
        time += 1 + random.below(50);
        let tag = if open.len() < 5 && (open.is_empty() || random.below(2) == 0) {
            let tag = [2, 4, 6][random.below(3) as usize];
            open.push(tag);
            tag
        } else {
            open.pop().unwrap() + 1
        };
        records.push(DumpRecord { tag, time });
    }
    TagDump { records, layout: TagLayout::MCRAE }.to_bytes()
}

/// A command that changes the store.
struct StoreCommand {
    name: &'static str,
    arguments: Vec<String>,
    /// Set if every run has the same standard output.
    repeats: bool,
}

fn operations([one, two]: &[String; 2]) -> Vec<StoreCommand> {
    let of = |name, repeats, arguments: &[&str]| StoreCommand {
        name,
        repeats,
        arguments: arguments.iter().map(ToString::to_string).collect(),
    };
    vec![
        of("import", true, &["import", "mcrae", "names", "one.dump", "--records", "200", "--json"]),
        of("merge", true, &["profile", "merge", one, two, "--json"]),
        of("rebuild", true, &["profile", "rebuild", one, "--json"]),
        of("remove", false, &["profile", "remove", two]),
        of("gc", false, &["gc", "--remove", "--older-than", "0", "--thorough"]),
        of("build", true, &["kernel", "build", "--source", "src", "--label", "base", "--json"]),
        of("fleet", true, &["fleet", "add", "fleet", one, two, "--host", "a", "--json"]),
        of("matrix", true, &["matrix", "run", "plan.toml", "--store", "store", "--json"]),
    ]
}

/// Removes values that differ between runs: times.
fn steady(text: &str) -> String {
    // `new` depends on the moment of the kill.
    let timed = ["\"built\"", "\"build_seconds\"", "\"date\"", "\"recorded\"", "\"new\""];
    text.lines().filter(|line| !timed.iter().any(|key| line.contains(key))).collect()
}

impl AttackedStore {
    /// Runs the command with a fault.
    fn with_fault(&self, operation: &StoreCommand, fault: &str) -> Output {
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        self.kerntune(&arguments).env("KERNTUNE_FAULT", fault).output().unwrap()
    }

    /// Returns the number of places that the command passes.
    fn places(&self, operation: &StoreCommand) -> u64 {
        let output = self.with_fault(operation, "count");
        assert!(output.status.success(), "{}: {}", operation.name, said(&output));
        String::from_utf8_lossy(&output.stderr)
            .lines()
            .filter(|line| line.starts_with("fault point "))
            .count() as u64
    }

    /// Checks that nothing is damaged, and that the command succeeds.
    fn recovers(&self, operation: &StoreCommand, expected: Option<&str>, after: &str) {
        let name = operation.name;
        // A command killed before its first write leaves nothing to check, and `check` rejects a
        // missing store.
        let beside =
            |name: &str| has_files(&self.path(name)).then(|| ["--".to_owned() + name, name.to_owned()]);
        let beside: Vec<String> = ["store", "fleet"].into_iter().filter_map(beside).flatten().collect();
        let check = self.kerntune(&["check", "--json"]).args(beside).output().unwrap();
        assert!(check.status.success(), "{name} after {after}: {}", said(&check));
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        let output = self.kerntune(&arguments).output().unwrap();
        // A profile that was removed before the kill cannot be removed again.
        let gone = name == "remove" && said(&output).contains("there is no profile");
        assert!(output.status.success() || gone, "{name} after {after}: {}", said(&output));
        if let Some(expected) = expected {
            assert_eq!(steady(&String::from_utf8_lossy(&output.stdout)), expected, "{name} after {after}");
        }
        self.run(&["gc", "--remove", "--older-than", "0"]);
        let mut left: Vec<PathBuf> = leftovers(&self.work());
        let partial = fs::read_dir(self.path("fleet/.partial")).into_iter().flatten().flatten();
        left.extend(partial.map(|entry| entry.path()));
        assert!(left.is_empty(), "{name} after {after}: {left:?}");
    }
}

/// Returns true if the directory contains a file, outside of hidden directories.
fn has_files(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let seen = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    entries.filter(seen).any(|entry| entry.path().is_file() || has_files(&entry.path()))
}

/// Returns files that are neither part of a complete result nor locks.
fn leftovers(work: &Path) -> Vec<PathBuf> {
    let mut left = Vec::new();
    for kind in fs::read_dir(work).unwrap().flatten() {
        for entry in fs::read_dir(kind.path()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let lock = name.ends_with(".lock") || name == ".objects";
            if (name.starts_with('.') || name.contains(".partial")) && !lock {
                left.push(entry.path());
            }
        }
    }
    left
}

#[test]
fn killed_at_any_place_every_command_comes_to_the_same_end() {
    let field = AttackedStore::new();
    let mut kills = 0;
    let profiles = field.begin();
    for operation in operations(&profiles) {
        field.begin();
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        let expected = operation.repeats.then(|| steady(&field.run(&arguments)));
        field.begin();
        let places = field.places(&operation);
        assert!(places > 0 || operation.name == "gc", "{} changes nothing", operation.name);
        // `make attack` visits every place, `make test` a regular sample.
        let step = (places / (8 * effort())).max(1);
        for place in (1..=places).step_by(step as usize) {
            field.begin();
            let killed = field.with_fault(&operation, &format!("kill:{place}"));
            assert_eq!(killed.status.code(), None, "{} at {place}: {}", operation.name, said(&killed));
            kills += 1;
            field.recovers(&operation, expected.as_deref(), &format!("a kill at place {place} of {places}"));
        }
    }
    println!("{kills} kills at places");
}

#[test]
fn killed_at_any_time_every_command_comes_to_the_same_end() {
    let field = AttackedStore::new();
    let mut random = SplitMix64(17);
    let profiles = field.begin();
    let mut kills = 0;
    for operation in operations(&profiles).into_iter().filter(|operation| operation.repeats) {
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        field.begin();
        let expected = steady(&field.run(&arguments));
        // Unlike places, times have no natural end; `make attack` tries some three hundred for each
        // command.
        for round in 0..3 * effort() * effort().min(6) {
            field.begin();
            let mut child =
                field.kerntune(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below([20_000, 60_000][round as usize % 2])));
            child.kill().unwrap();
            kills += u64::from(!child.wait().unwrap().success());
            field.recovers(&operation, Some(&expected), "a kill at any time");
        }
    }
    println!("{kills} kills at times");
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half() {
    let field = AttackedStore::new();
    let profiles = field.begin();
    let mut refused = 0;
    for operation in operations(&profiles) {
        field.begin();
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        let expected = operation.repeats.then(|| steady(&field.run(&arguments)));
        field.begin();
        let places = field.places(&operation);
        let step = (places / (8 * effort())).max(1);
        for place in (1..=places).step_by(step as usize) {
            field.begin();
            let output = field.with_fault(&operation, &format!("full:{place}"));
            let text = said(&output);
            assert!(!text.contains("panicked at"), "{text}");
            if output.status.success() {
                // Only faults after the result is in place may be silent.
                assert!(place > places / 2, "{} at {place} of {places}: {text}", operation.name);
            } else {
                refused += 1;
                assert!(text.contains("No space left"), "{} at {place}: {text}", operation.name);
            }
            field.recovers(
                &operation,
                expected.as_deref(),
                &format!("a disk that was full at place {place}"),
            );
        }
    }
    println!("{refused} commands refused by a full disk");
}

#[test]
fn no_change_of_a_stored_file_gives_another_figure() {
    let field = AttackedStore::new();
    let [one, _] = field.begin();
    let profile = field.work().join("profiles").join(&one);
    let merged = field.id(&["profile", "merge", &one, &one, "--json"]);
    let reports: [&[&str]; 3] = [
        &["report", &one, "--json"],
        &["report", &one, "functions", "--json"],
        &["report", &one, "graph", "--json"],
    ];
    let expected: Vec<String> = reports.iter().map(|report| field.run(report)).collect();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut open = vec![profile.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    let mut random = SplitMix64(23);
    let (mut refused, mut same) = (0, 0);
    for round in 0..40 * effort() {
        let path = &files[random.below(files.len() as u64) as usize];
        let whole = fs::read(path).unwrap();
        let mut bytes = whole.clone();
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, random.below(256) as u8),
            _ => bytes.clear(),
        }
        if bytes == whole {
            continue;
        }
        fs::write(path, &bytes).unwrap();
        let check = field.kerntune(&["check"]).output().unwrap();
        assert_eq!(check.status.code(), Some(1), "{} changed: {}", path.display(), said(&check));
        let which = (round % 3) as usize;
        let output = field.kerntune(reports[which]).output().unwrap();
        let text = said(&output);
        assert!(!text.contains("panicked at"), "{text}");
        match output.status.code() {
            Some(0) => {
                same += 1;
                assert_eq!(String::from_utf8_lossy(&output.stdout), expected[which], "{}", path.display());
            }
            Some(2 | 6 | 7) => refused += 1,
            _ => panic!("{} changed: {text}", path.display()),
        }
        fs::write(path, &whole).unwrap();
    }
    // The merged profile does not depend on its parts.
    field.run(&["report", &merged, "--json"]);
    field.run(&["check"]);
    println!("{refused} refused, {same} not concerned");
}

#[test]
fn two_at_once_make_one_result() {
    let field = AttackedStore::new();
    for _ in 0..effort() {
        let _ = fs::remove_dir_all(field.work());
        let arguments = ["import", "mcrae", "names", "one.dump", "--json"];
        let start = || field.kerntune(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let running: Vec<_> = (0..4).map(|_| start()).collect();
        let outputs: Vec<Output> =
            running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let first = String::from_utf8_lossy(&outputs[0].stdout).into_owned();
        assert!(outputs.iter().all(|output| output.status.success()));
        assert!(outputs
            .iter()
            .all(|output| steady(&String::from_utf8_lossy(&output.stdout)) == steady(&first)));
        assert_eq!(leftovers(&field.work()), Vec::<PathBuf>::new());
        field.run(&["check"]);
    }
}

#[test]
fn a_work_directory_of_an_older_version_is_made_again_and_never_mixed() {
    let field = AttackedStore::new();
    let [one, _] = field.begin();
    let expected = field.run(&["report", &one, "functions", "--json"]);
    // Imitates results of versions without seals: the same directories without checksums, and other
    // version numbers.
    let profile = field.work().join("profiles").join(&one);
    for name in ["result.json", "BLAKE3SUMS"] {
        fs::remove_file(profile.join(name)).unwrap();
    }
    let manifest = profile.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"busy_ticks\": ", "\"busy_ticks\": 9")).unwrap();
    let refused = field.kerntune(&["report", &one]).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains(&one), "{}", said(&refused));
    let seen: Value = serde_json::from_str(&field.run(&["gc", "--json"])).unwrap();
    let entries = seen["entries"].as_array().unwrap();
    let old = entries.iter().find(|entry| entry["name"] == one.as_str()).unwrap();
    assert_eq!(old["state"], "older-version");
    assert_eq!(field.id(&["import", "mcrae", "names", "one.dump", "--json"]), one);
    assert_eq!(field.run(&["report", &one, "functions", "--json"]), expected);
}
