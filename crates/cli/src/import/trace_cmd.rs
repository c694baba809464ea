//! The format `trace-cmd` of `kerntune import`.

use super::common::{counts, name_of, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::trace_dat::{import, TraceDat, TraceDatError, TraceNames, MAGIC};
use kerntune_live::ChainRole;
use kerntune_work::{open_file, IoContext, Key};
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportTraceCmdOptions>("trace-cmd", 3, recognize);

fn recognize(input: &ImportInput) -> Option<Recognition> {
    match input.bytes.starts_with(&MAGIC) {
        true => Recognition::certain("a trace.dat of trace-cmd"),
        false => None,
    }
}

/// trace.dat of trace-cmd: functions, function graph, switches, interrupts, system calls
#[derive(Debug, Args)]
pub struct ImportTraceCmdOptions {
    /// trace.dat, version 6 or 7
    file: PathBuf,
    /// Name of the machine's workload, for the profile
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportTraceCmdOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let key = Key::new("import-trace-cmd/1", kerntune_tune::CODE)
            .file("trace", &self.file)?
            .field("workload", self.workload.as_deref().unwrap_or_default());
        let failed = |error: TraceDatError| match error {
            TraceDatError::Io(error) => {
                Err::<(), _>(error).at("read", &self.file).map_or_else(Failure::from, |()| Failure::usage(""))
            }
            other => Failure::usage(format!("{}: {other}", self.file.display())),
        };
        let mut file = open_file(&self.file).at("read", &self.file)?;
        let trace = TraceDat::open(&mut file).map_err(failed)?;
        let names = TraceNames {
            halts: |name| ChainRole::of(name) == ChainRole::Halt,
            is_scheduler: |name| ChainRole::of(name) == ChainRole::Scheduler,
        };
        let made = import(&trace, &mut file, names).map_err(failed)?;
        let mut notes = vec![format!("used: {}", counts(&made.used))];
        if !made.left_out.is_empty() {
            notes.push(format!(
                "left out, because the profile has no place for them: {}",
                counts(&made.left_out)
            ));
        }
        if !made.other_buffers.is_empty() {
            notes.push(format!("left out: the events of other instances: {}", made.other_buffers.join(", ")));
        }
        if made.lost > 0 {
            notes.push(format!(
                "the tracer lost {} events: counts and times are too low (trace-cmd record -b makes its buffers larger)",
                made.lost
            ));
        } else if made.uncounted_losses > 0 {
            notes.push(format!(
                "the tracer lost events in {} places: counts and times are too low",
                made.uncounted_losses
            ));
        }
        if !made.made.totals.has_switches {
            notes.push(
                "it has no context switches: times of functions include the time in which a thread waits (add -e \
                 sched_switch)"
                    .into(),
            );
        }
        let imported = ImportedProfile {
            path: &self.file,
            tool: "trace-cmd",
            workload: self.workload.clone().unwrap_or_else(|| name_of(&self.file)),
            release: made.release,
            tables: made.made.tables,
            events: made.events,
            lost: made.lost,
            health: made.health,
            sampled: None,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}
