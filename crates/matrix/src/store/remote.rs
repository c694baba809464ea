//! A store that another program reaches: `kerntune-objects`, which knows object stores and is built by itself (`objects/`).

use super::wire::{answer, ask, Answer};
use super::Store;
use crate::{Error, Result};
use kerntune_work::find_program;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The program.
pub const HELPER: &str = "kerntune-objects";

/// The store at a URL. The helper runs as long as this lives: it ends when its input does.
#[derive(Debug)]
pub struct Remote {
    url: String,
    talk: Mutex<Talk>,
}

#[derive(Debug)]
struct Talk {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

impl Remote {
    /// Starts the helper. It takes its options from the environment, as the AWS tools do (docs/matrix.md).
    ///
    /// # Errors
    /// A helper that is not there; a store that it does not reach.
    pub fn open(url: &str) -> Result<Self> {
        let program = helper().ok_or_else(|| Error::NoHelper { store: url.to_owned(), program: HELPER })?;
        let mut command = Command::new(&program);
        command.arg(url).stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawn = |source| kerntune_work::Error::Spawn { program: program.display().to_string(), source };
        let mut child = command.spawn().map_err(spawn)?;
        let failed = |message: &str| Error::Store { store: url.to_owned(), message: message.to_owned() };
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.ok_or_else(|| failed("it has no output"))?);
        let remote = Self { url: url.to_owned(), talk: Mutex::new(Talk { child, to, from }) };
        remote.hear(&mut remote.lock())?;
        Ok(remote)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, message: impl ToString) -> Error {
        Error::Store { store: self.url.clone(), message: message.to_string() }
    }

    /// The next answer; none for an object that is not there, or for one that is there already.
    fn hear(&self, talk: &mut Talk) -> Result<Option<Vec<u8>>> {
        match answer(&mut talk.from).map_err(|error| self.failed(error))? {
            Answer::Ok(bytes) => Ok(Some(bytes)),
            Answer::None | Answer::Taken => Ok(None),
            Answer::Error(message) => Err(self.failed(message)),
        }
    }

    fn ask(&self, verb: &str, name: &str, bytes: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let mut talk = self.lock();
        let to = talk.to.as_mut().ok_or_else(|| self.failed("it was ended"))?;
        ask(to, verb, name, bytes).map_err(|error| self.failed(error))?;
        self.hear(&mut talk)
    }
}

/// Where the helper is: beside us, or on the PATH.
fn helper() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(HELPER)));
    beside.filter(|path| path.is_file()).or_else(|| find_program(HELPER, &[]))
}

impl Store for Remote {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.ask("get", name, None)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        Ok(self.ask("new", name, Some(bytes))?.is_some())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.ask("put", name, Some(bytes)).map(drop)
    }

    fn list(&self, start: &str) -> Result<Vec<String>> {
        let bytes = self.ask("list", start, None)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|error| self.failed(error))?;
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.ask("delete", name, None).map(drop)
    }
}
