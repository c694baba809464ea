//! Helpers that run the real program on real kernels.
//!
//! Kernels and images are kept in `KERNTUNE_DIR` (or `.kerntune` of the checkout), built once and
//! found by content; tests that damage files work on copies.

pub mod arcs;
pub mod debian;
#[path = "../../../convert/tests/support/gprof.rs"]
pub mod gprof;
pub mod unique;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the root of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the work directory that tests share.
pub fn work_dir() -> PathBuf {
    std::env::var_os("KERNTUNE_DIR").map_or_else(|| checkout().join(".kerntune"), PathBuf::from)
}

/// Returns a command that runs `kerntune` in the checkout with the shared work directory.
pub fn kerntune<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.current_dir(checkout()).env("KERNTUNE_DIR", work_dir()).args(arguments);
    command
}

/// Runs `kerntune` and expects success; returns standard output.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = kerntune(arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `kerntune` and parses its JSON output.
pub fn json<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Value {
    serde_json::from_str(&run(arguments)).unwrap()
}

/// Expects this exit status and all these words in the message; returns the message.
pub fn fails(command: &mut Command, status: i32, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    assert!(!text.contains("panicked at"), "{text}");
    text
}

/// Returns both outputs as one text.
pub fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns the id of the base kernel; builds it if necessary.
pub fn base_kernel() -> String {
    kernel(&[], "base")
}

/// Returns the id of a kernel with more options.
pub fn kernel(options: &[&str], label: &str) -> String {
    let mut arguments = vec!["kernel", "build", "--json", "--label", label];
    arguments.extend_from_slice(options);
    json(arguments)["id"].as_str().unwrap().to_string()
}

/// Returns the id of the kernel with function hooks, mitigations and a disk; builds it if
/// necessary.
pub fn ftrace_kernel() -> String {
    hooked_kernel(&[], "ftrace")
}

/// Returns the id of the same kernel with BPF support, for tests that are run by hand.
pub fn bpf_kernel() -> String {
    let options = ["BPF_SYSCALL", "BPF_JIT", "BPF_JIT_ALWAYS_ON"].map(|option| format!("CONFIG_{option}=y"));
    hooked_kernel(&options.each_ref().map(|option| ["--set", option]).concat(), "ftrace-bpf")
}

/// Lock held while this process builds a module or asks for the kernel: a `kerntune kernel build`
/// started in the meantime would inherit the lock on the kernel's objects, and wait for itself.
pub fn with_objects() -> MutexGuard<'static, ()> {
    static OBJECTS: Mutex<()> = Mutex::new(());
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hooked_kernel(more: &[&str], label: &str) -> String {
    let _alone = with_objects();
    let [disk, hooked] = ["disk", "hooked"].map(|name| format!("crates/cli/tests/{name}.config"));
    let ours = [disk, hooked].map(|path| checkout().join(path).display().to_string());
    let fragments = [fragment("ftrace"), fragment("mitigations")].into_iter().chain(ours).collect::<Vec<_>>();
    let mut options: Vec<&str> = fragments.iter().flat_map(|path| ["--fragment", path]).collect();
    options.push("--keep-objects");
    options.extend_from_slice(more);
    kernel(&options, label)
}

/// Returns the id of the kernel with planted regressions and with data of known sharing
/// (`planted/`).
pub fn planted_kernel() -> String {
    let patch =
        |name: &str| checkout().join(format!("crates/cli/tests/planted/{name}.patch")).display().to_string();
    let patches = ["tcp_sendmsg", "sharing", "guard"].map(patch);
    kernel(&patches.each_ref().map(|path| ["--patch", path]).concat(), "planted")
}

/// Returns the path of one of our config fragments.
fn fragment(name: &str) -> String {
    checkout().join(format!("embedded/kernel/{name}.config")).display().to_string()
}

/// Writes a workload file into its own directory.
pub fn workload(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("test.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
