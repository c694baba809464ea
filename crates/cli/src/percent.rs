//! Percentages of the command line.

/// Parses a share in percent: a number from 0 to 100, with or without a percent sign.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a percentage: write a number from 0 to 100"))
}

/// Parses `1%` or `0.5 %` into a fraction of 1. The sign is required, because a bare number could
/// mean either.
pub fn fraction(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite());
    number.map(|number| number / 100.0).ok_or_else(|| "not a percentage; write it as 1% or 0.5%".into())
}

/// Parses a percentage as [`fraction`] does, and rejects values that are not above 0.
pub fn positive_fraction(text: &str) -> Result<f64, String> {
    fraction(text).and_then(|part| if part > 0.0 { Ok(part) } else { Err("it must be above 0".into()) })
}

#[cfg(test)]
mod tests {
    use super::{fraction, percent, positive_fraction};

    #[test]
    fn shares_are_from_0_to_100_with_or_without_a_sign() {
        assert_eq!(["0", "0.5", "100", "5%"].map(|text| percent(text).unwrap()), [0.0, 0.5, 100.0, 5.0]);
        assert!(["", "%", "-1", "101", "NaN", "5%%", "inf"].iter().all(|text| percent(text).is_err()));
    }

    #[test]
    fn percentages_have_their_sign() {
        assert_eq!((fraction("1%"), fraction("0.5 %")), (Ok(0.01), Ok(0.005)));
        for wrong in ["1", "%", "", "x%", "NaN%", "inf%", "1%%"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
        assert_eq!(positive_fraction("100000%"), Ok(1000.0));
        for wrong in ["0%", "-1%"] {
            assert!(positive_fraction(wrong).is_err(), "{wrong}");
        }
    }
}
