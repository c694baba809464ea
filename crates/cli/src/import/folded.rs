//! The format `folded` of `kerntune import`.

use super::common::{name_of, sampling, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::folded::{import, parse_line, FoldedError};
use kerntune_profile::Anomaly;
use kerntune_work::{open_file, IoContext, Key};
use std::io::BufReader;
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportFoldedOptions>("folded", 5, recognize);

/// Recognizes lines `a;b;c N`: all must be stacks, and some have a `;`.
fn recognize(input: &ImportInput) -> Option<Recognition> {
    let lines = input.lines()?.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let (mut stacks, mut deep) = (0_u64, false);
    for line in lines {
        deep |= parse_line(line)?.0.contains(';');
        stacks += 1;
    }
    if stacks > 0 && deep {
        Recognition::likely("folded stacks")
    } else {
        None
    }
}

/// Folded stacks (`a;b;c N`), as stackcollapse-perf.pl and many others write them
#[derive(Debug, Args)]
pub struct ImportFoldedOptions {
    /// File with a stack and its count on each line
    file: PathBuf,
    /// Time that one count stands for, in ns; the file does not say it
    #[arg(long, value_name = "NS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    sample_ns: u64,
    /// The first frame of a stack is a function, not the name of a thread
    #[arg(long)]
    no_threads: bool,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportFoldedOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let key = Key::new("import-folded/1", kerntune_tune::CODE)
            .file("stacks", &self.file)?
            .field("sample_ns", self.sample_ns.to_string())
            .field("threads", (!self.no_threads).to_string());
        open_file(&self.file).at("read", &self.file)?;
        let made = import(|| open_file(&self.file).map(BufReader::new), self.no_threads).map_err(
            |error| match error {
                FoldedError::Io(error) => match Err::<(), _>(error).at("read", &self.file) {
                    Err(error) => Failure::from(error),
                    Ok(()) => Failure::usage(""),
                },
                other => Failure::usage(format!("{}: {other}", self.file.display())),
            },
        )?;
        let mut notes = vec![format!("used: {} stacks with {} counts", made.lines, made.stacks.samples())];
        if self.sample_ns == 1 {
            notes.push(
                "the file does not say what a count stands for: it is shown as 1 ns (--sample-ns has the time of a sample)"
                    .into(),
            );
        }
        if !made.marks_kernel {
            notes.push(
                "no function is marked as the kernel's (stackcollapse-perf.pl --kernel): all count as the kernel's".into(),
            );
        }
        let (samples, folded) = (made.stacks.samples(), made.stacks.folded());
        let tables = made
            .stacks
            .finish("folded", self.sample_ns)
            .ok_or_else(|| Failure::usage(format!("{}: its counts overflow 64 bits", self.file.display())))?;
        let imported = ImportedProfile {
            path: &self.file,
            tool: "folded stacks",
            workload: name_of(&self.file),
            release: None,
            events: samples,
            lost: 0,
            health: vec![(Anomaly::FoldedSamples, folded)],
            sampled: Some(sampling(
                "folded stacks".into(),
                samples,
                self.sample_ns,
                1,
                tables.regions[0].busy_ticks,
            )),
            tables,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}
