//! `kerntune report PROFILE diff`.

use super::{most, Entry};
use crate::exit::{Exit, Failure};
use crate::global::Json;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_profile::{find, Profile};
use kerntune_report::diff;
use kerntune_symbols::inlined;

pub const ENTRY: Entry = entry::<_, Options>("diff", 12);

/// This profile (A) and another (B) side by side: what explains the difference
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The profile to compare with: beginning of an id, directory, or `latest`
    other: String,
    /// Compare by call path instead of function
    #[arg(long)]
    paths: bool,
    /// Show times and calls per operation; JSON has the totals in either case
    #[arg(long)]
    per_operation: bool,
    /// Show at most N rows [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Keep the functions of each kernel as compiled: a function that only one kernel inlines then has a row for the other kernel
    /// alone
    #[arg(long)]
    as_compiled: bool,
    #[command(flatten)]
    format: Json,
}

impl Run<Subject> for Options {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
        let other = Profile::load(&find(&of.work, &self.other)?.path)?;
        // A kernel inlines nothing that it does not inline.
        let apart = !self.as_compiled && of.profile.manifest.kernel != other.manifest.kernel;
        let wanted = diff::Options {
            paths: self.paths,
            per_operation: self.per_operation,
            top: most(self.top, self.format),
            region: self.region.clone(),
            as_compiled: self.as_compiled,
            inlined: match apart {
                true => [line_tables(of, &of.profile)?, line_tables(of, &other)?],
                false => [None, None],
            },
        };
        output.print(&match self.format.json {
            true => diff::json(&of.profile, &other, &wanted)?,
            false => diff::text(&of.profile, &other, &wanted, output.style())?,
        });
        Ok(Exit::Ok)
    }
}

/// What the line tables of a profile's kernel say is inlined where, if the kernel is here and has any.
fn line_tables(of: &Subject, profile: &Profile) -> Result<Option<diff::Inlined>, Failure> {
    let id = &profile.manifest.kernel.id;
    let kernel = of.work.find("kernels", id).filter(|_| !id.is_empty());
    match kernel.map(|kernel| kernel.join("vmlinux")).filter(|image| image.exists()) {
        Some(image) => Ok(inlined(&image)?),
        None => Ok(None),
    }
}
