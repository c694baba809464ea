//! Hostile workloads on the machine `host`, and hostile commands in their first run: nothing on the
//! host may change, and nothing of the workload may outlive the run.
//!
//! The program is `embedded/guest/hostile.c`, on the running kernel. If the host does not allow containment,
//! the run is refused with a reason.

use crate::support::{self, fails, said};
use kerntune_guest::{compile_contain, DiscoveryEnd, ProcessUser, SourceRoot};
use kerntune_machine::{discover, DiscoveryRequest};
use kerntune_work::WorkDir;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A user id that is not root, not used on this host, and not in /etc/subuid.
const NOBODY: u32 = 54_321;

/// Makes a directory that everybody may enter and whose files an image may contain, with the
/// program in it.
fn hostile() -> TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let source = support::checkout().join("embedded/guest/hostile.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-o"]);
    let output = gcc.arg(directory.path().join("hostile")).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    directory
}

/// Writes a workload with these steps, each with a pattern that its output must match; returns the
/// file.
fn workload(directory: &TempDir, memory_mb: u32, steps: &[(&str, &str)]) -> String {
    let program = directory.path().join("hostile").display().to_string();
    let mut text =
        format!("description = \"x\"\nbinaries = [\"busybox\", \"{program}\"]\nmemory_mb = {memory_mb}\n");
    for run in ["training", "measured"] {
        text += &format!("[{run}]\n");
        for (number, (arguments, expect)) in steps.iter().enumerate() {
            text += &format!(
                "[[{run}.step]]\nregion = \"{run}-{number}\"\noperations = 1\n\
                 command = [\"busybox\", \"sh\", \"-c\", \"{program} {arguments} && echo rate 1\"]\n\
                 fail = [\"ESCAPED.*\"]\nexpect = ['{expect}']\n\
                 metrics = [{{ name = \"n\", regex = 'rate (\\d)', unit = \"requests/s\", better = \"higher\" }}]\n"
            );
        }
    }
    support::workload(directory, &text)
}

fn on_host(file: &str) -> Command {
    support::kerntune(["bench", "run", file, "--machine", "host", "--runs", "1", "--json"])
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0\t")
}

/// Returns the state of the host that a workload must not change, as text.
fn host() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_else(|error| error.kind().to_string());
    let mut state: Vec<(String, String)> = [
        "/proc/self/mountinfo",
        "/proc/swaps",
        "/proc/sysvipc/shm",
        "/proc/sys/fs/file-max",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/domainname",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/printk",
        "/proc/sys/kernel/sysrq",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/swappiness",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ]
    .map(|path| (path.to_owned(), read(path)))
    .into();
    let names = |text: String| -> BTreeSet<String> {
        text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    state.push(("modules".into(), format!("{:?}", names(read("/proc/modules")))));
    state.push(("network".into(), format!("{:?}", names(read("/proc/net/dev")))));
    for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
        let meta = fs::metadata(device).unwrap();
        let text = format!("{:o} {} {} {}", meta.mode(), meta.uid(), meta.rdev(), meta.mtime());
        state.push((device.into(), text));
    }
    state.push(("keys".into(), read("/proc/keys").contains("kt_hostile").to_string()));
    state
}

/// Returns kerntune's cgroups below the first two levels.
fn groups() -> Vec<String> {
    let below = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let first = below(Path::new("/sys/fs/cgroup"));
    let all = first.iter().flat_map(|path| below(path)).chain(first.clone());
    all.map(|path| path.display().to_string()).filter(|path| path.contains("/kerntune.")).collect()
}

/// Returns processes of any user with this word among their arguments.
fn processes(word: &str) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes())
    };
    numbers.filter(has).collect()
}

/// Waits until `done` returns true; panics at a time limit.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(300), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Targets of the hostile program on this machine: a file, a process and two sockets.
struct HostTargets {
    canary: PathBuf,
    written: i64,
    port: TcpListener,
    socket: UnixListener,
    name: String,
    victim: Child,
}

impl HostTargets {
    /// Makes them, with the abstract socket `name`.
    fn new(directory: &Path, name: &str) -> Self {
        let canary = directory.join("canary");
        fs::write(&canary, "as it was").unwrap();
        fs::set_permissions(&canary, fs::Permissions::from_mode(0o666)).unwrap();
        let name = format!("{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            written: fs::metadata(&canary).unwrap().mtime_nsec(),
            canary,
            port: TcpListener::bind("127.0.0.1:0").unwrap(),
            socket: UnixListener::bind_addr(&address).unwrap(),
            name,
            victim: Command::new("sleep").arg("10000").spawn().unwrap(),
        }
    }

    /// Returns the arguments of `hostile` that name them.
    fn attempts(&self) -> String {
        let port = self.port.local_addr().unwrap().port();
        format!("try {} {} {port} {}", self.canary.display(), self.victim.id(), self.name)
    }

    /// Checks that nobody touched them.
    fn check(mut self) {
        assert_eq!(fs::read_to_string(&self.canary).unwrap(), "as it was");
        assert_eq!(fs::metadata(&self.canary).unwrap().mtime_nsec(), self.written);
        assert!(self.victim.try_wait().unwrap().is_none(), "the host's process was ended");
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
        self.port.set_nonblocking(true).unwrap();
        self.socket.set_nonblocking(true).unwrap();
        assert!(self.port.accept().is_err() && self.socket.accept().is_err(), "somebody was connected");
    }
}

/// Prepares all attempts and their targets on the host; the closure runs the workload.
fn attempts(directory: &TempDir, run: impl FnOnce(&str)) {
    let targets = HostTargets::new(directory.path(), "kerntune-test");
    let all = targets.attempts();
    let mark = format!("mark-{}", targets.canary.display()).replace('/', "-");
    let steps = [
        (all.as_str(), "(?s)(kept .*){96}made shared memory: 1.*(kept .*){28}tried all"),
        ("dump", "no dump"),
        (&format!("stay {mark}"), "rate"),
    ];
    let file = workload(directory, 256, &steps);
    let before = host();
    run(&file);
    for (before, after) in before.iter().zip(host()) {
        assert_eq!(*before, after);
    }
    targets.check();
    assert_eq!(processes(&mark), [0; 0], "left behind");
}

#[test]
fn a_hostile_workload_changes_nothing_of_the_host() {
    let directory = hostile();
    attempts(&directory, |file| {
        let output = on_host(file).output().unwrap();
        if !is_root() && output.status.code() == Some(3) {
            assert!(said(&output).contains("does not let a workload be contained"), "{}", said(&output));
            return;
        }
        assert!(output.status.success(), "{}", said(&output));
    });
}

/// Contained in a namespace of one user, or refused with a reason.
#[test]
fn so_it_is_for_who_is_not_root() {
    if !is_root() {
        return; // the test before is this one
    }
    let directory = hostile();
    let (home, work) = (directory.path().join("home"), directory.path().join("work"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&work).unwrap();
    let program = home.join("kerntune");
    fs::copy(env!("CARGO_BIN_EXE_kerntune"), &program).unwrap();
    chown(&work, Some(NOBODY), Some(NOBODY)).unwrap();
    let user = NOBODY.to_string();
    let run = |file: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&program);
        command.args(["bench", "run", file, "--machine", "host", "--runs", "1", "--json"]);
        command.env("KERNTUNE_DIR", &work).env("HOME", &work).current_dir(&work);
        command
    };
    let mut contained = true;
    attempts(&directory, |file| {
        let output = run(file).output().unwrap();
        contained = output.status.success();
        if !contained {
            assert_eq!(output.status.code(), Some(3), "{}", said(&output));
            assert!(said(&output).contains("does not let a workload be contained"), "{}", said(&output));
        }
    });
    if contained {
        // Steps that need other users are refused with a reason.
        let text = "description = \"x\"\nbinaries = [\"busybox\"]\n[training]\n[[training.step]]\ncommand = [\"busybox\"]\n\
                    [measured]\n[[measured.step]]\nregion = \"x\"\noperations = 1\n\
                    command = [\"busybox\", \"chown\", \"33:33\", \"/tmp\"]\n\
                    metrics = [{ name = \"n\", regex = '(\\d)', unit = \"requests/s\", better = \"higher\" }]\n";
        let file = support::workload(&directory, text);
        fails(&mut run(&file), 5, &["There is one user only in it", "/etc/subuid"]);
    }
}

#[test]
fn what_a_hostile_workload_takes_is_bounded() {
    if !is_root() {
        return; // bounds of all processes together are cgroups, which few others have
    }
    let directory = hostile();
    let file = workload(
        &directory,
        1024,
        &[("forks", "40[0-9][0-9] processes: "), ("disk", "^[1-5]?[0-9]?[0-9] MB: No space left")],
    );
    let output = on_host(&file).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let file = workload(&directory, 128, &[("memory", "rate")]);
    fails(&mut on_host(&file), 5, &["ran out of memory", "128 MB", "memory_mb"]);
    assert_eq!(groups(), [""; 0]);
}

/// Starts the run; the workload has a process that ignores all signals and left its session.
fn running(directory: &TempDir, mark: &str) -> Child {
    let file = workload(directory, 256, &[(&format!("stay {mark} && sleep 10000"), "rate")]);
    let mut run = on_host(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the workload runs", || {
        assert_eq!(run.try_wait().unwrap(), None, "it ended before the workload ran");
        !processes(mark).is_empty()
    });
    run
}

fn signal(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

#[test]
fn nothing_outlives_the_run_however_that_ends() {
    if !is_root() {
        return; // whether others may contain is seen above
    }
    let directory = hostile();
    let mark = format!("stay-{}", std::process::id());
    let gone = || until("the workload is gone", || processes(&mark).is_empty());

    let mut killed = running(&directory, &mark);
    signal("-KILL", killed.id());
    killed.wait().unwrap();
    gone();
    until("its cgroups are gone", || groups().is_empty());

    let stopped = running(&directory, &mark);
    signal("-TERM", stopped.id());
    assert_eq!(stopped.wait_with_output().unwrap().status.code(), Some(130));
    gone();

    let unwatched = running(&directory, &mark);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", unwatched.id())).unwrap();
    let watcher = children.split_whitespace().next().unwrap().parse().unwrap();
    signal("-KILL", watcher);
    gone();
    let output = unwatched.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
}

#[test]
fn a_host_that_cannot_contain_says_why_and_runs_nothing() {
    if !is_root() {
        return;
    }
    let directory = hostile();
    let file = workload(&directory, 64, &[("dump", "no dump")]);
    let kerntune = on_host(&file);
    let within = |command: &[&str]| {
        let mut outer = Command::new(command[0]);
        outer.args(&command[1..]).arg(kerntune.get_program()).args(kerntune.get_args());
        outer.current_dir(support::checkout()).env("KERNTUNE_DIR", support::work_dir());
        outer
    };
    // A hard limit of 0 (`ulimit -c 0`), under which core dump handlers would still be started.
    let takes_dumps = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap().starts_with(['|', '@']);
    let mut limited = within(&["setpriv", "--bounding-set", "-sys_resource", "prlimit", "--core=0:0"]);
    match takes_dumps {
        true => drop(fails(&mut limited, 3, &["does not let a workload be contained", "ulimit -Hc"])),
        false => {
            let output = limited.output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
        }
    }
    // Root without a capability, and a container with a restricted /proc.
    let mut powerless = within(&["setpriv", "--bounding-set", "-setuid"]);
    fails(&mut powerless, 3, &["does not let a workload be contained", "CAP_SETUID"]);
    let hidden = "mount -t tmpfs none /proc/sys && exec \"$@\"";
    let mut container = within(&["unshare", "--mount", "sh", "-c", hidden, "sh"]);
    fails(&mut container, 3, &["does not let a workload be contained", "cannot mount a /proc"]);
}

/// Runs the hostile program as the first run of a command, in `root`; returns the attempts that
/// worked. What it prints is thrown away, so it looks for files of these names.
fn first_run(directory: &Path, root: &SourceRoot, home: &Path, attempts: &str) -> Vec<String> {
    let work = WorkDir::open(directory.join("work")).unwrap();
    let script = format!(
        "busybox sh -c '{attempts}' >/tmp/o 2>&1; busybox grep -q 'tried all' /tmp/o || exit 9; \
         busybox grep ESCAPED /tmp/o | busybox tr ' /' '__' | while read name; do test -e /escaped/$name; done; true"
    );
    let found = discover(DiscoveryRequest {
        program: &compile_contain(&work).unwrap(),
        command: &["busybox".into(), "sh".into(), "-c".into(), script],
        root,
        user: &ProcessUser::default(),
        directory: Path::new("/"),
        hidden: work.root(),
        shown: &[],
        environment: &[
            ("PATH".to_owned(), format!("/bin:/usr/bin:{}", directory.display())),
            ("HOME".to_owned(), home.display().to_string()),
        ]
        .into(),
        input: None,
        time_limit: Duration::from_secs(60),
    })
    .unwrap();
    assert_eq!(found.end, DiscoveryEnd::Exited(0));
    let worked = found.paths.keys().filter_map(|path| path.strip_prefix("/escaped").ok());
    worked.map(|name| name.display().to_string()).collect()
}

/// Makes a root with busybox, the hostile program and a secret of its own.
fn small_root(directory: &TempDir) -> SourceRoot {
    let root = directory.path().join("root");
    for name in ["bin", "etc", "root/.ssh"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let busybox = kerntune_work::find_program("busybox", &["/bin", "/usr/bin"]).unwrap();
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    fs::copy(directory.path().join("hostile"), root.join("bin/hostile")).unwrap();
    std::os::unix::fs::symlink("busybox", root.join("bin/sh")).unwrap();
    fs::write(root.join("etc/shadow"), "secretword").unwrap();
    fs::write(root.join("etc/hostname"), "public").unwrap();
    SourceRoot::of(&root).unwrap()
}

/// Files of the host that the command sees are copies, as soon as it writes.
#[test]
fn a_hostile_first_run_changes_nothing_of_the_host() {
    let directory = hostile();
    let targets = HostTargets::new(directory.path(), "kerntune-first-run");
    let attempts = format!("hostile {}", targets.attempts());
    let before = host();
    let small = small_root(&directory);
    assert_eq!(first_run(directory.path(), &small, Path::new("/root"), &attempts), [""; 0]);
    let copies = ["ESCAPED_a_file_by_dots", "ESCAPED_a_file_by_its_path", "ESCAPED_a_file_out_of_a_chroot"];
    let worked = first_run(directory.path(), &SourceRoot::default(), Path::new("/root"), &attempts);
    assert_eq!(worked, copies);
    assert_eq!(host(), before);
    targets.check();
    assert!(!small.directory().join("tmp").exists(), "the root was written to");
}

#[test]
fn a_hostile_first_run_reads_no_secret() {
    let directory = hostile();
    let home = directory.path().join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    let key = home.join(".ssh/id_hostile");
    fs::write(&key, "secretword").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let small = small_root(&directory);
    for (root, file) in [(&SourceRoot::default(), key.as_path()), (&small, Path::new("/etc/shadow"))] {
        let attempts = format!("hostile steal {} secretword /etc/hostname", file.display());
        assert_eq!(first_run(directory.path(), root, &home, &attempts), [""; 0]);
    }
}
