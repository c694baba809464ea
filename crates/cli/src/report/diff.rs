//! The report `diff` of `kerntune report`.

use super::Entry;
use crate::percent::percent;
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, FormOptions, ProfileSubject, RunSubcommand};
use kerntune_profile::{find, Profile};
use kerntune_report::{diff, path_length, profile_line, render};
use kerntune_symbols::inlined;

pub const ENTRY: Entry = entry::<_, ReportDiffOptions>("diff", 12);

/// Compare this profile (A) with another (B): the functions or paths that explain the difference
#[derive(Debug, Clone, Args)]
pub struct ReportDiffOptions {
    /// The profile to compare with: beginning of an id, directory, or `latest`
    other: String,
    /// Compare by call path instead of function
    #[arg(long)]
    paths: bool,
    /// Explain by call path why an operation's path is longer or shorter in B, even if a frame is
    /// missing in one kernel (docs/anatomy.md)
    #[arg(long, conflicts_with_all = ["paths", "per_operation", "as_compiled"])]
    path_length: bool,
    /// With --path-length: smallest change with its own line in the tree, in percent of this
    /// profile's path length
    #[arg(long, alias = "min", requires = "path_length", value_name = "PERCENT", default_value_t = 0.5, value_parser = percent)]
    min_percent: f64,
    /// Show times and calls per operation; JSON has the totals in either case
    #[arg(long)]
    per_operation: bool,
    /// Show at most N rows, of --path-length N single paths [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Use only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Keep the functions of each kernel as compiled; a function that only one kernel inlines then
    /// has its own row for the other kernel
    #[arg(long)]
    as_compiled: bool,
    #[command(flatten)]
    format: FormOptions,
}

impl RunSubcommand<ProfileSubject> for ReportDiffOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let (profile, form) = (&of.profile, self.format.form());
        let other = Profile::load(&find(&of.work, &self.other)?.path)?;
        let (region, top) = (self.region.clone(), form.row_limit(self.top));
        let document = if self.path_length {
            let options = path_length::PathLengthOptions { region, top, min_percent: self.min_percent };
            path_length::document(profile, &other, &options)?
        } else {
            // Two profiles of one kernel have the same inlining.
            let apart = !self.as_compiled && profile.manifest.kernel != other.manifest.kernel;
            let options = diff::DiffOptions {
                paths: self.paths,
                per_operation: self.per_operation,
                top,
                region,
                as_compiled: self.as_compiled,
                inlined: match apart {
                    true => [line_tables(of, profile)?, line_tables(of, &other)?],
                    false => [None, None],
                },
            };
            diff::document(profile, &other, &options)?
        };
        let heading = format!("A: {}; B: {}", profile_line(profile), profile_line(&other));
        output.print(&render(&document, form, &heading, output.style()));
        Ok(Exit::Ok)
    }
}

/// Reads from the line tables of the profile's kernel which functions are inlined where; `None` if
/// the kernel or its line tables are missing.
fn line_tables(of: &ProfileSubject, profile: &Profile) -> Result<Option<diff::InlinedFunctions>, Failure> {
    let id = &profile.manifest.kernel.id;
    let kernel = of.work.find("kernels", id).filter(|_| !id.is_empty());
    match kernel.map(|kernel| kernel.join("vmlinux")).filter(|image| image.exists()) {
        Some(image) => Ok(inlined(&image)?),
        None => Ok(None),
    }
}
