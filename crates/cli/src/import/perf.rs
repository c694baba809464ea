//! The format `perf` of `kerntune import`.

use super::{keep, Entry};
use clap::Args;
use kerntune_command::{
    import_entry, print_summary, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput,
    Recognition, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::perf_data::{PerfData, PerfEvent};
use kerntune_kernel::Kernel;
use kerntune_live::{import_perf_data, PerfDataRequest, ProfileLabels};
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_tune::import_instructions::{import_instructions, InstructionImportRequest};
use kerntune_tune::import_perf::{import, PerfImportRequest};
use kerntune_work::{open_file, Key, WorkDir};
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportPerfOptions>("perf", 2, recognize);

/// First bytes of a perf.data file; of the other byte order they are reversed.
const MAGIC: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

fn recognize(input: &ImportInput) -> Option<Recognition> {
    if MAGIC.iter().any(|magic| input.bytes.starts_with(magic)) {
        return Recognition::certain("a perf.data file");
    }
    let is_branch = |word: &str| word.starts_with("0x") && word.matches('/').count() >= 5;
    let is_output = |line: &str| line.contains("PERF_RECORD_") || line.split_whitespace().any(is_branch);
    match input.lines()?.take(1000).any(is_output) {
        true => Recognition::certain("branch records as `perf script` prints them"),
        false => None,
    }
}

/// Samples of perf record: a profile for reports (docs/export.md), or of a CPU's last branches
/// (perf record -b) with --kernel one for the recipes (docs/recipes.md)
#[derive(Debug, Args)]
pub struct ImportPerfOptions {
    /// perf.data, or of branch records the output of `perf script --header --show-mmap-events -F
    /// cpu,ip,brstack`
    file: PathBuf,
    /// The kernel that ran: label, beginning of an id, or directory. Without it, the kernel of this
    /// machine or of the work directory with the build id that is in the file
    #[arg(long)]
    kernel: Option<String>,
    /// Names of the kernel's functions: System.map, or a copy of /proc/kallsyms of the machine
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    symbols: Option<PathBuf>,
    /// The event to import, if there are several; by default the first clock
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Name functions of programs, too, if these are on this machine
    #[arg(long)]
    user_chains: bool,
    /// Name of the machine's workload, for the profile
    #[arg(long, value_name = "NAME", default_value = "perf")]
    workload: String,
    /// Import the sampled instructions of the kernel as counts for clang-autofdo, where the CPU
    /// recorded no branches (docs/recipes.md)
    #[arg(long, requires = "kernel", conflicts_with_all = ["symbols", "user_chains", "idle_cpus"])]
    instructions: bool,
    /// Treat CPUs without samples as idle, not as missing
    #[arg(long)]
    idle_cpus: bool,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportPerfOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let kernel = self.kernel.as_ref().map(|kernel| kerntune_kernel::find(&work, kernel)).transpose()?;
        let is_file = ImportInput::read(&self.file)?.bytes.starts_with(MAGIC[0]);
        let has_branches = is_file && self.has_branches()?;
        match kernel {
            Some(kernel) if self.instructions => self.instructions(&work, &kernel, output),
            Some(kernel) if has_branches || !is_file => self.branches(&work, &kernel, output),
            None if !is_file => Err(Failure::usage(format!(
                "{}: name the kernel whose branches these are with --kernel K; for a profile for reports, give the perf.data, or text of samples to `kerntune import perf-script`",
                self.file.display()
            ))),
            kernel => self.samples(&work, kernel.as_ref(), output),
        }
    }
}

impl ImportPerfOptions {
    fn has_branches(&self) -> Result<bool, Failure> {
        let at = |error: String| Failure::usage(format!("{}: {error}", self.file.display()));
        let input = open_file(&self.file).map_err(|error| at(error.to_string()))?;
        let data = PerfData::open(input).map_err(|error| at(error.to_string()))?;
        Ok(data.file.events.iter().any(PerfEvent::has_branches))
    }

    /// Imports samples as a profile for reports.
    fn samples(&self, work: &WorkDir, kernel: Option<&Kernel>, output: &CliOutput) -> Result<Exit, Failure> {
        let request = PerfDataRequest {
            file: &self.file,
            kernel,
            symbols: self.symbols.as_deref(),
            event: self.event.as_deref(),
            user_chains: self.user_chains,
        };
        let mut key = Key::new("perf-samples/1", kerntune_live::CODE)
            .file("samples", &self.file)?
            .field("event", self.event.as_deref().unwrap_or_default())
            .field("user chains", [u8::from(self.user_chains)])
            .field("workload", &self.workload);
        key = match (kernel, &self.symbols) {
            (Some(kernel), _) => key.field("kernel", &kernel.manifest.id),
            (None, Some(symbols)) => key.file("symbols", symbols)?,
            (None, None) => key.field("running", kerntune_kernel::running_build_id().unwrap_or_default()),
        };
        let path = keep(work, &key, |id| {
            let labels = ProfileLabels {
                id: id.to_owned(),
                workload: self.workload.clone(),
                region: self.workload.clone(),
                ..ProfileLabels::default()
            };
            Ok(import_perf_data(work, &request, &labels)?.profile)
        })?;
        let profile = Profile::load(&path)?;
        for source in profile.manifest.sources.iter().filter(|source| source.starts_with("note: ")) {
            output.note(source);
        }
        let id = &profile.manifest.id;
        let next = format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display());
        print_summary(&profile, self.format, &next, output)?;
        Ok(Exit::Ok)
    }

    /// Imports sampled instructions as a profile for recipes.
    fn instructions(&self, work: &WorkDir, kernel: &Kernel, output: &CliOutput) -> Result<Exit, Failure> {
        let request = InstructionImportRequest {
            file: &self.file,
            kernel,
            event: self.event.as_deref(),
            workload: &self.workload,
        };
        let import = import_instructions(work, &request)?;
        let left_out = [
            (import.outside, "of modules and generated code"),
            (import.strange, "at no instruction of the image"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            let file = self.file.display();
            output.note(&format!("kerntune: {file}: left out: {} samples {what}", grouped(count)));
        }
        if self.format.json {
            output.print(&summary::SummaryOptions.json(&Profile::load(&import.recorded.path)?)?);
        } else {
            output.print(&format!(
                "{} samples at {} instructions of kernel {}\n\nprofile {}\n`kerntune profile check {}` says how fit it is",
                grouped(import.samples),
                grouped(import.instructions),
                kernel.manifest.label,
                import.recorded.path.display(),
                import.recorded.manifest.id
            ));
        }
        Ok(Exit::Ok)
    }

    /// Imports branch records as a profile for recipes.
    fn branches(&self, work: &WorkDir, kernel: &Kernel, output: &CliOutput) -> Result<Exit, Failure> {
        let request = PerfImportRequest {
            file: &self.file,
            kernel,
            workload: &self.workload,
            idle_cpus: self.idle_cpus,
        };
        let import = import(work, &request)?;
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
