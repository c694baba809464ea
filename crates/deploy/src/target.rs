//! Files of a machine, written so that a power cut at any moment leaves the old or the new content.

use crate::shell::{last_line, quoted, Script, ScriptInput, Shell};
use crate::{Error, Result};

/// Suffix of a file that is being written.
pub(crate) const NEW: &str = ".kerntune-new";

/// A machine, and the directory that stands for its root.
#[derive(Debug)]
pub struct Target<'a> {
    /// Shell of the machine.
    pub shell: &'a dyn Shell,
    /// Directory in front of every path: empty, or a directory in tests.
    pub root: String,
}

impl Target<'_> {
    /// Returns a path below the root.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// Returns a path below the root, quoted for a shell.
    pub(crate) fn at(&self, path: &str) -> String {
        quoted(&self.path(path))
    }

    /// Carries out a step; returns its output.
    ///
    /// # Errors
    /// [`Error::Step`] if a command fails.
    pub(crate) fn step(&self, script: &Script) -> Result<String> {
        let result = self.shell.run(script)?;
        if result.status == Some(0) {
            return Ok(result.output);
        }
        let reason = last_line(&result.errors);
        Err(Error::Step { host: self.shell.host().into(), what: script.what.clone(), reason })
    }

    /// Reads a file of at most 1 MiB; `None` if there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let at = self.at(path);
        let script = format!("[ ! -f {at} ] || {{ echo file; head -c 1048577 {at} | od -An -v -tx1; }}");
        let output = self.step(&Script::new(format!("read {path}"), [script]))?;
        let Some(hex) = output.strip_prefix("file\n") else { return Ok(None) };
        let bytes: Option<Vec<u8>> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        match bytes {
            Some(bytes) if bytes.len() <= 1 << 20 => Ok(Some(bytes)),
            _ => Err(Error::Step {
                host: self.shell.host().into(),
                what: format!("read {path}"),
                reason: "it is larger than 1 MiB".into(),
            }),
        }
    }

    /// Returns the script that writes a file in one step, in a directory that exists.
    pub(crate) fn write(&self, what: &str, path: &str, input: ScriptInput) -> Script {
        let new = self.at(&format!("{path}{NEW}"));
        let commands = [format!("cat >{new}"), format!("sync {new}")];
        let moved = self.renamed(path);
        Script { input, ..Script::new(what, commands.into_iter().chain(moved)) }
    }

    /// Returns the commands that give a complete new file its name.
    pub(crate) fn renamed(&self, path: &str) -> [String; 2] {
        let new = self.at(&format!("{path}{NEW}"));
        let directory = path.rsplit_once('/').map_or("/", |(directory, _)| directory);
        [format!("mv -f {new} {}", self.at(path)), format!("sync {}", self.at(directory))]
    }
}
