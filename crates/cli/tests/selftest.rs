//! `kerntune kernel selftest`: functional checks in the guest.

use crate::support;
use std::collections::BTreeSet;

#[test]
fn the_base_kernel_does_what_a_kernel_has_to_do() {
    let kernel = support::base_kernel();
    let checked = support::json(["kernel", "selftest", &kernel, "--json"]);
    let checks = checked["checks"].as_array().unwrap();
    let groups: BTreeSet<&str> = checks.iter().map(|check| check["group"].as_str().unwrap()).collect();
    for group in ["processes", "signals", "memory", "files", "sockets", "futex", "io_uring", "cgroups"] {
        assert!(groups.contains(group), "{groups:?}");
    }
    // A check that needs an option which the default configuration lacks would test nothing.
    let ok = checks.iter().filter(|check| check["result"] == "ok").count();
    assert!(checks.len() >= 75 && checks.len() - ok <= 1, "{checked}");

    // An unknown kernel is a usage error, not a finding.
    support::fails(&mut support::kerntune(["kernel", "selftest", "no-such-kernel"]), 2, &["no-such-kernel"]);
}
