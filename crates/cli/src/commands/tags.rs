//! The command `kerntune tags`.

use crate::args::TagsOptions;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::CliOutput;
use kerntune_convert::mcrae::{header, ExtendedNames, RequestedTag, TagKind, TagName};
use kerntune_guest::read_text;
use kerntune_kernel::{Symbols, Triggers};
use kerntune_tune::import_mcrae::{no_triggers, triggers_as_names};
use kerntune_work::Lock;
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;
use wildmatch::WildMatch;

pub fn run(options: &TagsOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let file = options.file.display().to_string();
    let file_of_names = OutputFile::new("FILE", &options.file)?;
    // Parallel make jobs may update the same names file. A lock keeps them from losing names or
    // assigning a tag twice.
    let directory = options.file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let _alone = Lock::of_directory(directory.unwrap_or(Path::new(".")))?;
    let there = match options.file.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        _ => read_text("read names file", &options.file)?,
    };
    let text = match &options.from_triggers {
        Some(vmlinux) => placed(vmlinux, &file, &there)?,
        None => there.clone(),
    };
    let mut wanted: Vec<RequestedTag> = Vec::new();
    let mut want = |names: Vec<String>, kind| {
        wanted.extend(names.into_iter().map(|name| RequestedTag { name, kind }));
    };
    // Names given explicitly come before those that a pattern finds, which may be the same.
    want(options.context_switch.clone(), TagKind::ContextSwitch);
    match &options.from_symbols {
        Some(vmlinux) => want(matching(vmlinux, &options.names)?, TagKind::Function),
        None => want(options.names.clone(), TagKind::Function),
    }
    want(options.inline.clone(), TagKind::Inline);
    let edited = ExtendedNames::new(&file, &text, &wanted, options.first).map_err(Failure::usage)?;
    let tags = match &options.header {
        Some(path) => Some((
            OutputFile::new("--header", path)?,
            header(&name_of(&options.file), &edited.names).map_err(Failure::usage)?,
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
    show(&edited, options, output);
    Ok(Exit::Ok)
}

/// Returns the names file of a kernel with triggers placed by the compiler. `there`, the existing
/// file, must belong to the same kernel or be empty.
fn placed(vmlinux: &Path, file: &str, there: &str) -> Result<String, Failure> {
    let triggers = Triggers::load(vmlinux)?.ok_or_else(|| no_triggers(vmlinux))?;
    let text = triggers_as_names(&triggers);
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
