//! A store that the helper program `kerntune-objects` reaches. It knows object stores and is built
//! separately (`crates/objects/`).

use super::wire::{read_reply, send_request, HelperReply};
use super::Store;
use crate::{Error, Result};
use kerntune_work::find_program;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Name of the helper program.
pub const HELPER: &str = "kerntune-objects";

/// The store at a URL. The helper runs until this value is dropped, which closes its input.
#[derive(Debug)]
pub struct RemoteStore {
    url: String,
    helper: Mutex<HelperProcess>,
}

#[derive(Debug)]
struct HelperProcess {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

impl RemoteStore {
    /// Starts the helper. Its options are in the environment, as those of the AWS tools
    /// (docs/matrix.md).
    ///
    /// # Errors
    /// A helper that is missing; a store that it does not reach.
    pub fn open(url: &str) -> Result<Self> {
        let program = helper().ok_or_else(|| Error::NoHelper { store: url.to_owned(), program: HELPER })?;
        let mut command = Command::new(&program);
        command.arg(url).stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawn = |source| kerntune_work::Error::Spawn { program: program.display().to_string(), source };
        let mut child = command.spawn().map_err(spawn)?;
        let failed = |message: &str| Error::Store { store: url.to_owned(), message: message.to_owned() };
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.ok_or_else(|| failed("it has no output"))?);
        let remote = Self { url: url.to_owned(), helper: Mutex::new(HelperProcess { child, to, from }) };
        remote.read_reply(&mut remote.lock())?;
        Ok(remote)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HelperProcess> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, message: impl ToString) -> Error {
        Error::Store { store: self.url.clone(), message: message.to_string() }
    }

    /// Reads the next reply; `None` for an object that does not exist, or that exists already.
    fn read_reply(&self, helper: &mut HelperProcess) -> Result<Option<Vec<u8>>> {
        match read_reply(&mut helper.from).map_err(|error| self.failed(error))? {
            HelperReply::Ok(bytes) => Ok(Some(bytes)),
            HelperReply::None | HelperReply::Taken => Ok(None),
            HelperReply::Error(message) => Err(self.failed(message)),
        }
    }

    fn request(&self, verb: &str, name: &str, bytes: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let mut helper = self.lock();
        let to = helper.to.as_mut().ok_or_else(|| self.failed("it was ended"))?;
        send_request(to, verb, name, bytes).map_err(|error| self.failed(error))?;
        self.read_reply(&mut helper)
    }
}

/// Finds the helper beside this program, or on the PATH.
fn helper() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(HELPER)));
    beside.filter(|path| path.is_file()).or_else(|| find_program(HELPER, &[]))
}

impl Store for RemoteStore {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.request("get", name, None)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        Ok(self.request("new", name, Some(bytes))?.is_some())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.request("put", name, Some(bytes)).map(drop)
    }

    fn list(&self, start: &str) -> Result<Vec<String>> {
        let bytes = self.request("list", start, None)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|error| self.failed(error))?;
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.request("delete", name, None).map(drop)
    }
}
