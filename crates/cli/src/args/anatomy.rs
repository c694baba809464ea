//! `kerntune anatomy`.

use super::Json;
use clap::Args;

/// Which calls, and how they are shown.
#[derive(Debug, Args)]
pub struct Anatomy {
    /// A function (`vfs_read`, or `name@file` where several have that name), a system call (`read`), or an interrupt's first
    /// function (`asm_common_interrupt:0x22`)
    pub operation: String,
    /// The profile, which must have its trace: beginning of an id, directory, or `latest`
    #[arg(long, default_value = "latest", value_name = "PROFILE")]
    pub profile: String,
    /// Only calls that end in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also show what each call does before it enters this boundary: a function (submit_bio), a pattern (`blk_*`), or a file or
    /// directory of the source (net/core/)
    #[arg(long, value_name = "FUNCTION|PATTERN|DIR")]
    pub until: Option<String>,
    /// Another profile (B), usually of another kernel: figures of both, and which functions explain the difference
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Show at most N levels of calls below the operation
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Show at most N rows of each table except the tree [default: as many as suit the table in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Fold calls that take less than this share of the operation's time on average, in the typical call and in the worst
    /// [default: 1 in text, 0 in JSON]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub min: Option<f64>,
    #[command(flatten)]
    pub format: Json,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to 100, without a percent sign".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(["0", "0.5", "100"].map(|text| percent(text).unwrap()), [0.0, 0.5, 100.0]);
        assert!(["", "-1", "101", "NaN", "5%", "inf"].iter().all(|text| percent(text).is_err()));
    }
}
