//! Protocol of the helper program for object stores, over its standard input and output.
//!
//! A request is a line of fields separated by tabs, followed by as many bytes as the line says. A
//! reply has the same form:
//!
//! | request | reply |
//! |---|---|
//! | `get NAME` | `ok BYTES`, and the bytes; `none` |
//! | `new NAME BYTES`, and the bytes | `ok 0`; `taken` |
//! | `put NAME BYTES`, and the bytes | `ok 0` |
//! | `list START` | `ok BYTES`, and the names, a line each |
//! | `delete NAME` | `ok 0` |
//! | any | `error MESSAGE` |
//!
//! At its start the helper writes `ok 0` once it has reached the store.

use std::io::{self, BufRead, Read, Write};

/// Largest reply; a packed kernel has about ten million bytes.
const MAX_REPLY_BYTES: u64 = 1 << 32;

/// Reply of the helper.
#[derive(Debug, PartialEq, Eq)]
pub enum HelperReply {
    /// Success, with the bytes that were asked for.
    Ok(Vec<u8>),
    /// The object does not exist.
    None,
    /// The object exists already.
    Taken,
    /// Failure, with the message.
    Error(String),
}

/// Sends a request.
pub fn send_request(to: &mut impl Write, verb: &str, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
    if name.contains(['\t', '\n']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name with a tab or a line end in it"));
    }
    match bytes {
        Some(bytes) => {
            writeln!(to, "{verb}\t{name}\t{}", bytes.len())?;
            to.write_all(bytes)?;
        }
        None => writeln!(to, "{verb}\t{name}")?,
    }
    to.flush()
}

/// Reads a reply.
pub fn read_reply(from: &mut impl BufRead) -> io::Result<HelperReply> {
    let mut line = String::new();
    if from.by_ref().take(1 << 16).read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer"));
    }
    let line = line.trim_end_matches('\n');
    let odd = || io::Error::new(io::ErrorKind::InvalidData, format!("it answered {line:?}"));
    let (word, rest) = line.split_once('\t').unwrap_or((line, ""));
    match word {
        "none" => Ok(HelperReply::None),
        "taken" => Ok(HelperReply::Taken),
        "error" => Ok(HelperReply::Error(rest.to_owned())),
        "ok" => {
            let length: u64 =
                rest.parse().ok().filter(|length| *length <= MAX_REPLY_BYTES).ok_or_else(odd)?;
            let mut bytes = Vec::new();
            from.take(length).read_to_end(&mut bytes)?;
            match bytes.len() as u64 == length {
                true => Ok(HelperReply::Ok(bytes)),
                false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within an answer")),
            }
        }
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let read =
            |bytes: &[u8]| read_reply(&mut io::BufReader::new(bytes)).map_err(|error| error.to_string());
        assert_eq!(read(b"ok\t3\nabc"), Ok(HelperReply::Ok(b"abc".to_vec())));
        assert_eq!((read(b"none\n"), read(b"taken\n")), (Ok(HelperReply::None), Ok(HelperReply::Taken)));
        assert_eq!(read(b"error\tno such bucket\n"), Ok(HelperReply::Error("no such bucket".into())));
        for (bytes, words) in [
            (&b""[..], "without an answer"),
            (b"ok\t4\nabc", "within an answer"),
            (b"ok\n", "it answered"),
            (b"ok\t99999999999999999999\n", "it answered"),
            (b"yes\n", "it answered \"yes\""),
        ] {
            assert!(read(bytes).unwrap_err().contains(words), "{bytes:?}");
        }
    }

    #[test]
    fn requests() {
        let mut sent = Vec::new();
        send_request(&mut sent, "new", "results/a", Some(b"xyz")).unwrap();
        send_request(&mut sent, "list", "results/", None).unwrap();
        assert_eq!(sent, b"new\tresults/a\t3\nxyzlist\tresults/\n");
        assert!(send_request(&mut sent, "get", "a\nb", None).is_err());
    }
}
