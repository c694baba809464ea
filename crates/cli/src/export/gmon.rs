//! `kerntune export gmon`.

use super::{vmlinux, Entry};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_convert::gmon::{self, Target};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("gmon", 3);

/// Self times and arcs for GNU gprof (gmon.out), with the symbols that go with them
#[derive(Debug, Args)]
pub struct Options {
    /// Beginning of an id, directory, or `latest`
    profile: String,
    /// The file to write; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, default_value = "gmon.out", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let mut symbols = self.output.clone().into_os_string();
        symbols.push(".symbols");
        let symbols = PathBuf::from(symbols);
        let files = [OutputFile::new("--output", &self.output)?, OutputFile::new("--output", &symbols)?];
        let subject = Subject::open(global, &self.profile)?;
        let scope = kerntune_report::scope(&subject.profile, self.region.as_deref())?;
        let exported =
            gmon::export(&subject.profile.tables, |region| scope.contains(region)).map_err(Failure::usage)?;
        files[0].write(&exported.gmon.to_bytes(Target::LITTLE_64))?;
        files[1].write(exported.symbols.as_bytes())?;
        if exported.left_out_ns > 0 {
            output.note(&format!(
                "left out: {} ns of functions that are too small for gprof",
                exported.left_out_ns
            ));
        }
        let image = vmlinux(&subject);
        output.note(&format!("gprof -S {} {image} {}", symbols.display(), self.output.display()));
        Ok(Exit::Ok)
    }
}
