//! Compressed files of distributions: `config-6.12.xz`, `/proc/config.gz`, `ext4.ko.xz`.

use crate::{tools, Error, Result};
use flate2::read::MultiGzDecoder;
use kerntune_work::{open_file, IoContext};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Size limit of an unpacked configuration; a longer file is refused and not read into memory.
const LIMIT: Limit = Limit { bytes: 16 << 20, of: "configuration", read: "read configuration" };

/// Size limit of an unpacked file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub bytes: u64,
    /// Kind of file in messages.
    pub of: &'static str,
    /// Reading such a file, in messages.
    pub read: &'static str,
}

/// Programs that unpack files beginning with these bytes, with their Debian packages.
const PROGRAMS: [(&[u8], &str, &str); 3] =
    [(b"\xfd7zXZ\0", "xz", "xz-utils"), (b"\x28\xb5\x2f\xfd", "zstd", "zstd"), (b"BZh", "bzip2", "bzip2")];

/// Reads a configuration, like [`read_bytes`].
pub(crate) fn read_text(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&read_bytes(path, LIMIT)?).into_owned())
}

/// Reads a file, and unpacks it if its first bytes say that it is compressed.
pub(crate) fn read_bytes(path: &Path, limit: Limit) -> Result<Vec<u8>> {
    let bad = |reason: String| Error::Packed { read: limit.read, path: path.to_owned(), reason };
    let mut first = [0; 8];
    let mut file = open_file(path).at(limit.read, path)?;
    let mut got = 0;
    while let Some(rest) = first.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).at(limit.read, path)? {
            0 => break,
            more => got += more,
        }
    }
    let first = &first[..got];
    // Opened again, because files in /proc cannot be rewound.
    let file = open_file(path).at(limit.read, path)?;
    if first.starts_with(b"\x1f\x8b") {
        bounded(&mut MultiGzDecoder::new(file), limit).map_err(|error| bad(error.to_string()))
    } else if let Some((_, program, package)) = PROGRAMS.iter().find(|(sign, ..)| first.starts_with(sign)) {
        tools::require(&[(program, package)])?;
        unpack_by(program, file, path, limit)?.map_err(bad)
    } else {
        bounded(&mut { file }, limit).map_err(|error| bad(error.to_string()))
    }
}

/// Unpacks a file, which was opened, with a program. The inner error is that of a damaged file, or
/// of one that unpacks to more than the limit.
pub(crate) fn unpack_by(
    program: &str,
    file: File,
    path: &Path,
    limit: Limit,
) -> Result<Result<Vec<u8>, String>> {
    let spawn = |source| kerntune_work::Error::Spawn { program: program.to_owned(), source };
    let mut child = Command::new(program)
        .args(["-d", "-c"])
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn)?;
    let read = match &mut child.stdout {
        Some(out) => bounded(out, limit),
        None => Ok(Vec::new()),
    };
    if read.is_err() {
        let _ = child.kill();
    }
    let end = child.wait().at("wait for the program that unpacks", path)?;
    Ok(match read {
        Err(error) => Err(error.to_string()),
        Ok(_) if !end.success() => Err(format!("{program} cannot unpack it; the file is damaged")),
        Ok(bytes) => Ok(bytes),
    })
}

fn bounded(from: &mut dyn Read, limit: Limit) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit.bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit.bytes {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB, which no {} has",
            limit.bytes >> 20,
            limit.of
        ))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use flate2::Compression;
    use std::fs;
    use std::io::Write;

    const TEXT: &str = "CONFIG_SMP=y\n# CONFIG_VT is not set\n";

    fn pack(program: &str, bytes: &[u8], to: &Path) -> bool {
        let file = File::create(to).unwrap();
        let Ok(mut child) = Command::new(program).arg("-c").stdin(Stdio::piped()).stdout(file).spawn() else {
            return false;
        };
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait().unwrap().success()
    }

    #[test]
    fn a_packed_configuration_is_read_by_what_it_is_and_not_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        fs::write(&path, TEXT).unwrap();
        assert_eq!(read_text(&path).unwrap(), TEXT);
        fs::write(&path, "").unwrap();
        assert_eq!(read_text(&path).unwrap(), "");
        let mut gzip = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        gzip.write_all(TEXT.as_bytes()).unwrap();
        gzip.finish().unwrap();
        assert_eq!(read_text(&path).unwrap(), TEXT);
        for program in ["xz", "zstd", "bzip2"] {
            if pack(program, TEXT.as_bytes(), &path) {
                assert_eq!(read_text(&path).unwrap(), TEXT, "{program}");
            }
        }
    }

    #[test]
    fn what_unpacks_to_too_much_or_not_at_all_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let mut gzip = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        let zeros = vec![b'\n'; 1 << 20];
        (0..=LIMIT.bytes >> 20).for_each(|_| gzip.write_all(&zeros).unwrap());
        gzip.finish().unwrap();
        let error = read_text(&path).unwrap_err().to_string();
        assert!(error.contains("more than 16 MiB"), "{error}");
        let whole = vec![b'\n'; LIMIT.bytes as usize + 1];
        for program in ["xz", "zstd"] {
            if pack(program, &whole, &path) {
                let error = read_text(&path).unwrap_err().to_string();
                assert!(error.contains("more than 16 MiB"), "{program}: {error}");
            }
        }
        for damaged in [&b"\x1f\x8b\x08\0\0"[..], b"\xfd7zXZ\0damaged"] {
            fs::write(&path, damaged).unwrap();
            let error = read_text(&path).unwrap_err().to_string();
            assert!(error.contains(&*path.to_string_lossy()), "{error}");
        }
    }
}
