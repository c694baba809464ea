//! A fake machine for tests of the probes.

use crate::host::{CannotRun, OutputWatcher, PerfEvent, ProbeHost, ProgramEnd, ProgramRun, RecipeOutcome};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A machine that has only what the test defines; everything else is missing.
#[derive(Default)]
pub(crate) struct TestHost {
    programs: BTreeMap<String, PathBuf>,
    /// Output for command lines; the first entry whose words all occur in the command line is used.
    answers: Vec<(String, ProgramRun)>,
    files: BTreeMap<PathBuf, Result<Vec<u8>, io::ErrorKind>>,
    /// Recipes by compiler.
    recipes: Vec<(String, RecipeOutcome)>,
    counters: BTreeMap<(PerfEvent, bool), u64>,
    free: u64,
}

impl TestHost {
    /// Adds a program in /usr/bin.
    pub(crate) fn program(mut self, name: &str) -> Self {
        self.programs.insert(name.into(), Path::new("/usr/bin").join(name));
        self
    }

    /// Defines the exit status and output of command lines with these words.
    pub(crate) fn answer(mut self, words: &str, status: i32, output: &str) -> Self {
        self.answers
            .push((words.into(), ProgramRun { ending: ProgramEnd::Exited(status), output: output.into() }));
        self
    }

    /// Adds a recipe of a compiler, with what keeps it from carrying the recipe out.
    pub(crate) fn recipe(mut self, compiler: &str, recipe: &'static str, problem: Option<&str>) -> Self {
        let problem = problem.map(str::to_owned);
        self.recipes.push((compiler.into(), RecipeOutcome { recipe, problem }));
        self
    }

    /// Makes command lines with these words run until the time limit.
    pub(crate) fn hang(mut self, words: &str, output: &str) -> Self {
        self.answers.push((words.into(), ProgramRun { ending: ProgramEnd::TimedOut, output: output.into() }));
        self
    }

    pub(crate) fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), Ok(bytes.into()));
        self
    }

    pub(crate) fn refused(mut self, path: &str, why: io::ErrorKind) -> Self {
        self.files.insert(path.into(), Err(why));
        self
    }

    /// Sets the free bytes of every file system.
    pub(crate) fn free(mut self, bytes: u64) -> Self {
        self.free = bytes;
        self
    }

    pub(crate) fn counter(mut self, counter: PerfEvent, with_kernel: bool, value: u64) -> Self {
        self.counters.insert((counter, with_kernel), value);
        self
    }
}

impl ProbeHost for TestHost {
    fn find(&self, program: &str) -> Option<PathBuf> {
        self.programs.get(program).cloned()
    }

    fn versions(&self, program: &str) -> Vec<String> {
        let is_version = |name: &&String| {
            name.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.programs.keys().filter(is_version).cloned().collect()
    }

    fn recipes(&self, compiler: &str) -> Vec<RecipeOutcome> {
        self.recipes.iter().filter(|(of, _)| of == compiler).map(|(_, outcome)| outcome.clone()).collect()
    }

    fn run(&self, argv: &[&str], _limit: Duration, watch: OutputWatcher) -> Result<ProgramRun, CannotRun> {
        let line = argv.join(" ");
        let answer = self.answers.iter().find(|(words, _)| words.split(' ').all(|word| line.contains(word)));
        let (_, ran) = answer.ok_or_else(|| CannotRun(format!("cannot run {line}")))?;
        let mut output = String::new();
        for text in ran.output.lines() {
            output.push_str(text);
            output.push('\n');
            if !watch(text) {
                return Ok(ProgramRun { ending: ProgramEnd::Stopped, output });
            }
        }
        Ok(ProgramRun { ending: ran.ending.clone(), output })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(Ok(bytes)) => Ok(bytes.clone()),
            Some(Err(why)) => Err((*why).into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn is_readable(&self, path: &Path) -> bool {
        self.read(path).is_ok()
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        self.files.keys().filter(|path| path.parent() == Some(directory)).cloned().collect()
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.free)
    }

    fn count(&self, counter: PerfEvent, with_kernel: bool) -> io::Result<u64> {
        self.counters.get(&(counter, with_kernel)).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
