//! Output of results: a standard output that rejects them, and names with control characters. Needs
//! no kernel.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Returns a command that runs `kerntune` in an empty directory.
fn kerntune(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.current_dir(directory).env_remove("KERNTUNE_DIR").args(arguments);
    command
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Commands that have results without a kernel.
const COMMANDS: [&[&str]; 8] = [
    &["workload", "list"],
    &["workload", "list", "--json"],
    &["bench", "list"],
    &["kernel", "list", "--json"],
    &["profile", "list", "--json"],
    &["paper"],
    &["--help"],
    &["--version"],
];

#[test]
fn results_that_find_no_room_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in COMMANDS {
        let output = kerntune(&directory, arguments).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(8), "{arguments:?}: {}", stderr(&output));
        assert_eq!(
            stderr(&output),
            "kerntune: cannot write results to standard output: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
    }
}

/// Runs a command on a terminal made by `script`; returns its output.
fn on_a_terminal(directory: &TempDir, arguments: &str, pager: &str) -> String {
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_kerntune"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(directory)
        .env_remove("KERNTUNE_DIR")
        .env("PAGER", pager)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

#[test]
fn a_pager_stands_before_a_terminal_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let list = "workload list";
    let plain = on_a_terminal(&directory, &format!("{list} --no-pager"), "sed 's/^/paged: /'");
    assert!(plain.contains("\nredis ") && !plain.contains("paged: "), "{plain}");
    let paged = on_a_terminal(&directory, list, "sed 's/^/paged: /'");
    assert!(paged.lines().all(|line| line.starts_with("paged: ")), "{paged}");
    assert_eq!(paged.replace("paged: ", ""), plain);
    // A pager that cannot be run, or `cat`, is not used; a pager that exits early is no error.
    for pager in ["no-such-pager", "cat", ""] {
        assert!(on_a_terminal(&directory, list, pager).contains("\nredis "), "{pager}");
    }
    assert_eq!(on_a_terminal(&directory, list, "head -n 1 | tr A-Z a-z").lines().count(), 1);
    // Results of work are not paged.
    let directory_of = on_a_terminal(&directory, "gc", "sed 's/^/paged: /'");
    assert!(!directory_of.contains("paged: "), "{directory_of}");
    let mut piped = kerntune(&directory, &["workload", "list"]);
    let piped = piped.env("PAGER", "sed 's/^/paged: /'").output().unwrap();
    assert!(!String::from_utf8_lossy(&piped.stdout).contains("paged: "));
}

#[test]
fn an_answer_that_nobody_got_is_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("bad.toml"), "description = 1\n").unwrap();
    let check = ["workload", "check", "bad.toml"];
    assert_eq!(kerntune(&directory, &check).output().unwrap().status.code(), Some(1));
    assert_eq!(kerntune(&directory, &check).stdout(full()).output().unwrap().status.code(), Some(8));
    // A failure keeps its exit status.
    let missing = ["workload", "check", "none.toml"];
    assert_eq!(kerntune(&directory, &missing).stdout(full()).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in COMMANDS {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let output = kerntune(&directory, arguments).stdout(OwnedFd::from(ours)).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn messages_that_nobody_takes_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // Only a note on standard error; nothing on standard output.
    let output = kerntune(&directory, &["kernel", "list"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let output = kerntune(&directory, &["kernel", "show", "nobody"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_limit_of_file_sizes_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let limited = |arguments: &str| {
        let script = format!("ulimit -f 0; exec \"$KERNTUNE\" {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(&directory).env("KERNTUNE", env!("CARGO_BIN_EXE_kerntune"));
        command.stderr(Stdio::piped()).output().unwrap()
    };
    let output = limited("workload list > list");
    assert_eq!(output.status.code(), Some(8), "{}", stderr(&output));
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    let output = limited("tags names read write");
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains("names: File too large"), "{}", stderr(&output));
    assert!(!directory.path().join("names").exists());
}

#[test]
fn names_from_files_do_not_steer_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("workloads")).unwrap();
    let step = "command = [\"rr\"]\n";
    let workload = format!(
        "description = \"red \\u001b[31m, bell \\u0007, C1 \\u009b2J, back \\u202e, line\\nnext\"\n[training]\n[[training.step]]\n{step}\
         [measured]\n[[measured.step]]\n{step}"
    );
    fs::write(directory.path().join("workloads/evil.toml"), workload).unwrap();
    fs::write(directory.path().join("workloads/worse.toml"), "\u{1b}[2J = 1\n").unwrap();
    let escaped = "red \\u001b[31m, bell \\u0007, C1 \\u009b2J, back \\u202e, line\\u000anext";
    let is_safe = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        text
    };
    for color in ["always", "never"] {
        let output = kerntune(&directory, &["workload", "list", "--color", color]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(is_safe(&output.stdout).contains(escaped), "{color}");
        assert!(is_safe(&output.stderr).contains("worse.toml"), "{color}");
    }
    // JSON output is unchanged for programs.
    let output = kerntune(&directory, &["workload", "list", "--json"]).output().unwrap();
    let list: serde_json::Value = serde_json::from_str(&is_safe(&output.stdout)).unwrap();
    let evil = list.as_array().unwrap().iter().find(|workload| workload["name"] == "evil").unwrap();
    assert_eq!(evil["description"], "red \u{1b}[31m, bell \u{7}, C1 \u{9b}2J, back \u{202e}, line\nnext");
}

#[test]
fn what_a_list_leaves_out_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for kind in ["kernels", "profiles"] {
        fs::create_dir_all(directory.path().join(".kerntune").join(kind).join("foreign\u{1b}[2J")).unwrap();
    }
    for list in [["kernel", "list"], ["profile", "list"]] {
        for more in [&[][..], &["--json"], &["--quiet"]] {
            let arguments = [&list[..], more].concat();
            let output = kerntune(&directory, &arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{arguments:?}");
            let line = stderr(&output).lines().find(|line| line.starts_with("damaged: ")).map(String::from);
            let line = line.unwrap_or_else(|| panic!("{arguments:?}: {}", stderr(&output)));
            assert!(line.contains("foreign\\u001b[2J"), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_full_disk_and_a_read_only_one_are_said_and_nothing_is_half_written() {
    // A file system of 16 KiB in its own mount namespace.
    let script = r#"
        set -e
        mount -t tmpfs -o size=16k kerntune-test "$SMALL"
        mkdir "$SMALL/work"
        head -c 12000 /dev/zero > "$SMALL/fill"
        status() { set +e; "$KERNTUNE" "$@" 2>> "$SMALL/../said"; echo "$1 $2 ended with $?"; set -e; }
        echo mine/2 > "$SMALL/names"
        status tags "$SMALL/names" $(seq -f 'function_%g' 1 300)
        cat "$SMALL/names"
        ls -A "$SMALL"
        mount -o remount,ro "$SMALL"
        status tags "$SMALL/names" function
        status profile list
        status kernel list
    "#;
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().join("small");
    fs::create_dir(&small).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]).env("SMALL", &small);
    command.env("KERNTUNE", env!("CARGO_BIN_EXE_kerntune")).env("KERNTUNE_DIR", small.join("work"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = fs::read_to_string(directory.path().join("said")).unwrap();
    let expected = format!(
        "tags {0}/names ended with 6\nmine/2\nfill\nnames\nwork\ntags {0}/names ended with 2\nprofile list ended with 0\n\
         kernel list ended with 0\n",
        small.display()
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{said}");
    // An empty list is a success even if nothing can be written.
    let [messages, notes]: [Vec<&str>; 2] = [true, false]
        .map(|message| said.lines().filter(|line| line.starts_with("kerntune: ") == message).collect());
    assert_eq!(messages.len(), 2, "one message for each that fails:\n{said}");
    assert!(notes.len() == 2 && notes.iter().all(|note| note.starts_with("no ")), "{said}");
}

/// Commands that read a work directory do not create one, and find the one above, as git does.
#[test]
fn readers_create_no_work_directory() {
    let top = tempfile::tempdir().unwrap();
    let below = top.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let ran = |arguments: &[&str]| kerntune(&top, arguments).current_dir(&below).output().unwrap();
    let nothing = "no profiles yet: `kerntune record -- COMMAND` makes one. Looked in ";
    for arguments in [
        &["report"][..],
        &["report", "latest", "flat"],
        &["export", "speedscope"],
        &["view"],
        &["characterize"],
        &["advise"],
        &["anatomy", "read"],
        &["profile", "show", "latest"],
    ] {
        let output = ran(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.starts_with(&format!("kerntune: {nothing}")), "{arguments:?}: {said}");
        assert!(said.contains("a/b/.kerntune/profiles") && said.contains("--dir or KERNTUNE_DIR"), "{said}");
    }
    for arguments in [&["profile", "list"][..], &["kernel", "list"], &["check"], &["gc"], &["doctor"]] {
        let output = ran(arguments);
        assert!(output.status.code().unwrap() <= 3, "{arguments:?}: {}", stderr(&output));
    }
    assert!(stderr(&ran(&["profile", "list"])).starts_with(nothing));
    assert_eq!(ran(&["compare", "a", "b", "--workload", "rr"]).status.code(), Some(2));
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);

    fs::create_dir_all(top.path().join(".kerntune/profiles")).unwrap();
    let directory = |mut command: Command| {
        let output = command.current_dir(&below).args(["gc", "--json"]).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["directory"].as_str().unwrap().to_owned()
    };
    let at = |name: &str| top.path().canonicalize().unwrap().join(name).display().to_string();
    assert_eq!(directory(kerntune(&top, &[])), at(".kerntune"));
    let mut named = kerntune(&top, &[]);
    named.env("KERNTUNE_DIR", "none");
    assert_eq!(directory(named), at("a/b/none"));
    fs::create_dir(below.join(".kerntune")).unwrap();
    assert_eq!(directory(kerntune(&top, &[])), at("a/b/.kerntune"));
}
