//! The probes, one file for each group of checks. They run in parallel.

mod boot;
mod compilers;
mod emulator;
mod guest;
mod kernel_build;
mod perf;
mod plugin_api;
mod room;
mod tracefs;
mod uml;

use crate::host::ProbeHost;
use crate::{CheckGroup, ExamineOptions, HostCheck};

/// Runs one check or a few related ones. A probe must not fail: its problems become results of its
/// checks.
type Probe = fn(&dyn ProbeHost, &ExamineOptions) -> Vec<HostCheck>;

/// All probes, each with the group that lists its own failure.
const PROBES: &[(CheckGroup, Probe)] = &[
    (CheckGroup::Machines, emulator::examine),
    (CheckGroup::Machines, boot::kvm),
    (CheckGroup::Machines, uml::examine),
    (CheckGroup::Compilers, compilers::examine),
    (CheckGroup::KernelBuild, kernel_build::examine),
    (CheckGroup::Guest, guest::examine),
    (CheckGroup::HostRecorders, perf::examine),
    (CheckGroup::HostRecorders, tracefs::examine),
    (CheckGroup::Room, room::examine),
];

/// Runs all probes in parallel; returns the checks in the order of [`PROBES`].
pub(crate) fn all(host: &dyn ProbeHost, options: &ExamineOptions) -> Vec<HostCheck> {
    std::thread::scope(|scope| {
        let running: Vec<_> =
            PROBES.iter().map(|(group, probe)| (*group, scope.spawn(move || probe(host, options)))).collect();
        running
            .into_iter()
            .flat_map(|(group, thread)| thread.join().unwrap_or_else(|_| broken(group)))
            .collect()
    })
}

/// Makes the check for a probe that panicked, which is a bug; the other results remain valid.
fn broken(group: CheckGroup) -> Vec<HostCheck> {
    let check = HostCheck::of(group, "this check", "knowing what is here", &[]);
    vec![check.missing("the check itself failed", "report it, with what was printed above")]
}

/// Returns the check with this name, for tests.
#[cfg(test)]
fn named(checks: Vec<HostCheck>, name: &str) -> HostCheck {
    checks.into_iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::{CheckStatus, DoctorReport};

    #[test]
    fn on_an_empty_machine_every_check_answers_and_says_what_to_do() {
        let checks = all(&TestHost::default(), &ExamineOptions::default());
        assert!(checks.len() > 15, "{}", checks.len());
        for check in &checks {
            assert_ne!(check.status, CheckStatus::Ok, "{check:?}");
            assert!(check.fix.as_ref().is_some_and(|fix| !fix.is_empty()), "{check:?}");
        }
        let report = DoctorReport::new(checks);
        assert!(!report.is_ready());
        assert!(report.ready_for.is_empty());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all(&TestHost::default(), &ExamineOptions::default())
            .into_iter()
            .map(|check| check.name)
            .collect();
        let before = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
