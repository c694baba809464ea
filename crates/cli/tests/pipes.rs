//! Pipes, sockets and devices instead of files, and user directories for results. Needs no kernel.

use crate::support::said;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Test files, a pipe that nobody has open, and a work directory with a profile.
struct PipeDirectory(tempfile::TempDir);

impl PipeDirectory {
    fn new() -> Self {
        let field = Self(tempfile::tempdir().unwrap());
        let at = |name: &str| field.0.path().join(name);
        fs::write(at("names"), "main/2\nread/4\n").unwrap();
        let records = [(2, 10), (4, 30), (5, 60), (3, 100)];
        let lines: Vec<String> = records.iter().map(|(tag, time)| format!("{tag} {time}\n")).collect();
        fs::write(at("dump"), lines.concat()).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert!(field.run("\"$K\" import mcrae names dump --json >summary").status.success());
        field
    }

    /// Runs a bash script in which `$K` is kerntune; killed after a minute.
    fn run(&self, script: &str) -> Output {
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", script]).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("K", env!("CARGO_BIN_EXE_kerntune")).env("KERNTUNE_DIR", self.0.path().join("work"));
        command.output().unwrap()
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.0.path().join(name)).unwrap()).into_owned()
    }
}

#[test]
fn a_pipe_is_no_input_file_of_any_command() {
    let field = PipeDirectory::new();
    let _socket = UnixListener::bind(field.0.path().join("socket")).unwrap();
    for command in [
        "import gmon IT IT",
        "import gmon \"$K\" IT",
        "import mcrae IT dump",
        "import mcrae names IT",
        "workload check IT",
        "record --kernel none --workload ./IT",
        "ablate --workload rr IT",
        "tune --workload rr --config IT",
        "tune --workload rr --fragment IT",
        "tune --workload rr --patch IT",
        "tune --workload ./IT",
        "kernel build --config IT",
        "bench compare IT IT",
        "matrix plan ./IT --store s",
        "matrix run ./IT --store s",
        "guard check --file IT",
        "report latest subsystems --groups IT",
        "advise latest --rules IT",
    ] {
        for (it, kind) in [("pipe", "a pipe"), ("socket", "a socket")] {
            let command = command.replace("IT", it);
            let output = field.run(&format!("\"$K\" {command}"));
            let text = said(&output);
            let status = output.status.code();
            assert!(matches!(status, Some(1..=3)), "{command}: {status:?}: {text}");
            let named = [kind, "not a regular file", "Not a directory"];
            assert!(named.iter().any(|words| text.contains(words)), "{command}: {text}");
        }
    }
}

#[test]
fn a_pipe_that_the_shell_opens_is_an_output_and_no_input() {
    let field = PipeDirectory::new();
    assert!(field.run("\"$K\" export folded latest -o file").status.success());
    let text = field.read("file");
    assert!(text.contains("main"), "{text}");
    for command in [
        "export folded latest -o pipe",
        "export csv latest -o pipe",
        "export gmon latest -o pipe",
        "report latest html -o pipe",
    ] {
        let output = field.run(&format!("\"$K\" {command}"));
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(said(&output).contains("nobody reads from this pipe"), "{command}: {}", said(&output));
    }
    for command in [
        "\"$K\" export folded latest -o >(cat >got); wait $!",
        "\"$K\" export folded latest -o pipe & cat pipe >got; wait $!",
        "\"$K\" export folded latest -o /dev/stdout >got",
        "\"$K\" export folded latest -o - >got",
        "\"$K\" export folded latest -o /dev/stdout | cat >got",
        "\"$K\" export folded latest -o /dev/fd/5 5>got",
    ] {
        fs::write(field.0.path().join("got"), "").unwrap();
        // The reader may come later; then try again.
        for _ in 0..20 {
            field.run(command);
            if field.read("got") == text || !command.contains("pipe &") {
                break;
            }
        }
        assert_eq!(field.read("got"), text, "{command}");
    }
    // The contents of a log are kept.
    field.run("echo before >log; \"$K\" export folded latest -o /dev/stdout >>log; echo after >>log");
    assert_eq!(field.read("log"), format!("before\n{text}after\n"));
    let output = field.run("\"$K\" export folded latest -o /dev/stdout >&-");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    // A configuration is read more than once, so it cannot be a pipe.
    let output = field.run("\"$K\" tune --workload rr --config <(echo CONFIG_X=y)");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("write what comes through it into a file first"), "{}", said(&output));
}

#[test]
fn a_signal_ends_a_wait_for_a_reader() {
    let field = PipeDirectory::new();
    // The reader opens the pipe and reads nothing; the output is larger than the pipe's buffer.
    let script = "sleep 300 <pipe & reader=$!; sleep 1
        \"$K\" report latest html -o pipe & writer=$!
        sleep 2; kill -TERM $writer; wait $writer; status=$?; kill $reader; exit $status";
    let output = field.run(script);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
}

#[test]
fn a_closed_standard_output_is_one_that_takes_nothing() {
    let field = PipeDirectory::new();
    for command in ["workload list", "profile list --json", "--help", "--version"] {
        let output = field.run(&format!("\"$K\" {command} >&-"));
        assert_eq!(output.status.code(), Some(8), "{command}: {}", said(&output));
        assert!(said(&output).contains("cannot write results to standard output"), "{}", said(&output));
        // Standard output discarded on purpose is no error.
        assert_eq!(field.run(&format!("\"$K\" {command} >/dev/null")).status.code(), Some(0));
        assert_eq!(field.run(&format!("\"$K\" {command} 1<>/dev/null")).status.code(), Some(0));
    }
    // Nothing is written to standard output.
    assert_eq!(field.run("\"$K\" export folded latest -o file >&-").status.code(), Some(0));
}

#[test]
fn a_full_disk_leaves_no_half_of_two_files() {
    let field = PipeDirectory::new();
    // The disk is full after the first of two files: symbols need more bytes than counts.
    let script = "mkdir small; for room in $(seq 4 4 200); do
        mount -t tmpfs -o size=${room}k,nr_inodes=8 kerntune-test small || exit 99
        \"$K\" export gmon latest -o small/g; status=$?
        left=$(ls -A small); umount small
        [[ $status != 0 && -n $left ]] && { echo \"$status at $room: $left\"; exit 1; }
        [[ $status == 0 && $left != *g.symbols* ]] && exit 2
        [[ $status == 0 ]] && exit 0
        done; exit 3";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "bash", "-c", script])
        .current_dir(field.0.path())
        .env("K", env!("CARGO_BIN_EXE_kerntune"))
        .env("KERNTUNE_DIR", field.0.path().join("work"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn nothing_of_the_users_is_removed_or_written_over() {
    let field = PipeDirectory::new();
    let at = |name: &str| field.0.path().join(name);
    let tree = |name: &str| -> Vec<(String, String)> {
        let entries = fs::read_dir(at(name)).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries
            .map(|path| {
                let text =
                    if path.is_dir() { "directory".into() } else { fs::read_to_string(&path).unwrap() };
                (path.display().to_string(), text)
            })
            .collect();
        all.sort();
        all
    };
    for directory in ["project", "project/results", "project/patches", "uftrace.data.partial"] {
        fs::create_dir(at(directory)).unwrap();
    }
    for file in
        ["README.md", "repeat.sh", "sysctl.conf", "environment", "patches/0001.patch", "results/figures"]
    {
        fs::write(at("project").join(file), "the user's").unwrap();
    }
    fs::write(at("uftrace.data.partial/notes"), "the user's").unwrap();
    fs::write(at("page.html.partial"), "the user's").unwrap();
    let change = "[[change]]\nname = \"one\"\nconfig = [\"CONFIG_X=y\"]\n";
    fs::write(at("changes.toml"), change).unwrap();
    let before = ["project", "project/results", "project/patches", "uftrace.data.partial"].map(tree);
    let output = field.run("\"$K\" ablate changes.toml --workload rr -o project");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("is not empty, and `kerntune ablate` did not make it"),
        "{}",
        said(&output)
    );
    field.run("\"$K\" export uftrace latest -o uftrace.data; \"$K\" report latest html -o page.html");
    assert!(at("page.html").is_file());
    assert_eq!(before, ["project", "project/results", "project/patches", "uftrace.data.partial"].map(tree));
    assert_eq!(field.read("page.html.partial"), "the user's");
}

#[test]
fn a_collectors_directory_of_somebody_else_is_refused() {
    let field = PipeDirectory::new();
    let at = |name: &str| field.0.path().join(name);
    fs::write(at("precious"), "precious").unwrap();
    let place = at("work/.live");
    let run = |verb: &str| {
        let output = field.run(&format!("\"$K\" live {verb}"));
        assert_ne!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    symlink(at("project"), &place).unwrap();
    assert!(run("start").contains(".live is a symbolic link, and not the directory of a collector"));
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    Command::new("chmod").arg("777").arg(&place).status().unwrap();
    assert!(run("start").contains(".live can be written to by other users"));
    assert!(run("status").contains(".live can be written to by other users"));
    Command::new("chmod").arg("700").arg(&place).status().unwrap();
    symlink(at("precious"), place.join("lock")).unwrap();
    run("start");
    run("stop");
    assert_eq!(field.read("precious"), "precious");
    assert!(Path::new(&place).join("lock").is_symlink());
}

#[test]
fn two_files_do_not_go_to_standard_output() {
    let field = PipeDirectory::new();
    let output = field.run("\"$K\" export gmon latest -o -");
    let said = said(&output);
    assert!(output.status.code() == Some(2) && said.contains("two files"), "{:?} {said}", output.status);
    assert!(!field.0.path().join("-.symbols").exists());
}
