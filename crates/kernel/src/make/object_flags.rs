//! Compiler flags of single objects, passed to Kbuild without a patch.

use crate::make::compiler::FUNCTION_SECTIONS;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Differences in the compilation of an object, or of all objects below a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFlags {
    /// Object such as `kernel/fork.o`, or directory with all below it, such as `net/ipv4/`.
    pub path: String,
    /// Flags added after `KCFLAGS`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Flags of `KCFLAGS` that are left out. If `add` is empty, the objects get no flag from any
    /// other entry either: they are compiled as if no entry named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// Reason, for people. Not part of a kernel's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ObjectFlags {
    /// Adds one flag to an object or directory.
    pub fn add(path: impl Into<String>, flag: impl Into<String>) -> Self {
        Self { path: path.into(), add: vec![flag.into()], leave_out: Vec::new(), reason: None }
    }

    /// Checks whether the entry applies to `object` (`net/ipv4/tcp.o`).
    pub fn applies_to(&self, object: &str) -> bool {
        match self.path.ends_with('/') {
            true => object.starts_with(&self.path),
            false => object == self.path,
        }
    }

    /// Returns the pattern for make's `filter`.
    fn pattern(&self) -> String {
        match self.path.strip_suffix('/') {
            Some(directory) => format!("{directory}/%"),
            None => self.path.clone(),
        }
    }

    /// Rejects paths that are no objects, and characters that make or the shell would act on.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |value: &str, reason| {
            Err(Error::UnusableFlag {
                what: "the object's flag",
                value: format!("{}={value}", self.path),
                reason,
            })
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !self.path.chars().all(plain) || self.path.starts_with(['/', '.']) {
            return bad("", "name the object as Kbuild does, from the top of the source tree");
        }
        if !self.path.ends_with(".o") && !self.path.ends_with('/') {
            return bad("", "name an object (kernel/fork.o) or, with a slash at the end, a directory");
        }
        for flag in self.add.iter().chain(&self.leave_out) {
            let foreign = |c: char| c.is_whitespace() || "'\"$#`;&|<>\\()".contains(c);
            if flag.is_empty() || flag.chars().any(foreign) {
                return bad(flag, "it is empty or has a character that make or the shell would act on");
            }
        }
        Ok(())
    }
}

/// Objects with flags that no other object gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectGroup {
    /// Objects, such as `kernel/fork.o`.
    pub objects: Vec<String>,
    /// Flags added after `KCFLAGS`.
    pub flags: Vec<String>,
}

impl ObjectGroup {
    /// Returns a group whose functions get sections of their own, so that a linker can move them.
    pub fn with_sections(objects: Vec<String>) -> Self {
        Self { objects, flags: vec![FUNCTION_SECTIONS.into()] }
    }

    /// Checks whether the objects' functions get sections of their own.
    pub fn has_sections(&self) -> bool {
        self.flags.iter().any(|flag| flag == FUNCTION_SECTIONS)
    }

    /// Rejects paths and flags as [`ObjectFlags::check`] does.
    pub(crate) fn check(&self) -> Result<()> {
        let of = |path: &String| ObjectFlags {
            path: path.clone(),
            add: self.flags.clone(),
            leave_out: Vec::new(),
            reason: None,
        };
        self.objects.iter().try_for_each(|path| of(path).check())
    }
}

/// Parses `net/ipv4/tcp.o=-O3`.
impl FromStr for ObjectFlags {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let reason = "write it as PATH=FLAG, such as net/ipv4/tcp.o=-O3";
        let bad = || Error::UnusableFlag { what: "the object's flag", value: given.into(), reason };
        let (path, flag) = given.split_once('=').ok_or_else(bad)?;
        let flags = Self::add(path, flag);
        flags.check()?;
        Ok(flags)
    }
}

/// Returns `KCFLAGS` of a kernel. Every object of a movable kernel gets sections for its functions,
/// unless a group says which ones do.
pub(crate) fn with_sections(kcflags: &[String], movable: bool, groups: &[ObjectGroup]) -> Vec<String> {
    let of_group = groups.iter().any(ObjectGroup::has_sections);
    let sections = (movable && !of_group).then(|| FUNCTION_SECTIONS.to_string());
    kcflags.iter().cloned().chain(sections).collect()
}

/// Object that is being compiled, at the point where Kbuild's recipes expand it.
const OBJECT: &str = "$(obj)/$(target-stem).o";

/// Variable with the flags that depend on the object. Where a Makefile froze `KBUILD_CFLAGS`, a
/// shell sees a reference to it as a command, which then does nothing.
const VARIABLE: &str = "true";

/// Targets that are made with compiler flags.
const COMPILED: &str = "%.o %.s %.i %.ll %.lst %.symtypes";

/// Returns make's arguments for the flags: `KCFLAGS`, and the variable that it refers to.
///
/// Kbuild adds `KCFLAGS` to `KBUILD_CFLAGS`, which it exports. Each make expands it for the
/// directory that it enters; the make that compiles expands it for the object. So `KCFLAGS` has a
/// reference that expands to itself where nothing is compiled, and to the flags where something is.
/// Upstream's own flags of single objects stay as they are, and make recompiles only the objects
/// whose flags change.
pub(crate) fn make_flags(flags: &[String], objects: &[ObjectFlags], groups: &[ObjectGroup]) -> Vec<String> {
    let without = |flag: &String| {
        let of = objects.iter().filter(|o| o.leave_out.contains(flag)).map(ObjectFlags::pattern);
        let mut of: Vec<String> = of.collect();
        of.sort();
        of.dedup();
        of
    };
    let fixed = flags.iter().take_while(|flag| without(flag).is_empty()).count();
    let (fixed, depending) = flags.split_at(fixed);
    let mut words: Vec<String> = Vec::new();
    // Adjacent flags that are left out for the same objects share a condition.
    for group in depending.chunk_by(|a, b| without(a) == without(b)) {
        let missing = group.first().map(without).unwrap_or_default();
        match missing.is_empty() {
            true => words.extend(group.iter().cloned()),
            false => {
                let group = group.join(" ");
                words.push(format!("$(if $(filter {},{OBJECT}),,{group})", missing.join(" ")));
            }
        }
    }
    let mut plain: Vec<String> =
        objects.iter().filter(|o| o.add.is_empty()).map(ObjectFlags::pattern).collect();
    plain.sort();
    plain.dedup();
    let of_groups = groups.iter().map(|group| (group.objects.join(" "), &group.flags));
    let of_objects = objects.iter().map(|object| (object.pattern(), &object.add));
    for (patterns, add) in of_groups.chain(of_objects).filter(|(_, add)| !add.is_empty()) {
        let meant = format!("$(filter {patterns},{OBJECT})");
        let meant = match plain.is_empty() {
            true => meant,
            false => format!("$(filter-out {},{meant})", plain.join(" ")),
        };
        // Flags may contain commas, so they are the last argument of `if`, where make does not
        // split.
        words.push(format!("$(if $(if {meant},,no),,{})", add.join(" ")));
    }
    let mut always = fixed.to_vec();
    let mut args = Vec::new();
    if !words.is_empty() {
        always.push(format!("$({VARIABLE})"));
        let words = words.join(" ");
        args.push(format!("{VARIABLE}=$(if $(filter-out {COMPILED},$(or $@,none)),$$({VARIABLE}),{words})"));
    }
    if !always.is_empty() {
        args.push(format!("KCFLAGS={}", always.join(" ")));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn rule(path: &str, add: &[&str], leave_out: &[&str]) -> ObjectFlags {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        ObjectFlags { path: path.into(), add: own(add), leave_out: own(leave_out), reason: None }
    }

    #[test]
    fn what_is_said_is_read() {
        let read: ObjectFlags = "net/ipv4/tcp.o=-falign-functions=64".parse().unwrap();
        assert_eq!(read, rule("net/ipv4/tcp.o", &["-falign-functions=64"], &[]));
        assert!("net/=-O3".parse::<ObjectFlags>().unwrap().applies_to("net/ipv4/tcp.o"));
        assert!(!read.applies_to("net/ipv4/tcp.o.o") && read.applies_to("net/ipv4/tcp.o"));
        for bad in
            ["net/ipv4/tcp.o", "tcp=-O3", "/a.o=-O3", "a,b.o=-O3", "a.o=", "a.o=-O2 -g", "a.o=$(x)", "a.o=("]
        {
            assert!(bad.parse::<ObjectFlags>().is_err(), "{bad}");
        }
    }

    #[test]
    fn without_objects_the_flags_stand_as_they_are() {
        let flags = ["-fprofile-use".to_string(), "-g".to_string()];
        assert_eq!(make_flags(&flags, &[], &[]), ["KCFLAGS=-fprofile-use -g"]);
        assert_eq!(make_flags(&[], &[], &[]), [""; 0]);
    }

    /// Real make evaluates the flags, passed down as in Kbuild: each level adds to them and enters
    /// directories.
    #[test]
    fn make_gives_each_object_its_flags() {
        let dir = tempfile::tempdir().unwrap();
        let top =
            "KBUILD_CFLAGS :=\nKBUILD_CFLAGS += -O2\nKBUILD_CFLAGS += $(KCFLAGS)\nexport KBUILD_CFLAGS\n\
                   all:\n\t@$(MAKE) -s -f Sub obj=.\n";
        let sub = "target-stem = $(basename $(patsubst $(obj)/%,%,$@))\nKBUILD_CFLAGS += $(subdir-ccflags-y)\n\
                   c_flags = $(KBUILD_CFLAGS) $(CFLAGS_KERNEL)\nfrozen := $(KBUILD_CFLAGS)\n\
                   dirs_. := net kernel\ndirs_net := net/ipv4\nobjects_net := core.o\n\
                   objects_net/ipv4 := tcp.o fork.o frozen.o\nobjects_kernel := tcp.o fork.o\n\
                   all: $(dirs_$(obj)) $(addprefix $(obj)/,$(objects_$(obj)))\n.PHONY: all net net/ipv4 kernel\n\
                   net net/ipv4 kernel:\n\t@$(MAKE) -s -f Sub obj=$@\n\
                   net/ipv4/frozen.o: KBUILD_CFLAGS = $(frozen)\n\
                   $(obj)/%.o:\n\t@echo $@: $(strip $(c_flags))\n";
        for (name, text) in [("Makefile", top), ("Sub", sub)] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let flags = ["-g", "-fprofile-use", "-Wx,y", "-last"].map(ToString::to_string);
        let objects = [
            rule("net/ipv4/tcp.o", &["-a,b", "-c"], &[]),
            rule("net/", &["-net"], &[]),
            rule("kernel/fork.o", &[], &["-fprofile-use", "-Wx,y"]),
            rule("kernel/", &["-k"], &[]),
        ];
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let group = ObjectGroup {
            objects: own(&["net/core.o", "kernel/tcp.o", "kernel/fork.o"]),
            flags: own(&["-hot", "-x,y"]),
        };
        let mut make = Command::new("make");
        for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            make.env_remove(inherited);
        }
        let out = make
            .current_dir(dir.path())
            .arg("-s")
            .args(make_flags(&flags, &objects, &[group]))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        let lines: Vec<String> =
            said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "net/ipv4/tcp.o: -O2 -g -fprofile-use -Wx,y -last -a,b -c -net",
                "net/ipv4/fork.o: -O2 -g -fprofile-use -Wx,y -last -net",
                "net/ipv4/frozen.o: -O2 -g",
                "net/core.o: -O2 -g -fprofile-use -Wx,y -last -hot -x,y -net",
                "kernel/tcp.o: -O2 -g -fprofile-use -Wx,y -last -hot -x,y -k",
                "kernel/fork.o: -O2 -g -last",
            ],
            "{out:?}"
        );
        assert!(out.stderr.is_empty(), "{out:?}");
    }
}
