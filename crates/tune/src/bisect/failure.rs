//! Ways in which a kernel fails.

use super::search::Symptom;
use crate::runs::selftest::{differences, CheckDifference, SelfTestCheck};
use crate::Error;
use kerntune_machine::Error as Machine;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Phase in messages of a guest whose init has not reported yet.
const BOOT: &str = "kernel boot";

/// Failure of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KernelFailure {
    /// Its objects cannot be linked together.
    DoesNotLink {
        /// First error of the linker.
        how: String,
    },
    /// It does not reach its init.
    DoesNotBoot {
        /// End of the boot: a panic, a hang, or a fault.
        how: String,
    },
    /// It reaches its init and ends before all checks have run.
    Dies {
        /// End of the guest, as a phrase.
        how: String,
    },
    /// Some checks have other results than on the base kernel.
    Differs {
        /// Checks with other results.
        checks: Vec<DifferingCheck>,
    },
}

/// A check with another result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingCheck {
    /// Name of the check.
    pub check: String,
    /// Result on this kernel, as a phrase.
    pub answer: String,
    /// Result on the base kernel.
    pub right: String,
}

impl KernelFailure {
    /// Compares results of checks with the right ones; `None` if they are equal.
    pub fn of_answers(right: &[SelfTestCheck], answers: &[SelfTestCheck]) -> Option<Self> {
        let said = |check: Option<&SelfTestCheck>| match check {
            Some(SelfTestCheck { result, why: Some(why), .. }) => {
                format!("{}: {why}", format!("{result:?}").to_lowercase())
            }
            Some(check) => format!("{:?}", check.result).to_lowercase(),
            None => "not reached".into(),
        };
        let differing = |d: CheckDifference| DifferingCheck {
            check: d.check.to_string(),
            answer: said(d.kernel),
            right: said(d.base),
        };
        let checks: Vec<DifferingCheck> = differences(right, answers).into_iter().map(differing).collect();
        (!checks.is_empty()).then_some(KernelFailure::Differs { checks })
    }

    /// Converts the error of a run to a failure of its kernel.
    ///
    /// # Errors
    /// The error itself if it is not the kernel's fault: files, missing programs, an interrupt.
    pub fn of_run(error: Error) -> Result<Self, Error> {
        let at = |phase: &str, how: String| match phase == BOOT {
            true => KernelFailure::DoesNotBoot { how },
            false => KernelFailure::Dies { how },
        };
        Ok(match error {
            Error::Machine(Machine::Panic { phase, what, .. }) => at(&phase, format!("panic: {what}")),
            Error::Machine(Machine::OutOfMemory { phase, what, .. }) => {
                at(&phase, format!("out of memory: {what}"))
            }
            Error::Machine(Machine::TimeLimit { phase, .. }) => at(&phase, "hangs".into()),
            Error::Machine(Machine::NoBoot { .. }) => at(BOOT, "hangs".into()),
            Error::Machine(Machine::Silent { phase, .. }) => at(&phase, "ends silently".into()),
            Error::Machine(Machine::Uml { status, phase, .. }) => at(&phase, status),
            Error::Machine(Machine::Guest { reason, .. }) => KernelFailure::Dies { how: reason },
            Error::Machine(Machine::Results { message, .. }) => KernelFailure::Dies { how: message },
            // The guest executed code outside of memory; any other error is QEMU's own.
            Error::Machine(Machine::Qemu { message, .. }) if message.contains("qemu: fatal:") => {
                KernelFailure::DoesNotBoot { how: message }
            }
            Error::SelfTest { message, .. } => {
                KernelFailure::Dies { how: format!("no results of checks: {message}") }
            }
            other => return Err(other),
        })
    }
}

impl Symptom for KernelFailure {
    /// Compares failures by kind: a kernel that does not boot may hang in one mix and panic in the
    /// next. A kernel with one of several faults fails some of the checks that all faults together
    /// fail.
    fn is_like(&self, whole: &Self) -> bool {
        match (self, whole) {
            (KernelFailure::DoesNotLink { .. }, KernelFailure::DoesNotLink { .. }) => true,
            (KernelFailure::DoesNotBoot { .. }, KernelFailure::DoesNotBoot { .. }) => true,
            (KernelFailure::Dies { .. }, KernelFailure::Dies { .. }) => true,
            (KernelFailure::Differs { checks }, KernelFailure::Differs { checks: whole }) => {
                checks.iter().all(|one| whole.iter().any(|other| other.check == one.check))
            }
            _ => false,
        }
    }
}

/// Phrase after "kernel K".
impl fmt::Display for KernelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelFailure::DoesNotLink { how } => write!(f, "does not link ({how})"),
            KernelFailure::DoesNotBoot { how } => write!(f, "does not boot ({how})"),
            KernelFailure::Dies { how } => write!(f, "boots and dies ({how})"),
            KernelFailure::Differs { checks } => {
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
    use crate::runs::selftest::CheckOutcome;

    fn check(name: &str, result: CheckOutcome) -> SelfTestCheck {
        SelfTestCheck { name: name.into(), group: "files".into(), result, why: None }
    }

    #[test]
    fn failures_are_told_apart() {
        let panic = |phase: &str, what: &str| {
            let (phase, what) = (phase.to_string(), what.to_string());
            KernelFailure::of_run(Error::Machine(Machine::Panic { phase, what, tail: Default::default() }))
                .unwrap()
        };
        let boot = panic(BOOT, "Attempted to kill init!");
        let hang = Machine::NoBoot { seconds: 20, tail: Default::default() };
        let hang = KernelFailure::of_run(Error::Machine(hang)).unwrap();
        assert!(hang.is_like(&boot) && !panic("measured step 1", "Oops").is_like(&boot));
        assert_eq!(boot.to_string(), "does not boot (panic: Attempted to kill init!)");
        let host = Machine::Qemu { status: "exit status: 1".into(), message: "no such device".into() };
        assert!(KernelFailure::of_run(Error::Machine(host)).is_err(), "not the kernel's fault");
        assert!(KernelFailure::of_run(Error::Work(kerntune_work::Error::Interrupted)).is_err());
    }

    #[test]
    fn a_part_of_what_differs_is_the_same_failure_and_something_else_is_not() {
        let right = ["a", "b", "c"].map(|name| check(name, CheckOutcome::Ok));
        let failing = |names: &[&str]| {
            let result =
                |name: &str| if names.contains(&name) { CheckOutcome::Failed } else { CheckOutcome::Ok };
            KernelFailure::of_answers(&right, &["a", "b", "c"].map(|name| check(name, result(name))))
        };
        assert_eq!(failing(&[]), None);
        let (both, one, other) =
            (failing(&["a", "b"]).unwrap(), failing(&["b"]).unwrap(), failing(&["c"]).unwrap());
        assert!(one.is_like(&both) && !both.is_like(&one) && !other.is_like(&both));
        assert_eq!(both.to_string(), "fails the check a (failed, right is ok) and 1 more");
        let json = serde_json::to_string(&both).unwrap();
        assert!(json.starts_with("{\"kind\":\"differs\",\"checks\":[{\"check\":\"a\""), "{json}");
        assert_eq!(serde_json::from_str::<KernelFailure>(&json).unwrap(), both);
    }
}
