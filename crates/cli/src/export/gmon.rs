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
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = entry::<_, Options>("gmon", 3);

/// Self times and arcs for GNU gprof (gmon.out), with the symbols that go with them
#[derive(Debug, Args)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, short, default_value = "gmon.out", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let files = Files::new("--output", &self.output)?;
        let subject = Subject::open(global, &self.profile)?;
        let scope = kerntune_report::scope(&subject.profile, self.region.as_deref())?;
        files.write(&subject.profile, |region| scope.contains(region), &vmlinux(&subject), output)?;
        Ok(Exit::Ok)
    }
}

/// A `gmon.out` and its symbols, to be written.
pub struct Files {
    gmon: OutputFile,
    symbols: OutputFile,
    named: [PathBuf; 2],
}

impl Files {
    /// `path` and the file of its symbols beside it, as `option` names them.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let mut symbols = path.as_os_str().to_owned();
        symbols.push(".symbols");
        let symbols = PathBuf::from(symbols);
        Ok(Self {
            gmon: OutputFile::new(option, path)?,
            symbols: OutputFile::new(option, &symbols)?,
            named: [path.to_owned(), symbols],
        })
    }

    /// Writes the regions for which `wanted` holds; says how to read them with the image `image`.
    pub fn write(
        &self,
        profile: &Profile,
        wanted: impl Fn(u32) -> bool,
        image: &str,
        output: &Output,
    ) -> Result<(), Failure> {
        let sampled = profile.manifest.sampled.as_ref();
        // An arc that was sampled and not counted would be one that was never taken.
        let without_arcs = sampled.filter(|sampled| sampled.calls.is_none()).map(|_| {
            let mut tables = profile.tables.clone();
            tables.arcs.clear();
            tables
        });
        let tables = without_arcs.as_ref().unwrap_or(&profile.tables);
        let exported = gmon::export(tables, wanted).map_err(Failure::usage)?;
        let gmon = exported.gmon.to_bytes(Target::LITTLE_64);
        OutputFile::write_together(&[(&self.gmon, &gmon), (&self.symbols, exported.symbols.as_bytes())])?;
        if exported.left_out_ns > 0 {
            output.note(&format!(
                "left out: {} ns of functions that are too small for gprof",
                exported.left_out_ns
            ));
        }
        let [gmon, symbols] = self.named.each_ref().map(|path| path.display());
        let flat = match without_arcs {
            Some(_) => {
                output.note("no calls were counted: gprof can print a flat profile, but no call graph");
                " -p"
            }
            None => "",
        };
        output.note(&format!("gprof{flat} -S {symbols} {image} {gmon}"));
        Ok(())
    }
}
