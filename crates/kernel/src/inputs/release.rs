//! Release of a kernel (`uname -r`), which becomes part of file names, of its modules' directory
//! and of its package's name.

use crate::{Error, Result};

/// Maximum length of a release (`__NEW_UTS_LEN`).
const MAX_RELEASE_LENGTH: usize = 64;

/// Checks that a source's version, with the configuration's suffix, can be a file name. Kbuild
/// notices this late, or never.
pub(crate) fn check(version: &str, config: &str) -> Result<()> {
    let local = config.lines().find_map(|line| line.strip_prefix("CONFIG_LOCALVERSION="));
    let local = local.map_or("", |value| value.trim_matches('"'));
    for (what, text) in [("the Makefile's EXTRAVERSION", version), ("CONFIG_LOCALVERSION", local)] {
        let is_odd = |c: &char| !c.is_ascii_alphanumeric() && !"-+._~@,:=^%#".contains(*c);
        if let Some(odd) = text.chars().find(is_odd) {
            let reason = format!("{what} has {odd:?} in it, which no name of a kernel's files can have");
            return Err(Error::UnusableRelease { release: format!("{version}{local}"), reason });
        }
    }
    if version.starts_with('.') {
        let reason = "it begins with a dot, as no directory of a kernel's modules does".into();
        return Err(Error::UnusableRelease { release: format!("{version}{local}"), reason });
    }
    match version.len() + local.len() {
        0..=MAX_RELEASE_LENGTH => Ok(()),
        length => {
            let reason = format!("it has {length} characters, and a kernel takes {MAX_RELEASE_LENGTH}");
            Err(Error::UnusableRelease { release: format!("{version}{local}"), reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_no_file_can_have_is_refused_before_the_build() {
        for (version, local) in [("6.12.117", ""), ("6.12.117-Vendor_x1", "-kt"), ("6.12.0-rc3+", "-a~b@c")] {
            check(version, &format!("CONFIG_X=y\nCONFIG_LOCALVERSION=\"{local}\"\n")).unwrap();
        }
        let long = "x".repeat(60);
        for (version, local, said) in [
            ("6.12.117-a b", "", "EXTRAVERSION has ' '"),
            ("6.12.117-it's", "", "EXTRAVERSION"),
            ("..", "", "begins with a dot"),
            ("6.12.117", "-../x", "CONFIG_LOCALVERSION has '/'"),
            ("6.12.117", "-$(id)", "CONFIG_LOCALVERSION"),
            ("6.12.117", long.as_str(), "68 characters"),
        ] {
            let error =
                check(version, &format!("CONFIG_LOCALVERSION=\"{local}\"\n")).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
