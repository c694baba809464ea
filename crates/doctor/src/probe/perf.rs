//! Checks of perf events, by opening and counting them.

use crate::host::{PerfEvent, ProbeHost};
use crate::version::Version;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::io;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    vec![software_clock(host), cycles(host), tool(host)]
}

/// Result of counting an event: kernel and user mode, user mode only, or not at all.
enum CounterReading {
    Everywhere(u64),
    UserOnly(u64),
    Not(io::Error),
}

fn count(host: &dyn ProbeHost, counter: PerfEvent) -> CounterReading {
    match host.count(counter, true) {
        Ok(value) => CounterReading::Everywhere(value),
        // An unprivileged user may be refused only the kernel part.
        Err(first) => match host.count(counter, false) {
            Ok(value) => CounterReading::UserOnly(value),
            Err(_) => CounterReading::Not(first),
        },
    }
}

fn may_see_kernel(host: &dyn ProbeHost) -> String {
    let paranoid = host.text(PARANOID).unwrap_or_default();
    format!("run as root, or sysctl kernel.perf_event_paranoid=1 (it is {})", paranoid.trim())
}

fn software_clock(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::HostRecorders,
        "perf clock",
        "sampling the running host kernel",
        &[Ability::Perf],
    );
    match count(host, PerfEvent::SoftwareClock) {
        CounterReading::Everywhere(value) if value > 0 => {
            check.ok("perf_event_open counts the software clock")
        }
        CounterReading::Everywhere(_) => {
            check.missing("the software clock opens but does not count", "use the emulator")
        }
        CounterReading::UserOnly(_) => check.limited("user mode only", may_see_kernel(host)),
        CounterReading::Not(error) => {
            check.missing(format!("perf_event_open: {error}"), why_not(host, &error))
        }
    }
}

fn why_not(host: &dyn ProbeHost, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => may_see_kernel(host),
        _ => "a host kernel with CONFIG_PERF_EVENTS; the emulator needs none".to_string(),
    }
}

fn cycles(host: &dyn ProbeHost) -> HostCheck {
    let needed_for = "sampling the host by cycles and branches";
    let check = HostCheck::of(CheckGroup::HostRecorders, "PMU", needed_for, &[Ability::HardwareCounters]);
    let none = "a machine whose CPU counters are passed through; the emulator needs none";
    match count(host, PerfEvent::Cycles) {
        CounterReading::Everywhere(value) if value > 0 => check.ok("counts cycles"),
        CounterReading::UserOnly(value) if value > 0 => check.limited("user mode only", may_see_kernel(host)),
        CounterReading::Everywhere(_) | CounterReading::UserOnly(_) => {
            check.missing("opens but does not count", none)
        }
        CounterReading::Not(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            check.missing(format!("perf_event_open: {error}"), may_see_kernel(host))
        }
        // ENOENT means that no PMU has this event.
        CounterReading::Not(error) if error.kind() == io::ErrorKind::NotFound => {
            check.missing("this CPU shows no counters", none)
        }
        CounterReading::Not(error) => check.missing(format!("perf_event_open: {error}"), none),
    }
}

fn tool(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::HostRecorders, "perf tool", "perf.data files from this host", &[]);
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
    use crate::CheckStatus;

    #[test]
    fn a_virtual_machine_without_pmu() {
        let host = TestHost::default().counter(PerfEvent::SoftwareClock, true, 5_000_000);
        let checks = examine(&host, &ExamineOptions::default());
        assert_eq!(named(checks.clone(), "perf clock").status, CheckStatus::Ok);
        let pmu = named(checks, "PMU");
        assert_eq!(pmu.status, CheckStatus::Missing);
        assert_eq!(pmu.found, "this CPU shows no counters");
    }

    #[test]
    fn a_user_sees_only_himself() {
        let host = TestHost::default()
            .counter(PerfEvent::SoftwareClock, false, 5_000_000)
            .counter(PerfEvent::Cycles, false, 0)
            .file(PARANOID, "2\n");
        let checks = examine(&host, &ExamineOptions::default());
        let clock = named(checks.clone(), "perf clock");
        assert_eq!(clock.status, CheckStatus::Limited);
        assert!(clock.fix.unwrap().ends_with("(it is 2)"));
        assert_eq!(named(checks, "PMU").found, "opens but does not count");
    }
}
