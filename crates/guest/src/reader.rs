//! Parses workload files into [`Workload`], collecting every problem.

use crate::disk::Filesystem;
use crate::fields::{Located, TableFields, TomlSource};
use crate::skeleton::{HIDDEN, TMP};
use crate::workload::{
    interpreters, vulnerable, CommandLine, MetricDirection, ReadinessProbe, Service, ServiceReadiness,
    WorkloadMetric, WorkloadRun, WorkloadStep,
};
use crate::{is_module_name, Problem, Workload, MAX_CPUS, MAX_NODES};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A parsed workload, and what it needs from the host.
pub(crate) struct ParsedWorkload {
    pub workload: Workload,
    pub host_needs: Vec<HostNeed>,
}

/// Something that the host must have.
pub(crate) struct HostNeed {
    pub span: Option<Range<usize>>,
    pub key: String,
    pub kind: HostNeedKind,
}

pub(crate) enum HostNeedKind {
    Package(String),
    Program(String),
    File(PathBuf),
    /// The first word of a command.
    Command(String),
    /// A word that a shell string of a command names.
    Shell(String),
    /// The program that creates this file system.
    Maker(Filesystem),
    /// The first line of a text that begins with `#!` and names no interpreter.
    Unrunnable(String),
}

/// Like [`read_host_needs`], but fails if there are problems.
pub(crate) fn read(text: &str, path: &Path) -> Result<ParsedWorkload, Vec<Problem>> {
    let (read, problems) = read_host_needs(text, path);
    if problems.is_empty() {
        Ok(read)
    } else {
        Err(problems)
    }
}

/// Reads as much as possible. If there are problems, only the host needs of the result are usable.
pub(crate) fn read_host_needs(text: &str, path: &Path) -> (ParsedWorkload, Vec<Problem>) {
    let mut reader = WorkloadReader { source: TomlSource::new(text), host_needs: Vec::new() };
    let workload = match toml_edit::ImDocument::parse(text) {
        Ok(document) => reader.workload(document.as_table(), path),
        Err(error) => {
            reader.source.problem(error.span(), "", error.message().trim().to_owned());
            // The result is unused, since there is a problem.
            reader.workload(&toml_edit::Table::new(), path)
        }
    };
    let mut problems = reader.source.finish();
    problems.sort_by_key(|problem| (problem.line, problem.column));
    (ParsedWorkload { workload, host_needs: reader.host_needs }, problems)
}

struct WorkloadReader<'t> {
    source: TomlSource<'t>,
    host_needs: Vec<HostNeed>,
}

/// Checks whether a missing file at this path would be created in the guest at run time.
pub(crate) fn is_made(path: &Path) -> bool {
    HIDDEN.iter().any(|dir| path.starts_with(dir)) || path.starts_with(TMP)
}

const NAME_HELP: &str = "letters, digits, `-`, `_`, `.` and `:`, at most 63 bytes";

fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name != "-"
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
}

/// Checks a name that becomes part of a file name.
fn is_file_name(name: &str) -> bool {
    is_name(name) && !name.starts_with(['.', '-']) && !name.contains(':')
}

/// Checks for `CONFIG_NAME=VALUE`, where the value is `y`, a number or a string.
fn is_option_line(line: &str) -> bool {
    let Some((name, value)) = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('=')) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && (value == "y"
            || digits(value.strip_prefix("0x").unwrap_or(value))
            || text.is_some_and(|text| !text.contains(['"', '\n', '\\'])))
}

impl WorkloadReader<'_> {
    fn workload(&mut self, table: &toml_edit::Table, path: &Path) -> Workload {
        let s = &mut self.source;
        // For a file that is not TOML, do not also report everything as missing.
        let broken = s.has_problems();
        let mut top = TableFields::new(table, "", None);
        let default = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let name = top.optional_string(s, "name").map_or(default, |located| {
            if !is_file_name(&located.value) {
                let message = format!("\"{}\" is not a name for a workload", located.value);
                s.problem(located.span, "name", message).help(NAME_HELP);
            }
            located.value
        });
        let description = top.optional_string(s, "description").map(|l| l.value).unwrap_or_default();
        let packages = self.named(&mut top, "packages", HostNeedKind::Package);
        let binaries = self.named(&mut top, "binaries", HostNeedKind::Program);
        let files = self.files(&mut top);
        let texts = self.texts(&mut top);
        let copies = self.copies(&mut top, &texts, path);
        let programs = self.programs(&mut top);
        let modules = self.modules(&mut top);
        let kernel_config = self.kernel_config(&mut top);
        let setup = self.commands(&mut top, "setup");
        let s = &mut self.source;
        let memory_mb = top.integer(s, "memory_mb", 64..=1 << 20).map_or(1024, |l| l.value as u32);
        let cpus = top.integer(s, "cpus", 1..=MAX_CPUS.into()).map_or(1, |l| l.value as u32);
        let nodes = top.integer(s, "nodes", 1..=MAX_NODES.into()).map_or(1, |l| l.value as u32);
        let mitigations = top.optional_string(s, "mitigations");
        if let Some(located) = &mitigations {
            if let Err(message) = vulnerable(&located.value) {
                s.problem(located.span.clone(), "mitigations", message);
            }
        }
        let fast_strings = top.boolean(s, "fast_strings").is_some_and(|l| l.value);
        let time_limit_seconds =
            top.integer(s, "time_limit_seconds", 1..=7 * 24 * 3600).map_or(900, |l| l.value as u64);
        let network_cards = top.integer(s, "network_cards", 0..=8).map_or(0, |l| l.value as u32);
        let append = top.optional_string(s, "append");
        if let Some(located) = append.as_ref().filter(|l| l.value.contains(['\n', '\t', '\0'])) {
            s.problem(located.span.clone(), "append", "holds a tab or a line end".into());
        }
        let append = append.map(|l| l.value).unwrap_or_default();
        let disk = self.disk(&mut top, memory_mb);
        let env = self.env(&mut top);
        let services = self.services(&mut top);
        let training = self.run(&mut top, "training", broken);
        let measured = self.run(&mut top, "measured", broken);
        top.finish(&mut self.source);
        Workload {
            name,
            description,
            packages,
            binaries,
            files,
            texts,
            copies,
            programs,
            modules,
            kernel_config,
            env,
            setup,
            services,
            training,
            measured,
            memory_mb,
            cpus,
            nodes,
            mitigations: mitigations.map(|l| l.value),
            fast_strings,
            time_limit_seconds,
            network_cards,
            append,
            disk,
            seed: crate::workload::SEED,
            proc: false,
            times: false,
            context: None,
        }
    }

    fn require(&mut self, span: Option<Range<usize>>, key: &str, kind: HostNeedKind) {
        self.host_needs.push(HostNeed { span, key: key.to_owned(), kind });
    }

    /// Reads a list of names of things on the host.
    fn named(
        &mut self,
        fields: &mut TableFields,
        key: &str,
        kind: fn(String) -> HostNeedKind,
    ) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for item in fields.strings(&mut self.source, key) {
            // A package name becomes an argument of dpkg-query.
            if item.value.is_empty()
                || item.value.starts_with('-')
                || item.value.contains(char::is_whitespace)
            {
                let message = format!("\"{}\" is not a name", item.value);
                self.source.problem(item.span, key, message);
            } else if all.contains(&item.value) {
                self.source.problem(item.span, key, format!("\"{}\" is there twice", item.value));
            } else {
                self.require(item.span, key, kind(item.value.clone()));
                all.push(item.value);
            }
        }
        all
    }

    fn files(&mut self, fields: &mut TableFields) -> Vec<PathBuf> {
        let listed = fields.strings(&mut self.source, "files");
        self.host_files("files", &listed)
    }

    /// Checks paths of host files that the guest must be able to see.
    fn host_files(&mut self, key: &str, listed: &[Located<String>]) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for item in listed {
            if self.guest_sees(key, item) {
                let path = PathBuf::from(&item.value);
                self.require(item.span.clone(), key, HostNeedKind::File(path.clone()));
                all.push(path);
            }
        }
        all
    }

    /// Reads files whose text is in the workload file.
    fn texts(&mut self, top: &mut TableFields) -> BTreeMap<PathBuf, String> {
        let mut texts = BTreeMap::new();
        let Some(mut fields) = top.table(&mut self.source, "texts") else { return texts };
        for path in fields.keys() {
            let Some(text) = fields.optional_string(&mut self.source, &path) else { continue };
            let key = format!("texts.\"{path}\"");
            let path = Located { value: path, span: text.span.clone() };
            if !self.guest_sees(&key, &path) || !self.has_room(&key, &path, texts.keys()) {
                continue;
            }
            let runs_by = interpreters(&text.value);
            let first = text.value.lines().next().filter(|line| line.starts_with("#!"));
            if let (Some(line), true) = (first, runs_by.is_empty()) {
                self.require(text.span.clone(), &key, HostNeedKind::Unrunnable(line.to_owned()));
            }
            for interpreter in runs_by {
                self.require(text.span.clone(), &key, HostNeedKind::Program(interpreter.to_owned()));
                if crate::shell::is_shell(interpreter) {
                    for named in crate::shell::commands(&text.value, false) {
                        self.require(text.span.clone(), &key, HostNeedKind::Shell(named.word));
                    }
                }
            }
            texts.insert(PathBuf::from(path.value), text.value);
        }
        fields.finish(&mut self.source);
        texts
    }

    /// Reads files that the guest has under another path than this machine. Relative paths of this
    /// machine begin beside the workload file at `path`.
    fn copies(
        &mut self,
        top: &mut TableFields,
        texts: &BTreeMap<PathBuf, String>,
        path: &Path,
    ) -> BTreeMap<PathBuf, PathBuf> {
        let mut copies: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let Some(mut fields) = top.table(&mut self.source, "copies") else { return copies };
        let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for place in fields.keys() {
            let Some(from) = fields.optional_string(&mut self.source, &place) else { continue };
            let key = format!("copies.\"{place}\"");
            let place = Located { value: place, span: from.span.clone() };
            if !self.guest_sees(&key, &place)
                || !self.has_room(&key, &place, texts.keys().chain(copies.keys()))
            {
                continue;
            }
            let file = beside.join(&from.value);
            let file = std::path::absolute(&file).unwrap_or(file);
            self.require(from.span, &key, HostNeedKind::File(file.clone()));
            copies.insert(PathBuf::from(place.value), file);
        }
        fields.finish(&mut self.source);
        copies
    }

    /// Checks whether a file can have this path in the guest, and reports a problem if not.
    fn guest_sees(&mut self, key: &str, item: &Located<String>) -> bool {
        let path = Path::new(&item.value);
        if !path.is_absolute() || path.components().any(|c| c == std::path::Component::ParentDir) {
            let message = format!("\"{}\" is not an absolute path", item.value);
            self.source.problem(item.span.clone(), key, message).help("start with / and use no ..");
        } else if let Some(dir) = HIDDEN.iter().find(|dir| path.starts_with(dir)) {
            let message = format!("\"{}\" cannot be seen in the guest, where {dir} is its own", item.value);
            self.source.problem(item.span.clone(), key, message).help("keep it in another directory");
        } else if path == Path::new(TMP) {
            let message = format!("\"{}\" as a whole is the guest's own", item.value);
            self.source.problem(item.span.clone(), key, message).help("name what is in it");
        } else {
            return true;
        }
        false
    }

    /// Checks whether a file can have this path beside the others, and reports a problem if not.
    fn has_room<'p>(
        &mut self,
        key: &str,
        item: &Located<String>,
        mut others: impl Iterator<Item = &'p PathBuf>,
    ) -> bool {
        let path = Path::new(&item.value);
        let other = others.find(|other| path.starts_with(other) || other.starts_with(path));
        let message = match other {
            Some(other) if other == path => format!("{} has a text or a copy already", other.display()),
            Some(other) if path.starts_with(other) => {
                format!("\"{}\" is below {}, which is a file here", item.value, other.display())
            }
            Some(other) => format!("\"{}\" is a file here, and {} is below it", item.value, other.display()),
            None if path.file_name().is_none() => format!("\"{}\" is a directory of the guest", item.value),
            None => return true,
        };
        self.source.problem(item.span.clone(), key, message);
        false
    }

    fn programs(&mut self, fields: &mut TableFields) -> Vec<String> {
        let mut all = Vec::new();
        let known: Vec<&str> = crate::programs::names().collect();
        for item in fields.strings(&mut self.source, "programs") {
            if known.contains(&item.value.as_str()) {
                all.push(item.value);
                continue;
            }
            let message = format!("kerntune has no guest program \"{}\"", item.value);
            let help = format!("it has {}; host programs go into `binaries`", known.join(", "));
            self.source.problem(item.span, "programs", message).help(help);
        }
        all
    }

    fn modules(&mut self, fields: &mut TableFields) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for item in fields.strings(&mut self.source, "modules") {
            let message = match all.contains(&item.value) {
                true => format!("\"{}\" is there twice", item.value),
                false if is_module_name(&item.value) => {
                    all.push(item.value);
                    continue;
                }
                false => format!("\"{}\" is not the name of a kernel module", item.value),
            };
            self.source
                .problem(item.span, "modules", message)
                .help("names as `lsmod` shows them, such as virtio_net");
        }
        all
    }

    fn kernel_config(&mut self, fields: &mut TableFields) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for item in fields.strings(&mut self.source, "kernel_config") {
            let option = item.value.split_once('=').map(|(option, _)| option);
            let message = match option {
                Some(option) if all.iter().any(|line| line.split('=').next() == Some(option)) => {
                    format!("{option} is there twice")
                }
                Some(_) if is_option_line(&item.value) => {
                    all.push(item.value);
                    continue;
                }
                _ => format!("\"{}\" is not a line of a kernel's configuration", item.value),
            };
            self.source
                .problem(item.span, "kernel_config", message)
                .help("such as CONFIG_NFSD=y or CONFIG_HZ=1000");
        }
        all
    }

    fn env(&mut self, top: &mut TableFields) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let Some(mut fields) = top.table(&mut self.source, "env") else { return env };
        for key in fields.keys() {
            let Some(located) = fields.optional_string(&mut self.source, &key) else { continue };
            if key.is_empty() || key.contains(['=', '\0', '\t', '\n']) {
                self.source.problem(located.span, &format!("env.{key}"), "is not a variable name".into());
            } else if located.value.contains('\0') {
                let message = "holds a NUL, which no variable can".into();
                self.source.problem(located.span, &format!("env.{key}"), message);
            } else {
                env.insert(key, located.value);
            }
        }
        fields.finish(&mut self.source);
        env
    }

    fn services(&mut self, top: &mut TableFields) -> Vec<Service> {
        let mut services: Vec<Service> = Vec::new();
        for mut fields in top.tables(&mut self.source, "service") {
            let name = fields.string(&mut self.source, "name");
            if let Some(name) = &name {
                let key = fields.key("name");
                if !is_file_name(&name.value) {
                    let message = format!("\"{}\" is not a name for a service", name.value);
                    self.source.problem(name.span.clone(), &key, message).help(NAME_HELP);
                } else if services.iter().any(|s| s.name == name.value) {
                    let message = format!("there is another service \"{}\"", name.value);
                    self.source.problem(name.span.clone(), &key, message);
                }
            }
            let command = self.command(&mut fields, "command");
            let ready = self.ready(&mut fields);
            fields.finish(&mut self.source);
            if services.len() == 32 {
                let key = fields.key("name");
                self.source.problem(fields.span(), &key, "init keeps at most 32 services".into());
            }
            services.push(Service { name: name.map(|l| l.value).unwrap_or_default(), command, ready });
        }
        services
    }

    fn ready(&mut self, service: &mut TableFields) -> ServiceReadiness {
        const HELP: &str = "for example: ready = { tcp = 6379, within_seconds = 10 }; \
                            or unix = \"/path\", file = \"/path\", command = [\"program\", \"argument\"]";
        let nothing = ServiceReadiness { probe: ReadinessProbe::Tcp(0), within_seconds: 0 };
        if !service.has("ready") {
            let key = service.key("ready");
            self.source
                .problem(service.span(), &key, "is missing: how is the service seen to be ready?".into())
                .help(HELP);
            return nothing;
        }
        let Some(mut fields) = service.table(&mut self.source, "ready") else { return nothing };
        let s = &mut self.source;
        let mut probes = Vec::new();
        if fields.has("tcp") {
            probes.extend(fields.integer(s, "tcp", 1..=65535).map(|l| ReadinessProbe::Tcp(l.value as u16)));
        }
        for key in ["unix", "file"] {
            let Some(path) = fields.optional_string(s, key) else { continue };
            // A socket address holds 107 bytes.
            if !path.value.starts_with('/')
                || path.value.len() > 107
                || path.value.contains(['\t', '\n', '\0'])
            {
                let key = fields.key(key);
                s.problem(path.span, &key, "is not an absolute path of at most 107 bytes".into());
            }
            probes.push(if key == "unix" {
                ReadinessProbe::Unix(path.value)
            } else {
                ReadinessProbe::File(path.value)
            });
        }
        if fields.has("command") {
            probes.push(ReadinessProbe::Command(self.command(&mut fields, "command")));
        }
        let given = ["tcp", "unix", "file", "command"].iter().filter(|key| fields.has(key)).count();
        let s = &mut self.source;
        if given != 1 {
            let message = format!("needs exactly one of tcp, unix, file, command; {given} are given");
            s.problem(fields.span(), &service.key("ready"), message).help(HELP);
        }
        let within = fields.required_integer(s, "within_seconds", 1..=86400);
        fields.finish(s);
        match probes.pop() {
            Some(probe) => ServiceReadiness { probe, within_seconds: within.map_or(0, |l| l.value as u32) },
            None => nothing,
        }
    }

    fn run(&mut self, top: &mut TableFields, name: &str, broken: bool) -> WorkloadRun {
        let mut run = WorkloadRun { warmup: Vec::new(), steps: Vec::new() };
        if !top.has(name) {
            if !broken && name == "measured" {
                self.source
                    .problem(None, name, "is missing: a workload has a measured run".into())
                    .help(format!("add [[{name}.step]] with a command"));
            }
            return run;
        }
        let Some(mut fields) = top.table(&mut self.source, name) else { return run };
        run.warmup = self.commands(&mut fields, "warmup");
        for mut step in fields.tables(&mut self.source, "step") {
            let parsed = self.step(&mut step, &run);
            run.steps.push(parsed);
        }
        fields.finish(&mut self.source);
        if run.steps.is_empty() && !(fields.has("step") && self.source.has_problems()) {
            self.source
                .problem(fields.span(), name, "has no steps".into())
                .help(format!("add [[{name}.step]] with a command"));
        }
        run
    }

    fn step(&mut self, fields: &mut TableFields, run: &WorkloadRun) -> WorkloadStep {
        let s = &mut self.source;
        let region = fields.optional_string(s, "region");
        if let Some(region) = &region {
            let key = fields.key("region");
            if !is_name(&region.value) {
                let message = format!("\"{}\" is not a name for a region", region.value);
                s.problem(region.span.clone(), &key, message).help(NAME_HELP);
            } else if region.value == "total" {
                let message = "\"total\" is the name of the sum over all regions".into();
                s.problem(region.span.clone(), &key, message);
            } else if run.steps.iter().any(|step| step.region.as_deref() == Some(&region.value)) {
                let message = format!("another step of this run has the region \"{}\"", region.value);
                s.problem(region.span.clone(), &key, message);
            }
        }
        let operations = fields.integer(s, "operations", 0..=1_000_000_000);
        if let Some(located) = &operations {
            let key = fields.key("operations");
            if located.value == 0 {
                s.problem(
                    located.span.clone(),
                    &key,
                    "a region without operations has no path length".into(),
                )
                .help("say how many the program does, or leave the key out if it marks each one");
            } else if region.is_none() {
                s.problem(located.span.clone(), &key, "is given without a region".into()).help(
                    "add `region`, or leave it out: a program that marks its own regions counts itself",
                );
            }
        }
        let limit = fields.integer(s, "limit_seconds", 1..=1_000_000);
        let fail = patterns(s, fields, "fail");
        let expect = patterns(s, fields, "expect");
        let mut metrics: Vec<WorkloadMetric> = Vec::new();
        for mut metric in fields.tables(s, "metrics") {
            let parsed = read_metric(s, &mut metric);
            if !parsed.name.is_empty() && metrics.iter().any(|m| m.name == parsed.name) {
                let message = format!("there is another metric \"{}\" in this step", parsed.name);
                s.problem(metric.span(), &metric.key("name"), message);
            }
            metrics.push(parsed);
        }
        let command = self.command(fields, "command");
        fields.finish(&mut self.source);
        WorkloadStep {
            region: region.map(|l| l.value),
            operations: operations.map(|l| l.value as u64),
            command,
            limit_seconds: limit.map(|l| l.value as u32),
            fail,
            expect,
            metrics,
        }
    }

    /// Reads a required command.
    fn command(&mut self, fields: &mut TableFields, key: &str) -> CommandLine {
        let full = fields.key(key);
        let words = fields.required_strings(&mut self.source, key);
        self.words(words, fields.value_span(key), &full)
    }

    /// Reads an optional list of commands.
    fn commands(&mut self, fields: &mut TableFields, key: &str) -> Vec<CommandLine> {
        let full = fields.key(key);
        let lists = fields.string_lists(&mut self.source, key);
        lists.into_iter().map(|list| self.words(Some(list.value), list.span, &full)).collect()
    }

    fn words(
        &mut self,
        words: Option<Vec<Located<String>>>,
        span: Option<Range<usize>>,
        key: &str,
    ) -> CommandLine {
        let Some(words) = words else { return Vec::new() };
        for word in &words {
            if word.value.contains('\0') {
                let message = "holds a NUL, which no argument can".into();
                self.source.problem(word.span.clone(), key, message);
            }
        }
        match words.first() {
            None => {
                self.source.problem(span.clone(), key, "is empty: it names no program".into());
            }
            Some(first) if first.value.is_empty() => {
                self.source.problem(first.span.clone(), key, "the program's name is empty".into());
            }
            Some(first) => self.require(first.span.clone(), key, HostNeedKind::Command(first.value.clone())),
        }
        let command: CommandLine = words.into_iter().map(|word| word.value).collect();
        let named: BTreeSet<String> =
            crate::shell::programs_of(&command, false).into_iter().map(|named| named.word).collect();
        for word in named {
            self.require(span.clone(), key, HostNeedKind::Shell(word));
        }
        command
    }
}

/// Reads a list of regular expressions for a step's output.
fn patterns(s: &mut TomlSource, fields: &mut TableFields, key: &str) -> Vec<String> {
    let mut all = Vec::new();
    for pattern in fields.strings(s, key) {
        let wrong = match regex::Regex::new(&pattern.value) {
            Err(error) => Some(not_a_regex(&error)),
            // Every output matches.
            Ok(regex) if regex.is_match("") => Some("matches the empty text".into()),
            Ok(_) => None,
        };
        if let Some(message) = wrong {
            s.problem(pattern.span, &fields.key(key), message);
        }
        all.push(pattern.value);
    }
    all
}

fn not_a_regex(error: &regex::Error) -> String {
    format!("is not a regular expression: {}", last_line(&error.to_string()))
}

fn read_metric(s: &mut TomlSource, fields: &mut TableFields) -> WorkloadMetric {
    let name = fields.string(s, "name");
    if let Some(name) = name.as_ref().filter(|l| !is_name(&l.value)) {
        let message = format!("\"{}\" is not a name for a metric", name.value);
        s.problem(name.span.clone(), &fields.key("name"), message).help(NAME_HELP);
    }
    let regex = fields.string(s, "regex");
    if let Some(located) = &regex {
        let wrong = match regex::Regex::new(&located.value) {
            Err(error) => Some(not_a_regex(&error)),
            Ok(regex) if regex.captures_len() != 2 => {
                Some(format!("has {} groups; exactly one must hold the number", regex.captures_len() - 1))
            }
            Ok(_) => None,
        };
        if let Some(message) = wrong {
            s.problem(located.span.clone(), &fields.key("regex"), message)
                .help("use (?:…) for groups that hold nothing");
        }
    }
    let unit = fields.string(s, "unit");
    let better = fields.string(s, "better");
    let way = match better.as_ref().map(|l| l.value.as_str()) {
        Some("lower") => MetricDirection::Lower,
        Some("higher") | None => MetricDirection::Higher,
        Some(other) => {
            let message = format!("is \"higher\" or \"lower\", not \"{other}\"");
            s.problem(better.and_then(|l| l.span), &fields.key("better"), message);
            MetricDirection::Higher
        }
    };
    fields.finish(s);
    let text = |located: Option<Located<String>>| located.map(|l| l.value).unwrap_or_default();
    WorkloadMetric { name: text(name), regex: text(regex), unit: text(unit), better: way }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

mod disk;
#[cfg(test)]
mod tests;
