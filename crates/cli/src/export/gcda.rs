//! The format `gcda` of `kerntune export`.

use super::{absolute, source_names, Entry};
use clap::Args;
use kerntune_command::{
    entry, output_directory, work_to_read, CliOutput, Exit, Failure, GlobalOptions, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::own_build::SourceNames;
use kerntune_kernel::Compiler;
use kerntune_tune::own_build::{counters, write_counters, MakeLine};
use kerntune_tune::quality::is_counters;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportGcdaOptions>("gcda", 6);

/// GCC's counters (.gcda), for a kernel that you build yourself (-fprofile-use; docs/own-builds.md)
#[derive(Debug, Args)]
pub struct ExportGcdaOptions {
    /// Recording of an instrumented kernel (beginning of an id, directory, `latest` …), the id of a
    /// profile of recipe gcc-pgo, or, with --kernel, a directory of .gcda files
    profile: String,
    /// The instrumented kernel that wrote the directory of .gcda files: label, beginning of an id, or
    /// directory
    #[arg(long)]
    kernel: Option<String>,
    /// Write to this directory, which is new or empty
    #[arg(long, short, default_value = "gcda", value_name = "DIR")]
    output: PathBuf,
    /// Names of sources in your build: `in-tree`, `below` (O= is a directory directly below the source)
    /// or the absolute path of the source (O= is elsewhere)
    #[arg(long, default_value = "in-tree", value_name = "WHERE", value_parser = source_names)]
    sources: SourceNames,
}

impl RunSubcommand<GlobalOptions> for ExportGcdaOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work_to_read(global)?;
        output_directory("--output", &self.output)?;
        // Counters of an earlier export would be taken for objects that have none now.
        if self.output.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let place = self.output.display();
            return Err(Failure::usage(format!("--output: {place} is not empty; name a new directory")));
        }
        let kernel = match (&self.kernel, is_counters(&self.profile)) {
            (Some(kernel), true) => Some(kerntune_kernel::find(&work, kernel)?),
            (None, false) => None,
            (None, true) => {
                return Err(Failure::usage(
                    "a directory of .gcda files does not name its kernel: give it with --kernel",
                ))
            }
            (Some(_), false) => {
                return Err(Failure::usage("leave out --kernel: it is for a directory of .gcda files"))
            }
        };
        let made = counters(&work, &self.profile, kernel.as_ref(), &self.sources)?;
        write_counters(&made.counters, &self.output)?;
        output.note(&format!(
            "{} objects, {} records of functions",
            made.counters.objects.len(),
            grouped(made.counters.records)
        ));
        if made.counters.kept > 0 {
            output.note(&format!(
                "{} functions are named in a way that is not known: only a build that names its sources as kerntune does \
                 (--sources below) finds their counters",
                grouped(made.counters.kept)
            ));
        }
        let compiler: Compiler = made.kernel.manifest.cc.parse()?;
        super::note_line(&MakeLine::counters(&absolute(&self.output), &compiler), output);
        Ok(Exit::Ok)
    }
}
