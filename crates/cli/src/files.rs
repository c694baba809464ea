//! Files and directories that the user names. They are looked at before long work, so that it is not lost at its end.

use crate::exit::Failure;
use crate::kernel_words::config_line;
use kerntune_work::{write_atomic, IoContext};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Refuses what is no file, or cannot be read; `option` is where it was named.
pub fn check_input(option: &str, path: &Path) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("{option}: cannot read {}: {why}", path.display()))
    };
    match File::open(path).and_then(|file| file.metadata()) {
        Err(error) => Err(refused(&error)),
        Ok(what) if what.is_dir() => Err(refused(&"it is a directory")),
        Ok(_) => Ok(()),
    }
}

/// Refuses a configuration, whole or a part of one, that does not read.
pub fn check_config(option: &str, path: &Path) -> Result<(), Failure> {
    check_input(option, path)?;
    let text = fs::read_to_string(path).at("read", path)?;
    let is_silent = |line: &str| line.is_empty() || line.starts_with('#');
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        config_line(line).map(drop).or_else(|why| if is_silent(line) { Ok(()) } else { Err(why) }).map_err(
            |why| Failure::usage(format!("{option}: {}, line {number}: `{line}` is {why}", path.display())),
        )?;
    }
    Ok(())
}

/// A file for results.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Written as it is: a device or a pipe is no file that could be replaced by a whole one.
    in_place: bool,
}

impl OutputFile {
    /// The file that `option` names. Nothing is written yet.
    ///
    /// # Errors
    /// A directory, a name in no directory, a directory that takes no files.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("{option}: cannot write {}: {why}", path.display()))
        };
        if path.as_os_str().is_empty() {
            return Err(Failure::usage(format!("{option}: the name of a file is empty")));
        }
        // What a link points to is what is meant: it is replaced, and not the link.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let file_type = fs::metadata(path).map(|what| what.file_type());
        if file_type.as_ref().is_ok_and(fs::FileType::is_dir) || path.file_name().is_none() {
            return Err(refused(&"it is a directory"));
        }
        if file_type.is_ok_and(|what| !what.is_file()) {
            return Ok(Self { path: path.to_owned(), in_place: true });
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !directory.exists() {
            return Err(refused(&format!("there is no directory {}", directory.display())));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        probe(directory, &name).map_err(|error| refused(&error))?;
        Ok(Self { path: path.to_owned(), in_place: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of it, or nothing.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        if !self.in_place {
            return Ok(write_atomic(&self.path, bytes)?);
        }
        let write = || OpenOptions::new().write(true).open(&self.path)?.write_all(bytes);
        Ok(write().at("write", &self.path)?)
    }

    /// The same of what is too large to be made first; `write` writes it.
    pub fn write_with<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut file = BufWriter::new(match self.in_place {
            true => OpenOptions::new().write(true).open(&self.path).at("open", &self.path)?,
            false => File::create(&partial).at("create", &partial)?,
        });
        let done = write(&mut file).and_then(|written| file.flush().map(|()| written));
        if self.in_place {
            return Ok(done.at("write", &self.path)?);
        }
        if done.is_err() {
            let _ = fs::remove_file(&partial);
        }
        let written = done.at("write", &partial)?;
        fs::rename(&partial, &self.path).at("create", &self.path)?;
        Ok(written)
    }

    /// The same of a value as indented JSON with a final newline.
    pub fn write_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let json = |source| kerntune_work::Error::Json { path: self.path.clone(), source };
        let mut text = serde_json::to_vec_pretty(value).map_err(json)?;
        text.push(b'\n');
        self.write(&text)
    }
}

/// A directory for results, made if need be.
pub fn output_directory(option: &str, path: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(path).and_then(|()| probe(path, "probe"));
    made.map_err(|error| Failure::usage(format!("{option}: cannot write into {}: {error}", path.display())))
}

/// Whether `directory` takes a file of this name beside others: makes one, as [`write_atomic`] does, and removes it.
fn probe(directory: &Path, name: &str) -> io::Result<()> {
    let aside = directory.join(format!(".{name}.{}", std::process::id()));
    File::create(&aside)?;
    fs::remove_file(&aside)
}

#[cfg(test)]
mod tests {
    use super::*;
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
