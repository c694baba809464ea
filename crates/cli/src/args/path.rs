//! `kerntune report PROFILE path`.

use super::Json;
use clap::Args;

/// Which part of the trace, and how much of it.
#[derive(Debug, Clone, Args)]
pub struct CodePath {
    /// The slowest call of this function: `name`, or `name@file` where several have that name
    #[arg(long, value_name = "FUNCTION", group = "call")]
    pub worst: Option<String>,
    /// A call of this function that took as long as the median
    #[arg(long, value_name = "FUNCTION", group = "call")]
    pub typical: Option<String>,
    /// A call of this function: the first, or with --nth or --at another
    #[arg(long, value_name = "FUNCTION", group = "call")]
    pub function: Option<String>,
    /// Which call of --function, or which operation of the region
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["worst", "typical", "from", "at"])]
    pub nth: u64,
    /// Only this thread, or those of this name
    #[arg(long, value_name = "PID|COMM", conflicts_with_all = ["worst", "typical"])]
    pub thread: Option<String>,
    /// Only in the regions of this name; without a call, one of its operations
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "at"])]
    pub region: Option<String>,
    /// Everything from this time on (virtual: `5123456789`, `5.12s`, `5120ms`, `5120000us`)
    #[arg(long, value_name = "TIME", requires = "to", value_parser = time, conflicts_with = "call")]
    pub from: Option<u64>,
    /// … until this time
    #[arg(long, value_name = "TIME", requires = "from", value_parser = time)]
    pub to: Option<u64>,
    /// The call (of --function) that began at this time; without a function the first after it
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["from", "worst", "typical"])]
    pub at: Option<u64>,
    /// At most so many levels of calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// At most so many entries, before folding
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub top: usize,
    /// What other threads did while the call was off the CPU
    #[arg(long)]
    pub all: bool,
    /// Every repeat of what repeats
    #[arg(long)]
    pub no_fold: bool,
    #[command(flatten)]
    pub format: Json,
}

/// A time in ns: a number with a unit (`s`, `ms`, `us`, `ns`), without one in ns.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time: write 5123456789, 5.12s, 5120ms or 5120000us");
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.iter().find_map(|&(name, per)| text.strip_suffix(name).map(|number| (number, per)));
    let (number, per) = found.unwrap_or((text, 1u64));
    let number = number.trim().replace([',', '_'], "");
    let (whole, part) = number.split_once('.').unwrap_or((&number, "0"));
    // Digit by digit: a float does not hold every nanosecond.
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let mut ns = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(per)).ok_or_else(wrong)?;
    let mut worth = per;
    for byte in part.bytes() {
        worth /= 10;
        ns = ns.checked_add(u64::from(byte - b'0') * worth).ok_or_else(wrong)?;
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_to_the_nanosecond() {
        let all = ["5123456789", "5.123456789s", "5,123,456.789us", "0.5ms", "7 ns", "9007199.254740993s"];
        let found = all.map(|text| time(text).unwrap());
        assert_eq!(found, [5_123_456_789, 5_123_456_789, 5_123_456_789, 500_000, 7, 9_007_199_254_740_993]);
        for wrong in ["", "s", "-1", "1e9", "5m", "1.", "99999999999999999999"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
