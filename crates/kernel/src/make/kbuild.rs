//! Runs of Kbuild's make: arguments, log, progress, and the first error of a failed run.

use crate::make::build_tree::BuildTree;
use crate::make::diagnose::{diagnose, step};
use crate::make::object_cache::ObjectCache;
use crate::{tools, Arch, Compiler, Error, Result};
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs whose version Kbuild writes into every configuration, each with the only option that
/// uses it. Without the option the program is hidden, so that a kernel does not depend on what else
/// is installed.
const UNUSED: [(&str, &str); 2] = [("RUSTC", "CONFIG_RUST=y"), ("PAHOLE", "CONFIG_DEBUG_INFO_BTF=y")];

/// Line in a build's log that begins a new attempt.
const ATTEMPT: &str = "=== kerntune: make";

/// An out-of-tree build directory, with all that make needs to work in it.
pub(crate) struct Kbuild<'a> {
    pub tree: &'a BuildTree,
    pub arch: Arch,
    pub compiler: &'a Compiler,
    pub make_vars: &'a [(String, String)],
    /// Log file; each run of make appends a section.
    pub log: PathBuf,
    /// Compiler cache, which saves compiling the same source twice.
    pub cache: Option<&'a ObjectCache>,
}

impl Kbuild<'_> {
    /// Runs make with `args`. `what` names the step in progress and errors; `expected` is the
    /// number of objects of a whole build. Returns the number of objects that this build directory
    /// has seen.
    pub fn make(
        &self,
        what: &str,
        args: &[String],
        expected: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<u64> {
        let build = self.tree.build();
        tools::plain_path(&build)?;
        let mut command = Command::new("make");
        tools::pin_environment(&mut command);
        command.arg("-C").arg(self.tree.top()).arg(format!("O={}", build.display()));
        // Set and empty: no `+` in the version for a git tree with changes.
        command.args(["V=0", "LOCALVERSION="]).args(self.arch.make_args());
        let objects = self.cache.filter(|cache| cache.is_of_objects_in(&build));
        command.args(self.compiler.make_args(&objects.map(ObjectCache::program).unwrap_or_default()));
        if let Some(cache) = self.cache.filter(|cache| cache.is_of_tools_in(&build)) {
            command.arg(self.compiler.host_arg(&cache.program()));
        }
        command.envs(self.cache.into_iter().flat_map(ObjectCache::environment));
        let config = fs::read_to_string(build.join(".config")).unwrap_or_default();
        let unused = UNUSED.iter().filter(|(_, option)| !config.lines().any(|line| line == *option));
        command.args(unused.map(|(program, _)| format!("{program}=unseen-by-kerntune")));
        command.args(self.make_vars.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(args);

        let mut seen = ObjectProgress::read(&self.log);
        let mut log = BuildLog::append(&self.log)?;
        log.line(&format!("{ATTEMPT} {}", args.join(" ")))?;
        progress.begin(what, expected);
        progress.at(seen.objects());
        let mut broken = None;
        let end = Job::new(command).run(
            |line| {
                if seen.line(line) {
                    progress.at(seen.objects().min(expected.unwrap_or(u64::MAX)));
                }
                // If the log is full or gone, the build stops instead of going on without one.
                broken = log.line(line).err();
                broken.is_none()
            },
            || true,
        );
        progress.end();
        if let Some(error) = broken {
            return Err(error);
        }
        match end? {
            JobEnd::Exited(status) if status.success() => Ok(seen.objects()),
            _ => Err(self.failure(what)),
        }
    }

    fn failure(&self, what: &str) -> Error {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let attempt = text.rfind(ATTEMPT).map_or("", |at| &text[at..]);
        let output = attempt.split_once('\n').map_or("", |(_, rest)| rest);
        let found = diagnose(output);
        Error::Make { step: what.to_string(), first: found.first, hint: found.hint, log: self.log.clone() }
    }
}

/// Returns the arguments after the variables on make's command line.
pub(crate) fn make_args(jobs: Option<NonZeroUsize>, flags: &[String], targets: &[&str]) -> Vec<String> {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok());
    let mut args = vec![format!("-j{}", jobs.map_or(1, |n| n.get()))];
    args.extend(flags.iter().cloned());
    args.extend(targets.iter().map(ToString::to_string));
    args
}

/// Objects made so far. An object that an interruption made make rebuild counts once.
#[derive(Default)]
struct ObjectProgress {
    objects: HashSet<String>,
}

impl ObjectProgress {
    /// Reads the objects that earlier attempts logged.
    fn read(log: &Path) -> Self {
        let mut seen = Self::default();
        let text = fs::read(log).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            seen.line(line);
        }
        seen
    }

    /// Takes a line of output and returns whether it names a new object.
    fn line(&mut self, line: &str) -> bool {
        match step(line) {
            Some(("CC" | "AS", target)) if target.ends_with(".o") => self.objects.insert(target.to_string()),
            _ => false,
        }
    }

    fn objects(&self) -> u64 {
        self.objects.len() as u64
    }
}

/// Build log. It is not buffered, so that it is complete up to a `kill -9`.
struct BuildLog {
    file: File,
    path: PathBuf,
}

impl BuildLog {
    fn append(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path).at("open log", path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    fn line(&mut self, line: &str) -> Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes()).at("write", &self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::NoProgress;
    use std::sync::Mutex;

    /// Substitute for the kernel's top Makefile, to test make's command line and output.
    fn with_makefile(recipe: &str, check: impl FnOnce(&Kbuild)) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("Makefile"), format!("it:\n{recipe}")).unwrap();
        let tree = BuildTree::at(dir.path().to_owned());
        let kbuild = Kbuild {
            tree: &tree,
            arch: Arch::default(),
            compiler: &Compiler::default(),
            make_vars: &[("X".into(), "a b".into())],
            log: dir.path().join("build.log"),
            cache: None,
        };
        check(&kbuild);
    }

    #[derive(Default)]
    struct ProgressRecorder(Mutex<Vec<String>>);

    impl Progress for ProgressRecorder {
        fn begin(&self, what: &str, total: Option<u64>) {
            self.0.lock().unwrap().push(format!("begin {what} {total:?}"));
        }
        fn at(&self, done: u64) {
            self.0.lock().unwrap().push(done.to_string());
        }
        fn note(&self, _: &str) {}
        fn end(&self) {
            self.0.lock().unwrap().push("end".into());
        }
    }

    #[test]
    fn objects_are_counted_once_over_attempts_and_variables_arrive() {
        let recipe =
            "\t@echo '  CC      a.o'; echo '  CC      b.o'; echo '  AR      x.a'; echo 'X is $(X) in $(O)'\n";
        with_makefile(recipe, |kbuild| {
            fs::write(&kbuild.log, "=== kerntune: make it\n  CC      a.o\n  AS      c.o\n").unwrap();
            let told = ProgressRecorder::default();
            let objects = kbuild.make("compile", &["it".into()], Some(3), &told).unwrap();
            assert_eq!(objects, 3);
            assert_eq!(*told.0.lock().unwrap(), ["begin compile Some(3)", "2", "3", "end"]);
            let log = fs::read_to_string(&kbuild.log).unwrap();
            assert!(log.contains(&format!("X is a b in {}", kbuild.tree.build().display())), "{log}");
        });
    }

    #[test]
    fn what_no_option_asks_for_is_not_looked_at() {
        let recipe = "\t@echo 'rustc is $(RUSTC), pahole is $(PAHOLE).'\n";
        with_makefile(&format!("{recipe}RUSTC = rustc\nPAHOLE = pahole\n"), |kbuild| {
            let said = || {
                kbuild.make("look", &["it".into()], None, &NoProgress).unwrap();
                fs::read_to_string(&kbuild.log)
                    .unwrap()
                    .lines()
                    .rfind(|line| line.contains("rustc is"))
                    .unwrap()
                    .to_string()
            };
            assert_eq!(said(), "rustc is unseen-by-kerntune, pahole is unseen-by-kerntune.");
            fs::create_dir_all(kbuild.tree.build()).unwrap();
            let config = kbuild.tree.build().join(".config");
            fs::write(&config, "CONFIG_DEBUG_INFO_BTF=y\n# CONFIG_RUST is not set\n").unwrap();
            assert_eq!(said(), "rustc is unseen-by-kerntune, pahole is pahole.");
        });
    }

    #[test]
    fn the_first_error_of_the_last_attempt_is_told_with_the_log() {
        let recipe = "\t@echo '  CC      a.o'; echo 'a.c:7:1: error: new one' >&2; exit 1\n";
        with_makefile(recipe, |kbuild| {
            fs::write(&kbuild.log, "=== kerntune: make it\nold.c:1:1: error: old one\n").unwrap();
            let error = kbuild.make("compile", &["it".into()], None, &NoProgress).unwrap_err().to_string();
            assert!(error.contains("compile failed") && error.contains("a.c:7:1: error: new one"), "{error}");
            assert!(!error.contains("old one") && error.contains("build.log"), "{error}");
        });
    }
}
