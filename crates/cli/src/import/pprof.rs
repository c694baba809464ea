//! The format `pprof` of `kerntune import`.

use super::common::{name_of, sampling, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::pprof::import;
use kerntune_guest::read_input;
use kerntune_profile::{Anomaly, Ticks};
use kerntune_work::Key;
use std::path::PathBuf;

pub const ENTRY: Entry = import_entry::<ImportPprofOptions>("pprof", 6, recognize);

/// Recognizes a file by its name and its compression: a protocol buffer has no magic number.
fn recognize(input: &ImportInput) -> Option<Recognition> {
    let name = input.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = [".pb.gz", ".pprof", ".prof", ".pb"].iter().any(|end| name.ends_with(end))
        || name.starts_with("pprof.");
    let is_gzip = input.bytes.starts_with(b"\x1f\x8b");
    // The first field of a profile is a type of values, which has few bytes.
    let is_message = matches!(input.bytes.get(..3), Some([0x0a, 2..=8, 8]));
    match named && (is_gzip || is_message) {
        true => Recognition::likely("a profile of pprof"),
        false => None,
    }
}

/// Profile of pprof (protocol buffer, mostly compressed by gzip) with CPU time or event counts
#[derive(Debug, Args)]
pub struct ImportPprofOptions {
    /// The profile, for example profile.pb.gz
    file: PathBuf,
    /// Type of the values to import; by default the profile's own default, or its last type
    #[arg(long, value_name = "TYPE")]
    sample_type: Option<String>,
    #[command(flatten)]
    format: FormatOptions,
}

/// Largest file in bytes.
const LARGEST: u64 = 1 << 26;

impl RunSubcommand<GlobalOptions> for ImportPprofOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let bytes = read_input("read", &self.file, LARGEST)?;
        let key = Key::new("import-pprof/1", kerntune_tune::CODE)
            .field("profile", &bytes)
            .field("type", self.sample_type.as_deref().unwrap_or_default());
        let failed =
            |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", self.file.display()));
        let made = import(&bytes, self.sample_type.as_deref()).map_err(|error| failed(&error))?;
        let mut notes = vec![format!("used: {}", made.value)];
        if !made.other_values.is_empty() {
            notes.push(format!("left out: the values {}", made.other_values.join(", ")));
        }
        if made.each.is_none() {
            notes.push("its values are no time: each is shown as 1 ns".into());
        }
        if made.negative > 0 {
            notes.push(format!("left out: {} samples with negative values", made.negative));
        }
        let (weight, folded) = (made.stacks.samples(), made.stacks.folded());
        let each = made.each.unwrap_or(1);
        let tables =
            made.stacks.finish("pprof", each).ok_or_else(|| failed(&"its values overflow 64 bits"))?;
        let wall = if made.duration > 0 { Ticks(made.duration) } else { tables.regions[0].busy_ticks };
        let imported = ImportedProfile {
            path: &self.file,
            tool: "pprof",
            workload: name_of(&self.file),
            release: None,
            events: weight,
            lost: 0,
            health: vec![(Anomaly::FoldedSamples, folded), (Anomaly::UnnamedFrames, made.unnamed)],
            sampled: made
                .is_sampled
                .then(|| sampling(format!("pprof: {}", made.value), weight, each, 1, wall)),
            tables,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}
