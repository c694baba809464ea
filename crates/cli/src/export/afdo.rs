//! The format `afdo` of `kerntune export`.

use super::{absolute, recorded_kernel, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_kernel::Compiler;
use kerntune_tune::own_build::{afdo, MakeLine};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportAfdoOptions>("afdo", 4);

/// Clang's finished profile (kernel.afdo) for a kernel that you build yourself
/// (CLANG_AUTOFDO_PROFILE; docs/own-builds.md)
#[derive(Debug, Args)]
pub struct ExportAfdoOptions {
    /// Recording of a kernel built by Clang with line tables: beginning of an id, directory, `latest`,
    /// `latest~1` (the one before), or `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "kernel.afdo", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportAfdoOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let kernel = recorded_kernel(&subject)?;
        let (bytes, summary) = afdo(&subject.work, &subject.profile, &kernel)?;
        file.write(&bytes)?;
        output.note(&format!(
            "{} functions, {:.1} % of the executed code of kernel {}",
            summary.matched_functions,
            100.0 * summary.attributed_share(),
            kernel.manifest.label
        ));
        let compiler: Compiler = kernel.manifest.cc.parse()?;
        let line = MakeLine::afdo(&absolute(file.path()), &kernel.manifest.version, &compiler);
        super::note_line(&line, output);
        Ok(Exit::Ok)
    }
}
