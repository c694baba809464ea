//! Checks of the other tools for building and packaging kernels.

use crate::host::ProbeHost;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use std::path::Path;

/// Programs that every kernel build needs, with their Debian packages.
const TOOLS: [(&str, &str); 9] = [
    ("make", "make"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("cpio", "cpio"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Programs that some configurations need.
const MORE_TOOLS: [(&str, &str); 3] = [("zstd", "zstd"), ("depmod", "kmod"), ("rsync", "rsync")];

/// Programs that `kerntune package` needs.
const PACKERS: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("tar", "tar"), ("zstd", "zstd")];

/// Series of the default source, `debian:6.12`.
const DEFAULT_SERIES: &str = "6.12";

pub(crate) fn examine(host: &dyn ProbeHost, _options: &ExamineOptions) -> Vec<HostCheck> {
    vec![
        source(host),
        tools(host, "build tools", "building kernels", &[Ability::GccPgo], &TOOLS),
        tools(host, "more build tools", "kernels with modules or compressed by zstd", &[], &MORE_TOOLS),
        tools(host, "packers", "kerntune package", &[], &PACKERS),
        headers(host, "libelf headers", "the kernel's objtool", &[Ability::GccPgo], "gelf.h", "libelf-dev"),
        headers(host, "OpenSSL headers", "kernels with signing keys", &[], "openssl/evp.h", "libssl-dev"),
    ]
}

fn tools(
    host: &dyn ProbeHost,
    name: &'static str,
    needed_for: &'static str,
    abilities: &[Ability],
    wanted: &[(&str, &str)],
) -> HostCheck {
    let check = HostCheck::of(CheckGroup::KernelBuild, name, needed_for, abilities);
    // Debian does not put depmod's directory into a user's PATH.
    let there = |program: &str| {
        host.find(program).is_some() || host.is_readable(&Path::new("/usr/sbin").join(program))
    };
    let missing: Vec<_> = wanted.iter().filter(|(program, _)| !there(program)).collect();
    if missing.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|(program, _)| *program).collect();
        return check.ok(names.join(" "));
    }
    let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    check.missing(
        format!("without {}", programs.join(", ")),
        format!("apt-get install {}", packages.join(" ")),
    )
}

fn headers(
    host: &dyn ProbeHost,
    name: &'static str,
    needed_for: &'static str,
    abilities: &[Ability],
    header: &str,
    package: &str,
) -> HostCheck {
    let check = HostCheck::of(CheckGroup::KernelBuild, name, needed_for, abilities);
    let fix = format!("apt-get install {package}");
    let argv = ["gcc", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null"];
    match host.ask(&argv) {
        Ok(ran) if ran.is_success() => check.ok(format!("<{header}> compiles")),
        Ok(_) => check.missing(format!("<{header}> does not compile"), fix),
        Err(error) => check.missing(error.to_string(), fix),
    }
}

fn source(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(
        CheckGroup::KernelBuild,
        "kernel source",
        "building kernels from debian:VERSION",
        &[Ability::GccPgo],
    );
    let fix =
        format!("apt-get install linux-source-{DEFAULT_SERIES} (on Debian 12 from security or backports)");
    let series = |path: &Path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_prefix("linux-source-")?.strip_suffix(".tar.xz")?.to_string())
    };
    let directory = Path::new("/usr/src");
    let all: Vec<String> = host
        .list(directory)
        .iter()
        .filter(|path| host.is_readable(path))
        .filter_map(|path| series(path))
        .collect();
    if all.is_empty() {
        return check.missing("no /usr/src/linux-source-*.tar.xz", fix);
    }
    if all.iter().any(|series| series == DEFAULT_SERIES) {
        check.ok(format!("/usr/src/linux-source-{}.tar.xz", all.join(", ")))
    } else {
        check.limited(format!("only {}; the default is {DEFAULT_SERIES}", all.join(", ")), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::named;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    #[test]
    fn all_missing_tools_are_mended_by_one_command() {
        let host = TOOLS[..6].iter().fold(TestHost::default(), |host, (program, _)| host.program(program));
        let check = named(examine(&host, &ExamineOptions::default()), "build tools");
        assert_eq!(check.found, "without cpio, tar, xz");
        assert_eq!(check.fix.as_deref(), Some("apt-get install cpio tar xz-utils"));
    }

    #[test]
    fn headers_are_proved_by_the_compiler() {
        let host = TestHost::default().answer("-include gelf.h", 0, "").answer(
            "-include openssl/evp.h",
            1,
            "fatal error: openssl/evp.h: No such file or directory\n",
        );
        let checks = examine(&host, &ExamineOptions::default());
        assert_eq!(named(checks.clone(), "libelf headers").status, CheckStatus::Ok);
        assert_eq!(named(checks, "OpenSSL headers").fix.as_deref(), Some("apt-get install libssl-dev"));
    }

    #[test]
    fn sources_by_series() {
        let with = |name: &str| source(&TestHost::default().file(&format!("/usr/src/{name}"), ""));
        assert_eq!(with("linux-source-6.12.tar.xz").status, CheckStatus::Ok);
        assert_eq!(with("linux-source-6.1.tar.xz").status, CheckStatus::Limited);
        assert_eq!(with("linux-source-6.12.deb").status, CheckStatus::Missing);
    }

    #[test]
    fn administrators_programs_count_outside_the_path() {
        let host = TestHost::default().program("zstd").program("rsync").file("/usr/sbin/depmod", "");
        assert_eq!(
            named(examine(&host, &ExamineOptions::default()), "more build tools").status,
            CheckStatus::Ok
        );
    }
}
