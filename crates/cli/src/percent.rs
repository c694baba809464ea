//! Percentages of the command line.

/// Parses a share in percent: a number from 0 to 100, with or without a percent sign.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a percentage: write a number from 0 to 100"))
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares_are_from_0_to_100_with_or_without_a_sign() {
        assert_eq!(["0", "0.5", "100", "5%"].map(|text| percent(text).unwrap()), [0.0, 0.5, 100.0, 5.0]);
        assert!(["", "%", "-1", "101", "NaN", "5%%", "inf"].iter().all(|text| percent(text).is_err()));
    }
}
