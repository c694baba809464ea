//! The command `kerntune tags`.

use crate::import::{load_triggers, triggers_as_names};
use crate::{header, ExtendedNames, RequestedTag, TagKind, TagName, TagRange};
use clap::Args;
use kerntune_command::{
    command, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions, OutputFile, RunSubcommand,
};
use kerntune_guest::read_text;
use kerntune_kernel::Symbols;
use kerntune_trace::MIN_TAG_BITS;
use kerntune_work::Lock;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wildmatch::WildMatch;

/// Entry of the command.
pub const COMMAND: CommandEntry = command::<TagsOptions>("tags", 95, "Event tags");

/// Extend a names file of event tags for McRae's profiler, or write it as a C header
#[derive(Debug, Args)]
pub struct TagsOptions {
    /// The names file; created if it does not exist
    pub file: PathBuf,
    /// Functions to tag; with --from-symbols, patterns (`tcp_*`)
    pub names: Vec<String>,
    /// Tag the functions of this ELF file that match a NAME
    #[arg(long, value_name = "VMLINUX")]
    pub from_symbols: Option<PathBuf>,
    /// Write the names of all functions of this kernel, whose triggers the compiler placed, with
    /// the tags that the linker assigned
    #[arg(long, value_name = "VMLINUX", conflicts_with_all = ["names", "from_symbols", "inline", "context_switch", "first"])]
    pub from_triggers: Option<PathBuf>,
    /// Tag a point inside a function; may be repeated
    #[arg(long, value_name = "NAME")]
    pub inline: Vec<String>,
    /// Tag a function that switches between processes; may be repeated
    #[arg(long, value_name = "NAME")]
    pub context_switch: Vec<String>,
    /// First tag of a new file
    #[arg(long, value_name = "TAG", default_value_t = 2)]
    pub first: u64,
    /// Width of a tag, 16 to 64 bits, which limits new tags
    #[arg(long, value_name = "N", default_value_t = MIN_TAG_BITS, value_parser = clap::value_parser!(u32).range(16..=64))]
    pub tag_bits: u32,
    /// Write the tags for C and assembler (embedded/guest/kt_tags.h)
    #[arg(long, value_name = "FILE")]
    pub header: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for TagsOptions {
    fn run(&self, _global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = self.file.display().to_string();
        let file_of_names = OutputFile::new("FILE", &self.file)?;
        // Parallel make jobs may update the same names file. A lock keeps them from losing names or
        // assigning a tag twice.
        let directory = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let _alone = Lock::of_directory(directory.unwrap_or(Path::new(".")))?;
        let there = match self.file.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            _ => read_text("read names file", &self.file)?,
        };
        let text = match &self.from_triggers {
            Some(vmlinux) => placed(vmlinux, &file, &there)?,
            None => there.clone(),
        };
        let mut wanted: Vec<RequestedTag> = Vec::new();
        let mut want = |names: Vec<String>, kind| {
            wanted.extend(names.into_iter().map(|name| RequestedTag { name, kind }));
        };
        // Names given explicitly come before those that a pattern finds, which may be the same.
        want(self.context_switch.clone(), TagKind::ContextSwitch);
        match &self.from_symbols {
            Some(vmlinux) => want(matching(vmlinux, &self.names)?, TagKind::Function),
            None => want(self.names.clone(), TagKind::Function),
        }
        want(self.inline.clone(), TagKind::Inline);
        let range = TagRange { first: self.first, bits: self.tag_bits };
        let edited = ExtendedNames::new(&file, &text, &wanted, range).map_err(Failure::usage)?;
        let tags = match &self.header {
            Some(path) => Some((
                OutputFile::new("--header", path)?,
                header(&name_of(&self.file), &edited.names).map_err(Failure::usage)?,
            )),
            None => None,
        };
        if edited.text != there {
            file_of_names.write(edited.text.as_bytes())?;
        }
        if let Some((path, text)) = tags {
            // The file keeps its time stamp if nothing changed, so that make does not rebuild
            // everything.
            if !path.holds(text.as_bytes()) {
                path.write(text.as_bytes())?;
            }
        }
        show(&edited, self, output);
        Ok(Exit::Ok)
    }
}

/// Returns the names file of a kernel with triggers placed by the compiler. `there`, the existing
/// file, must belong to the same kernel or be empty.
fn placed(vmlinux: &Path, file: &str, there: &str) -> Result<String, Failure> {
    let text = triggers_as_names(&load_triggers(vmlinux)?);
    if !there.is_empty() && there != text {
        return Err(Failure::usage(format!(
            "{file} exists and has other names: each kernel has tags of its own, so give another file"
        )));
    }
    Ok(text)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn show(edited: &ExtendedNames, options: &TagsOptions, output: &CliOutput) {
    if options.format.json {
        let name = |name: &TagName| json!({ "name": name.name, "tag": name.tag, "kind": name.kind.as_str() });
        output.json(&json!({
            "schema": "kerntune-tags/1",
            "file": options.file,
            "names": edited.names.all().len(),
            "added": edited.added().iter().map(name).collect::<Vec<_>>(),
        }));
        return;
    }
    for name in edited.added() {
        output.print(&format!("{}/{}{}", name.name, name.tag, name.kind.modifier()));
    }
    let (added, all) = (edited.added().len(), edited.names.all().len());
    output.note(&format!("{added} added, {all} names in {}", options.file.display()));
}

/// Returns the functions of an ELF file that match a pattern, without repetitions, in order of
/// address.
fn matching(vmlinux: &Path, patterns: &[String]) -> Result<Vec<String>, Failure> {
    if patterns.is_empty() {
        return Err(Failure::usage(
            "--from-symbols takes patterns, such as 'tcp_*' or '*' for all functions",
        ));
    }
    let symbols = Symbols::load(vmlinux)?;
    let mut found = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut used = vec![false; patterns.len()];
    for function in symbols.functions().iter().filter(|function| function.part_of.is_none()) {
        let mut hit = false;
        for (pattern, used) in patterns.iter().zip(&mut used) {
            if WildMatch::new(pattern).matches(&function.name) {
                (hit, *used) = (true, true);
            }
        }
        if hit && seen.insert(function.name.clone()) {
            found.push(function.name.clone());
        }
    }
    if let Some(at) = used.iter().position(|used| !used) {
        let message = format!("no function of {} matches {}", vmlinux.display(), patterns[at]);
        return Err(Failure::usage(message));
    }
    Ok(found)
}
