//! The format `perf` of `kerntune import`.

use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_tune::import_perf::{import, PerfImportRequest};
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportPerfOptions>("perf", 2, recognize);

/// First bytes of a perf.data file; of the other byte order they are reversed.
const MAGIC: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

fn recognize(input: &ImportInput) -> Option<Recognition> {
    match MAGIC.iter().any(|magic| input.bytes.starts_with(magic)) {
        true => Recognition::certain("a perf.data file"),
        false => None,
    }
}

/// Samples of a CPU's last branches (perf record -b), as a profile for the recipes (docs/recipes.md)
#[derive(Debug, Args)]
pub struct ImportPerfOptions {
    /// perf.data, or the output of `perf script --header --show-mmap-events -F cpu,ip,brstack` for
    /// it
    file: PathBuf,
    /// The kernel that ran: label, beginning of an id, or directory
    #[arg(long)]
    kernel: String,
    /// Name of the machine's workload, for the profile
    #[arg(long, value_name = "NAME", default_value = "perf")]
    workload: String,
    /// Treat CPUs without samples as idle, not as missing
    #[arg(long)]
    idle_cpus: bool,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportPerfOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let kernel = kerntune_kernel::find(&work, &self.kernel)?;
        let request = PerfImportRequest {
            file: &self.file,
            kernel: &kernel,
            workload: &self.workload,
            idle_cpus: self.idle_cpus,
        };
        let import = import(&work, &request)?;
        let recorded = &import.recorded;
        if let Some((line, text)) = &import.strange.first {
            output.note(&format!(
                "kerntune: {}: {} lines were skipped, because kerntune cannot read them; the first is line \
                 {line}: {text}",
                self.file.display(),
                import.strange.lines
            ));
        }
        if import.unplaced > 0 {
            output.note(&format!(
                "kerntune: {}: {} of {} runs in the kernel's memory were left out: kernel {} has no function there",
                self.file.display(),
                import.unplaced,
                import.unplaced.saturating_add(import.runs),
                kernel.manifest.label
            ));
        }
        if import.parts > 1 {
            output.note(&format!(
                "kerntune: {}: it has samples of {} boots or machines, each with its own place of the kernel",
                self.file.display(),
                import.parts
            ));
        }
        if self.format.json {
            output.print(&summary::SummaryOptions.json(&Profile::load(&recorded.path)?)?);
        } else {
            output.print(&format!(
            "{} samples, {} runs between branches in the code of kernel {}\n\nprofile {}\n`kerntune profile check {}` says how \
             fit it is",
            import.samples,
            import.runs,
            kernel.manifest.label,
            recorded.path.display(),
            recorded.manifest.id
        ));
        }
        Ok(Exit::Ok)
    }
}
