//! Formatting of numbers, for sentences here and for tables and pages elsewhere.

/// Formats `1234567` as `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats with `decimals` digits after the point and groups before it: `20,396.5`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    // A number beyond `u64` is left as it is.
    let whole = whole.parse().map(grouped).unwrap_or_else(|_| whole.to_string());
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !zero { "-" } else { "" };
    format!("{sign}{whole}{rest}")
}

/// Formats with at least three significant digits: `20,396`, `57.2`, `1.43`, `0.0313`; `0` for
/// zero.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ => 4,
    };
    fixed(value, decimals)
}

/// Formats a change in per cent with its sign and without the per cent sign: `-11.8`, `+0.3`,
/// `0.0`. A change that is not zero keeps its sign if it rounds to zero: `+0.0`.
pub fn change(percent: f64, decimals: usize) -> String {
    let sign = match percent {
        _ if percent > 0.0 => "+",
        _ if percent < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", fixed(percent.abs(), decimals))
}

/// Formats a difference in per cent without sign, for A/A: `0`, `<0.01`, `0.02`.
pub fn difference(percent: f64) -> String {
    match percent.abs() {
        0.0 => "0".into(),
        size if size < 0.005 => "<0.01".into(),
        size => fixed(size, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_and_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.03125, "0.0312"),
            (0.5, "0.500"),
            (1.4321, "1.43"),
            (57.24, "57.2"),
            (99.97, "100"),
            (999.6, "1,000"),
            (20_396.5, "20,396"),
            (1_187_000_123.0, "1,187,000,123"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(fixed(1e30, 0), "1000000000000000019884624838656");
    }

    #[test]
    fn changes_keep_their_sign() {
        assert_eq!(change(-11.82, 1), "-11.8");
        assert_eq!(change(0.003, 2), "+0.00");
        assert_eq!(change(-0.003, 2), "-0.00");
        assert_eq!(change(0.0, 2), "0.00");
        assert_eq!(change(1234.5, 1), "+1,234.5");
        assert_eq!(
            (difference(0.0), difference(-0.004), difference(0.02)),
            ("0".into(), "<0.01".into(), "0.02".into())
        );
    }
}
