//! The format `uftrace` of `kerntune import`.

use super::common::{name_of, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::uftrace::{ImportError, UftraceImporter};
use kerntune_guest::{read_input, read_text};
use kerntune_profile::Anomaly;
use kerntune_work::{open_file, IoContext, Key};
use std::io::BufReader;
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = import_entry::<ImportUftraceOptions>("uftrace", 4, recognize);

fn recognize(input: &ImportInput) -> Option<Recognition> {
    match input.has("info") && input.has("task.txt") {
        true => Recognition::certain("a directory of uftrace"),
        false => None,
    }
}

/// Directory that `uftrace record` wrote: functions of programs with their times
#[derive(Debug, Args)]
pub struct ImportUftraceOptions {
    /// The directory, `uftrace.data` if uftrace named it
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

/// Largest text file of a directory, in bytes.
const TEXT_MAX: u64 = 1 << 30;

impl RunSubcommand<GlobalOptions> for ImportUftraceOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let input = ImportInput::read(&self.directory)?;
        if recognize(&input).is_none() {
            return Err(Failure::usage(format!(
                "{} is no directory of uftrace: it has no files `info` and `task.txt`",
                self.directory.display()
            )));
        }
        let names = files(&self.directory)?;
        let failed = |error: ImportError| Failure::usage(format!("{}: {error}", self.directory.display()));
        let at = |name: &str| self.directory.join(name);
        let mut key = Key::new("import-uftrace/1", kerntune_tune::CODE);
        for name in &names {
            key = key.file(name, &at(name))?;
        }
        let info = read_input("read", &at("info"), TEXT_MAX)?;
        let mut importer =
            UftraceImporter::new(&info, &read_text("read", &at("task.txt"))?).map_err(failed)?;
        for session in importer.sessions() {
            // The id comes from a file and becomes part of a path.
            let map = format!("sid-{session}.map");
            if names.contains(&map) {
                importer.add_map(&session, &read_text("read", &at(&map))?);
            }
        }
        for name in names.iter().filter(|name| has_end(name, "sym")) {
            importer.add_symbols(&String::from_utf8_lossy(&read_input("read", &at(name), TEXT_MAX)?));
        }
        let mut others = Vec::new();
        for name in names.iter().filter(|name| has_end(name, "dat")) {
            let path = at(name);
            let Some(tid) = name.strip_suffix(".dat").and_then(|tid| tid.parse().ok()) else {
                if std::fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
                    others.push(name.as_str());
                }
                continue;
            };
            let file = BufReader::with_capacity(1 << 16, open_file(&path).at("read", &path)?);
            importer.add_thread(tid, name, file).map_err(failed)?;
        }
        let records = importer.records();
        let (release, command) = (importer.release.clone(), importer.command.clone());
        let (made, left_out) = importer.finish().map_err(failed)?;
        let mut notes = vec![
            format!("used: {records} entries and exits of functions"),
            "times of functions include the time in which a thread waits, as in uftrace".into(),
        ];
        if !others.is_empty() {
            notes.push(format!("left out: {} (kernel functions and events)", others.join(", ")));
        }
        if left_out.events > 0 {
            notes.push(format!("left out: {} events beside functions", left_out.events));
        }
        if left_out.lost > 0 {
            notes.push(format!("uftrace lost {} records: counts and times are too low", left_out.lost));
        }
        if left_out.unnamed > 0 {
            notes.push(format!(
                "{} calls are of code that no symbol names: their addresses stand for names",
                left_out.unnamed
            ));
        }
        let imported = ImportedProfile {
            path: &self.directory,
            tool: "uftrace",
            workload: command.unwrap_or_else(|| name_of(&self.directory)),
            release,
            events: records,
            lost: left_out.lost,
            health: vec![
                (Anomaly::LostEvents, left_out.lost),
                (Anomaly::UnnamedCalls, left_out.unnamed),
                (Anomaly::CutCalls, made.mismatches.unended),
                (Anomaly::CrowdedCalls, made.mismatches.crowded),
            ],
            tables: made.tables,
            sampled: None,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}

/// Lists the files of a directory by name.
fn files(directory: &Path) -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(directory).at("list", directory)?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.at("list", directory)?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn has_end(name: &str, end: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == end)
}
