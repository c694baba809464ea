//! `kerntune export flamegraph`.

use super::{Entry, Stacked};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_compare::number::grouped;
use kerntune_convert::flamegraph::{Flames, Picture};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("flamegraph", 21);

/// A flame graph of the call paths (SVG), or of the difference to another profile
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export flamegraph latest -o flames.svg\n  kerntune export flamegraph 4c1e --base 8028 -o difference.svg"
)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "flamegraph.svg", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Colour the boxes by the difference to this profile: red where a path takes more time than in it
    #[arg(long, value_name = "PROFILE")]
    base: Option<String>,
    /// Leave out boxes of less than this percentage of the whole
    #[arg(long, value_name = "PERCENT", default_value_t = 0.01, value_parser = percent)]
    smallest: f64,
    /// Pixels from left to right
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = Stacked::open(global, &self.profile, self.region.as_deref())?;
        let base = self.base.as_deref();
        let base = base.map(|base| Stacked::open(global, base, self.region.as_deref())).transpose()?;
        if let Some(base) = base.as_ref().filter(|base| base.stacks.unit.name() != of.stacks.unit.name()) {
            return Err(Failure::usage(format!(
                "--base: {} cannot be compared with {}: give two profiles of the same kind",
                of.stacks.unit.name(),
                base.stacks.unit.name()
            )));
        }
        let total = of.stacks.total();
        let smallest = (total as f64 * self.smallest / 100.0) as u64;
        let flames = Flames::of(&of.stacks, base.as_ref().map(|base| &base.stacks), smallest);
        let picture = Picture {
            title: &of.title,
            base: base.as_ref().map(|base| base.title.as_str()),
            unit: of.stacks.unit,
            width: self.width,
        };
        file.write_with(|out| picture.write(&flames, out))?;
        let command = format!("a browser shows {}", self.output.display());
        of.done(&self.output, &format!("{} boxes", flames.boxes()), &command, output);
        if flames.small > 0 {
            output.print(&format!(
                "{} paths of less than {} % have no box; the box of their caller includes them (--smallest)",
                grouped(flames.small as u64),
                self.smallest
            ));
        }
        Ok(Exit::Ok)
    }
}

/// A share of the whole.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a percentage: write a number from 0 to 100"))
}
