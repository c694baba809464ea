//! Checks of the programs and libraries for the guest image.

use crate::host::ProbeHost;
use crate::version::Version;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::path::Path;

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    vec![static_libc(host), busybox(host), dpkg(host), redis(host)]
}

fn static_libc(host: &dyn ProbeHost) -> HostCheck {
    let needed_for = "init and the benchmark programs of the guest";
    let check = HostCheck::of(CheckGroup::Guest, "static C library", needed_for, &[Ability::Emulator]);
    let fix = "apt-get install gcc libc6-dev";
    match host.ask(&["gcc", "-print-file-name=libc.a"]) {
        Ok(ran) => match ran.last_line() {
            // GCC prints the bare name if it does not find the file.
            Some(path) if path.contains('/') && host.is_readable(Path::new(path)) => check.ok(path),
            _ => check.missing("libc.a not found", fix),
        },
        Err(error) => check.missing(error.to_string(), fix),
    }
}

fn busybox(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Guest, "busybox", "a shell in the guest", &[]);
    let fix = "apt-get install busybox-static";
    let Some(path) = host.find("busybox") else { return check.missing("not found", fix) };
    // Without arguments, busybox prints its version and exits.
    match host.ask(&["busybox"]).ok().and_then(|ran| Version::first_in(&ran.output)) {
        Some(version) => check.ok(format!("{version} ({})", path.display())),
        None => check.missing(format!("{} does not run", path.display()), fix),
    }
}

fn dpkg(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::Guest,
        "dpkg-query",
        "workloads that name the host's packages",
        &[Ability::Redis],
    );
    match host.find("dpkg-query") {
        Some(path) => check.ok(path.display().to_string()),
        None => check.missing(
            "not found",
            "use workloads that name programs by path; only Debian has packages for these",
        ),
    }
}

fn redis(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Guest, "Redis", "the workload redis", &[Ability::Redis]);
    let fix = "apt-get install redis-server redis-tools (the server need not run here)";
    for program in ["redis-server", "redis-benchmark"] {
        if host.find(program).is_none() {
            return check.missing(format!("{program} not found"), fix);
        }
    }
    match host.ask(&["redis-server", "--version"]).ok().and_then(|ran| Version::first_in(&ran.output)) {
        Some(version) => check.ok(version.to_string()),
        None => check.missing("redis-server does not run", fix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    #[test]
    fn a_library_that_gcc_does_not_find_is_missing() {
        let bare = TestHost::default().answer("-print-file-name=libc.a", 0, "libc.a\n");
        assert_eq!(static_libc(&bare).status, CheckStatus::Missing);
        let path = "/usr/lib/gcc/x86_64-linux-gnu/12/../../../x86_64-linux-gnu/libc.a";
        let there = TestHost::default().answer("-print-file-name=libc.a", 0, path).file(path, "");
        assert_eq!(static_libc(&there).status, CheckStatus::Ok);
    }

    #[test]
    fn redis_needs_its_benchmark() {
        let version = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n";
        let server = || TestHost::default().program("redis-server").answer("redis-server", 0, version);
        assert_eq!(redis(&server()).found, "redis-benchmark not found");
        let check = redis(&server().program("redis-benchmark"));
        assert_eq!((check.status, check.found.as_str()), (CheckStatus::Ok, "7.0.15"));
    }

    #[test]
    fn busybox_tells_its_version() {
        let text = "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1) multi-call binary.\n";
        let host = TestHost::default().program("busybox").answer("busybox", 0, text);
        assert_eq!(busybox(&host).found, "1.35.0 (/usr/bin/busybox)");
    }
}
