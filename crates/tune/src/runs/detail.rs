//! Details of a recording beyond every kernel function: selections, points, user code, weights,
//! event tags; converted from options to a request for the machine.

use crate::{Error, Result, Session};
use kerntune_guest::{read_text, GuestImage, Workload};
use kerntune_kernel::{Kernel, StructureOffsets};
use kerntune_machine::{
    debug_structures, has_io, load_user_binary, loads_code, resolve_points, suggestions, CaptureRequest,
    FunctionSelection, InlinePoint, UserBinary,
};
use kerntune_profile::{Address, FunctionIndex, Symbol};
use kerntune_trace::loaded::LoadedFunction;
use kerntune_trace::stream::StreamSpec;
use kerntune_trace::{TagLayout, TagSource, TagWindow};
use kerntune_work::{interrupt, Key, Progress};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Details as given by options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetailRequest {
    /// Kernel functions to trace.
    pub selection: FunctionSelection,
    /// Inline points: `symbol`, `symbol+0x1f`, `file.c:line`.
    pub points: Vec<String>,
    /// Programs and libraries whose user functions are traced ([`kerntune_guest::locate`]).
    pub users: Vec<String>,
    /// True to record branches and misses with every event.
    pub weights: bool,
    /// True to model the cache misses of data accesses.
    pub data: bool,
    /// Instructions to record one by one.
    pub stream: Option<StreamSpec>,
    /// Port or memory range to which event tags of McRae's profiler are written.
    pub tags: Option<TagSource>,
    /// True to read the guest's /proc around each step.
    pub proc: bool,
}

/// Name of the symbol for code in no known function.
pub(crate) const UNKNOWN: &str = "[unknown code]";
/// Name of the same symbol if a selection leaves functions out.
const NOT_TRACED: &str = "[not traced]";

/// Details for one kernel and one image.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResolvedDetail {
    skip: Vec<bool>,
    /// Patterns for code that the kernel loads, if it can.
    selection: FunctionSelection,
    points: Vec<InlinePoint>,
    binaries: Vec<(PathBuf, UserBinary)>,
    weights: bool,
    data: bool,
    stream: Option<StreamSpec>,
    tags: Option<TagSource>,
    /// Layout of the kernel's structures for requests and packets.
    structures: StructureOffsets,
    /// Options, one line each, for the manifest.
    said: Vec<String>,
}

impl DetailRequest {
    pub(crate) fn resolve(
        &self,
        session: &Session,
        kernel: &Kernel,
        (workload, image): (&Workload, &GuestImage),
        functions: bool,
        model: bool,
    ) -> Result<ResolvedDetail> {
        if self.weights && !model {
            return Err(Error::WeightsWithoutModel);
        }
        let needs = [
            (!self.selection.is_everything(), "--only and --skip"),
            (!self.points.is_empty(), "--point"),
            (!self.users.is_empty(), "--user"),
            (self.weights, "--weights"),
            (self.data, "--data"),
        ];
        if let Some((_, option)) = needs.into_iter().find(|(used, _)| *used && !functions) {
            return Err(Error::NeedsFunctions { option });
        }
        let mut resolved = ResolvedDetail {
            weights: self.weights,
            data: self.data,
            stream: self.stream.clone(),
            tags: self.tags,
            said: self.option_lines(),
            ..ResolvedDetail::default()
        };
        if !self.selection.is_everything() || !self.points.is_empty() {
            let symbols = kernel.symbols()?;
            if !self.selection.is_everything() {
                let loads_code = loads_code(&symbols);
                resolved.skip = self.selection.resolve(symbols.functions(), loads_code)?;
                match loads_code {
                    true => resolved.selection = self.selection.clone(),
                    false => tell_absent(&self.selection.absent(symbols.functions()), session.progress),
                }
            }
            resolved.points = resolve_points(kernel, &symbols, &self.points)?;
        }
        for word in &self.users {
            resolved.binaries.push(binary(session, workload, image, word)?);
        }
        Ok(resolved)
    }

    fn option_lines(&self) -> Vec<String> {
        let Self { selection, points, users, weights, data, stream, tags, proc } = self;
        let list = |option: &str, words: &[String]| -> Option<String> {
            (!words.is_empty()).then(|| format!("{option} {}", words.join(&format!(" {option} "))))
        };
        [
            list("--only", &selection.only),
            list("--skip", &selection.skip),
            list("--point", points),
            list("--user", users),
            weights.then(|| "--weights".to_string()),
            data.then(|| "--data".to_string()),
            stream.as_ref().map(|StreamSpec { region, instructions }| {
                let region = region.as_ref().map_or(String::new(), |name| format!(" of {name}"));
                format!("--instructions {instructions}{region}")
            }),
            tags.map(tag_options),
            proc.then(|| "--proc".to_string()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns the options that record tags in this way. A layout other than McRae's is named.
fn tag_options(TagSource { window, layout }: TagSource) -> String {
    let mut text = match window {
        TagWindow::Port(port) => format!("--tags port:{port:#x}"),
        TagWindow::Memory { base, size } => format!("--tags memory:{base:#x}+{size:#x}"),
    };
    if layout != TagLayout::MCRAE {
        let (ns, ps) = (layout.tick_ps() / 1000, layout.tick_ps() % 1000);
        text += &format!(
            " --tag-bits {} --clock-bits {} --tick-ns {ns}.{ps:03}",
            layout.tag_bits(),
            layout.clock_bits()
        );
    }
    text
}

fn binary(
    session: &Session,
    workload: &Workload,
    image: &GuestImage,
    word: &str,
) -> Result<(PathBuf, UserBinary)> {
    let path = kerntune_guest::locate(session.work, workload, &image.manifest, word)?;
    let path = path.ok_or_else(|| {
        let near = suggestions(word, kerntune_guest::similar(&image.manifest));
        let hint =
            if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
        Error::NoProgram { word: word.to_string(), hint }
    })?;
    let binary = load_user_binary(&path)?;
    if binary.dynamic_only {
        let package = kerntune_guest::package_of(&path);
        let remedy = package.map_or("use a file that is not stripped".into(), |package| {
            format!("install {package}-dbgsym, or use a file that is not stripped")
        });
        session.progress.note(&format!(
            "warning: {} is stripped: its own functions have no symbols and look like parts of their callers; {remedy}",
            path.display()
        ));
    }
    Ok((path, binary))
}

impl ResolvedDetail {
    /// Determines the layout of the kernel's structures for block requests and network packets:
    /// from the build, from debug information, or with the compiler. Without it requests and
    /// packets are not recorded.
    pub fn find_io_structures(&mut self, session: &Session, kernel: &Kernel) -> Result<()> {
        if !has_io(kernel.symbols()?.functions()) {
            return Ok(());
        }
        self.structures = kernel.manifest.structures.clone();
        if self.structures.is_empty() {
            self.structures = debug_structures(kernel)?;
        }
        if self.structures.is_empty() {
            match kerntune_kernel::structure_offsets(session.work, kernel, session.progress) {
                Ok(found) => self.structures = found,
                Err(error) => {
                    interrupt::check()?;
                    session.progress.note(&format!(
                        "requests to block devices and network packets are not seen, as it cannot be found out where kernel {} \
                         keeps what is known of them: {error}",
                        kernel.manifest.label
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds everything that affects the content of the recording to the key.
    pub fn name(&self, key: Key) -> Result<Key> {
        let mut key = key;
        for line in &self.said {
            key = key.field("detail", line);
        }
        if !self.structures.is_empty() {
            key = key.value("structures", &self.structures)?;
        }
        for (path, UserBinary { spec, names, .. }) in &self.binaries {
            // Symbols may come from a debug file, which can appear or go without the program
            // changing.
            key = key.file("user", path)?.value("user functions", &(names, &spec.functions))?;
        }
        Ok(key)
    }

    /// Adds the details to the request for the machine.
    pub fn apply_to(&self, capture: &mut CaptureRequest) {
        capture.skip = self.skip.clone();
        capture.selection = self.selection.clone();
        capture.points = self.points.clone();
        capture.binaries = self.binaries.iter().map(|(_, binary)| binary.clone()).collect();
        capture.weights = self.weights;
        capture.data = self.data;
        capture.stream = self.stream.clone();
        capture.tags = self.tags;
        capture.structures = self.structures.clone();
    }

    /// Returns whether data accesses are followed.
    pub fn data(&self) -> bool {
        self.data
    }

    /// Returns the options for the manifest.
    pub fn option_lines(&self) -> &[String] {
        &self.said
    }

    /// Completes the kernel's symbols: renames the last one if functions are not traced, and
    /// appends user functions.
    pub fn complete_symbols(&self, symbols: &mut Vec<Symbol>) {
        if self.skip.contains(&true) || !self.selection.is_everything() {
            if let Some(unknown) = symbols.last_mut().filter(|symbol| symbol.name == UNKNOWN) {
                unknown.name = NOT_TRACED.into();
            }
        }
        for (path, binary) in &self.binaries {
            let module = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            for (function, name) in binary.spec.functions.iter().zip(&binary.names) {
                symbols.push(Symbol {
                    function: FunctionIndex(symbols.len() as u32),
                    name: name.clone(),
                    address: Address(function.address),
                    size: function.size,
                    file: None,
                    module: Some(module.clone()),
                });
            }
        }
    }

    /// Checks the selection against the functions of the kernel and of code that it loaded, and
    /// reports names of lists that neither has.
    pub fn check_selection(
        &self,
        kernel: &Kernel,
        loaded: &[LoadedFunction],
        paths: &BTreeMap<String, String>,
        progress: &dyn Progress,
    ) -> Result<()> {
        if !self.selection.is_everything() {
            let symbols = kernel.symbols()?;
            tell_absent(&self.selection.check_loaded(symbols.functions(), loaded, paths)?, progress);
        }
        Ok(())
    }

    /// Returns name and function of each point, for [`kerntune_analyze::AnalysisInput::points`].
    pub fn points(&self) -> Vec<(String, FunctionIndex)> {
        self.points.iter().map(|point| (point.name.clone(), FunctionIndex(point.function))).collect()
    }

    /// Returns the binaries of which no function was entered.
    pub fn unseen(&self, profile: &kerntune_profile::Tables) -> Vec<String> {
        let mut first = profile.symbols.iter().take_while(|symbol| symbol.module.is_none()).count() as u32;
        let mut unseen = Vec::new();
        for (path, binary) in &self.binaries {
            let past = first + binary.spec.functions.len() as u32;
            if !profile.functions.iter().any(|row| (first..past).contains(&row.function.0)) {
                unseen.push(path.display().to_string());
            }
            first = past;
        }
        unseen
    }
}

/// Replaces pattern files by their lines: `@FILE`, or the name of an existing file. Empty lines and
/// lines that begin with `#` are skipped. Adds the lines to `listed`.
///
/// # Errors
/// A file that cannot be read.
pub fn patterns(words: &[String], listed: &mut BTreeSet<String>) -> Result<Vec<String>> {
    let mut patterns = Vec::new();
    for word in words {
        let file = match word.strip_prefix('@') {
            Some(file) => Path::new(file),
            None if Path::new(word).is_file() => Path::new(word),
            None => {
                patterns.push(word.clone());
                continue;
            }
        };
        let text = read_text("read", file)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        listed.extend(lines.clone().map(str::to_string));
        patterns.extend(lines.map(str::to_string));
    }
    Ok(patterns)
}

/// Reports names of lists that the kernel has no function of.
fn tell_absent(absent: &[&str], progress: &dyn Progress) {
    if !absent.is_empty() {
        progress.note(&format!(
            "warning: no function of this kernel: {} (inlined, or not configured)",
            absent.join(", ")
        ));
    }
}

/// Reports traced binaries of which no function was entered.
pub(crate) fn tell_unseen(
    resolved: &ResolvedDetail,
    tables: &kerntune_profile::Tables,
    progress: &dyn Progress,
) {
    for path in resolved.unseen(tables) {
        progress.note(&format!(
            "no function of {path} was entered in a region: does the workload run it there, and is it this file?"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn pattern_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list");
        fs::write(&file, "# receive\ntcp_rcv*\n\n  net/core/ \n").unwrap();
        let file = file.display().to_string();
        let mut listed = BTreeSet::new();
        let words = ["a".into(), file.clone(), format!("@{file}"), "net/".into()];
        let all = patterns(&words, &mut listed).unwrap();
        assert!(listed.iter().eq(["net/core/", "tcp_rcv*"]));
        assert_eq!(all, ["a", "tcp_rcv*", "net/core/", "tcp_rcv*", "net/core/", "net/"]);
        assert!(patterns(&["@/nothing/here".into()], &mut listed).is_err());
    }

    #[test]
    fn a_debug_file_that_comes_later_makes_another_recording() {
        let dir = tempfile::tempdir().unwrap();
        let run = |words: &str| {
            let mut words = words.split(' ');
            let mut command = std::process::Command::new(words.next().unwrap());
            assert!(command.args(words).current_dir(dir.path()).status().unwrap().success());
        };
        fs::write(dir.path().join("p.c"), "int main(void) { return 0; }\n").unwrap();
        run("gcc -Wl,--build-id -shared -fPIC -o p p.c");
        run("objcopy --only-keep-debug p p.debug");
        run("objcopy --strip-all --add-gnu-debuglink=p.debug p");
        let path = dir.path().join("p");
        let name = || {
            let binary = load_user_binary(&path).unwrap();
            let resolved =
                ResolvedDetail { binaries: vec![(path.clone(), binary)], ..ResolvedDetail::default() };
            resolved.name(Key::new("test/1", "")).unwrap().id()
        };
        let with = name();
        fs::remove_file(dir.path().join("p.debug")).unwrap();
        assert_ne!(with, name());
    }
}
