//! Options that change a workload as the keys of its file do.

use crate::standard_input::file_input;
use clap::Args;
use kerntune_command::{check_input, Failure};
use kerntune_guest::{is_module_name, Workload};
use std::path::{Path, PathBuf};

/// Largest memory of a guest in MiB, and longest wall time in seconds, as in workload files.
const MAX_MEMORY_MB: i64 = 1 << 20;
const MAX_SECONDS: u64 = 7 * 24 * 3600;

/// Additions to a workload, or to COMMAND.
#[derive(Debug, Default, Args)]
pub struct WorkloadOptions {
    /// Pack this file or directory of this machine as well, at its own path; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Pack the programs and the files in /etc and /usr/lib of this Debian package as well; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Load this kernel module, and those that it depends on, before all else; may be repeated
    #[arg(long, value_name = "NAME", value_parser = module)]
    module: Vec<String>,
    /// Set an environment variable of the programs; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Memory of the guest, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(64..=MAX_MEMORY_MB))]
    memory: Option<u32>,
    /// Time limit of the whole guest, in seconds of wall time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    limit: Option<u64>,
    /// Run COMMAND in this directory; relative names start there
    #[arg(long, value_name = "DIR", requires = "command")]
    chdir: Option<PathBuf>,
    /// Standard input of COMMAND, instead of kerntune's own
    #[arg(long, value_name = "FILE", requires = "command")]
    stdin: Option<PathBuf>,
    /// Name of the workload in the profile
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
}

/// Ids of the options, for those that exclude them.
pub const IDS: [&str; 9] = ["file", "package", "module", "env", "memory", "limit", "chdir", "stdin", "name"];

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("give KEY=VALUE".into()),
    }
}

fn module(text: &str) -> Result<String, String> {
    match is_module_name(text) {
        true => Ok(text.to_owned()),
        false => Err("give a name as `lsmod` shows it, such as virtio_net".into()),
    }
}

fn name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_control) {
        true => Err("a name is a line of text".into()),
        false => Ok(text.to_owned()),
    }
}

impl WorkloadOptions {
    /// Returns the directory in which COMMAND runs, as it was given.
    pub fn directory(&self) -> Option<&Path> {
        self.chdir.as_deref()
    }

    /// Returns the files and directories to pack as well, as they were given.
    pub fn names_of_files(&self) -> &[PathBuf] {
        &self.file
    }

    /// Returns the files and directories to pack as well, absolute.
    pub fn files(&self, here: &Path) -> Result<Vec<PathBuf>, Failure> {
        for path in self.file.iter().filter(|path| !path.is_dir()) {
            check_input("--file", path)?;
        }
        Ok(self.file.iter().map(|path| here.join(path).components().collect()).collect())
    }

    /// Changes everything of a workload but its files and directory.
    pub fn apply_to(&self, workload: &mut Workload) -> Result<(), Failure> {
        workload.packages.extend_from_slice(&self.package);
        workload.modules.extend_from_slice(&self.module);
        workload.env.extend(self.env.iter().cloned());
        workload.memory_mb = self.memory.unwrap_or(workload.memory_mb);
        workload.time_limit_seconds = self.limit.unwrap_or(workload.time_limit_seconds);
        if let Some(name) = &self.name {
            workload.name.clone_from(name);
        }
        if let (Some(path), Some(context)) = (&self.stdin, &mut workload.context) {
            context.input = file_input(path)?;
        }
        Ok(())
    }

    /// Returns true if the size of the guest's memory was given.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the environment variables that were given.
    pub fn variables(&self) -> &[(String, String)] {
        &self.env
    }

    /// Returns the file that was given as the command's input.
    pub fn input(&self) -> Option<&Path> {
        self.stdin.as_deref()
    }

    /// Returns true if the command's input is a file that was named.
    pub fn has_input(&self) -> bool {
        self.stdin.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: WorkloadOptions,
        #[arg(last = true)]
        command: Vec<String>,
    }

    fn parsed(words: &[&str]) -> Result<Line, clap::Error> {
        Line::try_parse_from([&["x"], words].concat())
    }

    #[test]
    fn a_workload_is_changed_as_by_its_file() {
        let input = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let line = ["--env", "A=b=c", "--env", "B=", "--memory", "2048", "--limit", "60", "--name", "mine"];
        let more = [
            "--package",
            "dbench",
            "--module",
            "virtio-net",
            "--stdin",
            input,
            "--chdir",
            "sub",
            "--file",
            "/etc",
            "--",
            "true",
        ];
        let Line { options, command } = parsed(&[&line[..], &more].concat()).unwrap();
        let mut workload = Workload::of_command(&command, Path::new("/")).unwrap().workload;
        options.apply_to(&mut workload).unwrap();
        assert_eq!(
            (workload.name.as_str(), workload.memory_mb, workload.time_limit_seconds),
            ("mine", 2048, 60)
        );
        assert_eq!((workload.env["A"].as_str(), workload.env["B"].as_str()), ("b=c", ""));
        assert_eq!((workload.packages, workload.modules), (vec!["dbench".into()], vec!["virtio-net".into()]));
        let bytes = workload.context.unwrap().input.unwrap().bytes;
        assert_eq!(bytes, std::fs::read(input).unwrap());
        assert_eq!(options.directory().unwrap(), Path::new("sub"));
        assert_eq!(options.files(Path::new("/srv")).unwrap(), [Path::new("/etc")]);
    }

    #[test]
    fn what_no_workload_has_is_refused() {
        for bad in [
            ["--module", "../x"],
            ["--env", "A"],
            ["--env", "=a"],
            ["--memory", "63"],
            ["--limit", "0"],
            ["--name", ""],
        ] {
            assert!(parsed(&bad).is_err(), "{bad:?}");
        }
        assert!(parsed(&["--chdir", "/tmp"]).is_err(), "there is no COMMAND");
        let options = parsed(&["--file", "/no/such"]).unwrap().options;
        assert!(options.files(Path::new("/")).unwrap_err().message.contains("/no/such"));
    }
}
