//! Checks of GCC with its profile tool, of LLVM, of BOLT, and of each installed compiler.

use crate::host::{ProbeHost, RecipeOutcome};
use crate::version::Version;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};

/// Oldest Clang and BOLT that recipes use; a newer one is as good.
const FIRST_LLVM: u64 = 19;

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    let mut checks = vec![gcc(host), gcov_dump(host), llvm(host), bolt(host)];
    checks.extend(each_compiler(host));
    checks
}

/// Returns the first version in the output of `program ARGUMENT`.
fn version(host: &dyn ProbeHost, program: &str, argument: &str) -> Option<Version> {
    let ran = host.ask(&[program, argument]).ok().filter(|ran| ran.is_success())?;
    Version::first_in(&ran.output)
}

/// Returns the installed versions of a program with their names, newest first.
fn versions(host: &dyn ProbeHost, program: &str) -> Vec<(Version, String)> {
    let names = host.versions(program).into_iter();
    let mut all: Vec<_> = names.filter_map(|name| Some((version(host, &name, "--version")?, name))).collect();
    all.sort();
    all.reverse();
    all
}

/// Returns a check for each installed compiler: the recipes that it can carry out, and what the
/// others lack. Plain `gcc` and `clang` are left out if they are one of the others.
fn each_compiler(host: &dyn ProbeHost) -> Vec<HostCheck> {
    let mut found: Vec<(Version, String)> = Vec::new();
    for family in ["gcc", "clang"] {
        let all = versions(host, family);
        let is_another = |of: &(Version, String)| {
            of.1 == family && all.iter().any(|other| other.1 != of.1 && other.0 == of.0)
        };
        found.extend(all.iter().filter(|of| !is_another(of)).cloned());
    }
    std::thread::scope(|scope| {
        let running: Vec<_> =
            found.iter().map(|(version, name)| scope.spawn(move || compiler(host, version, name))).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn compiler(host: &dyn ProbeHost, version: &Version, name: &str) -> HostCheck {
    let needed_for = "kernels built by it, and the recipes that use it";
    let check = HostCheck::of(CheckGroup::Compilers, format!("compiler {name}"), needed_for, &[]);
    let outcomes = host.recipes(name);
    let passed: Vec<&str> =
        outcomes.iter().filter(|one| one.problem.is_none()).map(|one| one.recipe).collect();
    let failed: Vec<&RecipeOutcome> = outcomes.iter().filter(|one| one.problem.is_some()).collect();
    let mut found = match passed.is_empty() {
        true => format!("{version}: no recipe"),
        false => format!("{version}: {}", passed.join(", ")),
    };
    let Some(first) = failed.first() else { return check.ok(found) };
    let problem = first.problem.clone().unwrap_or_default();
    let not: Vec<&str> = failed.iter().map(|one| one.recipe).collect();
    found.push_str(&format!("; not {}", not.join(", ")));
    check.limited(found, problem)
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
    let install = |suffix: &str| format!("apt-get install clang{suffix} lld{suffix} llvm{suffix}");
    let oldest = format!("-{FIRST_LLVM}");
    let mut best: Option<(Version, String, Vec<String>)> = None;
    for (version, clang) in versions(host, "clang") {
        let suffix = clang.trim_start_matches("clang");
        let tools =
            ["ld.lld", "llvm-profgen", "llvm-profdata", "llvm-nm"].map(|tool| format!("{tool}{suffix}"));
        let absent: Vec<_> = tools.into_iter().filter(|tool| host.find(tool).is_none()).collect();
        if version.is_at_least(FIRST_LLVM, 0) && absent.is_empty() {
            return check.ok(format!("{version} ({clang}, ld.lld{suffix}, llvm-profgen{suffix})"));
        }
        best = best.or(Some((version, clang, absent)));
    }
    match best {
        None => check.missing("clang not found", install(&oldest)),
        Some((version, clang, _)) if !version.is_at_least(FIRST_LLVM, 0) => {
            check.missing(format!("{version} ({clang}), {FIRST_LLVM} or later is needed"), install(&oldest))
        }
        Some((version, clang, absent)) => {
            let install = install(clang.trim_start_matches("clang"));
            check.missing(format!("{version} ({clang}) without {}", absent.join(", ")), install)
        }
    }
}

/// The parts of a kernel that BOLT must not touch depend on its version.
fn bolt(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Compilers, "BOLT", "the recipe bolt", &[]);
    let install = format!("apt-get install bolt-{FIRST_LLVM}");
    match versions(host, "llvm-bolt").into_iter().next() {
        Some((version, name)) if version.is_at_least(FIRST_LLVM, 0) => {
            check.ok(format!("{version} ({name})"))
        }
        Some((version, name)) => {
            check.missing(format!("{version} ({name}), {FIRST_LLVM} or later is needed"), install)
        }
        None => check.missing("not found", install),
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
    fn each_compiler_has_its_recipes() {
        let host = TestHost::default()
            .program("gcc")
            .program("gcc-12")
            .program("clang-19")
            .answer("gcc --version", 0, "gcc (Debian 12.2.0-14) 12.2.0\n")
            .answer("gcc-12 --version", 0, "gcc-12 (Debian 12.2.0-14) 12.2.0\n")
            .answer("clang-19 --version", 0, CLANG_19)
            .recipe("gcc-12", "gcc-pgo", None)
            .recipe("gcc-12", "layout", None)
            .recipe("clang-19", "layout", None)
            .recipe("clang-19", "clang-autofdo", Some("run `apt-get install llvm-19`"));
        let checks = each_compiler(&host);
        let shown: Vec<_> =
            checks.iter().map(|check| (check.name.as_ref(), check.status, check.found.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("compiler gcc-12", CheckStatus::Ok, "12.2.0: gcc-pgo, layout"),
                ("compiler clang-19", CheckStatus::Limited, "19.1.7: layout; not clang-autofdo"),
            ]
        );
        assert_eq!(checks[1].fix.as_deref(), Some("run `apt-get install llvm-19`"));
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
