//! How a kernel fails.

use super::search::Symptom;
use crate::selftest::{differences, Check, Difference};
use crate::Error;
use kerntune_machine::Error as Machine;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The phase in messages of a guest whose init said nothing yet.
const BOOT: &str = "kernel boot";

/// What a kernel does wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Failure {
    /// Its objects cannot be linked together.
    DoesNotLink {
        /// The linker's first error.
        how: String,
    },
    /// It does not come to its init.
    DoesNotBoot {
        /// How the boot ends: a panic, a hang, or a fault.
        how: String,
    },
    /// It comes to its init and ends before all checks are made.
    Dies {
        /// How the guest ends, in words.
        how: String,
    },
    /// It answers checks in another way than the base kernel does.
    Differs {
        /// The checks that it answers otherwise.
        checks: Vec<Differing>,
    },
}

/// A check with another answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// The check's name.
    pub check: String,
    /// In words.
    pub answer: String,
    /// The base kernel's.
    pub right: String,
}

impl Failure {
    /// What differs from the right answers, if anything does.
    pub fn of_answers(right: &[Check], answers: &[Check]) -> Option<Self> {
        let said = |check: Option<&Check>| match check {
            Some(Check { result, why: Some(why), .. }) => {
                format!("{}: {why}", format!("{result:?}").to_lowercase())
            }
            Some(check) => format!("{:?}", check.result).to_lowercase(),
            None => "not reached".into(),
        };
        let differing = |d: Difference| Differing {
            check: d.check.to_string(),
            answer: said(d.kernel),
            right: said(d.base),
        };
        let checks: Vec<Differing> = differences(right, answers).into_iter().map(differing).collect();
        (!checks.is_empty()).then_some(Failure::Differs { checks })
    }

    /// What a run that broke off says of its kernel.
    ///
    /// # Errors
    /// The error itself where it is not the kernel's: files, programs that are missing, an interrupt.
    pub fn of_run(error: Error) -> Result<Self, Error> {
        let at = |phase: &str, how: String| match phase == BOOT {
            true => Failure::DoesNotBoot { how },
            false => Failure::Dies { how },
        };
        Ok(match error {
            Error::Machine(Machine::Panic { phase, what, .. }) => at(&phase, format!("panic: {what}")),
            Error::Machine(Machine::OutOfMemory { phase, what, .. }) => {
                at(&phase, format!("out of memory: {what}"))
            }
            Error::Machine(Machine::TimeLimit { phase, .. }) => at(&phase, "hangs".into()),
            Error::Machine(Machine::NoBoot { .. }) => at(BOOT, "hangs".into()),
            Error::Machine(Machine::Silent { phase, .. }) => at(&phase, "ends without a word".into()),
            Error::Machine(Machine::Uml { status, phase, .. }) => at(&phase, status),
            Error::Machine(Machine::Guest { reason, .. }) => Failure::Dies { how: reason },
            Error::Machine(Machine::Results { message, .. }) => Failure::Dies { how: message },
            // The guest ran where there is no memory; anything else is QEMU's own trouble.
            Error::Machine(Machine::Qemu { message, .. }) if message.contains("qemu: fatal:") => {
                Failure::DoesNotBoot { how: message }
            }
            Error::SelfTest { message, .. } => {
                Failure::Dies { how: format!("no results of checks: {message}") }
            }
            other => return Err(other),
        })
    }
}

impl Symptom for Failure {
    /// A kernel that does not boot may hang in one mix and panic in the next; a kernel with one of several faults
    /// fails some of the checks that all of them fail.
    fn is_like(&self, whole: &Self) -> bool {
        match (self, whole) {
            (Failure::DoesNotLink { .. }, Failure::DoesNotLink { .. }) => true,
            (Failure::DoesNotBoot { .. }, Failure::DoesNotBoot { .. }) => true,
            (Failure::Dies { .. }, Failure::Dies { .. }) => true,
            (Failure::Differs { checks }, Failure::Differs { checks: whole }) => {
                checks.iter().all(|one| whole.iter().any(|other| other.check == one.check))
            }
            _ => false,
        }
    }
}

/// After "kernel K".
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::DoesNotLink { how } => write!(f, "does not link ({how})"),
            Failure::DoesNotBoot { how } => write!(f, "does not boot ({how})"),
            Failure::Dies { how } => write!(f, "boots and dies ({how})"),
            Failure::Differs { checks } => {
                let (first, more) = match checks.as_slice() {
                    [] => return f.write_str("differs"),
                    [first, more @ ..] => (first, more.len()),
                };
                write!(f, "fails the check {} ({}, right is {})", first.check, first.answer, first.right)?;
                match more {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::Outcome;

    fn check(name: &str, result: Outcome) -> Check {
        Check { name: name.into(), group: "files".into(), result, why: None }
    }

    #[test]
    fn failures_are_told_apart() {
        let panic = |phase: &str, what: &str| {
            let (phase, what) = (phase.to_string(), what.to_string());
            Failure::of_run(Error::Machine(Machine::Panic { phase, what, tail: Default::default() })).unwrap()
        };
        let boot = panic(BOOT, "Attempted to kill init!");
        let hang = Machine::NoBoot { seconds: 20, tail: Default::default() };
        let hang = Failure::of_run(Error::Machine(hang)).unwrap();
        assert!(hang.is_like(&boot) && !panic("measured step 1", "Oops").is_like(&boot));
        assert_eq!(boot.to_string(), "does not boot (panic: Attempted to kill init!)");
        let host = Machine::Qemu { status: "exit status: 1".into(), message: "no such device".into() };
        assert!(Failure::of_run(Error::Machine(host)).is_err(), "not the kernel's fault");
        assert!(Failure::of_run(Error::Work(kerntune_work::Error::Interrupted)).is_err());
    }

    #[test]
    fn a_part_of_what_differs_is_the_same_failure_and_something_else_is_not() {
        let right = ["a", "b", "c"].map(|name| check(name, Outcome::Ok));
        let failing = |names: &[&str]| {
            let result = |name: &str| if names.contains(&name) { Outcome::Failed } else { Outcome::Ok };
            Failure::of_answers(&right, &["a", "b", "c"].map(|name| check(name, result(name))))
        };
        assert_eq!(failing(&[]), None);
        let (both, one, other) =
            (failing(&["a", "b"]).unwrap(), failing(&["b"]).unwrap(), failing(&["c"]).unwrap());
        assert!(one.is_like(&both) && !both.is_like(&one) && !other.is_like(&both));
        assert_eq!(both.to_string(), "fails the check a (failed, right is ok) and 1 more");
        let json = serde_json::to_string(&both).unwrap();
        assert!(json.starts_with("{\"kind\":\"differs\",\"checks\":[{\"check\":\"a\""), "{json}");
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), both);
    }
}
