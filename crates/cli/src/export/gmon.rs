//! The format `gmon` of `kerntune export`.

use super::{vmlinux, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::gmon::{self, GmonTarget};
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = entry::<_, ExportGmonOptions>("gmon", 3);

/// Self times and arcs for GNU gprof (gmon.out), with a symbol file
#[derive(Debug, Args)]
pub struct ExportGmonOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, short, default_value = "gmon.out", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RunSubcommand<GlobalOptions> for ExportGmonOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let files = GmonFiles::new("--output", &self.output)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let scope = kerntune_report::scope(&subject.profile, self.region.as_deref())?;
        files.write(&subject.profile, |region| scope.contains(region), &vmlinux(&subject), output)?;
        Ok(Exit::Ok)
    }
}

/// The two output files: a `gmon.out` and its symbols.
pub struct GmonFiles {
    gmon: OutputFile,
    symbols: OutputFile,
    named: [PathBuf; 2],
}

impl GmonFiles {
    /// Checks `path`, named by `option`, and the file of symbols beside it.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Err(Failure::usage(format!(
                "{option} -: gmon.out and its symbols are two files, so they cannot go to standard output; \
                 name a file: FILE and FILE.symbols are written"
            )));
        }
        let mut symbols = path.as_os_str().to_owned();
        symbols.push(".symbols");
        let symbols = PathBuf::from(symbols);
        Ok(Self {
            gmon: OutputFile::new(option, path)?,
            symbols: OutputFile::new(option, &symbols)?,
            named: [path.to_owned(), symbols],
        })
    }

    /// Writes the regions that `wanted` accepts, and prints how to read the files with gprof and
    /// `image`.
    pub fn write(
        &self,
        profile: &Profile,
        wanted: impl Fn(u32) -> bool,
        image: &str,
        output: &CliOutput,
    ) -> Result<(), Failure> {
        let sampled = profile.manifest.sampled.as_ref();
        // Sampled arcs have no counts of calls, and gprof would show them as never called.
        let without_arcs = sampled.filter(|sampled| sampled.calls.is_none()).map(|_| {
            let mut tables = profile.tables.clone();
            tables.arcs.clear();
            tables
        });
        let tables = without_arcs.as_ref().unwrap_or(&profile.tables);
        let exported = gmon::export(tables, wanted).map_err(Failure::usage)?;
        let gmon = exported.gmon.to_bytes(GmonTarget::LITTLE_64);
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
