//! Checks of the host kernel's function tracer and of kgmon.

use crate::host::ProbeHost;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::io::ErrorKind;
use std::path::Path;

/// Mount points of tracefs: its own, and the older one below debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    vec![function_tracer(host), call_counts(host)]
}

/// Reads the active lockdown level, which is in brackets: `none [integrity] confidentiality`.
fn lockdown(host: &dyn ProbeHost) -> Option<String> {
    let text = host.text("/sys/kernel/security/lockdown").ok()?;
    let (_, after) = text.split_once('[')?;
    let (level, _) = after.split_once(']')?;
    Some(level.to_string())
}

fn function_tracer(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::HostRecorders,
        "function tracer",
        "call counts of the host kernel by ftrace",
        &[Ability::Ftrace],
    );
    let locked = lockdown(host).filter(|level| level == "confidentiality");
    for place in PLACES {
        match host.text(&format!("{place}/available_tracers")) {
            Ok(tracers) if tracers.split_whitespace().any(|tracer| tracer == "function") => {
                return check.ok(format!("{place}: {}", tracers.trim()));
            }
            Ok(tracers) => {
                return check.missing(
                    format!("{place} has no function tracer, only: {}", tracers.trim()),
                    "a host kernel with CONFIG_FUNCTION_TRACER; guests of kerntune allow it",
                );
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return match &locked {
                    Some(level) => check.missing(
                        format!("refused by kernel lockdown ({level})"),
                        "boot with lockdown=none and without Secure Boot; guests of kerntune allow it",
                    ),
                    None => check.missing(format!("{place}: {error}"), "run as root"),
                };
            }
            Err(_) => {}
        }
    }
    let known =
        host.text("/proc/filesystems").is_ok_and(|all| all.split_whitespace().any(|fs| fs == "tracefs"));
    if known {
        check.missing("tracefs is not mounted", format!("mount -t tracefs tracefs {}", PLACES[0]))
    } else {
        check.missing(
            "this kernel has no tracefs",
            "a host kernel with CONFIG_FUNCTION_TRACER; guests of kerntune allow it",
        )
    }
}

/// Checks whether the module kgmon can be built and loaded. Obstacles are checked in the order in
/// which the kernel would refuse it.
fn call_counts(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::HostRecorders,
        "kgmon",
        "calls of the host kernel by caller (--live --calls)",
        &[],
    );
    let is = |path: &str, value: &str| host.text(path).is_ok_and(|text| text.trim() == value);
    if let Some(level) = lockdown(host).filter(|level| level != "none") {
        return check.missing(
            format!("kernel lockdown ({level}) takes no unsigned module"),
            "boot with lockdown=none and without Secure Boot; times can be sampled without this",
        );
    }
    if host.text("/proc/modules").is_err() || is("/proc/sys/kernel/modules_disabled", "1") {
        return check.missing(
            "this kernel loads no modules",
            "boot one that does, with kernel.modules_disabled=0; times can be sampled without this",
        );
    }
    if is("/sys/module/module/parameters/sig_enforce", "Y") {
        return check.missing(
            "this kernel takes only modules that are signed (module.sig_enforce)",
            "boot without module.sig_enforce; times can be sampled without this",
        );
    }
    if host.text("/proc/sys/kernel/ftrace_enabled").is_err() {
        return check.missing(
            "this kernel has no function tracer",
            "a host kernel with CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE, such as Debian's",
        );
    }
    let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let modules = format!("/lib/modules/{release}");
    if is("/sys/module/kgmon/initstate", "live") {
        return check.ok("loaded");
    }
    for folder in ["updates/dkms", "updates", "extra"] {
        let path = format!("{modules}/{folder}/kgmon.ko");
        if host.is_readable(Path::new(&path)) {
            return check.ok(path);
        }
    }
    match host.text(&format!("{modules}/build/Makefile")) {
        Ok(_) => check.ok(format!("built at first use by {modules}/build")),
        Err(_) => check.missing(
            format!("no headers of this kernel in {modules}/build"),
            format!(
                "apt-get install linux-headers-{release}; without them, ftrace's profiler counts calls, but \
                 not by caller"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    const TRACERS: &str = "/sys/kernel/tracing/available_tracers";

    #[test]
    fn what_tracefs_offers() {
        let with = |tracers: &str| function_tracer(&TestHost::default().file(TRACERS, tracers));
        assert_eq!(with("blk function nop\n").status, CheckStatus::Ok);
        let none = with("blk nop\n");
        assert_eq!(none.found, "/sys/kernel/tracing has no function tracer, only: blk nop");
        // `function_graph` does not imply the tracer `function`.
        assert_eq!(with("function_graph nop\n").status, CheckStatus::Missing);
    }

    #[test]
    fn what_is_in_the_modules_way_is_told_in_turn() {
        let mut host = TestHost::default();
        let mut next = |path: &str, text: &str| {
            host = std::mem::take(&mut host).file(path, text);
            call_counts(&host).found
        };
        assert_eq!(next("/proc/sys/kernel/osrelease", "6.12.1\n"), "this kernel loads no modules");
        assert_eq!(next("/proc/modules", ""), "this kernel has no function tracer");
        assert!(next("/proc/sys/kernel/ftrace_enabled", "1\n").contains("/lib/modules/6.12.1/build"));
        assert!(next("/lib/modules/6.12.1/build/Makefile", "x").contains("built at first use"));
        let installed = "/lib/modules/6.12.1/extra/kgmon.ko";
        assert_eq!(next(installed, "x"), installed);
        assert_eq!(next("/sys/module/kgmon/initstate", "live\n"), "loaded");
        assert!(next("/sys/module/module/parameters/sig_enforce", "Y\n").contains("signed"));
        assert!(
            next("/sys/kernel/security/lockdown", "none [integrity] confidentiality").contains("(integrity)")
        );
    }

    #[test]
    fn reasons_are_told_apart() {
        let refused = || TestHost::default().refused(TRACERS, ErrorKind::PermissionDenied);
        assert_eq!(function_tracer(&refused()).fix.as_deref(), Some("run as root"));
        let locked = refused().file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
        assert_eq!(function_tracer(&locked).found, "refused by kernel lockdown (confidentiality)");
        let unmounted = TestHost::default().file("/proc/filesystems", "nodev\ttracefs\n");
        assert!(function_tracer(&unmounted).fix.unwrap().starts_with("mount -t tracefs"));
        assert_eq!(function_tracer(&TestHost::default()).found, "this kernel has no tracefs");
    }
}
