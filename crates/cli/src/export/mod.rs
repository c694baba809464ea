//! `kerntune export`: a file for each format. Start from [`ExportOptions`].

use crate::rooms::ROOMS;
use clap::Args;
use kerntune_command::{
    command, ChosenSubcommand, CliOutput, CommandEntry, Entry, Exit, Failure, GlobalOptions, ProfileSubject,
    RunSubcommand, SubcommandFolder, SubcommandRegistry,
};
use kerntune_compare::number::grouped;
use kerntune_convert::own_build::SourceNames;
use kerntune_convert::stacks::{self, CallStacks};
use kerntune_kernel::{find_recorded, Compiler, Kernel};
use kerntune_profile::Tables;
use kerntune_tune::own_build::MakeLine;
use std::collections::BTreeMap;
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/export.rs"));

pub const COMMAND: CommandEntry = command::<ExportOptions>("export", 85, "Look");

/// Write a profile in another tool's format
#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(subcommand)]
    format: ChosenSubcommand<ExportFormats>,
}

impl RunSubcommand<GlobalOptions> for ExportOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        self.format.run(global, output)
    }
}

/// Registry of all export formats.
#[derive(Debug)]
pub struct ExportFormats;

impl SubcommandRegistry for ExportFormats {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        let rooms = ROOMS.iter().map(|room| &room.exports as &dyn SubcommandFolder<GlobalOptions>);
        [&ENTRIES as _].into_iter().chain(rooms).collect()
    }
}

/// Prints the share of the execution that lies outside the kernel's image and is not exported, and
/// the modules that it was in. Both figures are bytes times executions.
fn left_out(tables: &Tables, outside: u128, executed: u128, output: &CliOutput) {
    if outside > 0 {
        let share = 100.0 * outside as f64 / (outside + executed) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
        let modules = by_module(tables);
        if !modules.is_empty() {
            let words = modules.iter().map(|(name, count)| format!("{} of {name}", grouped(*count)));
            output.note(&format!("instructions: {}", words.collect::<Vec<_>>().join(", ")));
        }
    }
}

/// Returns the executed instructions of each module, most first.
fn by_module(tables: &Tables) -> Vec<(&str, u64)> {
    let mut places: Vec<(u64, u64, &str)> = tables
        .symbols
        .iter()
        .filter_map(|symbol| {
            let begin = symbol.address.get();
            Some((begin, begin.saturating_add(symbol.size), symbol.loaded_module()?))
        })
        .collect();
    places.sort_unstable();
    // Memory of a module that was unloaded may have got another.
    const REUSED: &str = "[reused module memory]";
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for block in tables.blocks.iter().filter(|_| !places.is_empty()) {
        let at = block.start.get();
        let mut around = places[..places.partition_point(|place| place.0 <= at)].iter().filter(|p| at < p.1);
        let Some((.., module)) = around.next() else { continue };
        let name = if around.all(|(.., other)| other == module) { module } else { REUSED };
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(block.instructions.get().saturating_mul(block.count));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}

/// Returns the path of the recorded kernel's vmlinux for another tool's command line, or `VMLINUX`
/// if the kernel is gone.
fn vmlinux(of: &ProfileSubject) -> String {
    let kernel = of.work.find("kernels", &of.profile.manifest.kernel.id);
    kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string())
}

/// Returns the program of LLVM that belongs to the recorded kernel's compiler.
fn llvm_program(of: &ProfileSubject, tool: &str) -> String {
    let kernel = find_recorded(&of.work, &of.profile.manifest.kernel.id).ok().flatten();
    let compiler: Option<Compiler> = kernel.and_then(|kernel| kernel.manifest.cc.parse().ok());
    compiler.unwrap_or_default().llvm_program(tool)
}

/// Returns the kernel that was recorded, for files of a user's own build.
fn recorded_kernel(of: &ProfileSubject) -> Result<Kernel, Failure> {
    let id = &of.profile.manifest.kernel.id;
    if id.is_empty() {
        let profile = of.profile.manifest.id.clone();
        return Err(kerntune_tune::Error::NoKernel { profile }.into());
    }
    Ok(kerntune_kernel::find(&of.work, id)?)
}

/// Returns a path for a command line that works in any directory.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Prints how make reads the files.
fn note_line(line: &MakeLine, output: &CliOutput) {
    if let Some(command) = &line.prepare {
        output.note(command);
    }
    let config = match &line.config[..] {
        [] => String::new(),
        lines => format!("   # with {}", lines.join(" and ")),
    };
    output.note(&format!("make {}{config}", line.shell()));
}

/// Parses `in-tree`, `below` or the absolute path of a source tree.
fn source_names(text: &str) -> Result<SourceNames, String> {
    match text {
        "in-tree" => Ok(SourceNames::in_tree()),
        "below" => Ok(SourceNames::below_tree()),
        path => SourceNames::elsewhere(Path::new(path))
            .ok_or_else(|| "give in-tree, below, or the absolute path of the source tree".into()),
    }
}

/// Input of the formats for call paths: a profile, and the call paths of its regions.
struct StackExport {
    subject: ProfileSubject,
    stacks: CallStacks,
    title: String,
}

impl StackExport {
    /// Loads the call paths of the regions named `region`, or of all regions.
    fn open(global: &GlobalOptions, profile: &str, region: Option<&str>) -> Result<Self, Failure> {
        let subject = ProfileSubject::open(global, profile)?;
        let scope = kerntune_report::scope(&subject.profile, region)?;
        let stacks = CallStacks::of(&subject.profile, &scope).map_err(Failure::usage)?;
        let region = region.map_or(String::new(), |name| format!(", region {name}"));
        let title = format!("{}{region}", stacks::title(&subject.profile));
        Ok(Self { subject, stacks, title })
    }

    /// Prints what was written, and the command that shows it.
    fn done(&self, path: &Path, what: &str, command: &str, output: &CliOutput) {
        let (total, unit) = (grouped(self.stacks.total()), self.stacks.unit.name());
        output.note(&format!("wrote {}: {what}, {total} {unit} in all", path.display()));
        output.note(command);
    }
}

/// Creator named in the files: program and version.
const CREATOR: &str = concat!("kerntune ", env!("CARGO_PKG_VERSION"));

/// Adds to the error for a missing trace that call paths can be exported.
fn without_trace(error: kerntune_tune::Error) -> Failure {
    match error {
        kerntune_tune::Error::NoTrace { profile } => Failure::usage(format!(
            "{} has no trace, and so no order in time: --paths writes its call paths",
            profile.display()
        )),
        other => other.into(),
    }
}
