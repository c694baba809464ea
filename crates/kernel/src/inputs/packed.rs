//! Compressed text files of distributions: `config-6.12.xz`, `/proc/config.gz`.

use crate::{tools, Error, Result};
use flate2::read::MultiGzDecoder;
use kerntune_work::{open_file, IoContext};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Size limit of an unpacked configuration; a longer file is refused and not read into memory.
const MAX_BYTES: u64 = 16 << 20;

/// Programs that unpack files beginning with these bytes, with their Debian packages.
const PROGRAMS: [(&[u8], &str, &str); 3] =
    [(b"\xfd7zXZ\0", "xz", "xz-utils"), (b"\x28\xb5\x2f\xfd", "zstd", "zstd"), (b"BZh", "bzip2", "bzip2")];

/// Reads a text file, and unpacks it if its first bytes say that it is compressed.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bad = |reason: String| Error::Packed { path: path.to_owned(), reason };
    let mut first = [0; 8];
    let mut file = open_file(path).at("read configuration", path)?;
    let mut got = 0;
    while let Some(rest) = first.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).at("read configuration", path)? {
            0 => break,
            more => got += more,
        }
    }
    let first = &first[..got];
    // Opened again, because files in /proc cannot be rewound.
    let bytes = if first.starts_with(b"\x1f\x8b") {
        let file = open_file(path).at("read configuration", path)?;
        bounded(&mut MultiGzDecoder::new(file)).map_err(|error| bad(error.to_string()))?
    } else if let Some((_, program, package)) = PROGRAMS.iter().find(|(sign, ..)| first.starts_with(sign)) {
        tools::require(&[(program, package)])?;
        unpacked(program, path, &bad)?
    } else {
        let file = open_file(path).at("read configuration", path)?;
        bounded(&mut { file }).map_err(|error| bad(error.to_string()))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Unpacks a file with a program, up to the size limit.
fn unpacked(program: &str, path: &Path, bad: &dyn Fn(String) -> Error) -> Result<Vec<u8>> {
    let spawn = |source| kerntune_work::Error::Spawn { program: program.to_owned(), source };
    let file = open_file(path).at("read configuration", path)?;
    let mut child = Command::new(program)
        .args(["-d", "-c"])
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn)?;
    let read = match &mut child.stdout {
        Some(out) => bounded(out),
        None => Ok(Vec::new()),
    };
    if read.is_err() {
        let _ = child.kill();
    }
    let end = child.wait().at("wait for the program that unpacks", path)?;
    let bytes = read.map_err(|error| bad(error.to_string()))?;
    match end.success() {
        true => Ok(bytes),
        false => Err(bad(format!("{program} cannot unpack it; the file is damaged"))),
    }
}

fn bounded(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB, which no configuration has",
            MAX_BYTES >> 20
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
    use std::fs::File;
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
        (0..=MAX_BYTES >> 20).for_each(|_| gzip.write_all(&zeros).unwrap());
        gzip.finish().unwrap();
        let error = read_text(&path).unwrap_err().to_string();
        assert!(error.contains("more than 16 MiB"), "{error}");
        let whole = vec![b'\n'; MAX_BYTES as usize + 1];
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
