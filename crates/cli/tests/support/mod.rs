//! Running the real program on real kernels.
//!
//! Kernels and images are kept in `KERNTUNE_DIR` (or `.kerntune` of the checkout), where they are
//! built once and found by content; tests that break things work on copies.

pub mod arcs;
pub mod debian;
#[path = "../../../convert/tests/support/gprof.rs"]
pub mod gprof;
pub mod unique;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The work directory that tests share.
pub fn work_dir() -> PathBuf {
    std::env::var_os("KERNTUNE_DIR").map_or_else(|| checkout().join(".kerntune"), PathBuf::from)
}

/// `kerntune` in the checkout with the shared work directory.
pub fn kerntune<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.current_dir(checkout()).env("KERNTUNE_DIR", work_dir()).args(arguments);
    command
}

/// Runs and expects success; standard output.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = kerntune(arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs and expects JSON.
pub fn json<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Value {
    serde_json::from_str(&run(arguments)).unwrap()
}

/// Expects this exit status and all of these words in the message, which is returned.
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

/// Both outputs.
pub fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The id of the base kernel, built if need be.
pub fn base_kernel() -> String {
    kernel(&[], "base")
}

/// The id of a kernel with more options.
pub fn kernel(options: &[&str], label: &str) -> String {
    let mut arguments = vec!["kernel", "build", "--json", "--label", label];
    arguments.extend_from_slice(options);
    json(arguments)["id"].as_str().unwrap().to_string()
}

/// The id of the kernel with function hooks, mitigations and a disk, built if need be.
pub fn ftrace_kernel() -> String {
    hooked_kernel(&[], "ftrace")
}

/// The same with BPF programs, for who asks for them by hand.
pub fn bpf_kernel() -> String {
    let options = ["BPF_SYSCALL", "BPF_JIT", "BPF_JIT_ALWAYS_ON"].map(|option| format!("CONFIG_{option}=y"));
    hooked_kernel(&options.each_ref().map(|option| ["--set", option]).concat(), "ftrace-bpf")
}

/// Held by who builds a module in this process, and by who asks for the kernel: a `kerntune kernel build` that starts
/// meanwhile inherits the lock on the kernel's objects, and would wait for itself.
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

/// The id of the kernel with regressions and with data whose sharing is known (`planted/`).
pub fn planted_kernel() -> String {
    let patch =
        |name: &str| checkout().join(format!("crates/cli/tests/planted/{name}.patch")).display().to_string();
    let patches = ["tcp_sendmsg", "sharing", "guard"].map(patch);
    kernel(&patches.each_ref().map(|path| ["--patch", path]).concat(), "planted")
}

/// A config fragment of ours.
fn fragment(name: &str) -> String {
    checkout().join(format!("kernel/{name}.config")).display().to_string()
}

/// Writes a workload file below a directory of its own.
pub fn workload(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("test.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
