//! What the options of kernels take: labels and lines of a configuration.

/// The longest label, bytes: files are named by it.
const LONGEST: usize = 100;

/// A kernel's label. It is listed, and files are named by it.
pub fn label(text: &str) -> Result<String, String> {
    let why = match text {
        "" => "it is empty",
        _ if text.len() > LONGEST => "it is longer than 100 bytes",
        _ if text.starts_with(['.', '-']) => "it begins with a dot or a dash",
        _ if text.contains('/') => "it has a slash",
        _ if text.chars().any(char::is_control) => "it has a control character",
        _ => return Ok(text.into()),
    };
    Err(format!("not a label: {why}"))
}

/// One line of a configuration that sets an option.
pub fn config_line(text: &str) -> Result<String, String> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let unset = text.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set"));
    let sets = text.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
    let is_one =
        unset.is_some_and(is_name) || sets.is_some_and(|(name, value)| is_name(name) && !value.is_empty());
    match is_one && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err("neither `CONFIG_NAME=value` nor `# CONFIG_NAME is not set`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_files() {
        for good in ["base", "gcc -O2", "base-gcc-pgo+layout-rr", "né"] {
            assert_eq!(label(good).as_deref(), Ok(good));
        }
        for bad in ["", ".", "..", "a/b", "-x", "a\nb", "\x1b[31m", &"x".repeat(101)] {
            assert!(label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_line_sets_one_option() {
        for good in ["CONFIG_X=y", "CONFIG_LOCALVERSION=\"-kt\"", "# CONFIG_9P_FS is not set"] {
            assert_eq!(config_line(good).as_deref(), Ok(good));
        }
        for bad in ["", "NOPE", "CONFIG_=y", "CONFIG_X=", "CONFIG_X=y\nCONFIG_Y=y", "# comment", "CONFIG X=y"]
        {
            assert!(config_line(bad).is_err(), "{bad:?}");
        }
    }
}
