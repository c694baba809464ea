//! Parsers for options of kernels: labels, and lines of a configuration.

use kerntune_work::Label;

/// Largest length of a label, in bytes: labels become file names.
const LONGEST: usize = 100;

/// Parses a kernel label; labels appear in lists and file names.
pub fn label(text: &str) -> Result<String, String> {
    let why = match text.parse::<Label>() {
        Ok(label) if label.len() <= LONGEST => return Ok(label.into()),
        Ok(_) => "it is longer than 100 bytes",
        Err(_) if text.is_empty() => "it is empty",
        Err(_) if text.starts_with(['.', '-']) => "it begins with a dot or a dash",
        Err(_) if text.contains(char::is_control) => "it has a control character",
        Err(_) => "it has other characters than letters, digits, blanks and `._-+=,:@%`",
    };
    Err(format!("not a label: {why}"))
}

/// Parses a line of a kernel configuration that sets an option.
pub fn config_line(text: &str) -> Result<String, String> {
    if text.contains(char::is_control) {
        return Err("not one line `CONFIG_NAME=value`".into());
    }
    kerntune_kernel::config_line(text)
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
        assert_eq!(config_line("CONFIG_X=Y # why").as_deref(), Ok("CONFIG_X=y"));
        for bad in ["", "NOPE", "CONFIG_=y", "CONFIG_X=", "CONFIG_X=y\nCONFIG_Y=y", "# comment", "CONFIG X=y"]
        {
            assert!(config_line(bad).is_err(), "{bad:?}");
        }
    }
}
