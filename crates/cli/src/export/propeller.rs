//! The format `propeller` of `kerntune export`.

use super::{absolute, recorded_kernel, source_names, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::own_build::SourceNames;
use kerntune_kernel::Compiler;
use kerntune_tune::own_build::{propeller, MakeLine};
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = entry::<_, ExportPropellerOptions>("propeller", 5);

/// Propeller's profiles for compiler and linker, for a kernel that you build yourself
/// (CLANG_PROPELLER_PROFILE_PREFIX; docs/own-builds.md)
#[derive(Debug, Args)]
pub struct ExportPropellerOptions {
    /// Recording of a kernel with a map of its blocks: beginning of an id, directory, `latest`,
    /// `latest~1` (the one before), or `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to PREFIX_cc_profile.txt and PREFIX_ld_profile.txt, and the kernel's own AutoFDO profile
    /// to PREFIX.afdo
    #[arg(long, short, default_value = "propeller", value_name = "PREFIX")]
    output: PathBuf,
    /// Names of sources in your build: `in-tree`, `below` (O= is a directory directly below the source)
    /// or the absolute path of the source (O= is elsewhere)
    #[arg(long, default_value = "in-tree", value_name = "WHERE", value_parser = source_names)]
    sources: SourceNames,
}

impl RunSubcommand<GlobalOptions> for ExportPropellerOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if self.output == Path::new("-") {
            return Err(Failure::usage(
                "--output -: these are two files, so they cannot go to standard output; name their common beginning",
            ));
        }
        let file = |ending: &str| {
            let mut path = self.output.clone().into_os_string();
            path.push(ending);
            OutputFile::new("--output", Path::new(&path))
        };
        let (compiler, linker, afdo) = (file("_cc_profile.txt")?, file("_ld_profile.txt")?, file(".afdo")?);
        let subject = ProfileSubject::open(global, &self.profile)?;
        let kernel = recorded_kernel(&subject)?;
        let made = propeller(&subject.work, &subject.profile, &kernel, &self.sources)?;
        let mut files = vec![(&compiler, made.compiler.as_bytes()), (&linker, made.linker.as_bytes())];
        files.extend(made.afdo.as_ref().map(|bytes| (&afdo, bytes.as_slice())));
        OutputFile::write_together(&files)?;
        output.note(&made.summary.to_string());
        let prefix = absolute(compiler.path());
        let prefix = prefix.strip_suffix("_cc_profile.txt").unwrap_or(&prefix);
        let with = made.afdo.as_ref().map(|_| absolute(afdo.path()));
        let clang: Compiler = kernel.manifest.cc.parse()?;
        super::note_line(&MakeLine::propeller(prefix, with.as_deref(), &clang), output);
        Ok(Exit::Ok)
    }
}
