//! The format `perf` of `kerntune export`.

use super::{left_out, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::autofdo::BranchRecords;
use kerntune_convert::perf_data::{BranchWalk, InstructionDraw, PerfPipeWriter, WrittenMachine};
use kerntune_kernel::{find_recorded, Kernel};
use kerntune_optimize::quality::LinkedCode;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportPerfOptions>("perf", 5);

/// Most branches of a stack: with more, a sample would not fit into a record of perf.
const MAX_DEPTH: u16 = 1024;

/// `CONFIG_PHYSICAL_ALIGN`: the kernel's image begins at a multiple.
const ALIGNMENT: u64 = 1 << 21;

/// Samples that a CPU with branch records would take of the same run, drawn from the exact counts, as
/// perf.data (kerntune import perf, perf report, llvm-profgen)
#[derive(Debug, Args)]
pub struct ExportPerfOptions {
    /// A recording with edges: beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    profile: String,
    /// Taken branches between two samples on average; with --no-branches, instructions
    #[arg(long, value_name = "N")]
    period: NonZeroU64,
    /// Branches of a stack: 32 as most CPUs of Intel and Arm, 16 as AMD's
    #[arg(long, value_name = "BRANCHES", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=MAX_DEPTH as i64), conflicts_with = "no_branches")]
    depth: u16,
    /// Write samples of instructions, without the last branches
    #[arg(long)]
    no_branches: bool,
    /// Another seed draws other samples of the same counts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write to this file, in the form that perf writes to a pipe
    #[arg(long, short, default_value = "perf.data", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportPerfOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let profile = &subject.profile;
        let id = &profile.manifest.kernel.id;
        let kernel = find_recorded(&subject.work, id)?.ok_or_else(|| {
            Failure::usage(format!(
                "kernel {id} of this profile is not in the work directory, and samples need its code"
            ))
        })?;
        let image = LinkedCode::load(&kernel)?;
        let machine = self.machine(&kernel, &image)?;
        let records = BranchRecords::of(&profile.tables).map_err(Failure::usage)?;
        let (events, samples) = match self.no_branches {
            false => {
                let mut walk = BranchWalk::new(&records, self.seed).map_err(Failure::usage)?;
                let (events, samples) = (walk.branches(), self.samples(walk.branches(), "taken branches")?);
                file.write_with(|out| self.branches(&mut walk, samples, machine, out))?;
                (events, samples)
            }
            true => {
                let in_image = |at: u64| image.symbols().lookup(at).is_some();
                let blocks = &profile.tables.blocks;
                let mut draw = InstructionDraw::new(blocks, |block| in_image(block.start.get()), self.seed)
                    .map_err(Failure::usage)?;
                let events = draw.instructions();
                let samples = self.samples(events, "instructions")?;
                file.write_with(|out| Self::instructions(&mut draw, &image, samples, machine, out))?;
                (events, samples)
            }
        };
        left_out(&profile.tables, records.outside_bytes, records.executed_bytes, output);
        let what = if self.no_branches { "instructions" } else { "taken branches" };
        output.note(&format!(
            "{} samples of {} {what}, one in {}; kerntune import perf {} --kernel {}",
            grouped(samples),
            grouped(events),
            grouped(self.period.get()),
            self.output.display(),
            kernel.manifest.label
        ));
        Ok(Exit::Ok)
    }
}

impl ExportPerfOptions {
    /// Returns the number of samples of so many events.
    fn samples(&self, events: u64, what: &str) -> Result<u64, Failure> {
        match events / self.period.get() {
            0 => Err(Failure::usage(format!(
                "--period {}: the profile has {} {what}, so that this gives no sample: choose a smaller one",
                self.period,
                grouped(events)
            ))),
            samples => Ok(samples),
        }
    }

    fn machine(&self, kernel: &Kernel, image: &LinkedCode) -> Result<WrittenMachine, Failure> {
        let first = image.symbols().functions().iter().map(|function| function.address).min();
        let mut build_id = [0; 20];
        let known = kernel.build_id()?.unwrap_or_default();
        for (byte, digits) in build_id.iter_mut().zip(known.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        Ok(WrittenMachine {
            hostname: "kerntune".into(),
            release: kernel.manifest.version.clone(),
            build_id,
            text_at: first.unwrap_or_default() & !(ALIGNMENT - 1),
            cpus: 1,
            is_plain: self.no_branches,
            period: self.period.get(),
            ..WrittenMachine::default()
        })
    }

    fn branches(
        &self,
        walk: &mut BranchWalk,
        samples: u64,
        machine: WrittenMachine,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut writer = PerfPipeWriter::begin(machine, out)?;
        let mut stack = Vec::new();
        for _ in 0..samples {
            walk.stack(self.depth.into(), &mut stack);
            let ip = stack.first().map_or(0, |(_, target, _)| *target);
            writer.sample(0, ip, &stack)?;
        }
        Ok(())
    }

    fn instructions(
        draw: &mut InstructionDraw,
        image: &LinkedCode,
        samples: u64,
        machine: WrittenMachine,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut writer = PerfPipeWriter::begin(machine, out)?;
        for _ in 0..samples {
            let Some((block, number)) = draw.draw() else { break };
            let start = block.start.get();
            // Code that the kernel patched at boot may have other instructions than the image.
            let found = image.instruction(start, number).filter(|ip| *ip <= block.last.get());
            writer.sample(0, found.unwrap_or(start), &[])?;
        }
        Ok(())
    }
}
