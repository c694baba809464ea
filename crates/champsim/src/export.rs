//! The format `champsim` of `kerntune export`.

use crate::{convert, convert_packed, ChampSimError, ChampSimTotals, InstructionFilter};
use clap::{Args, ValueEnum};
use kerntune_command::{
    entry, CliOutput, Entry, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_trace::files;
use kerntune_trace::stream::StreamReader;
use kerntune_tune::run_files::RUN;
use kerntune_work::{checked, IoContext};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Entry of the format.
pub const ENTRY: Entry = entry::<_, ExportChampsimOptions>("champsim", 35);

/// Instruction trace for the simulator ChampSim, from a recording with --instructions: registers,
/// branches, data addresses
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune record --kernel base --workload rr --instructions 4000000 --instructions-of tcp_rr\n  \
                  kerntune export champsim latest -o base.champsim.gz"
)]
pub struct ExportChampsimOptions {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file; compressed if its name ends in .gz
    #[arg(long, short, default_value = "profile.champsim.gz", value_name = "FILE")]
    output: PathBuf,
    /// Export all instructions, or only those of the kernel or of programs
    #[arg(long, value_enum, default_value_t = ExecutionMode::All, value_name = "MODE")]
    mode: ExecutionMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExecutionMode {
    All,
    Kernel,
    User,
}

impl RunSubcommand<GlobalOptions> for ExportChampsimOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let name = format!("{RUN}/{}", files::STREAM);
        let path = subject.directory.join(&name);
        let stream = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::usage(format!(
                    "{} has no instruction trace: record it with `kerntune record --instructions N`",
                    subject.directory.display()
                )))
            }
            other => other.at("open", &path)?,
        };
        checked(&subject.directory, &[&name])?;
        let mode = match self.mode {
            ExecutionMode::All => InstructionFilter::All,
            ExecutionMode::Kernel => InstructionFilter::Kernel,
            ExecutionMode::User => InstructionFilter::User,
        };
        let is_packed = self.output.extension().is_some_and(|extension| extension == "gz");
        let mut refused = None;
        let written = file.write_with(|out| {
            let reader = StreamReader::new(stream).map_err(ChampSimError::from);
            let converted = reader.and_then(|reader| match is_packed {
                true => convert_packed(reader, mode, out),
                false => convert(reader, mode, out),
            });
            converted.map_err(|error| match error {
                ChampSimError::Write(error) => error,
                error => {
                    refused = Some(error.to_string());
                    io::Error::other("the recording was not read")
                }
            })
        });
        if let Some(why) = refused {
            return Err(Failure { exit: Exit::Recording, message: format!("{}: {why}", path.display()) });
        }
        self.print_summary(&written?, output);
        Ok(Exit::Ok)
    }
}

impl ExportChampsimOptions {
    fn print_summary(&self, converted: &ChampSimTotals, output: &CliOutput) {
        let ChampSimTotals {
            instructions,
            kernel,
            branches,
            taken,
            reads,
            writes,
            left_out,
            guessed,
            undecoded,
        } = *converted;
        output.print(&format!(
            "wrote {}: {} instructions, {} of the kernel\n{} branches, {} taken; {} reads, {} writes\n",
            self.output.display(),
            grouped(instructions),
            grouped(kernel),
            grouped(branches),
            grouped(taken),
            grouped(reads),
            grouped(writes)
        ));
        for (count, what) in [
            (left_out, "accesses had no room in a record, which has 4 reads and 2 writes"),
            (
                guessed,
                "conditional branches were followed by an interrupt: kerntune guesses that they were not \
                 taken",
            ),
            (undecoded, "instructions could not be decoded, and have no registers"),
        ] {
            if count > 0 {
                output.note(&format!("{} {what}", grouped(count)));
            }
        }
        output.note(&format!(
            "champsim --warmup-instructions 1000000 --simulation-instructions N {}, N up to {}",
            self.output.display(),
            grouped(instructions)
        ));
    }
}
