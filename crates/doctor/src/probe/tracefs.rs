//! The host kernel's function tracer.

use crate::host::Host;
use crate::{Ability, Check, Group, Options};
use std::io::ErrorKind;

/// Where tracefs is mounted: its own place, and the older one below debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

pub(crate) fn examine(host: &dyn Host, _options: &Options) -> Vec<Check> {
    vec![function_tracer(host)]
}

/// The level in brackets: `none [integrity] confidentiality`.
fn lockdown(host: &dyn Host) -> Option<String> {
    let text = host.text("/sys/kernel/security/lockdown").ok()?;
    let (_, after) = text.split_once('[')?;
    let (level, _) = after.split_once(']')?;
    Some(level.to_string())
}

fn function_tracer(host: &dyn Host) -> Check {
    let check = Check::of(
        Group::HostRecorders,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::Status;

    const TRACERS: &str = "/sys/kernel/tracing/available_tracers";

    #[test]
    fn what_tracefs_offers() {
        let with = |tracers: &str| function_tracer(&TestHost::default().file(TRACERS, tracers));
        assert_eq!(with("blk function nop\n").status, Status::Ok);
        let none = with("blk nop\n");
        assert_eq!(none.found, "/sys/kernel/tracing has no function tracer, only: blk nop");
        // `function_graph` alone is not the function tracer.
        assert_eq!(with("function_graph nop\n").status, Status::Missing);
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
