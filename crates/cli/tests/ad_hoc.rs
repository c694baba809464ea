//! `record -- COMMAND`: the named program is measured, with its arguments, files and standard input
//! as on this machine.

use crate::support;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// Records a command from a directory, with this standard input.
fn record(directory: &Path, input: Stdio, command: &[&str]) -> Output {
    let kernel = support::base_kernel();
    let mut arguments = vec!["record", "--no-edges", "--kernel", &kernel, "--"];
    arguments.extend(command);
    support::kerntune(arguments).current_dir(directory).stdin(input).output().unwrap()
}

/// Returns the program's output in the guest, and the output of `record`.
fn printed(output: &Output, program: &str) -> (String, String) {
    let said = support::said(output);
    assert!(output.status.success(), "{said}");
    let profile = said.lines().rev().find_map(|line| line.strip_prefix("profile ")).unwrap();
    let log = Path::new(profile).join("run/guest").join(format!("measured-1-{program}.log"));
    (std::fs::read_to_string(log).unwrap(), said)
}

fn text(command: &[&str]) -> String {
    let output = record(Path::new("/"), Stdio::null(), command);
    printed(&output, command[0].rsplit('/').next().unwrap()).0
}

#[test]
fn shell_strings_and_wrappers_run_this_machines_programs() {
    let script =
        "grep --version | head -n 1; find /etc/hostname -exec md5sum {} +; ls --version | sort | head -n 1";
    for shell in ["sh", "bash"] {
        let found = text(&[shell, "-c", script]);
        assert!(found.starts_with("grep (GNU grep)") && !found.contains("BusyBox"), "{found}");
        assert!(found.contains("/etc/hostname") && !found.contains("not found"), "{found}");
    }
    assert!(text(&["timeout", "10", "sort", "--version"]).starts_with("sort (GNU coreutils)"));
}

#[test]
fn arguments_have_any_bytes() {
    let script = "printf '%s|' \"$@\"\necho\tdone";
    let found = text(&["sh", "-c", script, "sh", "a\tb", "c\nstep\tinjected\t7\tsh", "\\n\\", ""]);
    assert_eq!(found, "a\tb|c\nstep\tinjected\t7\tsh|\\n\\||done\n");
}

/// Files below `/tmp` are included, with their links and modes; files that the command creates stay
/// in the guest.
#[test]
fn relative_programs_and_files_are_those_of_the_directory() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("data")).unwrap();
    std::fs::write(at.join("data/one two"), "1\n").unwrap();
    std::fs::write(at.join("data/three"), "22\n").unwrap();
    std::os::unix::fs::symlink(".", at.join("data/loop")).unwrap();
    let program = at.join("prog");
    std::fs::write(
        &program,
        "#!/bin/bash\npwd\ncat data/* >/tmp/made-in-the-guest\nsort -r /tmp/made-in-the-guest\nls data\nstat -f -c %T .\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (found, _) = printed(&record(at, Stdio::null(), &["./prog", "data"]), "prog");
    let expected =
        format!("{}\ncat: data/loop: Is a directory\n22\n1\nloop\none two\nthree\ntmpfs\n", at.display());
    assert_eq!(found, expected);
}

/// The guest has a serial port, and the first run does not.
#[test]
fn a_file_that_only_the_guest_reads_comes_with_the_second_try() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::write(directory.path().join("file"), "contents\n").unwrap();
    let script = "test -s file && if [ -c /dev/ttyS0 ]; then read line <file && echo $line; fi";
    let (found, said) = printed(&record(directory.path(), Stdio::null(), &["sh", "-c", script]), "sh");
    assert_eq!(found, "contents\n");
    let file = directory.path().join("file");
    assert!(said.contains(&format!("the command read {} in the guest", file.display())), "{said}");
}

/// Files are as old as here, and the guest's clock is past all of them.
#[test]
fn make_builds_what_is_older_and_a_program_finds_the_library_beside_it() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = directory.path();
    let rules = "prog: main.c libanswer.so\n\tgcc -o prog main.c -L. -lanswer -Wl,-rpath,'$$ORIGIN'\n\
                 libanswer.so: answer.c\n\tgcc -shared -fPIC -o libanswer.so answer.c\n";
    std::fs::write(at.join("Makefile"), rules).unwrap();
    std::fs::write(at.join("answer.c"), "int answer(void) { return 42; }\n").unwrap();
    std::fs::write(at.join("main.c"), "int answer(void); int main(void) { return answer(); }\n").unwrap();
    assert!(std::process::Command::new("make").current_dir(at).status().unwrap().success());
    let now = std::time::SystemTime::now();
    for (name, age) in
        [("answer.c", 50), ("libanswer.so", 40), ("prog", 30), ("Makefile", 20), ("main.c", 10)]
    {
        let file = std::fs::File::options().append(true).open(at.join(name)).unwrap();
        file.set_modified(now - std::time::Duration::from_secs(age)).unwrap();
    }
    let (found, _) = printed(&record(at, Stdio::null(), &["make"]), "make");
    assert_eq!(found, "gcc -o prog main.c -L. -lanswer -Wl,-rpath,'$ORIGIN'\n");
    std::os::unix::fs::symlink(at.join("prog"), at.join("link")).unwrap();
    let output = record(at, Stdio::null(), &["./link"]);
    assert_eq!(output.status.code(), Some(42), "{}", support::said(&output));
}

#[test]
fn a_file_is_the_commands_input_and_a_pipe_is_told_of() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("lines");
    std::fs::write(&path, "a\nb\nc\n").unwrap();
    let file = || std::fs::File::open(&path).unwrap();
    let (found, said) = printed(&record(Path::new("/"), file().into(), &["wc", "-l"]), "wc");
    assert_eq!((found.as_str(), said.contains("pipe")), ("3\n", false), "{said}");
    let mut cat = std::process::Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let pipe: Stdio = cat.stdout.take().unwrap().into();
    cat.wait().unwrap();
    let (found, said) = printed(&record(Path::new("/"), pipe, &["wc", "-l"]), "wc");
    assert!(found == "0\n" && said.contains("the command reads /dev/null, not this pipe"), "{said}");
    // A pipe without a writer must not block the command.
    let mut silent = std::process::Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let pipe: Stdio = silent.stdout.take().unwrap().into();
    let (_, said) = printed(&record(Path::new("/"), pipe, &["wc", "-l"]), "wc");
    silent.kill().and_then(|()| silent.wait()).unwrap();
    assert!(!said.contains("pipe"), "{said}");
}

#[test]
fn what_a_program_did_not_find_is_said() {
    let output = record(Path::new("/"), Stdio::null(), &["sh", "-c", "cat /etc/no-such-file; exit 0"]);
    let (_, said) = printed(&output, "sh");
    assert!(said.contains("`/etc/no-such-file` is not on this machine"), "{said}");
    let line =
        said.lines().find(|line| line.contains("the program printed")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("No such file or directory"), "{line}");
    let log = line.rsplit_once('(').unwrap().1.trim_end_matches(')');
    assert!(PathBuf::from(log).is_file(), "{line}");
}
