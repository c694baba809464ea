//! perf events, opened and counted.

use crate::host::{Counter, Host};
use crate::version::Version;
use crate::{Ability, Check, Group, Options};
use std::io;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

pub(crate) fn examine(host: &dyn Host, _options: &Options) -> Vec<Check> {
    vec![software_clock(host), cycles(host), tool(host)]
}

/// What a counter gave: in the kernel too, in user mode only, or why not at all.
enum Counted {
    Everywhere(u64),
    UserOnly(u64),
    Not(io::Error),
}

fn count(host: &dyn Host, counter: Counter) -> Counted {
    match host.count(counter, true) {
        Ok(value) => Counted::Everywhere(value),
        // Not privileged: the kernel's part may be what is refused.
        Err(first) => match host.count(counter, false) {
            Ok(value) => Counted::UserOnly(value),
            Err(_) => Counted::Not(first),
        },
    }
}

fn may_see_kernel(host: &dyn Host) -> String {
    let paranoid = host.text(PARANOID).unwrap_or_default();
    format!("run as root, or sysctl kernel.perf_event_paranoid=1 (it is {})", paranoid.trim())
}

fn software_clock(host: &dyn Host) -> Check {
    let check =
        Check::of(Group::HostRecorders, "perf clock", "sampling the running host kernel", &[Ability::Perf]);
    match count(host, Counter::SoftwareClock) {
        Counted::Everywhere(value) if value > 0 => check.ok("perf_event_open counts the software clock"),
        Counted::Everywhere(_) => {
            check.missing("the software clock opens but does not count", "use the emulator")
        }
        Counted::UserOnly(_) => check.limited("user mode only", may_see_kernel(host)),
        Counted::Not(error) => check.missing(format!("perf_event_open: {error}"), why_not(host, &error)),
    }
}

fn why_not(host: &dyn Host, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => may_see_kernel(host),
        _ => "a host kernel with CONFIG_PERF_EVENTS; the emulator needs none".to_string(),
    }
}

fn cycles(host: &dyn Host) -> Check {
    let needed_for = "sampling the host by cycles and branches";
    let check = Check::of(Group::HostRecorders, "PMU", needed_for, &[Ability::HardwareCounters]);
    let none = "a machine whose CPU counters are passed through; the emulator needs none";
    match count(host, Counter::Cycles) {
        Counted::Everywhere(value) if value > 0 => check.ok("counts cycles"),
        Counted::UserOnly(value) if value > 0 => check.limited("user mode only", may_see_kernel(host)),
        Counted::Everywhere(_) | Counted::UserOnly(_) => check.missing("opens but does not count", none),
        Counted::Not(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            check.missing(format!("perf_event_open: {error}"), may_see_kernel(host))
        }
        // ENOENT is how the kernel says that no PMU has this event.
        Counted::Not(error) if error.kind() == io::ErrorKind::NotFound => {
            check.missing("this CPU shows no counters", none)
        }
        Counted::Not(error) => check.missing(format!("perf_event_open: {error}"), none),
    }
}

fn tool(host: &dyn Host) -> Check {
    let check = Check::of(Group::HostRecorders, "perf tool", "perf.data files from this host", &[]);
    let fix = "apt-get install linux-perf";
    match host.ask(&["perf", "--version"]) {
        Ok(ran) if ran.is_success() => match Version::first_in(&ran.output) {
            Some(version) => check.ok(version.to_string()),
            None => check.limited("does not report its version", fix),
        },
        Ok(_) => check.missing("perf does not run", fix),
        Err(_) => check.missing("not found", fix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::named;
    use crate::test_host::TestHost;
    use crate::Status;

    #[test]
    fn a_virtual_machine_without_pmu() {
        let host = TestHost::default().counter(Counter::SoftwareClock, true, 5_000_000);
        let checks = examine(&host, &Options::default());
        assert_eq!(named(checks.clone(), "perf clock").status, Status::Ok);
        let pmu = named(checks, "PMU");
        assert_eq!(pmu.status, Status::Missing);
        assert_eq!(pmu.found, "this CPU shows no counters");
    }

    #[test]
    fn a_user_sees_only_himself() {
        let host = TestHost::default()
            .counter(Counter::SoftwareClock, false, 5_000_000)
            .counter(Counter::Cycles, false, 0)
            .file(PARANOID, "2\n");
        let checks = examine(&host, &Options::default());
        let clock = named(checks.clone(), "perf clock");
        assert_eq!(clock.status, Status::Limited);
        assert!(clock.fix.unwrap().ends_with("(it is 2)"));
        assert_eq!(named(checks, "PMU").found, "opens but does not count");
    }
}
