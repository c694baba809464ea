//! The format `bolt` of `kerntune export`.

use super::{left_out, llvm_program, vmlinux, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::bolt::PreAggregated;
use kerntune_kernel::find_recorded;
use kerntune_optimize::bolt::prepare_input;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportBoltOptions>("bolt", 2);

/// Taken branches and the code between them for LLVM BOLT (llvm-bolt --pa), with an image that it
/// can read and the functions that it must leave alone
#[derive(Debug, Args)]
pub struct ExportBoltOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    profile: String,
    // Old position of the file name, before the option `--output`.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// Write to this file, for `llvm-bolt --pa`; an image that BOLT can read goes to FILE.vmlinux if it
    /// cannot read the kernel's own, the functions to leave alone to FILE.skip
    #[arg(long, short, default_value = "bolt.txt", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportBoltOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let beside = |ending: &str| {
            let mut path = path.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let subject = ProfileSubject::open(global, &self.profile)?;
        let counts = PreAggregated::of(&subject.profile.tables).map_err(Failure::usage)?;
        let written = file.write_with(|out| counts.write(out))?;
        left_out(&subject.profile.tables, counts.outside_bytes(), counts.executed_bytes(), output);
        let tool = llvm_program(&subject, "llvm-bolt");
        output.note(&format!(
            "{} branches in {} lines, {} straight runs in {}",
            written.branches, written.branch_lines, written.runs, written.run_lines
        ));
        let counts = path.display();
        // Standard output has no files beside it, and a kernel that is gone no image.
        let kernel = find_recorded(&subject.work, &subject.profile.manifest.kernel.id)?;
        let Some(kernel) = kernel.filter(|_| path.is_file()) else {
            let image = vmlinux(&subject);
            output.note(&format!("{tool} {image} --pa -p {counts} -o vmlinux.bolt"));
            return Ok(Exit::Ok);
        };
        let (image, skip) = (beside(".vmlinux"), beside(".skip"));
        let input = prepare_input(&subject.profile, &kernel, &image)?;
        OutputFile::new("--output", &skip)?.write(input.skip.as_bytes())?;
        let image = if input.has_image { image } else { kernel.vmlinux() };
        output.note(&format!(
            "{tool} {} --pa -p {counts} --lite --skip-funcs-file={} -o vmlinux.bolt",
            image.display(),
            skip.display()
        ));
        Ok(Exit::Ok)
    }
}
