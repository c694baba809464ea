//! Objects that must not be instrumented, and the make variable that excludes them without a patch.

use crate::version::parse as parse_version;
use crate::{Error, Result};
use kerntune_kernel::{BuildRequest, ObjectFlags};
use serde::{Deserialize, Serialize};

/// Contents of `gcov-exclude.toml`, so that an installed kerntune needs no checkout.
const MAINTAINED: &str = include_str!("../../gcov-exclude.toml");

/// Flags that scripts/Makefile.lib adds for an instrumented object: upstream's flags with its
/// atomic updates, which all 64-bit architectures support. Without a seed GCC stamps each object
/// with the time of its compilation (toplev.cc, `init_local_tick`): two builds of the same kernel
/// would differ, and so would kernels tuned by their counters.
const GCOV_FLAGS: &str =
    "-fprofile-arcs -ftest-coverage -fno-tree-loop-im -fprofile-update=prefer-atomic -frandom-seed=$@";

/// Further flags for counters that nobody reads: objects describe them by static data, and the
/// function that would add them up is none.
const STATIC_FLAGS: &str = "-fprofile-info-section=.rodata -Wa,--defsym,__gcov_merge_add=0";

/// Further flags for value counters. `-B` selects the assembler that the patches add: it turns the
/// thread-local variable of indirect calls into a per-CPU one, and local-exec is the model with the
/// fewest forms of reference.
const VALUE_FLAGS: &str = "-fprofile-values -ftls-model=local-exec -B$(srctree)/scripts/gcov-values/";
/// Make variable with the path of a profile for Clang (Linux 6.13 and later).
const AUTOFDO: &str = "CLANG_AUTOFDO_PROFILE";

/// Object or directory that must not be instrumented.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Object `kernel/fork.o`, or directory `arch/x86/kvm/` with everything below it.
    pub path: String,
    /// First kernel version with this exclusion; `None` for all before `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// First kernel version without this exclusion; `None` for all since `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// True if only value counters are excluded, not arc counters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub values: bool,
    /// True if the object can be instrumented, and only the tuned kernel must be built without its
    /// counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tuned_only: bool,
    /// Failure without the exclusion.
    pub reason: String,
}

impl Exclusion {
    fn check(&self) -> Result<()> {
        let bad = |reason: String| Err(Error::Exclusion { path: self.path.clone(), reason });
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if let Some(character) = self.path.chars().find(|c| !plain(*c)) {
            return bad(format!("make would act on the {character:?} in it"));
        }
        if !self.path.ends_with(".o") && !self.path.ends_with('/') {
            return bad("name an object (kernel/fork.o) or, with a slash at the end, a directory".into());
        }
        if self.path.starts_with(['/', '.']) {
            return bad("name it as Kbuild does, from the top of the source tree".into());
        }
        for version in [&self.from, &self.until].into_iter().flatten() {
            if parse_version(version).is_none() {
                return bad(format!("`{version}` is not a kernel version such as 6.12"));
            }
        }
        Ok(())
    }

    fn applies_to(&self, version: [u32; 3]) -> bool {
        let bound = |text: &Option<String>| text.as_deref().and_then(parse_version);
        bound(&self.from).is_none_or(|from| from <= version)
            && bound(&self.until).is_none_or(|until| version < until)
    }

    /// Checks whether the entry is about `object` (`net/ipv4/tcp.o`).
    fn covers(&self, object: &str) -> bool {
        match self.path.ends_with('/') {
            true => object.starts_with(&self.path),
            false => object == self.path,
        }
    }

    /// Returns the pattern of make's `filter` for the entry.
    fn pattern(&self) -> String {
        match self.path.strip_suffix('/') {
            Some(directory) => format!("{directory}/%"),
            None => self.path.clone(),
        }
    }
}

/// Exclusions of recipes: from a gcov build, and from the tuned kernel.
///
/// ```
/// use kerntune_optimize::gcc_pgo::Exclusions;
/// let mut exclusions = Exclusions::maintained()?;
/// exclusions.add("drivers/net/veth.o", "does not boot")?;
/// assert!(exclusions.for_version("6.12.117").any(|e| e.path == "kernel/gcov/"));
/// # Ok::<(), kerntune_optimize::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    entries: Vec<Exclusion>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExclusionFile {
    #[serde(default)]
    exclude: Vec<Exclusion>,
}

impl Exclusions {
    /// An empty list.
    pub const NONE: Self = Self { entries: Vec::new() };

    /// Returns the list that is maintained with kerntune.
    pub fn maintained() -> Result<Self> {
        Self::parse(MAINTAINED)
    }

    /// Parses a list in the format of `gcov-exclude.toml`.
    pub fn parse(text: &str) -> Result<Self> {
        let file: ExclusionFile = toml::from_str(text)?;
        file.exclude.iter().try_for_each(Exclusion::check)?;
        Ok(Self { entries: file.exclude })
    }

    /// Adds the user's object or directory, for every kernel version.
    pub fn add(&mut self, path: &str, reason: &str) -> Result<()> {
        let reason = reason.into();
        self.push(Exclusion {
            path: path.into(),
            from: None,
            until: None,
            values: false,
            tuned_only: false,
            reason,
        })
    }

    /// Adds an entry, unless it exists.
    pub fn push(&mut self, entry: Exclusion) -> Result<()> {
        entry.check()?;
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
        Ok(())
    }

    /// Returns all entries, in order.
    pub fn entries(&self) -> &[Exclusion] {
        &self.entries
    }

    /// Returns these entries and those of another list.
    pub fn and(&self, other: &Exclusions) -> Self {
        Self { entries: self.entries.iter().chain(&other.entries).cloned().collect() }
    }

    /// Returns the list in the format of [`Exclusions::parse`].
    pub fn text(&self) -> String {
        toml::to_string(&ExclusionFile { exclude: self.entries.clone() }).unwrap_or_default()
    }

    /// Excludes objects from the profile of a tuned kernel, to be built by `request`: they are
    /// compiled as in the base kernel, which `base` builds, of this version.
    pub fn leave_out(&self, request: &mut BuildRequest, base: &BuildRequest, version: &str) {
        let flags: Vec<String> =
            request.kcflags.iter().filter(|flag| !base.kcflags.contains(flag)).cloned().collect();
        for entry in self.for_version(version) {
            let plain = ObjectFlags {
                path: entry.path.clone(),
                add: Vec::new(),
                leave_out: flags.clone(),
                reason: Some(entry.reason.clone()),
            };
            request.object_flags.retain(|flags| flags.add.is_empty() || !plain.applies_to(&flags.path));
            for group in request.object_groups.iter_mut().filter(|group| !group.has_sections()) {
                group.objects.retain(|object| !plain.applies_to(object));
            }
            if !flags.is_empty() || request.object_flags.iter().any(|flags| flags.applies_to(&plain.path)) {
                request.object_flags.push(plain);
            }
        }
        // Kbuild's own AutoFDO adds its flags after KCFLAGS; only these flags come later.
        let patterns: Vec<String> = self.for_version(version).map(Exclusion::pattern).collect();
        if !patterns.is_empty() && request.make_vars.iter().any(|(name, _)| name == AUTOFDO) {
            let asked = format!("$(filter {},$(obj)/$(target-stem).o)", patterns.join(" "));
            request
                .make_vars
                .push(("CFLAGS_KERNEL".into(), format!("$(if {asked},-fno-profile-sample-use)")));
        }
    }

    /// Returns the entries for a kernel of this version; all entries if the version cannot be
    /// parsed.
    pub fn for_version(&self, version: &str) -> impl Iterator<Item = &Exclusion> {
        let version = parse_version(version);
        self.entries.iter().filter(move |e| version.is_none_or(|v| e.applies_to(v)))
    }

    /// Returns the variable for make's command line that applies the entries.
    ///
    /// `scripts/Makefile.lib` asks `GCOV_PROFILE_<object>.o`, then `GCOV_PROFILE`, and then adds
    /// `$(CFLAGS_GCOV)`. The first knows no directories, and an object's name may occur in many;
    /// the second, given on the command line, would override upstream's own exclusions. Therefore
    /// `CFLAGS_GCOV` itself tests, when it is expanded, which object is being made. Upstream's
    /// exclusions stay in force, and nothing is patched.
    ///
    /// With `values` the variable also asks for value counters, and excludes what cannot have them.
    pub(super) fn make_var(&self, version: &str, values: bool) -> (String, String) {
        let flags = if values { format!("{VALUE_FLAGS} {GCOV_FLAGS}") } else { GCOV_FLAGS.to_string() };
        let value = match &self.patterns(version, values)[..] {
            [] => flags,
            patterns => format!("$(if $(filter {},{OBJECT}),,{flags})", patterns.join(" ")),
        };
        ("CFLAGS_GCOV".into(), value)
    }

    /// Returns the variable for make's command line that instruments the objects `only` of a kernel
    /// without gcov, but for the entries and upstream's own exclusions.
    pub(super) fn static_make_var(&self, version: &str, only: &[String]) -> (String, String) {
        let bars = |entry: &Exclusion| !entry.tuned_only && !entry.values;
        let is_barred =
            |object: &&str| self.for_version(version).any(|entry| bars(entry) && entry.covers(object));
        let objects: Vec<&str> =
            only.iter().map(String::as_str).filter(|object| !is_barred(object)).collect();
        // As in scripts/Makefile.lib. Flags may contain commas, so they are the last argument of `if`.
        let upstream = "$(filter n%,$(GCOV_PROFILE_$(target-stem).o)$(GCOV_PROFILE)y)";
        let value = format!(
            "$(if $(filter {},{OBJECT}),$(if {upstream},,{GCOV_FLAGS} {STATIC_FLAGS}))",
            objects.join(" ")
        );
        ("CFLAGS_KERNEL".into(), value)
    }

    /// Returns the patterns of make's `filter` for objects that must not be instrumented.
    fn patterns(&self, version: &str, values: bool) -> Vec<String> {
        let here = self.for_version(version).filter(|entry| !entry.tuned_only && (values || !entry.values));
        let mut patterns: Vec<String> = here.map(Exclusion::pattern).collect();
        patterns.sort();
        patterns.dedup();
        patterns
    }
}

/// Object that is being compiled, at the point where Kbuild's recipes expand it.
const OBJECT: &str = "$(obj)/$(target-stem).o";

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_kernel::ObjectGroup;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn our_list_reads_and_every_entry_has_a_reason() {
        let list = Exclusions::maintained().unwrap();
        assert!(list.entries.iter().all(|e| e.reason.len() > 10));
        assert!(list.for_version("6.12.117").count() >= 3);
    }

    #[test]
    fn entries_apply_within_their_versions() {
        let list = Exclusions::parse(
            "[[exclude]]\npath = \"a/b.o\"\nfrom = \"6.2\"\nuntil = \"6.12\"\nreason = \"r\"\n",
        )
        .unwrap();
        let applies = |v: &str| list.for_version(v).count() == 1;
        assert!(applies("6.2.0") && applies("6.11.9") && applies("6.2.0-rc1"));
        assert!(!applies("6.1.192") && !applies("6.12.0") && !applies("7.0.0-rc3"));
        assert!(applies("unreadable"));
    }

    #[test]
    fn what_make_would_act_on_is_refused() {
        let mut list = Exclusions::default();
        list.add("drivers/net/veth.o", "r").unwrap();
        for bad in ["a b.o", "a,b.o", "$(x)/", "a%.o", "a/b", "/a/b.o", "./a.o", ""] {
            let error = list.add(bad, "r").unwrap_err().to_string();
            assert!(error.contains(&format!("`{bad}`")), "{error}");
        }
        assert!(Exclusions::parse("[[exclude]]\npath = \"a/\"\nreason = \"r\"\nfrom = \"six\"").is_err());
        assert!(Exclusions::parse("[[exclude]]\npath = \"a/\"\nreson = \"r\"").is_err());
    }

    #[test]
    fn what_bears_only_arcs_is_left_out_where_values_are_counted() {
        let list = Exclusions::maintained().unwrap();
        let head = "arch/x86/kernel/head64.o";
        let (_, arcs) = list.make_var("6.12.117", false);
        let (_, values) = list.make_var("6.12.117", true);
        assert!(!arcs.contains(head) && !arcs.contains("-fprofile-values"), "{arcs}");
        assert!(
            values.contains(head) && values.contains(&format!(",,{VALUE_FLAGS} {GCOV_FLAGS})")),
            "{values}"
        );
    }

    #[test]
    fn a_list_is_read_back() {
        let mut list =
            Exclusions::parse("[[exclude]]\npath = \"a/\"\nfrom = \"6.2\"\nreason = \"r\"\n").unwrap();
        let (path, reason) = ("b/c.o".to_string(), "does not boot (panic: \"x\")".to_string());
        let entry = Exclusion { path, from: None, until: None, values: false, tuned_only: true, reason };
        list.push(entry.clone()).unwrap();
        list.push(entry).unwrap();
        assert_eq!((list.entries().len(), Exclusions::parse(&list.text()).unwrap()), (2, list.clone()));
        assert!(!list.make_var("6.12", true).1.contains("b/c.o"), "it bears counters");
    }

    #[test]
    fn what_is_left_out_is_compiled_as_in_the_base_kernel() {
        let mut base = BuildRequest::new("debian:6.12".parse().unwrap(), "base");
        base.kcflags = vec!["-g".into()];
        let mut tuned = base.clone();
        tuned.kcflags.push("-fprofile-use".into());
        tuned.object_flags = ["fs/namei.o=-mabi=ms", "net/=-O3"].map(|flag| flag.parse().unwrap()).to_vec();
        let mut list = Exclusions::default();
        list.add("fs/namei.o", "does not boot").unwrap();
        let group = |objects: &[&str], flag: &str| ObjectGroup {
            objects: objects.iter().map(ToString::to_string).collect(),
            flags: vec![flag.into()],
        };
        let sections = ObjectGroup::with_sections(vec!["fs/namei.o".into()]);
        tuned.object_groups = vec![group(&["fs/namei.o", "fs/open.o"], "-fx"), sections.clone()];
        list.leave_out(&mut tuned, &base, "6.12.117");
        assert_eq!(tuned.object_groups, [group(&["fs/open.o"], "-fx"), sections]);
        let paths: Vec<&str> = tuned.object_flags.iter().map(|flags| flags.path.as_str()).collect();
        assert_eq!(paths, ["net/", "fs/namei.o"]);
        assert_eq!(tuned.object_flags[1].leave_out, ["-fprofile-use"]);
        // A recipe that compiles nothing anew: without the object's own flags it is the base
        // kernel's.
        let mut ordered =
            BuildRequest { object_flags: vec!["fs/namei.o=-mabi=ms".parse().unwrap()], ..base.clone() };
        list.leave_out(&mut ordered, &base, "6.12.117");
        assert_eq!(ordered, base);
        // Kbuild's own AutoFDO.
        let mut sampled = BuildRequest { make_vars: vec![(AUTOFDO.into(), "x.afdo".into())], ..base.clone() };
        list.leave_out(&mut sampled, &base, "6.18");
        let (name, value) = sampled.make_vars.last().unwrap();
        assert_eq!(name, "CFLAGS_KERNEL");
        assert_eq!(value, "$(if $(filter fs/namei.o,$(obj)/$(target-stem).o),-fno-profile-sample-use)");
    }

    /// Make itself expands the variable, through two levels like Kbuild's.
    #[test]
    fn make_leaves_out_what_is_excluded_and_only_that() {
        let dir = tempfile::tempdir().unwrap();
        let top =
            "CFLAGS_GCOV := upstream\nCFLAGS_KERNEL :=\nexport CFLAGS_GCOV CFLAGS_KERNEL\nall:\n\t@$(MAKE) -s -f Sub obj=arch/x86/kvm\n\
                   \t@$(MAKE) -s -f Sub obj=kernel\n";
        let sub = "target-stem = $(basename $(patsubst $(obj)/%,%,$@))\n\
                   GCOV_PROFILE_sched.o := n\n\
                   all: $(obj)/mmu/a.o $(obj)/fork.o $(obj)/gcov/fs.o $(obj)/spork.o $(obj)/sched.o\n\
                   $(obj)/%.o:\n\t@echo '$@:$(CFLAGS_GCOV)$(CFLAGS_KERNEL)'\n";
        std::fs::write(dir.path().join("Makefile"), top).unwrap();
        std::fs::write(dir.path().join("Sub"), sub).unwrap();
        let mut list = Exclusions::maintained().unwrap();
        list.add("kernel/fork.o", "for the test").unwrap();
        let instrumented = |var| instrumented_by_make(dir.path(), var);
        let all = ["kernel/mmu/a.o", "kernel/spork.o", "kernel/sched.o"];
        assert_eq!(instrumented(list.make_var("6.12.117", false)), all);
        // Upstream's own exclusions, which Kbuild applies to its own variable.
        let only = ["kernel/mmu/a.o", "kernel/fork.o", "kernel/sched.o"].map(String::from);
        assert_eq!(instrumented(list.static_make_var("6.12.117", &only)), ["kernel/mmu/a.o"]);
    }

    /// Returns the objects that get flags for counters by a variable of make.
    fn instrumented_by_make(dir: &Path, (name, value): (String, String)) -> Vec<String> {
        let mut make = Command::new("make");
        for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            make.env_remove(inherited);
        }
        let out = make.current_dir(dir).args(["-s", &format!("{name}={value}")]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(said.lines().count(), 10, "{said}");
        let objects = said.lines().filter_map(|line| line.split_once(':'));
        let instrumented =
            objects.filter(|(object, flags)| flags.contains(&GCOV_FLAGS.replace("$@", object)));
        instrumented.map(|(object, _)| object.to_owned()).collect()
    }
}
