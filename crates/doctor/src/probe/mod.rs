//! The probes, one file per group of checks. They run side by side.

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

use crate::host::Host;
use crate::{Check, Group, Options};

/// Looks at one thing or a few that belong together. Must not fail: what it cannot find out, it
/// says in its checks.
type Probe = fn(&dyn Host, &Options) -> Vec<Check>;

/// Every probe with the group under which its own failure would stand.
const PROBES: &[(Group, Probe)] = &[
    (Group::Machines, emulator::examine),
    (Group::Machines, boot::kvm),
    (Group::Machines, uml::examine),
    (Group::Compilers, compilers::examine),
    (Group::KernelBuild, kernel_build::examine),
    (Group::Guest, guest::examine),
    (Group::HostRecorders, perf::examine),
    (Group::HostRecorders, tracefs::examine),
    (Group::Room, room::examine),
];

/// Runs them all. The order of the checks is that of the list, whoever is done first.
pub(crate) fn all(host: &dyn Host, options: &Options) -> Vec<Check> {
    std::thread::scope(|scope| {
        let running: Vec<_> =
            PROBES.iter().map(|(group, probe)| (*group, scope.spawn(move || probe(host, options)))).collect();
        running
            .into_iter()
            .flat_map(|(group, thread)| thread.join().unwrap_or_else(|_| broken(group)))
            .collect()
    })
}

/// A probe that panicked is a defect of ours; the others' answers still count.
fn broken(group: Group) -> Vec<Check> {
    let check = Check::of(group, "this check", "knowing what is here", &[]);
    vec![check.missing("the check itself failed", "report it, with what was printed above")]
}

/// Shorthand for tests: the one check of that name.
#[cfg(test)]
fn named(checks: Vec<Check>, name: &str) -> Check {
    checks.into_iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::{Report, Status};

    #[test]
    fn on_an_empty_machine_every_check_answers_and_says_what_to_do() {
        let checks = all(&TestHost::default(), &Options::default());
        assert!(checks.len() > 15, "{}", checks.len());
        for check in &checks {
            assert_ne!(check.status, Status::Ok, "{check:?}");
            assert!(check.fix.as_ref().is_some_and(|fix| !fix.is_empty()), "{check:?}");
        }
        let report = Report::new(checks);
        assert!(!report.is_ready());
        assert!(report.ready_for.is_empty());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> =
            all(&TestHost::default(), &Options::default()).into_iter().map(|check| check.name).collect();
        let before = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
