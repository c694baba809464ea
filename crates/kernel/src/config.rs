//! Kconfig files: reading, merging by who asked, and checking what became of each line.

use crate::{Error, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Who asked for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `kernel/base.config`.
    Base,
    /// `kernel/required.config`.
    Required,
    /// A fragment of the user's, by its number: one configuration serves fragments of the same text at any path.
    User(usize),
    /// A line that a recipe or the command line added.
    Extra,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Base => f.write_str("kerntune's base.config"),
            Origin::Required => f.write_str("kerntune's required.config"),
            Origin::User(number) => f.write_str(&place(*number)),
            Origin::Extra => f.write_str("the recipe's options"),
        }
    }
}

/// What stands in a warning for the path of a fragment.
fn place(number: usize) -> String {
    format!("{{fragment {number}}}")
}

/// The warnings of a configuration with the paths of these fragments.
pub(crate) fn with_paths(warnings: Vec<String>, fragments: &[PathBuf]) -> Vec<String> {
    let with_paths = |warning: String| {
        let fragments = fragments.iter().enumerate();
        fragments.fold(warning, |text, (at, path)| text.replace(&place(at), &path.display().to_string()))
    };
    warnings.into_iter().map(with_paths).collect()
}

/// One line: the option without `CONFIG_`, and its value as written (`y`, `m`, `n`, `250`, `"-kt"`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub option: String,
    pub value: String,
}

/// `CONFIG_X=n` and `# CONFIG_X is not set` are one; Kconfig itself writes the latter.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value == "n" {
            write!(f, "# CONFIG_{} is not set", self.option)
        } else {
            write!(f, "CONFIG_{}={}", self.option, self.value)
        }
    }
}

const NO_SETTING: &str = "is neither `CONFIG_NAME=value` nor `# CONFIG_NAME is not set`";
const NO_END: &str = "has a text without an end: it needs a second quotation mark";
const AFTER_TEXT: &str = "has something behind its text: only a comment (` # …`) may follow it";
const NO_VALUE: &str = "has no value that Kconfig reads: y, m, n, a number, or a text in quotation marks";

/// Reads one line; None for blanks and comments, and what is wrong with any other.
fn parse_line(line: &str) -> Result<Option<Setting>, &'static str> {
    let line = line.trim();
    let name_ok = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if let Some(rest) = line.strip_prefix("# CONFIG_") {
        return Ok(rest
            .strip_suffix(" is not set")
            .filter(|n| name_ok(n))
            .map(|n| Setting { option: n.to_string(), value: "n".into() }));
    }
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    match line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('=')) {
        Some((name, given)) if name_ok(name) && !given.is_empty() => {
            Ok(Some(Setting { option: name.to_string(), value: value(given)? }))
        }
        _ => Err(NO_SETTING),
    }
}

/// A value as Kconfig writes it. Kconfig itself takes a comment behind it for a part of it, and drops `Y` without a word.
fn value(given: &str) -> Result<String, &'static str> {
    let is_end =
        |rest: &str| rest.trim().is_empty() || rest.starts_with([' ', '\t']) && rest.trim().starts_with('#');
    if let Some(text) = given.strip_prefix('"') {
        let mut escaped = false;
        let end = text.char_indices().find(|(_, c)| {
            let is_end = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            is_end
        });
        let Some((end, _)) = end else { return Err(NO_END) };
        let rest = &text[end + 1..];
        return if is_end(rest) { Ok(given[..end + 2].to_owned()) } else { Err(AFTER_TEXT) };
    }
    let plain = given.split([' ', '\t']).next().unwrap_or_default();
    if !is_end(&given[plain.len()..]) {
        return Err(NO_VALUE);
    }
    let digits = plain.trim_start_matches('-');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let hex = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X"));
    let is_hex = hex.is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match plain {
        "y" | "m" | "n" => Ok(plain.to_owned()),
        "Y" | "M" | "N" => Ok(plain.to_lowercase()),
        _ if is_number || is_hex => Ok(plain.to_owned()),
        _ => Err(NO_VALUE),
    }
}

/// Reads a fragment or a full `.config`.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match parse_line(line) {
            Ok(setting) => settings.extend(setting),
            Err(reason) => {
                return Err(Error::BadFragment {
                    origin: origin.to_string(),
                    line: at + 1,
                    text: line.trim().chars().take(80).collect(),
                    reason,
                })
            }
        }
    }
    Ok(settings)
}

/// One line that sets an option, as Kconfig writes it.
///
/// # Errors
/// What is wrong with it, to stand behind the line.
pub fn config_line(line: &str) -> std::result::Result<String, String> {
    match parse_line(line) {
        Ok(Some(setting)) if !line.contains(char::is_control) => Ok(setting.to_string()),
        Err(reason) => Err(reason.into()),
        _ => Err(NO_SETTING.into()),
    }
}

/// Reads a configuration or a fragment, packed or not, and keeps nothing of it.
///
/// # Errors
/// A file that cannot be read, and its first line that is none.
pub fn check_config(path: &Path) -> Result<()> {
    parse(&crate::packed::read_text(path)?, &path.display().to_string()).map(drop)
}

/// What is asked for, each option with the last who asked.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    by_option: BTreeMap<String, (String, Origin)>,
    pub warnings: Vec<String>,
}

impl Wanted {
    /// Lays `settings` over what is there.
    pub fn merge(&mut self, settings: Vec<Setting>, origin: &Origin) {
        for Setting { option, value } in settings {
            if let Some((old, who)) = self.by_option.get(&option) {
                if *origin == Origin::Required && matches!(who, Origin::User(_)) && *old != value {
                    self.warnings.push(format!(
                        "CONFIG_{option}={old} from {who} is overridden: kerntune needs CONFIG_{option}={value}"
                    ));
                }
            }
            self.by_option.insert(option, (value, origin.clone()));
        }
    }

    /// The text of a `.config`: `start` with every wanted option laid over it.
    pub fn over(&self, start: &[Setting]) -> String {
        let kept = start.iter().filter(|s| !self.by_option.contains_key(&s.option)).cloned();
        let wanted = self
            .by_option
            .iter()
            .map(|(option, (value, _))| Setting { option: option.clone(), value: value.clone() });
        kept.chain(wanted).map(|s| format!("{s}\n")).collect()
    }

    /// Compares what was asked with what `olddefconfig` made of it. Warnings are returned; a
    /// required or recipe line that did not take is an error.
    ///
    /// `known` is asked for the options that this kernel version has, only when needed.
    pub fn check(
        &self,
        result: &[Setting],
        known: impl FnOnce() -> Result<HashSet<String>>,
    ) -> Result<Vec<String>> {
        let got: BTreeMap<&str, &str> =
            result.iter().map(|s| (s.option.as_str(), s.value.as_str())).collect();
        let differing: Vec<_> = self
            .by_option
            .iter()
            .filter_map(|(option, (value, origin))| {
                let now = got.get(option.as_str()).copied().unwrap_or("n");
                (now != value).then_some((option, value, origin, now))
            })
            .collect();
        let mut warnings = self.warnings.clone();
        if differing.is_empty() {
            return Ok(warnings);
        }
        let known = known()?;
        let mut problems = Vec::new();
        for (option, value, origin, now) in differing {
            let is_known = known.contains(option);
            let said = if is_known {
                format!(
                    "CONFIG_{option}={value} from {origin} did not take (it is {now}): \
                     another option forbids or forces it; see its `depends on` in `make menuconfig`, key /"
                )
            } else {
                format!("CONFIG_{option}={value} from {origin}: this kernel version has no such option")
            };
            match origin {
                Origin::Extra => problems.push(said),
                Origin::Required if is_known => problems.push(said),
                Origin::Base if is_known => warnings.push(said),
                // Names of other kernel versions that our own files carry on purpose.
                Origin::Required | Origin::Base => {}
                Origin::User(_) => warnings.push(said),
            }
        }
        if problems.is_empty() {
            Ok(warnings)
        } else {
            Err(Error::ConfigRefused { problems })
        }
    }
}

/// Every option that the Kconfig files of a tree define.
pub(crate) fn known_options(source: &Path) -> Result<HashSet<String>> {
    let mut known = HashSet::new();
    let mut dirs = vec![source.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            match entry.file_type() {
                // Kconfig's own tests define FOO, BAR and the like.
                Ok(kind) if kind.is_dir() && !entry.path().ends_with("scripts/kconfig") => {
                    dirs.push(entry.path());
                }
                Ok(kind) if kind.is_file() && name.starts_with("Kconfig") => {
                    let text = fs::read(entry.path()).unwrap_or_default();
                    for line in String::from_utf8_lossy(&text).lines() {
                        let mut words = line.split_whitespace();
                        if matches!(words.next(), Some("config" | "menuconfig")) {
                            known.extend(words.next().map(str::to_string));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    Ok(known)
}

/// A distribution's `.config` names certificate files of the distribution's own build tree;
/// Kbuild then stops with "No rule to make target". Without module signing they are not needed.
pub(crate) fn drop_absent_certificates(settings: &mut [Setting], source: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for setting in settings {
        if !matches!(setting.option.as_str(), "SYSTEM_TRUSTED_KEYS" | "SYSTEM_REVOCATION_KEYS") {
            continue;
        }
        let file = setting.value.trim_matches('"').to_string();
        if !file.is_empty() && !source.join(&file).exists() {
            warnings.push(format!("CONFIG_{} emptied: {file} is not in the source", setting.option));
            setting.value = "\"\"".into();
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment;
    use proptest::prelude::*;

    fn set(line: &str) -> Setting {
        parse(line, "t").unwrap().remove(0)
    }

    fn no_lookup() -> Result<HashSet<String>> {
        panic!("nothing differs, so nothing is looked up")
    }

    #[test]
    fn our_own_fragments_are_well_formed_and_ask_once() {
        for text in [
            fragment::BASE,
            fragment::REQUIRED,
            fragment::DISK,
            fragment::PMEM,
            fragment::MITIGATIONS,
            fragment::FTRACE,
            fragment::GCOV,
        ] {
            let settings = parse(text, "ours").unwrap();
            let names: HashSet<_> = settings.iter().map(|s| &s.option).collect();
            assert_eq!(names.len(), settings.len());
            assert_eq!(fragment::lines(text).len(), settings.len());
        }
        let base = parse(fragment::BASE, "base").unwrap();
        for required in parse(fragment::REQUIRED, "required").unwrap() {
            assert!(base.contains(&required), "{required} is required but not in base.config");
        }
    }

    #[test]
    fn both_spellings_of_no_are_one() {
        assert_eq!(set("CONFIG_VT=n").to_string(), "# CONFIG_VT is not set");
        assert_eq!(set("# CONFIG_VT is not set"), set("CONFIG_VT=n"));
        assert_eq!(set("CONFIG_LOCALVERSION=\"-kt\"").value, "\"-kt\"");
        assert!(parse("# a comment about CONFIG_X\n\n", "t").unwrap().is_empty());
    }

    #[test]
    fn a_bad_line_is_named_with_its_number() {
        let error = parse("CONFIG_A=y\n\nGCOV_KERNEL=y\n", "my.config").unwrap_err();
        assert!(error.to_string().starts_with("my.config, line 3: `GCOV_KERNEL=y`"), "{error}");
        assert!(parse("CONFIG_A", "t").is_err());
        assert!(parse("CONFIG_A=", "t").is_err());
    }

    #[test]
    fn a_value_is_read_as_it_was_meant_or_refused_by_its_line() {
        for (line, value) in [
            ("CONFIG_HZ_100=y # faster", "y"),
            ("CONFIG_HZ_100=Y", "y"),
            ("CONFIG_HZ_100=N\t#no", "n"),
            ("CONFIG_HZ=0x1F # hex", "0x1F"),
            ("CONFIG_HZ=-3", "-3"),
            ("CONFIG_CMDLINE=\"a # b \\\" c\" # d", "\"a # b \\\" c\""),
            ("CONFIG_LOCALVERSION=\"\"", "\"\""),
        ] {
            assert_eq!(set(line).value, value, "{line}");
        }
        for (line, said) in [
            ("CONFIG_HZ_100=yes", "y, m, n"),
            ("CONFIG_HZ_100=y faster", "y, m, n"),
            ("CONFIG_HZ_100=y#", "y, m, n"),
            ("CONFIG_HZ=0x", "a number"),
            ("CONFIG_LOCALVERSION=-kt", "quotation marks"),
            ("CONFIG_LOCALVERSION=\"-kt", "second quotation mark"),
            ("CONFIG_LOCALVERSION=\"-kt\"x", "behind its text"),
        ] {
            let error = parse(&format!("CONFIG_A=y\n{line}\n"), "my.config").unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("my.config, line 2: `{line}`")) && error.contains(said),
                "{error}"
            );
        }
    }

    #[test]
    fn the_last_who_asks_wins_and_required_says_so() {
        let mut wanted = Wanted::default();
        wanted.merge(vec![set("CONFIG_HZ=100"), set("CONFIG_VT=n")], &Origin::Base);
        wanted.merge(vec![set("CONFIG_VT=y"), set("CONFIG_PVH=n")], &Origin::User(0));
        wanted.merge(vec![set("CONFIG_PVH=y")], &Origin::Required);
        let text = wanted.over(&[set("CONFIG_HZ=1000"), set("CONFIG_SMP=y")]);
        assert_eq!(text, "CONFIG_SMP=y\nCONFIG_HZ=100\nCONFIG_PVH=y\nCONFIG_VT=y\n");
        let result = parse(&text, "t").unwrap();
        let warnings = wanted.check(&result, no_lookup).unwrap();
        let warnings = with_paths(warnings, &["u.config".into()]);
        assert_eq!(warnings, ["CONFIG_PVH=n from u.config is overridden: kerntune needs CONFIG_PVH=y"]);
    }

    #[test]
    fn a_line_that_did_not_take_is_a_warning_or_an_error_by_who_asked() {
        let known = || Ok(HashSet::from(["GCOV_KERNEL".to_string(), "PVH".to_string()]));
        let asked = |line: &str, origin: Origin| {
            let mut wanted = Wanted::default();
            wanted.merge(vec![set(line)], &origin);
            wanted.check(&[], known)
        };
        let user = || Origin::User(0);
        assert!(asked("CONFIG_PVH=y", user()).unwrap()[0].contains("did not take (it is n)"));
        assert!(asked("CONFIG_NEW=y", user()).unwrap()[0].contains("no such option"));
        assert!(asked("CONFIG_NEW=n", user()).unwrap().is_empty());
        assert!(asked("CONFIG_RETPOLINE=y", Origin::Base).unwrap().is_empty());
        assert!(asked("CONFIG_RETPOLINE=y", Origin::Required).unwrap().is_empty());
        let error = asked("CONFIG_GCOV_KERNEL=y", Origin::Extra).unwrap_err().to_string();
        assert!(error.contains("CONFIG_GCOV_KERNEL=y") && error.contains("recipe"), "{error}");
        assert!(asked("CONFIG_PVH=y", Origin::Required).is_err());
        assert!(asked("CONFIG_NEW=y", Origin::Extra).is_err());
    }

    #[test]
    fn options_are_collected_from_kconfig_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("kernel/gcov")).unwrap();
        fs::write(dir.path().join("kernel/gcov/Kconfig"), "menu \"x\"\nconfig GCOV_KERNEL\n\tbool\n")
            .unwrap();
        fs::write(dir.path().join("Kconfig.debug"), "menuconfig FTRACE\n\tbool \"config NOT\"\n").unwrap();
        let known = known_options(dir.path()).unwrap();
        assert_eq!(known, HashSet::from(["GCOV_KERNEL".to_string(), "FTRACE".to_string()]));
    }

    #[test]
    fn a_distributions_certificates_do_not_stop_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = vec![
            set("CONFIG_SYSTEM_TRUSTED_KEYS=\"debian/certs/debian-uefi-certs.pem\""),
            set("CONFIG_DEFAULT_HOSTNAME=\"x\""),
        ];
        assert_eq!(drop_absent_certificates(&mut settings, dir.path()).len(), 1);
        assert_eq!(settings[0].value, "\"\"");
        assert_eq!(settings[1].value, "\"x\"");
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC*(\nCONFIG_[A-Z]{1,4}=[a-z\"]{0,3})*") {
            let _ = parse(&text, "t");
        }

        #[test]
        fn what_is_written_reads_back(option in "[A-Z][A-Z0-9_]{0,12}", value in "[ymn]|-?[0-9]{1,8}|0x[0-9a-f]{1,8}|\"[a-z0-9 #-]{0,8}\"") {
            let setting = Setting { option, value };
            prop_assert_eq!(set(&setting.to_string()), setting);
        }
    }
}
