//! All checks, and what follows from them.

use crate::{Ability, Check, Status};
use serde::Serialize;

/// The version of the JSON form. Fields are added under the same name, never changed.
pub const SCHEMA: &str = "kerntune-doctor/1";

/// An ability that this machine does not have, or not in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Which.
    pub ability: Ability,
    /// Why: the first check that failed, and what it found.
    pub because: String,
}

/// What [`crate::examine`] found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether all that the main job needs is here, be it limited.
    pub ready: bool,
    /// The abilities that are here.
    pub ready_for: Vec<Ability>,
    /// Those that are here with less than wanted, or unproved.
    pub limited: Vec<Absent>,
    /// Those that are not.
    pub not_available: Vec<Absent>,
    /// Everything that was looked at, by group.
    pub checks: Vec<Check>,
}

impl Report {
    /// Draws the conclusions.
    pub(crate) fn new(mut checks: Vec<Check>) -> Self {
        checks.sort_by_key(|check| check.group);
        let mut ready_for = Vec::new();
        let mut limited = Vec::new();
        let mut not_available = Vec::new();
        for ability in Ability::ALL {
            let of_it: Vec<&Check> = checks.iter().filter(|c| c.abilities.contains(&ability)).collect();
            let first = |status| of_it.iter().find(|check| check.status == status);
            let absent = |check| Absent { ability, because: reason(ability, check) };
            if let Some(check) = first(Status::Missing) {
                not_available.push(absent(check));
            } else if let Some(check) = first(Status::Limited) {
                limited.push(absent(check));
            } else if !of_it.is_empty() {
                ready_for.push(ability);
            }
        }
        let ready = !not_available.iter().any(|absent| absent.ability.is_required());
        Self { schema: SCHEMA, ready, ready_for, limited, not_available, checks }
    }

    /// Whether all that the main job needs is here: the command's exit status hangs on it.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// For programs, indented, with a final newline.
    ///
    /// # Errors
    /// None in practice: every value here has a JSON form.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// "qemu is missing", without saying the ability's own name twice.
fn reason(ability: Ability, broken: &Check) -> String {
    match (broken.name == ability.name(), broken.found.is_empty()) {
        (_, true) => format!("{} is missing", broken.name),
        (true, false) => broken.found.clone(),
        (false, false) => format!("{}: {}", broken.name, broken.found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Group;

    fn check(name: &'static str, ability: Ability) -> Check {
        Check::of(Group::Machines, name, "tests", &[ability])
    }

    #[test]
    fn one_missing_check_takes_its_ability_and_no_other() {
        let report = Report::new(vec![
            check("qemu", Ability::Emulator).ok("10.0.2"),
            check("gcc", Ability::GccPgo).ok("12.2.0"),
            check("kvm", Ability::Kvm).missing("printed nothing within 8 s", "use the emulator"),
        ]);
        assert!(report.is_ready());
        assert_eq!(report.ready_for, [Ability::Emulator, Ability::GccPgo]);
        assert_eq!(report.not_available[0].because, "printed nothing within 8 s");
    }

    #[test]
    fn without_the_emulator_nothing_is_ready() {
        let report = Report::new(vec![check("qemu", Ability::Emulator).missing("", "apt-get install qemu")]);
        assert!(!report.is_ready());
        assert_eq!(report.not_available[0].because, "qemu is missing");
        let limited = Report::new(vec![check("qemu", Ability::Emulator).limited("unproved", "prove it")]);
        assert!(limited.is_ready());
    }

    #[test]
    fn the_json_form_is_the_documented_one() {
        let report = Report::new(vec![check("kvm", Ability::Kvm).missing("no /dev/kvm", "modprobe kvm")]);
        let value: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(value["schema"], "kerntune-doctor/1");
        assert_eq!(value["checks"][0]["group"], "machines");
        assert_eq!(value["checks"][0]["status"], "missing");
        assert_eq!(value["checks"][0]["fix"], "modprobe kvm");
        assert_eq!(value["not_available"][0]["ability"], "kvm");
    }
}
