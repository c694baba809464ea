//! Diagnosis of a failed build: the first error in its log, and a hint what to do.

/// First error with the lines around it, and a hint (empty, or a line with its newline).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub first: String,
    pub hint: String,
}

/// Checks whether a line states the cause of a failure, as opposed to make's report of it.
fn is_cause(line: &str) -> bool {
    // -Werror and file names such as error.o are no errors; compilers write "error: ".
    line.contains(" error: ")
        || line.starts_with("error: ")
        || line.contains(" fatal error: ")
        || line.contains(": undefined reference to ")
        || line.contains(": not found")
        || line.contains(": command not found")
        || line.contains("No space left on device")
        || line.contains("internal compiler error")
        || line.contains("Killed signal terminated program")
        || line.contains("No rule to make target")
        || line.contains("linker command failed")
        || line.starts_with("scripts/kconfig/") && line.contains(": error")
        || line.starts_with("***")
}

fn is_make_error(line: &str) -> bool {
    line.starts_with("make") && line.contains(": *** ")
}

/// Signs of a known problem, usually a missing tool or library, each with its remedy.
const HINTS: &[(&str, &str)] = &[
    ("flex: not found", "apt-get install flex"),
    ("bison: not found", "apt-get install bison"),
    ("bc: not found", "apt-get install bc"),
    ("pahole", "apt-get install pahole"),
    ("gelf.h", "apt-get install libelf-dev"),
    ("libelf.h", "apt-get install libelf-dev"),
    ("-lelf", "apt-get install libelf-dev"),
    ("openssl/", "apt-get install libssl-dev"),
    ("perl: not found", "apt-get install perl"),
    ("python3: not found", "apt-get install python3"),
    ("lz4", "apt-get install lz4"),
    ("No space left on device", "free some disk space: a build takes 0.5 GB, several with debug information"),
    (
        "Killed signal terminated program",
        "the compiler ran out of memory: build with fewer jobs or more memory",
    ),
    ("not clean, please run", "the source tree was built in place: run `make mrproper` in it"),
];

/// Remedy for a missing certificate that Kbuild needs for a target in `certs/`.
const CERTIFICATES: &str = "a certificate of whoever made this configuration is not in the source: set \
    CONFIG_SYSTEM_TRUSTED_KEYS=\"\", CONFIG_SYSTEM_REVOCATION_KEYS=\"\" or CONFIG_MODULE_SIG_KEY=\"certs/signing_key.pem\", \
    whichever names it";

/// Checks whether make lacks a certificate for a target in `certs/`.
fn lacks_certificate(line: &str) -> bool {
    let missing = line.split_once("No rule to make target '").and_then(|(_, rest)| rest.split_once('\''));
    missing.is_some_and(|(file, rest)| file.ends_with(".pem") && rest.contains("needed by 'certs/"))
}

/// Diagnoses the output of one attempt.
pub(crate) fn diagnose(log: &str) -> Diagnosis {
    let lines: Vec<&str> = log.lines().collect();
    let at = lines.iter().position(|l| is_cause(l)).or_else(|| lines.iter().position(|l| is_make_error(l)));
    let Some(at) = at else {
        let tail = lines.len().saturating_sub(5);
        let first = if lines.is_empty() { "no output at all".to_string() } else { lines[tail..].join("\n") };
        return Diagnosis { first, hint: String::new() };
    };
    let is_step = |l: &&str| l.starts_with("  ") && step(l).is_some();
    // Before: "In file included from", "In function". After: the source line and the marks under
    // it.
    let before =
        lines[..at].iter().rev().take(3).take_while(|l| l.contains("In f") || l.ends_with(':')).count();
    let after = lines[at + 1..].iter().take(5).take_while(|l| !is_make_error(l) && !is_step(l)).count();
    let block = lines[at - before..=at + after].join("\n");
    let hint = HINTS.iter().find(|(sign, _)| block.contains(sign)).map(|(_, hint)| *hint);
    let hint = hint.or_else(|| block.lines().any(lacks_certificate).then_some(CERTIFICATES));
    Diagnosis { first: block, hint: hint.map(|hint| format!("{hint}\n")).unwrap_or_default() }
}

/// Splits one of Kbuild's short lines: `  CC      kernel/fork.o` → (`CC`, `kernel/fork.o`).
pub(crate) fn step(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("  ")?;
    let mut words = rest.split_whitespace();
    let (tag, mut target) = (words.next()?, words.next()?);
    if target == "[M]" {
        target = words.next()?;
    }
    let tag_ok = rest.starts_with(tag)
        && tag.len() >= 2
        && tag.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (tag_ok && words.next().is_none()).then_some((tag, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kbuild_steps_are_recognized() {
        assert_eq!(step("  CC      kernel/fork.o"), Some(("CC", "kernel/fork.o")));
        assert_eq!(step("  CC [M]  fs/ext4/x.o"), Some(("CC", "fs/ext4/x.o")));
        assert_eq!(step("  HOSTCC  scripts/kallsyms"), Some(("HOSTCC", "scripts/kallsyms")));
        assert_eq!(step("  120 |   return x;"), None);
        assert_eq!(step("make[2]: Entering directory"), None);
        assert_eq!(step("    CC deeper.o"), None);
    }

    #[test]
    fn the_compilers_first_error_is_shown_with_its_lines() {
        let log = "  CC      kernel/a.o\n\
            In file included from /s/kernel/fork.c:12:\n\
            /s/kernel/fork.c: In function 'copy_process':\n\
            /s/kernel/fork.c:20:3: error: expected ';' before 'return'\n\
            \x20  20 |   return x\n\
            \x20     |   ^~~~~~\n\
            make[4]: *** [/s/scripts/Makefile.build:229: kernel/fork.o] Error 1\n\
            /s/kernel/later.c:1:1: error: later\n";
        let found = diagnose(log);
        assert!(found.first.starts_with("In file included from"), "{}", found.first);
        assert!(found.first.contains("fork.c:20:3: error") && found.first.contains("return x"));
        assert!(!found.first.contains("later") && !found.first.contains("***"));
    }

    #[test]
    fn missing_tools_and_full_disks_have_a_remedy() {
        let hint = |log: &str| diagnose(log).hint;
        assert_eq!(hint("/bin/sh: 1: flex: not found\nmake: *** [x] Error 127\n"), "apt-get install flex\n");
        assert_eq!(
            hint("  HOSTCC  elf.o\n/s/tools/objtool/elf.h:10:10: fatal error: gelf.h: No such file or directory\n"),
            "apt-get install libelf-dev\n"
        );
        assert!(
            hint("fatal error: error writing to /tmp/x.s: No space left on device\n").contains("disk space")
        );
        assert_eq!(
            hint("***\n*** The source tree is not clean, please run 'make mrproper'\n"),
            "the source tree was built in place: run `make mrproper` in it\n"
        );
    }

    #[test]
    fn every_certificate_that_is_not_there_has_a_remedy() {
        for file in ["debian/canonical-certs.pem", "debian/certs/debian-uefi-certs.pem", "/root/my.pem"] {
            let log = format!(
                "make[4]: *** No rule to make target '{file}', needed by 'certs/x509_certificate_list'.  Stop.\n"
            );
            assert!(diagnose(&log).hint.contains("CONFIG_SYSTEM_TRUSTED_KEYS"), "{file}");
        }
        let other = "make[4]: *** No rule to make target 'kernel/x.pem', needed by 'kernel/x.o'.  Stop.\n";
        assert_eq!(diagnose(other).hint, "");
    }

    #[test]
    fn make_alone_or_nothing_is_still_shown() {
        let log = "  CC x.o\nmake[1]: *** [Makefile:12: x] Error 2\n";
        assert!(diagnose(log).first.contains("*** [Makefile:12"));
        assert_eq!(diagnose("").first, "no output at all");
        assert_eq!(diagnose("one\ntwo\n").first, "one\ntwo");
    }

    proptest! {
        #[test]
        fn any_log_is_diagnosed(log in "(\\PC{0,20}|( error: |make: \\*\\*\\* |  CC  x.o)\n){0,12}") {
            let _ = diagnose(&log);
        }
    }
}
