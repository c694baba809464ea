//! Checks of GCC with its profile tool, of LLVM, and of BOLT.

use crate::host::ProbeHost;
use crate::version::Version;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};

/// Suffixes of parallel LLVM installations; the plain name is last, because it can be any version.
const LLVM_SUFFIXES: [&str; 5] = ["-19", "-20", "-21", "-22", ""];

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    vec![gcc(host), gcov_dump(host), llvm(host), bolt(host)]
}

/// Returns the first version in the output of `program ARGUMENT`.
fn version(host: &dyn ProbeHost, program: &str, argument: &str) -> Option<Version> {
    let ran = host.ask(&[program, argument]).ok().filter(|ran| ran.is_success())?;
    Version::first_in(&ran.output)
}

fn gcc(host: &dyn ProbeHost) -> HostCheck {
    let needed_for = "kernels, the recipe gcc-pgo, the guest's programs";
    let check = HostCheck::of(CheckGroup::Compilers, "gcc", needed_for, &[Ability::GccPgo]);
    let install = "apt-get install gcc libc6-dev";
    let Some(path) = host.find("gcc") else { return check.missing("not found", install) };
    match version(host, "gcc", "-dumpfullversion") {
        Some(version) if version.is_at_least(12, 0) => check.ok(format!("{version} ({})", path.display())),
        Some(version) => {
            check.missing(format!("{version} ({}), 12 or later is needed", path.display()), install)
        }
        None => check.missing(format!("{} does not run", path.display()), install),
    }
}

fn gcov_dump(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Compilers, "gcov-dump", "looking into .gcda files by hand", &[]);
    match version(host, "gcov-dump", "--version") {
        Some(version) => check.ok(version.to_string()),
        None => check.missing("not found", "apt-get install gcc"),
    }
}

fn llvm(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::Compilers,
        "LLVM",
        "kernels built by clang, the recipe clang-autofdo",
        &[Ability::Llvm],
    );
    let install = "apt-get install clang-19 lld-19 llvm-19";
    let mut best: Option<(Version, String, Vec<String>)> = None;
    for suffix in LLVM_SUFFIXES {
        let clang = format!("clang{suffix}");
        if host.find(&clang).is_none() {
            continue;
        }
        let Some(version) = version(host, &clang, "--version") else { continue };
        let tools =
            ["ld.lld", "llvm-profgen", "llvm-profdata", "llvm-nm"].map(|tool| format!("{tool}{suffix}"));
        let absent: Vec<_> = tools.into_iter().filter(|tool| host.find(tool).is_none()).collect();
        if version.is_at_least(19, 0) && absent.is_empty() {
            return check.ok(format!("{version} ({clang}, ld.lld{suffix}, llvm-profgen{suffix})"));
        }
        if best.as_ref().is_none_or(|(other, _, _)| version > *other) {
            best = Some((version, clang, absent));
        }
    }
    match best {
        None => check.missing("clang not found", install),
        Some((version, clang, _)) if !version.is_at_least(19, 0) => {
            check.missing(format!("{version} ({clang}), 19 or later is needed"), install)
        }
        Some((version, clang, absent)) => {
            check.missing(format!("{version} ({clang}) without {}", absent.join(", ")), install)
        }
    }
}

/// Only version 19 counts: the parts of a kernel that BOLT must not touch depend on its version.
fn bolt(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Compilers, "BOLT", "the recipe bolt", &[]);
    match version(host, "llvm-bolt-19", "--version") {
        Some(version) => check.ok(format!("{version} (llvm-bolt-19)")),
        None => check.missing("not found", "apt-get install bolt-19"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    const CLANG_19: &str = "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu\n";

    #[test]
    fn gcc_by_its_version() {
        let with = |version: &str| {
            gcc(&TestHost::default().program("gcc").answer("gcc -dumpfullversion", 0, version))
        };
        assert_eq!(with("12.2.0\n").status, CheckStatus::Ok);
        assert_eq!(with("10.2.1\n").status, CheckStatus::Missing);
        assert_eq!(with("").status, CheckStatus::Missing);
    }

    #[test]
    fn llvm_is_ready_only_when_complete() {
        let clang = || TestHost::default().program("clang-19").answer("clang-19 --version", 0, CLANG_19);
        let check = llvm(&clang().program("ld.lld-19"));
        assert_eq!(check.status, CheckStatus::Missing);
        assert_eq!(check.found, "19.1.7 (clang-19) without llvm-profgen-19, llvm-profdata-19, llvm-nm-19");
        let whole = clang()
            .program("ld.lld-19")
            .program("llvm-profgen-19")
            .program("llvm-profdata-19")
            .program("llvm-nm-19");
        assert_eq!(llvm(&whole).status, CheckStatus::Ok);
    }

    #[test]
    fn bolt_by_its_version() {
        let found = TestHost::default().program("llvm-bolt-19").answer(
            "llvm-bolt-19 --version",
            0,
            "Debian LLVM version 19.1.7\n  Optimized build.\nBOLT revision <unknown>\n",
        );
        assert_eq!(bolt(&found).found, "19.1.7 (llvm-bolt-19)");
        assert_eq!(bolt(&TestHost::default()).status, CheckStatus::Missing);
    }

    #[test]
    fn an_old_clang_is_named() {
        let old = TestHost::default().program("clang").answer(
            "clang --version",
            0,
            "Debian clang version 14.0.6\n",
        );
        assert_eq!(llvm(&old).found, "14.0.6 (clang), 19 or later is needed");
    }
}
