//! The report: all checks, and the abilities that follow from them.

use crate::{Ability, CheckStatus, HostCheck};
use serde::Serialize;

/// Name and version of the JSON form. New fields may be added to a version; existing ones do not
/// change.
pub const SCHEMA: &str = "kerntune-doctor/1";

/// An ability that is missing or limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbilityProblem {
    /// The ability.
    pub ability: Ability,
    /// The reason: the first check that failed, with its finding.
    pub because: String,
}

/// Result of [`crate::examine`].
#[derive(Debug, Clone, Serialize)]
pub struct DoctorReport {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Set if every ability that `kerntune tune` needs is available, even if limited.
    pub ready: bool,
    /// Abilities that are fully available.
    pub ready_for: Vec<Ability>,
    /// Abilities that are restricted or not proved.
    pub limited: Vec<AbilityProblem>,
    /// Abilities that are missing.
    pub not_available: Vec<AbilityProblem>,
    /// All checks, sorted by group.
    pub checks: Vec<HostCheck>,
}

impl DoctorReport {
    /// Derives the abilities from the checks.
    pub(crate) fn new(mut checks: Vec<HostCheck>) -> Self {
        checks.sort_by_key(|check| check.group);
        let mut ready_for = Vec::new();
        let mut limited = Vec::new();
        let mut not_available = Vec::new();
        for ability in Ability::ALL {
            let of_it: Vec<&HostCheck> = checks.iter().filter(|c| c.abilities.contains(&ability)).collect();
            let first = |status| of_it.iter().find(|check| check.status == status);
            let absent = |check| AbilityProblem { ability, because: reason(ability, check) };
            if let Some(check) = first(CheckStatus::Missing) {
                not_available.push(absent(check));
            } else if let Some(check) = first(CheckStatus::Limited) {
                limited.push(absent(check));
            } else if !of_it.is_empty() {
                ready_for.push(ability);
            }
        }
        let ready = !not_available.iter().any(|absent| absent.ability.is_required());
        Self { schema: SCHEMA, ready, ready_for, limited, not_available, checks }
    }

    /// Returns true if every ability that `kerntune tune` needs is available; decides the exit
    /// status of the command.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Formats the report as indented JSON with a final newline.
    ///
    /// # Errors
    /// None in practice: every value here has a JSON form.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// Formats a reason such as "qemu is missing", without repeating the name of the ability.
fn reason(ability: Ability, broken: &HostCheck) -> String {
    match (broken.name == ability.name(), broken.found.is_empty()) {
        (_, true) => format!("{} is missing", broken.name),
        (true, false) => broken.found.clone(),
        (false, false) => format!("{}: {}", broken.name, broken.found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckGroup;

    fn check(name: &'static str, ability: Ability) -> HostCheck {
        HostCheck::of(CheckGroup::Machines, name, "tests", &[ability])
    }

    #[test]
    fn one_missing_check_takes_its_ability_and_no_other() {
        let report = DoctorReport::new(vec![
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
        let report =
            DoctorReport::new(vec![check("qemu", Ability::Emulator).missing("", "apt-get install qemu")]);
        assert!(!report.is_ready());
        assert_eq!(report.not_available[0].because, "qemu is missing");
        let limited =
            DoctorReport::new(vec![check("qemu", Ability::Emulator).limited("unproved", "prove it")]);
        assert!(limited.is_ready());
    }

    #[test]
    fn the_json_form_is_the_documented_one() {
        let report =
            DoctorReport::new(vec![check("kvm", Ability::Kvm).missing("no /dev/kvm", "modprobe kvm")]);
        let value: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(value["schema"], "kerntune-doctor/1");
        assert_eq!(value["checks"][0]["group"], "machines");
        assert_eq!(value["checks"][0]["status"], "missing");
        assert_eq!(value["checks"][0]["fix"], "modprobe kvm");
        assert_eq!(value["not_available"][0]["ability"], "kvm");
    }
}
