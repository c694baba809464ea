//! A machine made of answers.

use crate::host::{CannotRun, Counter, Ending, Host, Ran, Watch};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What it does not know is not there.
#[derive(Default)]
pub(crate) struct TestHost {
    programs: BTreeMap<String, PathBuf>,
    /// The first whose words all stand in the command line answers.
    answers: Vec<(String, Ran)>,
    files: BTreeMap<PathBuf, Result<Vec<u8>, io::ErrorKind>>,
    counters: BTreeMap<(Counter, bool), u64>,
    free: u64,
}

impl TestHost {
    /// A program on the PATH, in /usr/bin.
    pub(crate) fn program(mut self, name: &str) -> Self {
        self.programs.insert(name.into(), Path::new("/usr/bin").join(name));
        self
    }

    /// What a command line with these words gives.
    pub(crate) fn answer(mut self, words: &str, status: i32, output: &str) -> Self {
        self.answers.push((words.into(), Ran { ending: Ending::Exited(status), output: output.into() }));
        self
    }

    /// A command line with these words never ends by itself.
    pub(crate) fn hang(mut self, words: &str, output: &str) -> Self {
        self.answers.push((words.into(), Ran { ending: Ending::TimedOut, output: output.into() }));
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

    /// Free bytes of every file system.
    pub(crate) fn free(mut self, bytes: u64) -> Self {
        self.free = bytes;
        self
    }

    pub(crate) fn counter(mut self, counter: Counter, with_kernel: bool, value: u64) -> Self {
        self.counters.insert((counter, with_kernel), value);
        self
    }
}

impl Host for TestHost {
    fn find(&self, program: &str) -> Option<PathBuf> {
        self.programs.get(program).cloned()
    }

    fn run(&self, argv: &[&str], _limit: Duration, watch: Watch) -> Result<Ran, CannotRun> {
        let line = argv.join(" ");
        let answer = self.answers.iter().find(|(words, _)| words.split(' ').all(|word| line.contains(word)));
        let (_, ran) = answer.ok_or_else(|| CannotRun(format!("cannot run {line}")))?;
        let mut output = String::new();
        for text in ran.output.lines() {
            output.push_str(text);
            output.push('\n');
            if !watch(text) {
                return Ok(Ran { ending: Ending::Stopped, output });
            }
        }
        Ok(Ran { ending: ran.ending.clone(), output })
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

    fn count(&self, counter: Counter, with_kernel: bool) -> io::Result<u64> {
        self.counters.get(&(counter, with_kernel)).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
