//! The report `graph` of `kerntune report`: the call graph of the profile's tables, optionally with
//! calls that exist only in the kernel's code.

use super::{print_report, Entry};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_analyze::graph::CodeArc;
use kerntune_command::{entry, CliOutput, Exit, Failure, FormOptions, ProfileSubject, RunSubcommand};
use kerntune_kernel::{CodeCalls, Symbols};
use kerntune_profile::Symbol;
use kerntune_report::graph::{GraphReportOptions, StaticCalls, UnknownCallees};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = entry::<_, ReportGraphOptions>("graph", 3);

/// Callers and callees of each function and cycle, with the time attributed to each caller (gprof's
/// call graph)
#[derive(Debug, Clone, Args)]
pub struct ReportGraphOptions {
    #[command(flatten)]
    graph: GraphReportOptions,
    /// Show also calls in the kernel's code that were never executed, as 0/5, and the number of
    /// indirect call sites; with `cycles` these calls can form cycles, as with gprof's -c
    #[arg(long = "static", num_args = 0..=1, default_missing_value = "shown", value_name = "HOW", value_parser = how())]
    code: Option<bool>,
    /// Read the code from this image, if the kernel is not in the work directory: the vmlinux or
    /// program that ran
    #[arg(long, value_name = "FILE", requires = "code")]
    image: Option<PathBuf>,
    #[command(flatten)]
    format: FormOptions,
}

/// Returns a parser for `--code`; true if calls that were never executed form cycles.
fn how() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["shown", "cycles"]).map(|word| word == "cycles")
}

impl RunSubcommand<ProfileSubject> for ReportGraphOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let narrowed = of.narrowed(Some(&self.graph.graph.threads))?;
        let of = narrowed.as_ref();
        let code = match self.code {
            Some(binds) => Some(StaticCalls { binds, ..self.read(of)? }),
            None => None,
        };
        print_report(&GraphReportOptions { code, ..self.graph.clone() }, of, output, self.format)
    }
}

impl ReportGraphOptions {
    fn read(&self, of: &ProfileSubject) -> Result<StaticCalls, Failure> {
        let id = &of.profile.manifest.kernel.id;
        let kept =
            || of.work.find("kernels", id).filter(|_| !id.is_empty()).map(|kernel| kernel.join("vmlinux"));
        let image = self.image.clone().or_else(kept).ok_or_else(|| {
            Failure::usage(
                "the profile's kernel is not in the work directory: name its vmlinux, or the program that ran, with --image FILE",
            )
        })?;
        let symbols = Symbols::load(&image)?;
        let calls = CodeCalls::load(&image, &symbols)?;
        let rows = rows(&symbols, &of.profile.tables.symbols, &image)?;
        let row = |function: usize| rows.get(function).copied().flatten();
        let mut arcs: Vec<CodeArc> = calls
            .calls
            .iter()
            .filter_map(|call| {
                let (caller, callee) = (row(call.caller)?, row(call.callee)?);
                Some(CodeArc { caller, callee, calls: call.calls, jumps: call.jumps })
            })
            .collect();
        arcs.sort_unstable();
        let unknown = calls.unknown.iter().filter_map(|(function, places)| {
            let row = row(*function)?;
            Some((row, UnknownCallees { calls: places.calls, jumps: places.jumps, patched: places.patched }))
        });
        Ok(StaticCalls { unknown: unknown.collect(), arcs, binds: false })
    }
}

/// Maps each function of an image to its row of the profile's table. The kernel may have been moved
/// as a whole (KASLR).
fn rows(image: &Symbols, table: &[Symbol], path: &Path) -> Result<Vec<Option<usize>>, Failure> {
    let in_image = || table.iter().filter(|symbol| symbol.module.is_none() && symbol.size > 0);
    let by_place: HashMap<(u64, &str), usize> = in_image()
        .map(|symbol| ((symbol.address.get(), symbol.name.as_str()), symbol.function.get() as usize))
        .collect();
    // The first name that both have gives the offset.
    let moved = in_image()
        .find_map(|symbol| Some(symbol.address.get().wrapping_sub(image.address_of(&symbol.name)?)))
        .unwrap_or(0);
    let rows: Vec<Option<usize>> = image
        .functions()
        .iter()
        .map(|function| {
            by_place.get(&(function.address.wrapping_add(moved), function.name.as_str())).copied()
        })
        .collect();
    let (known, all) = (rows.iter().flatten().count(), in_image().count());
    // The image may have a few functions that differ; another build has almost none at the same
    // address.
    if known * 10 < all * 9 || known == 0 {
        return Err(Failure::usage(format!(
            "{}: only {known} of the profile's {all} functions are in it at the address where they ran: it \
             is another build; give the image that ran",
            path.display()
        )));
    }
    Ok(rows)
}
