//! `kerntune export autofdo`.

use super::{left_out, vmlinux, Entry};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_convert::autofdo::Unsymbolized;
use kerntune_kernel::find_recorded;
use kerntune_optimize::clang_autofdo::line_tables;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("autofdo", 0);

/// Executed code and taken branches for LLVM's AutoFDO (llvm-profgen --unsymbolized-profile)
#[derive(Debug, Args)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    profile: String,
    // Where the file was named before there was an option for it.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// The file to write, for `llvm-profgen --use-offset=0`
    #[arg(long, short, default_value = "counts.txt", value_name = "FILE")]
    output: PathBuf,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let subject = Subject::open(global, &self.profile)?;
        // What the counts lead to is in the kernel's line tables: without them they make an empty profile.
        if let Some(kernel) = find_recorded(&subject.work, &subject.profile.manifest.kernel.id)? {
            line_tables(&kernel)?;
        }
        let counts = Unsymbolized::of(&subject.profile.tables).map_err(Failure::usage)?;
        let mut text = Vec::new();
        counts.write(&mut text).map_err(Failure::usage)?;
        file.write(&text)?;
        left_out(counts.outside_bytes, counts.executed_bytes, output);
        let image = vmlinux(&subject);
        output.note(&format!("{} ranges, {} branches", counts.ranges(), counts.branches()));
        output.note(&format!(
            "llvm-profgen-19 --binary={image} --unsymbolized-profile={} --use-offset=0 --output=kernel.afdo",
            path.display()
        ));
        Ok(Exit::Ok)
    }
}
