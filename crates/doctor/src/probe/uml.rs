//! Check of User-Mode Linux, by starting a kernel.

use crate::host::{ProbeHost, ProgramEnd};
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::time::Duration;

const UML: &str = "user-mode linux";
/// Time limit; a start takes half a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(10);
/// The kernel's first message. Before it, the kernel has tested everything that it needs of the
/// host.
const UP: &str = "Linux version ";

pub(crate) fn examine(host: &dyn ProbeHost, options: &ExamineOptions) -> Vec<HostCheck> {
    let check = HostCheck::of(CheckGroup::Machines, UML, "the machine uml: timed runs", &[Ability::Uml]);
    let Some(kernel) = &options.uml else {
        let fix = "`kerntune kernel build --arch um`, so that a kernel can be started";
        return vec![check.limited("no User-Mode Linux kernel was at hand to start", fix)];
    };
    let path = std::path::absolute(kernel).unwrap_or_else(|_| kernel.clone()).display().to_string();
    let argv = [&path, "mem=64M", "con=null", "con0=null,fd:1", "ssl=null", "console=tty0", "uml_dir=/tmp/"];
    vec![match host.run(&argv, LIMIT, &mut |line| !line.contains(UP)) {
        Ok(ran) => match ran.output.lines().find_map(|line| line.split_once(UP)) {
            Some((_, rest)) => {
                let version = rest.split(' ').next().unwrap_or_default();
                check.ok(format!("started Linux {version} ({path})"))
            }
            None if ran.ending == ProgramEnd::TimedOut => check.limited(
                format!("{path} printed nothing within {} s", LIMIT.as_secs()),
                "try again when the machine is less busy",
            ),
            None => check.missing(
                format!("{path}: {}", ran.last_line().unwrap_or("it ended without output")),
                "it needs ptrace, and a /dev/shm (or TMPDIR) whose files may be executed: a container may \
                 need permission for both",
            ),
        },
        Err(error) => check.missing(error.to_string(), "`kerntune kernel build --arch um` makes another"),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    fn check(host: TestHost) -> HostCheck {
        let options = ExamineOptions { uml: Some("/k/vmlinux".into()), ..ExamineOptions::default() };
        examine(&host, &options).remove(0)
    }

    #[test]
    fn a_kernel_that_speaks_runs() {
        let said =
            "Checking syscall emulation for ptrace...OK\nLinux version 6.12.117-kt (kerntune@kerntune)\n";
        let check = check(TestHost::default().answer("/k/vmlinux", 0, said));
        assert_eq!(
            (check.status, check.found.as_str()),
            (CheckStatus::Ok, "started Linux 6.12.117-kt (/k/vmlinux)")
        );
    }

    #[test]
    fn the_last_words_of_one_that_does_not_are_passed_on() {
        let said = "Checking that ptrace can change system call numbers...ptrace: Operation not permitted\n";
        let refused = check(TestHost::default().answer("/k/vmlinux", 1, said));
        assert_eq!(refused.status, CheckStatus::Missing);
        assert!(refused.found.contains("Operation not permitted"), "{}", refused.found);
        assert_eq!(check(TestHost::default().hang("/k/vmlinux", "")).status, CheckStatus::Limited);
        let none = examine(&TestHost::default(), &ExamineOptions::default()).remove(0);
        assert!(none.fix.unwrap().contains("--arch um"));
    }
}
