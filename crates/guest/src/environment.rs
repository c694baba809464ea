//! Environment of a command in the guest: of the caller's, only what is known to be harmless.

use crate::host::GUEST_PATH;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Variables of the caller's environment that a command has in the guest, too. All others may hold
/// secrets, or differ from shell to shell.
const ENVIRONMENT: [&str; 37] = [
    "CARGO_HOME",
    "CC",
    "CFLAGS",
    "CLASSPATH",
    "CXX",
    "CXXFLAGS",
    "EDITOR",
    "GEM_HOME",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PERL5LIB",
    "PKG_CONFIG_PATH",
    "PWD",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUBYLIB",
    "RUSTUP_HOME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
];

/// Chooses from the caller's environment what a command has in the guest, too, and adds the guest's
/// own programs to the end of `PATH`. Values that are not UTF-8 are left out.
pub fn command_environment(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    directory: &Path,
) -> BTreeMap<String, String> {
    let chosen: BTreeMap<String, String> = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("LC_") || ENVIRONMENT.binary_search(&name.as_str()).is_ok())
        .collect();
    with_own(chosen, directory)
}

/// Adds the guest's own programs to the end of `PATH`, and the directory.
pub(crate) fn with_own(mut chosen: BTreeMap<String, String>, directory: &Path) -> BTreeMap<String, String> {
    let path = chosen.get("PATH").cloned().unwrap_or_else(|| GUEST_PATH.join(":"));
    chosen.insert("PATH".into(), format!("{path}:/kt/bin"));
    // A shell trusts PWD only if it is the directory.
    if let Some(directory) = directory.to_str() {
        chosen.insert("PWD".into(), directory.into());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_be_harmless_is_passed_on() {
        assert!(ENVIRONMENT.is_sorted());
        let pairs =
            [("LC_ALL", "C"), ("GITHUB_TOKEN", "x"), ("HOME", "/home/a"), ("PATH", "/bin"), ("PWD", "/old")];
        let all = pairs.map(|(name, value)| (name.into(), value.into()));
        let chosen = command_environment(all, Path::new("/new"));
        let chosen: Vec<(&str, &str)> = chosen.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(chosen, [("HOME", "/home/a"), ("LC_ALL", "C"), ("PATH", "/bin:/kt/bin"), ("PWD", "/new")]);
    }
}
