//! Invalid input: one clear message, the documented exit status (docs/exit-status.md), no panic.

use crate::support::{self, fails, kerntune, workload};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Writes a workload file that is valid except for `special`.
fn special(directory: &TempDir, special: &str) -> String {
    let step = "command = [\"rr\", \"--only\", \"getpid\"]\n";
    let text = format!(
        "description = \"x\"\n{special}\n[training]\n[[training.step]]\n{step}[measured]\n[[measured.step]]\n{step}"
    );
    workload(directory, &text)
}

/// Checks that recording the workload on the base kernel fails with this status and message.
fn recording_fails(file: &str, status: i32, words: &[&str]) {
    let kernel = support::base_kernel();
    fails(&mut kerntune(["record", "--kernel", &kernel, "--workload", file]), status, words);
}

#[test]
fn a_missing_compiler_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = kerntune(["kernel", "build", "--compiler", "gcc-99"]);
    fails(command.env("APT_CONFIG", no_apt_lists(&directory)), 3, &["gcc-99", "install"]);
}

/// Writes a configuration of apt without lists of packages: advice then depends on none.
fn no_apt_lists(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("apt.conf");
    let lists = directory.path().display();
    fs::write(&path, format!("Dir::State::lists \"{lists}\";\nDir::State::status \"/dev/null\";\n")).unwrap();
    path
}

#[test]
fn an_unknown_package_is_named_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = special(&directory, "packages = [\"no-such-package\"]");
    let words = ["test.toml:2:", "packages", "no-such-package"];
    fails(&mut kerntune(["workload", "check", &file]), 1, &words);
    recording_fails(&file, 3, &["no-such-package", "apt-get install"]);
}

#[test]
fn a_service_that_never_becomes_ready_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let service = "binaries = [\"sleep\"]\n[[service]]\nname = \"dozer\"\ncommand = [\"sleep\", \"1000\"]\n\
                   ready = { tcp = 6379, within_seconds = 3 }";
    recording_fails(&special(&directory, service), 5, &["dozer", "not ready"]);
}

#[test]
fn a_kernel_that_panics_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let append = "append = \"rdinit=/nonexistent root=/dev/nonexistent\"";
    recording_fails(&special(&directory, append), 5, &["panicked", "last lines of the console"]);
}

#[test]
fn a_full_disk_ends_the_recording_with_a_word() {
    let kernel = support::base_kernel();
    let work = support::work_dir();
    // A work directory on a file system of 3 MiB in its own mount namespace: kernel and image are
    // links, and there is no space for the trace.
    let script = r#"
        set -e
        mount -t tmpfs -o size=3m kerntune-test "$SMALL"
        mkdir "$SMALL/kernels" "$SMALL/guests" "$SMALL/guest-programs"
        for kind in kernels guests guest-programs; do
            for result in "$WORK/$kind"/*; do ln -s "$result" "$SMALL/$kind/"; done
        done
        exec "$KERNTUNE" --dir "$SMALL" record --kernel "$KERNEL" --workload rr
    "#;
    // The image must already exist.
    support::run([
        "record",
        "--kernel",
        &kernel,
        "--workload",
        "rr",
        "--no-functions",
        "--no-edges",
        "--json",
    ]);
    let small = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .current_dir(support::checkout())
        .env("SMALL", small.path())
        .env("WORK", work)
        .env("KERNEL", kernel)
        .env("KERNTUNE", env!("CARGO_BIN_EXE_kerntune"));
    fails(&mut command, 6, &["No space left on device"]);
}

#[test]
fn a_truncated_profile_is_refused() {
    let kernel = support::base_kernel();
    let record =
        ["record", "--kernel", &kernel, "--workload", "rr", "--no-functions", "--no-edges", "--json"];
    let summary = support::json(record);
    let path = support::work_dir().join("profiles").join(summary["profile"].as_str().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("profile");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
    }
    let table = copy.join("regions.parquet");
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    let copy = copy.display().to_string();
    fails(&mut kerntune(["report", &copy]), 7, &["regions.parquet"]);
    fs::remove_file(table).unwrap();
    fails(&mut kerntune(["report", &copy]), 7, &["regions.parquet"]);
    fs::remove_file(directory.path().join("profile/manifest.json")).unwrap();
    fails(&mut kerntune(["report", &copy]), 7, &["manifest.json"]);
}

#[test]
fn counters_of_another_build_are_refused() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    // Valid counters, but of another program.
    fs::write(directory.path().join("fork.c"), "int main(void) { return 0; }\n").unwrap();
    let shell =
        "gcc --coverage fork.c -o fork && ./fork && mkdir -p gcda/kernel && cp *.gcda gcda/kernel/fork.gcda";
    assert!(Command::new("sh").args(["-c", shell]).current_dir(&directory).status().unwrap().success());
    let gcda = directory.path().join("gcda").display().to_string();
    let mut command = kerntune(["optimize", "--kernel", &kernel, "--workload", "rr", "--gcda", &gcda]);
    fails(&mut command, 7, &["another build"]);
}

#[test]
fn wrong_words_are_usage_errors() {
    fails(&mut kerntune(["report", "latest", "--sort", "color"]), 2, &["color", "net"]);
    fails(&mut kerntune(["tune", "--workload", "rr", "--recipe", "magic"]), 2, &["magic", "gcc-pgo"]);
    fails(&mut kerntune(["tune", "--workload", "nobody"]), 2, &["nobody", "redis, remote, rr"]);
    fails(&mut kerntune(["record", "ls", "-l"]), 2, &["`kerntune record -- ls -l`"]);
    let autofdo = ["tune", "--workload", "rr", "--recipe", "clang-autofdo", "--values"];
    fails(&mut kerntune(autofdo), 2, &["--values", "clang-autofdo"]);
    fails(&mut kerntune(["tune", "--workload", "rr", "--stock"]), 2, &["--stock", "--recipe auto"]);
    let two = ["tune", "--workload", "rr", "--workload", "redis"];
    fails(&mut kerntune(two), 2, &["--recipe auto", "several"]);
    let unknown = ["tune", "--workload", "rr", "--recipe", "auto", "--try", "magic"];
    fails(&mut kerntune(unknown), 2, &["magic", "gcc-pgo"]);
    for (arguments, words) in [
        (&["kernel", "show", "nobody"][..], &["nobody"][..]),
        (&["report", "nobody"], &["no profile \"nobody\"", "profile list"]),
        (&["tune", "--workload", "rr", "--exclude", "../x.o"], &["../x.o", "source tree"]),
        (
            &["tune", "--workload", "rr", "--recipe", "clang-autofdo", "--compiler", "gcc"],
            &["clang-autofdo", "--compiler"],
        ),
        (&["kernel", "build", "--set", "NOPE"], &["CONFIG_NAME=value"]),
        (&["kernel", "build", "--set", "CONFIG_X=y\nCONFIG_Y=y"], &["CONFIG_NAME=value"]),
        (&["kernel", "build", "--label", ""], &["it is empty"]),
        (&["kernel", "build", "--label", "../x"], &["dot"]),
        (&["kernel", "build", "--label", "\u{1b}[2J"], &["control character"]),
        (&["tune", "--workload", "rr", "--recipe", "auto", "--budget", "999999999999999999"], &["--budget"]),
        (&["time", "base", "-o", "x", "--until-width=-1%"], &["--until-width", "above 0"]),
        (&["time", "base", "-o", "x", "--interval", "hodges-lehmann"], &["--interval", "--until-width"]),
        (&["paper", "hpux", "--interval", "bootstrap"], &["--interval", "--timed"]),
        (&["time", "base", "-o", "x", "--cpu", "9999"], &["no CPU 9999"]),
        (&["record", "--kernel", "base", "--workload", "rr", "--", ""], &["COMMAND", "empty"]),
        (&["ablate", "/nowhere.toml", "--workload", "rr"], &["CHANGES", "/nowhere.toml"]),
        (
            &["ablate", "Cargo.toml", "--workload", "rr"],
            &["Cargo.toml", "a file of changes looks like this", "[[change]]"],
        ),
        (&["ablate", "x.toml", "--workload", "rr", "--by", "speed"], &["--by", "path-length"]),
    ] {
        fails(&mut kerntune(arguments), 2, words);
    }
    fails(&mut kerntune(["record", "--kernel", "nobody", "--workload", "rr"]), 2, &["nobody"]);
}

/// Options without effect are rejected.
#[test]
fn options_that_mean_nothing_are_refused() {
    let kernel = support::base_kernel();
    let optimize = ["optimize", "--kernel", &kernel, "--workload", "rr"];
    let record = ["record", "--kernel", &kernel, "--workload", "rr"];
    let tune = ["tune", "--workload", "rr"];
    for (command, options, words) in [
        (&optimize[..], &["--model", "zen4"][..], &["--model", "gcc-pgo"][..]),
        (&optimize, &["--recipe", "bolt", "--exclude", "net/"], &["--exclude", "bolt"]),
        (&optimize, &["--recipe", "layout", "--gcda", "."], &["--gcda", "--profile"]),
        (&tune, &["--recipe", "bolt", "--object-flags", "net/=-O3"], &["--object-flags", "bolt"]),
        (&tune, &["--recipe", "auto", "--try", "layout", "--values"], &["--values", "layout"]),
        (&record, &["--no-edges", "--model", "zen4"], &["--model", "--no-edges"]),
        (&record, &["--only", "tcp_*", "--model", "zen4"], &["--model", "--edges"]),
        (&record, &["--run", "training", "--", "rr"], &["--run", "cannot be used"]),
        (
            &["kernel", "relink", &kernel, "--label", "x"],
            &["--file", "x", "--algorithm", "c3"],
            &["--algorithm", "--file"],
        ),
        (&["profile", "check", "."], &["--kernel", &kernel, "--recipe", "layout"], &["layout", "gcc-pgo"]),
        (&["bench", "run", "kbx"], &["--machine", "host", "--model", "zen4"], &["--model", "emulator"]),
        (&["paper"], &["--recipe", "layout"], &["<NAME>"]),
    ] {
        fails(&mut kerntune(command.iter().chain(options)), 2, words);
    }
}

/// Files named by a path are checked first, and each error is a single line.
#[test]
fn files_are_looked_at_before_the_work() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (missing, place, fragment) = (path("missing"), path("missing/page"), path("fragment"));
    fs::write(&fragment, "CONFIG_X=y\nnonsense\n").unwrap();
    let here = directory.path().display().to_string();
    let compare = ["compare", &kernel, &kernel, "--workload", "rr", "--html"];
    let optimize = ["optimize", "--kernel", &kernel, "--workload", "rr"];
    let long = path(&"x".repeat(300));
    for (command, options, words) in [
        (&optimize[..], &["--gcda", &missing][..], &["missing: No such file"][..]),
        (&optimize, &["--recipe", "clang-autofdo", "--profile", "nobody"], &["nobody"]),
        (&optimize, &["--recipe", "layout", "--model", "none.toml"], &["none.toml"]),
        (&["kernel", "build"], &["--config", &missing], &["--config", "missing: No such file"]),
        (&["kernel", "build"], &["--fragment", &fragment], &["fragment, line 2", "`nonsense`"]),
        (&["kernel", "build"], &["--patch", &here], &["--patch", "it is a directory"]),
        (&["tune", "--workload", "rr"], &["--exclude", "none.toml"], &["none.toml"]),
        (&compare, &[&place], &["--html", "there is no directory"]),
        (&compare, &[&here], &["--html", "it is a directory"]),
        (&compare, &[&long], &["--html", "File name too long"]),
        (&compare, &["/proc/page.html"], &["--html", "cannot write /proc/page.html"]),
        (&["paper", "hpux", "-o"], &[&place], &["--output", "there is no directory"]),
        (&["package", &kernel, "--output"], &["/dev/null/x"], &["--output", "Not a directory"]),
        (&["export", "autofdo", "latest"], &[&place], &["--output", "there is no directory"]),
        (&["bench", "run", "kbx", "--machine", "host", "-o"], &[&here], &["--output", "it is a directory"]),
    ] {
        let text = fails(&mut kerntune(command.iter().chain(options)), 2, words);
        assert_eq!(text.matches("kerntune: ").count(), 1, "{text}");
        assert!(!text.contains(" …\n"), "work was begun:\n{text}");
    }
    // Counters that belong to no kernel: an empty directory, and a file of another kind.
    fails(&mut kerntune(optimize.iter().chain(&["--gcda", &here])), 7, &["no .gcda file"]);
    fs::write(directory.path().join("a.gcda"), "not counters").unwrap();
    fails(&mut kerntune(optimize.iter().chain(&["--gcda", &here])), 7, &["a.gcda"]);
}

#[test]
fn a_work_directory_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let new = &["tune", "--workload", "rr", "--dry-run"][..];
    // A dry run makes no directory, and so cannot tell that none can be made.
    let build = &["kernel", "build"][..];
    let all = &[new, build, &["kernel", "list"], &["profile", "list"]][..];
    for (place, commands) in [
        (file.display().to_string(), all),
        (format!("{}/below", file.display()), all),
        ("/proc/work".into(), &[build]),
    ] {
        for command in commands.iter().copied() {
            let text = fails(kerntune(command).env("KERNTUNE_DIR", &place), 2, &["work directory", &place]);
            assert_eq!(text.matches("kerntune: ").count(), 1, "{text}");
        }
    }
}

/// A plan is shown only if everything in it can be built; it includes estimates.
#[test]
fn a_plan_of_what_cannot_be_built_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let dry_run = |options: &[&str]| {
        let mut command = kerntune(["tune", "--workload", "rr", "--recipe", "gcc-pgo+layout", "--dry-run"]);
        command.args(options).env("KERNTUNE_DIR", directory.path().join("work"));
        command.env("APT_CONFIG", no_apt_lists(&directory));
        command
    };
    fs::create_dir(directory.path().join("work")).unwrap();
    let missing = ["linux-source-6.99.tar.xz is not there", "apt-get install linux-source-6.99"];
    fails(&mut dry_run(&["--source", "debian:6.99"]), 3, &missing);
    fails(&mut dry_run(&["--source", "/tmp"]), 2, &["/tmp is not a kernel source: no Makefile/Kconfig"]);
    fs::write(path("empty.patch"), "").unwrap();
    fails(&mut dry_run(&["--patch", &path("empty.patch")]), 2, &["empty.patch", "it is empty"]);
    fs::write(path("bad.config"), "CONFIG_A=y\nCONFIG_B=yes\n").unwrap();
    fails(&mut dry_run(&["--config", &path("bad.config")]), 2, &["bad.config, line 2: `CONFIG_B=yes`"]);
    fails(&mut dry_run(&["--set", "CONFIG_B=yes"]), 2, &["CONFIG_B=yes", "y, m, n"]);

    // Compressed as in /proc/config.gz and in distributions' packages.
    let lines: String = (0..2000).map(|at| format!("CONFIG_A{at}=y\n")).collect();
    fs::write(path("config"), lines + "CONFIG_M=m # a module\n").unwrap();
    for program in ["xz", "gzip"] {
        let packed = Command::new(program).args(["-c", &path("config")]).output().unwrap();
        fs::write(path("config.packed"), packed.stdout).unwrap();
        let mut command = dry_run(&["--config", &path("config.packed"), "--json"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let steps = plan["steps"].as_array().unwrap();
        let estimates: Vec<&str> = steps
            .iter()
            .filter(|step| {
                step["estimate"]["objects"] == 3500 && step["estimate"]["minutes"].as_f64() > Some(1.0)
            })
            .map(|step| step["step"].as_str().unwrap())
            .collect();
        assert_eq!(estimates, ["base-kernel", "instrumented-kernel", "movable-kernel"], "{plan:#}");
        let others = steps.iter().filter(|step| step["estimate"]["objects"].is_null()).count();
        assert_eq!(others, steps.len() - 3);
    }
    let text = String::from_utf8(dry_run(&[]).output().unwrap().stdout).unwrap();
    assert_eq!(text.matches("to do: ~").count(), 3, "{text}");
    assert!(text.contains("Estimates rest on 1.75 objects for each built-in option"), "{text}");
    assert!(
        !directory.path().join("work/sources").exists() && !directory.path().join("work/kernels").exists()
    );
}

#[test]
fn a_guest_that_hangs_is_ended_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let text = "description = \"x\"\ntime_limit_seconds = 15\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
                [measured]\n[[measured.step]]\nregion = \"spin\"\noperations = 1\ncommand = [\"sh\", \"-c\", \"while :; do :; done\"]\n";
    let file = workload(&directory, text);
    recording_fails(
        &file,
        5,
        &["did not end within 15 s", "measured step 1 spin", "last lines of the console"],
    );
}

#[test]
fn a_guest_out_of_memory_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let text = "description = \"x\"\nmemory_mb = 96\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
                [measured]\n[[measured.step]]\nregion = \"grow\"\noperations = 1\n\
                command = [\"sh\", \"-c\", \"x=0123456789; while :; do x=$x$x; done\"]\n";
    let file = workload(&directory, text);
    recording_fails(&file, 5, &["out of memory", "memory_mb"]);
}

/// Every dry run ends with the steps, or with what the real run would refuse, and leaves nothing.
#[test]
fn a_dry_run_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path().join("work");
    let path = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).unwrap();
        directory.path().join(name).display().to_string()
    };
    let changes = path("changes.toml", "[[change]]\nname = \"a\"\nconfig = [\"CONFIG_AUDIT=n\"]\n");
    let guard = path("guard.toml", "source = \"debian:6.12\"\n[[workload]]\nname = \"rr\"\n");
    let plan = path("plan.toml", "workloads = [\"rr\"]\n[[kernel]]\nsource = \"debian:6.12\"\n");
    let dry_run = |command: &[&str]| {
        let (before, after) =
            command.split_at(command.iter().position(|word| *word == "--").unwrap_or(command.len()));
        let mut command = kerntune([before, &["--dry-run", "--json"], after].concat());
        command.env("KERNTUNE_DIR", &work).current_dir(directory.path());
        command
    };
    let commands: &[(&[&str], &[&str])] = &[
        (&["record", "--", "ls", "-l"], &["first-run", "image"]),
        (&["record", "--workload", "rr"], &["image", "kernel", "record"]),
        (&["kernel", "build"], &["kernel"]),
        (&["tune", "--workload", "rr", "--recipe", "gcc-pgo"], &["base-kernel", "training", "measure-tuned"]),
        (&["tune", "--workload", "rr", "--recipe", "clang-autofdo"], &["base-kernel", "measure-tuned"]),
        (&["paper", "hpux", "--only", "kbx"], &["base-kernel", "measure-tuned"]),
        (&["paper", "mckusick"], &["kernel", "record"]),
        (&["paper", "chen", "--only", "fio"], &["kernel", "record"]),
        (
            &["tune", "--workload", "rr", "--recipe", "auto", "--try", "layout"],
            &["kernel", "record", "order"],
        ),
        (&["bench", "run", "kbx"], &["kernel", "record"]),
        (&["trim", "--workload", "rr"], &["kernel", "record", "check"]),
        (&["ablate", &changes, "--workload", "rr"], &["kernel", "record", "check"]),
        (&["guard", "record", "--file", &guard], &["kernel", "record"]),
        (&["matrix", "run", &plan], &["kernel", "record"]),
    ];
    for (command, names) in commands {
        let output = dry_run(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", support::said(&output));
        let steps: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(steps["schema"], "kerntune-steps/1");
        let found: Vec<&str> =
            steps["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
        assert!(names.iter().all(|name| found.contains(name)), "{command:?}: {found:?}");
        assert_eq!(steps["total"]["steps"], found.len(), "{command:?}: nothing is there");
        assert!(!work.exists(), "{command:?} made the work directory");
    }
    let entries = || fs::read_dir(directory.path()).unwrap().count();
    let before = entries();
    for (command, status, words) in [
        (&["record", "--", "no-such-program"][..], 3, "no-such-program"),
        (&["record", "--", "./no-such-program"], 3, "correct the path"),
        (&["record", "--kernel", "none", "--workload", "rr"], 2, "none"),
        (&["kernel", "build", "--source", "debian:6.99"], 3, "linux-source-6.99"),
        (&["kernel", "selftest", "none"], 2, "none"),
        (&["kernel", "reproduce", "none"], 2, "none"),
        (&["kernel", "bisect", "none"], 2, "none"),
        (&["kernel", "relink", "none", "--profile", "latest", "--label", "x"], 2, "none"),
        (&["kernel", "import", "/nowhere.deb"], 2, "/nowhere.deb"),
        (&["optimize", "--kernel", "none", "--workload", "rr"], 2, "none"),
        (&["compare", "none", "other", "--workload", "rr"], 2, "none"),
        (&["time", "none", "-o", "out"], 2, "none"),
        (&["prove", "none", "other", "--workload", "rr", "-o", "out"], 2, "none"),
        (&["package", "none"], 2, "none"),
        (&["bench", "run", "kbx", "--kernel", "none"], 2, "none"),
        (&["guard", "check", "--file", &guard], 2, "guard-baseline.json"),
    ] {
        fails(&mut dry_run(command), status, &[words]);
    }
    assert_eq!(entries(), before);
}

#[test]
fn kernels_without_counters_have_none_to_collect() {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("counters");
    let to = to.to_str().unwrap();
    // Somebody else than root may not look.
    let words = match rustix::process::geteuid().is_root() {
        true => "has no counters",
        false => "gcov",
    };
    fails(&mut kerntune(["gcov", "reset"]), 2, &[words]);
    fails(&mut kerntune(["gcov", "collect", "-o", to]), 2, &[words]);
    assert!(!Path::new(to).exists());
}
