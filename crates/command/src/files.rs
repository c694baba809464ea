//! Files and directories that the user names. They are checked before long work starts, so that its
//! results are not lost at the end. Start from [`OutputFile`].

use crate::exit::Failure;
use crate::streams::{self, OutputStream};
use kerntune_work::{create_new, interrupt, open_file, read_file, IoContext};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Checks that `path` is a readable file; `option` is the option that named it.
pub fn check_input(option: &str, path: &Path) -> Result<(), Failure> {
    let refused = |why| Failure::usage(format!("{option}: cannot read {}: {why}", path.display()));
    open_file(path).map(drop).map_err(refused)
}

/// Checks that a kernel configuration, complete or a fragment, can be parsed.
pub fn check_config(option: &str, path: &Path) -> Result<(), Failure> {
    check_input(option, path)?;
    kerntune_kernel::check_config(path).map_err(|error| Failure::usage(format!("{option}: {error}")))
}

/// Path that `-` stands for. A file of the name `-` is `./-`.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// A file that will receive results.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// The open file, if `path` is a device, a pipe or an inherited descriptor: these are written
    /// directly, because they cannot be replaced.
    stream: Option<File>,
}

impl OutputFile {
    /// Checks the file that `option` names; writes nothing yet.
    ///
    /// # Errors
    /// A directory, a socket, or a pipe without a reader; a missing directory, or one that cannot
    /// be written.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("{option}: cannot write {}: {why}", path.display()))
        };
        if path.as_os_str().is_empty() {
            return Err(Failure::usage(format!("{option}: the name of a file is empty")));
        }
        let path = if path == Path::new("-") { Path::new(STANDARD_OUTPUT) } else { path };
        if let Some(stream) = streams::open(path).map_err(|error| refused(&error))? {
            return Ok(Self { path: path.to_owned(), stream: Some(stream) });
        }
        // A symbolic link keeps its name; the file that it points to is replaced.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.file_name().is_none() {
            return Err(refused(&"it is a directory"));
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !directory.exists() {
            return Err(refused(&format!("there is no directory {}", directory.display())));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        probe(directory, &name).map_err(|error| refused(&error))?;
        Ok(Self { path: path.to_owned(), stream: None })
    }

    /// Returns the path that is written; of a symbolic link, that of its target.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if it is a regular file with exactly these bytes.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.stream.is_none() && read_file(&self.path).is_ok_and(|there| there == bytes)
    }

    /// Writes the file atomically: all of it, or nothing.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_with(|out| out.write_all(bytes))
    }

    /// Writes the file atomically with the closure `write`, for contents too large for memory.
    pub fn write_with<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<OutputStream<'_>>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let (written, whole) = self.write_temporary(write)?;
        whole.publish()?;
        Ok(written)
    }

    /// Writes several files: all of them, or none.
    pub fn write_together(files: &[(&Self, &[u8])]) -> Result<(), Failure> {
        let mut whole = Vec::new();
        for (file, bytes) in files {
            whole.push(file.write_temporary(|out| out.write_all(bytes))?.1);
        }
        whole.into_iter().try_for_each(UnpublishedFile::publish)
    }

    /// Writes the contents to a temporary file in the same directory.
    fn write_temporary<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<OutputStream<'_>>) -> io::Result<T>,
    ) -> Result<(T, UnpublishedFile<'_>), Failure> {
        let mut aside = UnpublishedFile { to: &self.path, from: None };
        let mut made = None;
        let file = match &self.stream {
            Some(stream) => stream,
            None => {
                let from = temporary_path(&self.path);
                let file = create_new(&from).at("create", &from)?;
                aside.from = Some(from);
                made.insert(file)
            }
        };
        let mut out = BufWriter::new(OutputStream(file));
        let done = write(&mut out).and_then(|written| out.flush().map(|()| written));
        // An interruption while waiting for a reader is no error of the file.
        let written = match done {
            Err(_) if interrupt::is_set() => Err(kerntune_work::Error::Interrupted)?,
            done => done.at("write", &self.path)?,
        };
        if aside.from.is_some() {
            file.sync_data().at("write", &self.path)?;
        }
        Ok((written, aside))
    }

    /// Writes a value as indented JSON with a final newline, atomically.
    pub fn write_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let json = |source| kerntune_work::Error::Json { path: self.path.clone(), source };
        let mut text = serde_json::to_vec_pretty(value).map_err(json)?;
        text.push(b'\n');
        self.write(&text)
    }
}

/// A complete temporary file that is renamed to its final name by `publish`, and removed otherwise.
struct UnpublishedFile<'a> {
    to: &'a Path,
    from: Option<PathBuf>,
}

impl UnpublishedFile<'_> {
    fn publish(mut self) -> Result<(), Failure> {
        match self.from.take() {
            None => Ok(()),
            Some(from) => {
                let renamed = fs::rename(&from, self.to);
                self.from = renamed.is_err().then_some(from);
                Ok(renamed.at("create", self.to)?)
            }
        }
    }
}

impl Drop for UnpublishedFile<'_> {
    fn drop(&mut self) {
        if let Some(from) = &self.from {
            let _ = fs::remove_file(from);
        }
    }
}

/// Checks the directory that `option` names, and creates it if it is missing.
pub fn output_directory(option: &str, path: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(path).and_then(|()| probe(path, "probe"));
    made.map_err(|error| Failure::usage(format!("{option}: cannot write into {}: {error}", path.display())))
}

/// Checks that `directory` accepts a temporary file as [`OutputFile::write`] makes it: creates one
/// and removes it.
fn probe(directory: &Path, name: &str) -> io::Result<()> {
    let aside = temporary_path(&directory.join(name));
    create_new(&aside)?;
    fs::remove_file(&aside)
}

/// Returns the path of the temporary file for `path`, in the same directory.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mknodat, FileType, Mode, OFlags, CWD};
    use std::io::Read;
    use std::os::unix::fs::{symlink, FileTypeExt};

    #[test]
    fn a_file_that_cannot_be_written_is_told_of_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let message = |path: &Path| OutputFile::new("--html", path).unwrap_err().message;
        assert!(message(dir.path()).contains("it is a directory"));
        assert!(message(&dir.path().join("none/page")).contains("there is no directory"));
        assert!(message(Path::new("")).contains("empty"));
        assert!(message(Path::new("/")).contains("it is a directory"));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(message(&dir.path().join("file/page")).starts_with("--html: cannot write"));
    }

    #[test]
    fn a_device_stays_a_device() {
        let null = OutputFile::new("--output", Path::new("/dev/null")).unwrap();
        null.write(b"x").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let full = OutputFile::new("--output", Path::new("/dev/full")).unwrap();
        assert!(full.write(b"x").unwrap_err().message.contains("No space left"));
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_pipe_is_written_to_if_somebody_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        let message = OutputFile::new("--output", &pipe).unwrap_err().message;
        assert!(message.ends_with("nobody reads from this pipe"), "{message}");
        let mut reader =
            File::from(rustix::fs::open(&pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
        let output = OutputFile::new("--output", &pipe).unwrap();
        output.write(b"text").unwrap();
        let mut text = [0; 8];
        assert_eq!(reader.read(&mut text).unwrap(), 4);
        assert!(!output.holds(b"text"));
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let message = OutputFile::new("--output", &dir.path().join("socket")).unwrap_err().message;
        assert!(message.ends_with("it is a socket"), "{message}");
        let output = OutputFile::new("--output", Path::new("-")).unwrap();
        assert_eq!((output.path(), output.stream.is_some()), (Path::new("/dev/stdout"), true));
    }

    #[test]
    fn files_that_belong_together_appear_together() {
        let dir = tempfile::tempdir().unwrap();
        let one = OutputFile::new("--output", &dir.path().join("one")).unwrap();
        let full = OutputFile::new("--output", Path::new("/dev/full")).unwrap();
        assert!(OutputFile::write_together(&[(&one, b"1"), (&full, b"2")]).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let two = OutputFile::new("--output", &dir.path().join("two")).unwrap();
        OutputFile::write_together(&[(&one, b"1"), (&two, b"2")]).unwrap();
        assert!(one.holds(b"1") && two.holds(b"2") && !two.holds(b"1"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_written_aside_is_nobodys_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["page.partial", "victim"] {
            fs::write(at(name), "precious").unwrap();
        }
        symlink(at("victim"), temporary_path(&at("page"))).unwrap();
        OutputFile::new("--html", &at("page")).unwrap().write(b"new").unwrap();
        for name in ["page.partial", "victim"] {
            assert_eq!(fs::read(at(name)).unwrap(), b"precious");
        }
        assert_eq!(fs::read(at("page")).unwrap(), b"new");
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        OutputFile::new("--output", &link).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn an_input_is_a_file_that_reads() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_input("--config", dir.path()).unwrap_err().message.contains("it is a directory"));
        assert!(check_input("--config", &dir.path().join("none"))
            .unwrap_err()
            .message
            .contains("No such file"));
        check_input("--config", Path::new("/dev/null")).unwrap();
        let config = dir.path().join("config");
        fs::write(&config, "# a comment\n\nCONFIG_X=y\n# CONFIG_Y is not set\n").unwrap();
        check_config("--fragment", &config).unwrap();
        fs::write(&config, "CONFIG_X=y\nnonsense\n").unwrap();
        let message = check_config("--fragment", &config).unwrap_err().message;
        assert!(message.contains("config, line 2: `nonsense` is neither"), "{message}");
    }
}
