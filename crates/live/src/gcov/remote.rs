//! Counters of another machine's kernel, through `ssh`.
//!
//! The other side needs a shell, `find`, `tar`, `mount` and root. It copies the counters into a
//! temporary directory, because files of debugfs have no size and `tar` would store them empty, and
//! sends that directory. Mount and directory are removed at the end, also if the connection breaks.

use super::archive::read_archive;
use super::{local, CounterSink, CountingKernel};
use crate::{Error, Result};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Status of the script on a machine without counters.
const NO_GCOV: i32 = 71;
/// Status of the script without root.
const NO_ROOT: i32 = 72;
/// Longest error message that is shown, in bytes.
const MAX_MESSAGE: u64 = 4096;

/// Most padding after an archive, in bytes.
const MAX_PADDING: u64 = 1 << 20;

/// Finds debugfs and mounts it if it is not mounted.
const BEGIN: &str = r#"set -eu
[ "$(id -u)" = 0 ] || exit 72
umask 077
debug=/sys/kernel/debug
mounted=
work=
clean() {
    [ -z "$work" ] || rm -rf "$work"
    [ -z "$mounted" ] || umount "$debug"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM PIPE
if ! grep -q " $debug debugfs " /proc/mounts; then
    mount -t debugfs none "$debug" || exit 71
    mounted=yes
fi
[ -d "$debug/gcov" ] || exit 71
"#;

/// Command that resets the counters.
pub(super) const RESET: &str = "echo 1 > \"$debug/gcov/reset\"\n";

/// Commands that send the counters.
pub(super) const COLLECT: &str = r#"work=$(mktemp -d)
mkdir "$work/gcov"
cd "$debug/gcov"
find . -type d -exec sh -c 'for d; do mkdir -p "$0/$d"; done' "$work/gcov" {} +
find . -type f -name '*.gcda' -exec sh -c 'for f; do cat "$f" > "$0/$f"; done' "$work/gcov" {} +
cat /proc/sys/kernel/osrelease > "$work/release"
cat /proc/modules > "$work/modules" || :
cat /sys/kernel/notes > "$work/notes" || :
cd "$work"
tar -cf - release modules notes gcov
"#;

pub(super) fn reset(machine: (&str, &[String])) -> Result<()> {
    run(machine, RESET, |_| Ok(()))
}

pub(super) fn collect(machine: (&str, &[String]), sink: &mut CounterSink) -> Result<CountingKernel> {
    run(machine, COLLECT, |output| read_archive(output, &mut |name, bytes| sink.add(name, bytes)))
}

/// Returns the whole script for the other side.
pub(super) fn script(commands: &str) -> String {
    format!("{BEGIN}{commands}")
}

/// Runs a script as root on a machine, given by name and options of `ssh`, and reads its output.
fn run<T>(
    (host, options): (&str, &[String]),
    commands: &str,
    read: impl FnOnce(&mut dyn Read) -> Result<T>,
) -> Result<T> {
    let mut ssh = Command::new("ssh");
    ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "LogLevel=ERROR"]);
    ssh.args(options.iter().flat_map(|option| ["-o", option]));
    ssh.args(["--", host]);
    // A user without root may have sudo without a password.
    ssh.arg("if [ \"$(id -u)\" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi");
    ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ssh.spawn().map_err(|source| Error::Spawn { program: "ssh".into(), source })?;
    let (input, errors) = (child.stdin.take(), child.stderr.take());
    let messages = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // The rest is read and dropped, so that the program does not wait for us.
            let _ = (&mut errors).take(MAX_MESSAGE).read_to_end(&mut text);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    if let Some(mut input) = input {
        // A program that ended already says why on its own.
        let _ = input.write_all(script(commands).as_bytes());
    }
    let mut output = child.stdout.take();
    let result = match &mut output {
        Some(output) => read(output).inspect(|_| {
            // An archive is padded; the other side would fail if nobody read that.
            let _ = std::io::copy(&mut output.take(MAX_PADDING), &mut std::io::sink());
        }),
        None => Err(Error::Gcov("ssh has no output".into())),
    };
    drop(output);
    let status = child.wait().map_err(|source| Error::Spawn { program: "ssh".into(), source })?;
    let messages = messages.join().unwrap_or_default();
    match status.code() {
        Some(0) => result,
        Some(NO_GCOV) => Err(local::not_instrumented(host)),
        Some(NO_ROOT) => Err(Error::Gcov(format!("{host}: the kernel's counters are only for root"))),
        // Reading ended first, and the other side could not go on.
        _ if result.is_err() && messages.is_empty() => result,
        _ => Err(Error::Gcov(format!(
            "ssh {host} failed ({status}): {messages}; `ssh -o BatchMode=yes {host} true` has to work, as root or \
             with sudo that asks for no password"
        ))),
    }
}
