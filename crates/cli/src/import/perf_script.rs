//! The format `perf-script` of `kerntune import`.

use super::common::{counts, name_of, sampling, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::perf_script::{import, PerfScriptError, PerfScriptOptions, SampleLine};
use kerntune_profile::{Anomaly, Ticks};
use kerntune_work::{open_file, IoContext, Key};
use std::io::BufReader;
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportPerfScriptOptions>("perf-script", 9, recognize);

/// Events that count nanoseconds.
const CLOCKS: [&str; 2] = ["cpu-clock", "task-clock"];

/// Recognizes a text whose first line, apart from comments, begins a sample with an event.
fn recognize(input: &ImportInput) -> Option<Recognition> {
    let mut lines = input.lines()?.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.find(|line| !line.contains("PERF_RECORD_"))?;
    SampleLine::parse(first)?.event.and_then(|_| Recognition::likely("samples as `perf script` prints them"))
}

/// Text of perf script: samples with or without call chains, as a profile for reports
#[derive(Debug, Args)]
pub struct ImportPerfScriptOptions {
    /// Output of perf script
    file: PathBuf,
    /// The event to import, if there are several; by default that of the first sample
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Keep functions of programs; otherwise user time is one row
    #[arg(long)]
    user_chains: bool,
    /// Time that a sample stands for, in ns; by default the mean period of a clock
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u64).range(1..))]
    sample_ns: Option<u64>,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportPerfScriptOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let key = Key::new("import-perf-script/1", kerntune_tune::CODE)
            .file("samples", &self.file)?
            .field("name", name_of(&self.file))
            .field("event", self.event.as_deref().unwrap_or_default())
            .field("user chains", self.user_chains.to_string())
            .field("sample_ns", self.sample_ns.unwrap_or_default().to_string());
        let input = BufReader::new(open_file(&self.file).at("read", &self.file)?);
        let options = PerfScriptOptions { event: self.event.as_deref(), user_chains: self.user_chains };
        let made = import(input, options).map_err(|error| match error {
            PerfScriptError::Io(source) => {
                kerntune_work::Error::Io { action: "read", path: self.file.clone(), source }.into()
            }
            other => Failure::usage(format!("{}: {other}", self.file.display())),
        })?;
        let samples = made.stacks.samples();
        let event = made.event.as_deref().unwrap_or("an event without a name");
        let mut notes = vec![format!("used: {samples} samples of {event}")];
        if !made.others.is_empty() {
            notes.push(format!("left out: samples of other events: {}", counts(&made.others)));
        }
        if made.records > 0 {
            notes.push(format!("left out: {} records that are no samples", made.records));
        }
        let of_clock = made.period.filter(|_| CLOCKS.iter().any(|clock| event.starts_with(clock)));
        let each = self.sample_ns.or(of_clock).unwrap_or(1);
        if self.sample_ns.is_none() && of_clock.is_none() {
            notes.push(
                "the text does not say for how long a sample stands: it is shown as 1 ns (--sample-ns has its time)".into(),
            );
        }
        let folded = made.stacks.folded();
        let region = name_of(&self.file);
        let tables = made.stacks.finish(&region, each).ok_or_else(|| {
            Failure::usage(format!("{}: the time of its samples overflows 64 bits", self.file.display()))
        })?;
        let cpus = made.cpus.max(1) as u64;
        let imported = ImportedProfile {
            path: &self.file,
            tool: "perf script",
            workload: region,
            release: made.release,
            events: samples,
            lost: 0,
            health: vec![(Anomaly::FoldedSamples, folded)],
            sampled: Some(sampling(
                format!("perf script: {event}"),
                samples,
                each,
                cpus,
                Ticks(tables.regions[0].busy_ticks.get() / cpus),
            )),
            tables,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}
