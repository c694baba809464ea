//! The format `flamegraph` of `kerntune export`.

use super::{Entry, StackExport};
use crate::percent::percent;
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, RunSubcommand};
use kerntune_compare::number::grouped;
use kerntune_convert::flamegraph::{FlameGraph, FlameGraphSvg};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportFlamegraphOptions>("flamegraph", 21);

/// Flame graph of the call paths (SVG), or of the difference from another profile
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export flamegraph latest -o flames.svg\n  kerntune export flamegraph 4c1e --against 8028 -o difference.svg"
)]
pub struct ExportFlamegraphOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "flamegraph.svg", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Color the boxes by the difference from this profile: red if a path takes more time now
    #[arg(long, alias = "base", value_name = "PROFILE")]
    against: Option<String>,
    /// Leave out boxes below this percentage of the total
    #[arg(long, alias = "smallest", value_name = "PERCENT", default_value_t = 0.01, value_parser = percent)]
    min_percent: f64,
    /// Width in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,
}

impl RunSubcommand<GlobalOptions> for ExportFlamegraphOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = StackExport::open(global, &self.profile, self.region.as_deref())?;
        let base = self.against.as_deref();
        let base = base.map(|base| StackExport::open(global, base, self.region.as_deref())).transpose()?;
        if let Some(base) = base.as_ref().filter(|base| base.stacks.unit.name() != of.stacks.unit.name()) {
            return Err(Failure::usage(format!(
                "--against: {} cannot be compared with {}: give two profiles of the same kind",
                of.stacks.unit.name(),
                base.stacks.unit.name()
            )));
        }
        let total = of.stacks.total();
        let smallest = (total as f64 * self.min_percent / 100.0) as u64;
        let flames = FlameGraph::of(&of.stacks, base.as_ref().map(|base| &base.stacks), smallest);
        let picture = FlameGraphSvg {
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
                "{} paths of less than {} % have no box; the box of their caller includes them (--min-percent)",
                grouped(flames.small as u64),
                self.min_percent
            ));
        }
        Ok(Exit::Ok)
    }
}
