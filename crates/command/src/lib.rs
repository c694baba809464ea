//! Base of all commands: entries of commands, global and common options, output, progress, exit
//! statuses, files that the user names.
//!
//! A command, a format of `export` or `import`, and a report are each a struct for the arguments
//! that implements [`RunSubcommand`], and an [`entry`] with its name. Start from [`Room`] for a
//! crate that brings commands and formats of its own.

mod dry_run;
mod exit;
mod files;
mod global;
mod interval;
mod kept;
mod kernel_words;
mod options;
mod output;
mod pager;
mod points;
mod progress;
mod recognition;
mod registry;
mod room;
mod stderr;
mod streams;
mod subject;
mod tag_layout_options;
mod timed_files;

pub use dry_run::{bytes, show_steps, DryRunOptions};
pub use exit::{separate_damage, Exit, Failure};
pub use files::{check_config, check_input, output_directory, OutputFile};
pub use global::{work, work_to_read, ColorMode, FormOptions, FormatOptions, GlobalOptions};
pub use interval::IntervalOptions;
pub use kept::RecordedProgress;
pub use kernel_words::label;
pub use options::{
    base_request, build_request, command_line, exclusions, kernel_for, workload, BuildOptions, CpuOptions,
    ExcludeOptions, ModelOptions, RecipeFlags, MAX_MINUTES, SOURCE,
};
pub use output::{print_clap_message, CliOutput};
pub use points::{points, typical_path};
pub use recognition::{import_entry, ImportEntry, ImportInput, Recognition};
pub use registry::{
    command, command_group, entry, ChosenSubcommand, CommandEntry, Entry, RunSubcommand, SubcommandFolder,
    SubcommandRegistry,
};
pub use room::{audit, AuditEntry, AuditStores, AuditedStore, Room};
pub use stderr::say;
pub use subject::{print_summary, ProfileJson, ProfileSubject};
pub use tag_layout_options::{TagLayoutOptions, TickLength};
pub use timed_files::{read_results, timed_pairs, TimedFiles};
