//! Kconfig files: parsing, merging by origin, and checking what became of each requested option.

use crate::{Error, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Origin of a requested option. A required option overrides a user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionOrigin {
    /// `embedded/kernel/base.config`.
    Base,
    /// `embedded/kernel/required.config`.
    Required,
    /// User's fragment, by index. Fragments with the same text give the same configuration,
    /// whatever their paths.
    User(usize),
    /// Line added by a recipe or on the command line.
    Extra,
}

impl fmt::Display for OptionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionOrigin::Base => f.write_str("kerntune's base.config"),
            OptionOrigin::Required => f.write_str("kerntune's required.config"),
            OptionOrigin::User(number) => f.write_str(&place(*number)),
            OptionOrigin::Extra => f.write_str("the recipe's options"),
        }
    }
}

/// Returns the placeholder for a fragment's path in stored warnings.
fn place(number: usize) -> String {
    format!("{{fragment {number}}}")
}

/// Replaces the placeholders in warnings by the fragments' paths.
pub(crate) fn with_paths(warnings: Vec<String>, fragments: &[PathBuf]) -> Vec<String> {
    let with_paths = |warning: String| {
        let fragments = fragments.iter().enumerate();
        fragments.fold(warning, |text, (at, path)| text.replace(&place(at), &path.display().to_string()))
    };
    warnings.into_iter().map(with_paths).collect()
}

/// One line of a configuration: the option without `CONFIG_`, and its value as written (`y`, `m`,
/// `n`, `250`, `"-kt"`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigSetting {
    pub option: String,
    pub value: String,
}

/// Writes the value `n` as `# CONFIG_X is not set`, as Kconfig does.
impl fmt::Display for ConfigSetting {
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

/// Parses one line; `Ok(None)` for blank lines and comments, and the reason for an invalid line.
fn parse_line(line: &str) -> Result<Option<ConfigSetting>, &'static str> {
    let line = line.trim();
    let name_ok = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if let Some(rest) = line.strip_prefix("# CONFIG_") {
        return Ok(rest
            .strip_suffix(" is not set")
            .filter(|n| name_ok(n))
            .map(|n| ConfigSetting { option: n.to_string(), value: "n".into() }));
    }
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    match line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('=')) {
        Some((name, given)) if name_ok(name) && !given.is_empty() => {
            Ok(Some(ConfigSetting { option: name.to_string(), value: value(given)? }))
        }
        _ => Err(NO_SETTING),
    }
}

/// Parses a value as Kconfig writes it. Kconfig itself takes a trailing comment as part of the
/// value, and silently drops `Y`.
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

/// Parses a fragment or a full `.config`.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Vec<ConfigSetting>> {
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

/// Parses one line that sets an option, and returns it as Kconfig writes it.
///
/// # Errors
/// The reason, to be printed after the line.
pub fn config_line(line: &str) -> std::result::Result<String, String> {
    match parse_line(line) {
        Ok(Some(setting)) if !line.contains(char::is_control) => Ok(setting.to_string()),
        Err(reason) => Err(reason.into()),
        _ => Err(NO_SETTING.into()),
    }
}

/// Checks that a configuration or a fragment can be parsed. The file may be compressed.
///
/// # Errors
/// A file that cannot be read; the first invalid line.
pub fn check_config(path: &Path) -> Result<()> {
    parse(&crate::inputs::packed::read_text(path)?, &path.display().to_string()).map(drop)
}

/// Requested options, each with its last value and the origin of that value.
#[derive(Debug, Default)]
pub(crate) struct RequestedOptions {
    by_option: BTreeMap<String, (String, OptionOrigin)>,
    pub warnings: Vec<String>,
}

impl RequestedOptions {
    /// Merges `settings` over the options so far.
    pub fn merge(&mut self, settings: Vec<ConfigSetting>, origin: &OptionOrigin) {
        for ConfigSetting { option, value } in settings {
            if let Some((old, who)) = self.by_option.get(&option) {
                if *origin == OptionOrigin::Required && matches!(who, OptionOrigin::User(_)) && *old != value
                {
                    self.warnings.push(format!(
                        "CONFIG_{option}={old} from {who} is overridden: kerntune needs CONFIG_{option}={value}"
                    ));
                }
            }
            self.by_option.insert(option, (value, origin.clone()));
        }
    }

    /// Returns the text of a `.config`: `start`, overridden by every requested option.
    pub fn over(&self, start: &[ConfigSetting]) -> String {
        let kept = start.iter().filter(|s| !self.by_option.contains_key(&s.option)).cloned();
        let wanted = self
            .by_option
            .iter()
            .map(|(option, (value, _))| ConfigSetting { option: option.clone(), value: value.clone() });
        kept.chain(wanted).map(|s| format!("{s}\n")).collect()
    }

    /// Compares the request with the result of `olddefconfig`. Returns warnings; a required or
    /// recipe option that did not take is an error.
    ///
    /// `known` lists the options of this kernel version. It is called only if something differs.
    pub fn check(
        &self,
        result: &[ConfigSetting],
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
                OptionOrigin::Extra => problems.push(said),
                OptionOrigin::Required if is_known => problems.push(said),
                OptionOrigin::Base if is_known => warnings.push(said),
                // Our own files name options of other kernel versions on purpose.
                OptionOrigin::Required | OptionOrigin::Base => {}
                OptionOrigin::User(_) => warnings.push(said),
            }
        }
        if problems.is_empty() {
            Ok(warnings)
        } else {
            Err(Error::ConfigRefused { problems })
        }
    }
}

/// Returns every option that the Kconfig files of a tree define.
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

/// Clears options that name certificate files missing from the source. A distribution's `.config`
/// names files of its own build tree, and Kbuild then stops with "No rule to make target". Without
/// module signing they are not needed.
pub(crate) fn drop_absent_certificates(settings: &mut [ConfigSetting], source: &Path) -> Vec<String> {
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
    use crate::inputs::fragment;
    use proptest::prelude::*;

    fn set(line: &str) -> ConfigSetting {
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
            fragment::NUMA,
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
        let mut wanted = RequestedOptions::default();
        wanted.merge(vec![set("CONFIG_HZ=100"), set("CONFIG_VT=n")], &OptionOrigin::Base);
        wanted.merge(vec![set("CONFIG_VT=y"), set("CONFIG_PVH=n")], &OptionOrigin::User(0));
        wanted.merge(vec![set("CONFIG_PVH=y")], &OptionOrigin::Required);
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
        let asked = |line: &str, origin: OptionOrigin| {
            let mut wanted = RequestedOptions::default();
            wanted.merge(vec![set(line)], &origin);
            wanted.check(&[], known)
        };
        let user = || OptionOrigin::User(0);
        assert!(asked("CONFIG_PVH=y", user()).unwrap()[0].contains("did not take (it is n)"));
        assert!(asked("CONFIG_NEW=y", user()).unwrap()[0].contains("no such option"));
        assert!(asked("CONFIG_NEW=n", user()).unwrap().is_empty());
        assert!(asked("CONFIG_RETPOLINE=y", OptionOrigin::Base).unwrap().is_empty());
        assert!(asked("CONFIG_RETPOLINE=y", OptionOrigin::Required).unwrap().is_empty());
        let error = asked("CONFIG_GCOV_KERNEL=y", OptionOrigin::Extra).unwrap_err().to_string();
        assert!(error.contains("CONFIG_GCOV_KERNEL=y") && error.contains("recipe"), "{error}");
        assert!(asked("CONFIG_PVH=y", OptionOrigin::Required).is_err());
        assert!(asked("CONFIG_NEW=y", OptionOrigin::Extra).is_err());
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
            let setting = ConfigSetting { option, value };
            prop_assert_eq!(set(&setting.to_string()), setting);
        }
    }
}
