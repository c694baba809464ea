//! Version numbers in the output of programs.

use std::fmt;

/// Components of a version, most significant first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub Vec<u64>);

impl Version {
    /// Finds the first dotted number in a text: `gcc (Debian 12.2.0-14) 12.2.0` gives 12.2.0.
    /// Without a dotted number, the first plain number is used (`less 590`).
    pub(crate) fn first_in(text: &str) -> Option<Self> {
        let mut plain = None;
        for word in text.split(|c: char| !(c.is_ascii_digit() || c == '.')) {
            let numbers: Option<Vec<u64>> =
                word.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
            match numbers {
                Some(numbers) if numbers.len() > 1 => return Some(Self(numbers)),
                Some(numbers) if plain.is_none() => plain = Some(Self(numbers)),
                _ => {}
            }
        }
        plain
    }

    /// Returns true if the version is at least `major.minor`.
    pub(crate) fn is_at_least(&self, major: u64, minor: u64) -> bool {
        *self >= Self(vec![major, minor])
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_real_programs() {
        let of = |text: &str| Version::first_in(text).map(|v| v.to_string());
        assert_eq!(of("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)").as_deref(), Some("10.0.2"));
        assert_eq!(of("gcc (Debian 12.2.0-14+deb12u1) 12.2.0").as_deref(), Some("12.2.0"));
        assert_eq!(of("Debian clang version 19.1.7 (3~deb12u1)").as_deref(), Some("19.1.7"));
        assert_eq!(of("bc 1.07.1").as_deref(), Some("1.7.1"));
        assert_eq!(of("less 590").as_deref(), Some("590"));
        assert_eq!(of("no number"), None);
        assert_eq!(of("99999999999999999999999.1"), None);
    }

    #[test]
    fn order_is_by_number() {
        assert!(Version(vec![10, 0, 2]).is_at_least(9, 2));
        assert!(Version(vec![9, 2]).is_at_least(9, 2));
        assert!(!Version(vec![9, 1, 9]).is_at_least(9, 2));
        assert!(!Version(vec![7, 2]).is_at_least(9, 2));
    }
}
