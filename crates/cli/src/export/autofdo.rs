//! The format `autofdo` of `kerntune export`.

use super::{left_out, llvm_program, vmlinux, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::autofdo::UnsymbolizedProfile;
use kerntune_kernel::find_recorded;
use kerntune_optimize::clang_autofdo::check_line_tables;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportAutofdoOptions>("autofdo", 0);

/// Executed code and taken branches for LLVM's AutoFDO (llvm-profgen --unsymbolized-profile)
#[derive(Debug, Args)]
pub struct ExportAutofdoOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    profile: String,
    // Old position of the file name, before the option `--output`.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// Write to this file, for `llvm-profgen --use-offset=0`
    #[arg(long, short, default_value = "counts.txt", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportAutofdoOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        // llvm-profgen maps the counts by the kernel's line tables; without them it makes an empty
        // profile.
        if let Some(kernel) = find_recorded(&subject.work, &subject.profile.manifest.kernel.id)? {
            check_line_tables(&kernel)?;
        }
        let counts = UnsymbolizedProfile::of(&subject.profile.tables).map_err(Failure::usage)?;
        let mut text = Vec::new();
        counts.write(&mut text).map_err(Failure::usage)?;
        file.write(&text)?;
        left_out(&subject.profile.tables, counts.outside_bytes, counts.executed_bytes, output);
        let (image, tool) = (vmlinux(&subject), llvm_program(&subject, "llvm-profgen"));
        output.note(&format!("{} ranges, {} branches", counts.ranges(), counts.branches()));
        output.note(&format!(
            "{tool} --binary={image} --unsymbolized-profile={} --use-offset=0 --output=kernel.afdo",
            path.display()
        ));
        Ok(Exit::Ok)
    }
}
