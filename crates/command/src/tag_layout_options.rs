//! Options for the layout of records of McRae's event tags.

use crate::Failure;
use clap::Args;
use kerntune_trace::{TagLayout, MAX_TAG_BITS, MIN_TAG_BITS};

/// Layout of records of event tags; McRae's if no option is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct TagLayoutOptions {
    /// Width of an event tag, 16 to 64 bits: 16 if not given, as McRae's box has
    #[arg(long, value_name = "N", value_parser = width())]
    pub tag_bits: Option<u32>,
    /// Width of the clock, after which it begins again at 0, 16 to 64 bits: 24 if not given
    #[arg(long, value_name = "N", value_parser = width())]
    pub clock_bits: Option<u32>,
    /// Length of a tick of the clock in nanoseconds, with up to three decimals (83.333): 1000 if not
    /// given
    #[arg(long, value_name = "NS", value_parser = tick_length)]
    pub tick_ns: Option<TickLength>,
}

/// Length of a tick, in ps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickLength(u64);

fn width() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(MIN_TAG_BITS)..=i64::from(MAX_TAG_BITS))
}

impl TagLayoutOptions {
    /// Checks whether an option was given.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the layout.
    ///
    /// # Errors
    /// No layout has these figures.
    pub fn layout(&self) -> Result<TagLayout, Failure> {
        let Self { tag_bits, clock_bits, tick_ns } = *self;
        let usual = TagLayout::MCRAE;
        TagLayout::new(
            tag_bits.unwrap_or(usual.tag_bits()),
            clock_bits.unwrap_or(usual.clock_bits()),
            tick_ns.map_or(usual.tick_ps(), |TickLength(ps)| ps),
        )
        .ok_or_else(|| {
            Failure::usage("--tag-bits and --clock-bits take 16 to 64, --tick-ns up to 1000000000")
        })
    }
}

/// Parses nanoseconds with up to three decimals.
fn tick_length(text: &str) -> Result<TickLength, String> {
    let wrong = || "give nanoseconds from 0.001 to 1000000000, such as 1000, 100 or 83.333".to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let thousandths: u64 = format!("{decimals:0<3}").parse().map_err(|_| wrong())?;
    let ps = whole.checked_mul(1000).and_then(|ps| ps.checked_add(thousandths)).ok_or_else(wrong)?;
    let usual = TagLayout::MCRAE;
    match TagLayout::new(usual.tag_bits(), usual.clock_bits(), ps) {
        Some(_) => Ok(TickLength(ps)),
        None => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_up_to_three_decimals() {
        let ps = |text| tick_length(text).map(|TickLength(ps)| ps).ok();
        assert_eq!([ps("1000"), ps("83.333"), ps("0.5")], [Some(1_000_000), Some(83_333), Some(500)]);
        for bad in ["", "0", ".", "1.", ".5", "1.2345", "-1", "1e3", "1000000001", "99999999999999999999"] {
            assert_eq!(ps(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_not_given_is_as_in_the_paper() {
        assert_eq!(TagLayoutOptions::default().layout().unwrap(), TagLayout::MCRAE);
        let options = TagLayoutOptions { tag_bits: Some(32), ..TagLayoutOptions::default() };
        assert!(options.is_given());
        assert_eq!(options.layout().unwrap(), TagLayout::new(32, 24, 1_000_000).unwrap());
    }
}
