//! The commands `kerntune workload list|new|check`.

use crate::first_run;
use crate::workload_options::WorkloadOptions;
use clap::Subcommand;
use kerntune_command::{
    command_group, work, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions, OutputFile,
    RunSubcommand,
};
use kerntune_guest::{read_text, CommandContext, CommandSystem, Workload, SHIPPED};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A workload in the output of `list --json`.
#[derive(Serialize)]
struct ListedWorkload {
    name: String,
    file: Option<PathBuf>,
    description: String,
}

pub const COMMAND: CommandEntry = command_group::<WorkloadCommand>("workload", 30, "Look");

/// List workloads, and write and check workload files
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the workloads that --workload accepts by name
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Write a draft of a workload file for a command; complete it yourself
    New {
        /// Write the workload to this file
        #[arg(long, short, default_value = "workload.toml", value_name = "FILE")]
        output: PathBuf,
        /// The command to measure: a program of this machine with its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Explain the errors in a workload file
    Check {
        /// The workload file
        file: PathBuf,
        #[command(flatten)]
        format: FormatOptions,
    },
}

impl RunSubcommand<GlobalOptions> for WorkloadCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::List { format } => list(format.json, output),
            Self::New { output: file, command } => new(file, command, global, output),
            Self::Check { file, format } => check(file, format.json, output),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

/// Returns the workloads with their files: those in the directory `data/workloads/` of the current
/// directory, then the built-in ones, which have no file. Reports files that cannot be used.
pub(super) fn known(output: &CliOutput) -> Result<Vec<(Workload, Option<PathBuf>)>, Failure> {
    let mut found: Vec<(Workload, Option<PathBuf>)> = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir("workloads")
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    for file in files {
        match Workload::load(&file) {
            Ok(workload) => found.push((workload, Some(file))),
            Err(error) => output.note(&format!("kerntune: {error}")),
        }
    }
    for (name, text) in SHIPPED {
        if found.iter().all(|(workload, _)| workload.name != *name) {
            found.push((Workload::parse(text, Path::new(name))?, None));
        }
    }
    Ok(found)
}

fn list(json: bool, output: &CliOutput) -> Result<Exit, Failure> {
    let found: Vec<ListedWorkload> = known(output)?
        .into_iter()
        .map(|(workload, file)| ListedWorkload {
            name: workload.name,
            file,
            description: workload.description,
        })
        .collect();
    if json {
        output.json(&found);
    } else {
        output.table(
            &["NAME", "FILE", "DESCRIPTION"],
            found.into_iter().map(|w| {
                let file = w.file.map_or("(built in)".into(), |path| path.display().to_string());
                vec![w.name, file, w.description]
            }),
        );
    }
    Ok(Exit::Ok)
}

/// Writes a workload file with what the command used in its first run, one step for training and
/// measuring, and comments on other settings.
fn new(path: &Path, command: &[String], global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if command.first().is_none_or(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    if path.exists() {
        return Err(Failure::usage(format!("--output: {} exists already", path.display())));
    }
    let file = OutputFile::new("--output", path)?;
    let here = std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current directory cannot be found: {error}")))?;
    let options = WorkloadOptions::default();
    let system = CommandSystem::of_this_machine(&here)?;
    let workload = first_run::workload_of(command, system, &[], &options, &work(global)?, output)?;
    file.write(draft(&workload, command, &here)?.as_bytes())?;
    let path = path.display();
    output.note(&format!(
        "wrote {path}\n`kerntune workload check {path}` says what is wrong with it, `kerntune record --workload {path}` records it, \
         `kerntune tune --workload {path}` makes a kernel for it"
    ));
    Ok(Exit::Ok)
}

/// Returns a workload file of the command, which runs in `here`.
fn draft(workload: &Workload, command: &[String], here: &Path) -> Result<String, Failure> {
    // JSON strings are valid TOML strings.
    let quoted = |text: &str| serde_json::to_string(text).map_err(Failure::usage);
    let mut files = workload.files.clone();
    let mut command = command.to_vec();
    let mut uses_directory = false;
    if let Some(CommandContext { directory, discovered, .. }) = &workload.context {
        uses_directory = directory.is_some();
        if let Some(found) = discovered {
            files.extend(found.used_files());
            uses_directory = found.paths.keys().any(|path| path.starts_with(here) && path != here);
        }
    }
    files.retain(|path| path != here);
    let mut setup = String::new();
    if uses_directory && here != Path::new("/") {
        // Commands of a workload file run in /.
        command.splice(0..0, ["env".into(), "-C".into(), here.display().to_string()]);
        if !files.iter().any(|path| path.starts_with(here)) {
            setup = format!("setup = [[\"mkdir\", \"-p\", {}]]\n", quoted(&here.display().to_string())?);
        }
    }
    let list = |texts: &[String], between: &str| -> Result<String, Failure> {
        Ok(texts.iter().map(|text| quoted(text)).collect::<Result<Vec<_>, _>>()?.join(between))
    };
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let files = match files.is_empty() {
        true => {
            "# files = [\"/srv/data\"]  # files and directories of this machine that it reads".to_string()
        }
        false => format!("files = [  # of this machine, for the guest\n    {},\n]", list(&files, ",\n    ")?),
    };
    let mut env = String::new();
    for (key, value) in workload.env.iter().filter(|(key, _)| *key != "PWD") {
        env.push_str(&format!("{} = {}, ", quoted(key)?, quoted(value)?));
    }
    let env = match env.strip_suffix(", ") {
        Some(env) => format!("env = {{ {env} }}  # as it is here\n"),
        None => env,
    };
    let (name, command) = (quoted(&workload.name)?, format!("[{}]", list(&command, ",")?));
    let memory = workload.memory_mb;
    Ok(format!(
        "description = {name}\n{files}\nmemory_mb = {memory}  # of the guest\n{env}{setup}\n\
         # A server that the commands talk to is started first:\n\
         # [[service]]\n# name = \"server\"\n# command = [\"server\", \"--port\", \"8080\"]\n\
         # ready = {{ tcp = 8080, within_seconds = 10 }}\n\n\
         # The kernel is compiled for what runs here. Make it similar to the measured work, but not identical.\n\
         [[training.step]]\nregion = \"command\"\ncommand = {command}\n\n\
         # Kernels are compared by what runs here. Figures are divided by the operations.\n\
         [[measured.step]]\nregion = \"command\"\noperations = 1\ncommand = {command}\n"
    ))
}

fn check(file: &Path, json: bool, output: &CliOutput) -> Result<Exit, Failure> {
    let text = read_text("read workload", file)?;
    let problems = kerntune_guest::check(&text, file);
    if json {
        output.json(&problems);
    } else if problems.is_empty() {
        output.print(&format!("{}: good", file.display()));
    } else {
        for problem in &problems {
            output.print(&format!("{}:{problem}", file.display()));
        }
    }
    // Warnings do not count: the image is built in spite of them.
    Ok(if problems.iter().all(|problem| problem.warning) { Exit::Ok } else { Exit::Findings })
}
