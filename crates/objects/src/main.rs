//! Reaches an object store for kerntune: reads requests from standard input, writes replies to
//! standard output (protocol: `crates/matrix/src/store/wire.rs`). It ends when its input does.
//!
//!     kerntune-objects s3://bucket/prefix
//!     kerntune-objects file:///directory
//!
//! Options of S3 are in the environment, as the AWS tools read them: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT` for a server that is not Amazon's,
//! `AWS_ALLOW_HTTP=true` for one without TLS.

use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use url::Url;

/// Largest object; kerntune's are much smaller.
const MAX_BYTES: u64 = 1 << 32;

type BoxedError = Box<dyn std::error::Error>;

/// Result of a request; see the protocol.
enum StoreReply {
    Ok(Vec<u8>),
    None,
    Taken,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), None) = (arguments.next(), arguments.next()) else {
        eprintln!("kerntune-objects: give a URL: s3://bucket/prefix or file:///directory");
        return ExitCode::from(2);
    };
    match serve(&url) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // kerntune reads the error as a reply.
            println!("error\t{}", one_line(&error.to_string()));
            eprintln!("kerntune-objects: {url}: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(url: &str) -> Result<(), BoxedError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (store, prefix) = open(url)?;
    let store = PrefixedStore { store, prefix };
    // Fails at once if the address is wrong.
    runtime.block_on(store.list("plans/"))?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    writeln!(output, "ok\t0")?;
    output.flush()?;
    let mut line = String::new();
    loop {
        line.clear();
        if input.by_ref().take(1 << 16).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
        let bytes = match words.get(2) {
            Some(length) => read(&mut input, length)?,
            None => Vec::new(),
        };
        let answer = match words[..] {
            ["get", name] => runtime.block_on(store.get(name)),
            ["new", name, _] => runtime.block_on(store.put(name, bytes, PutMode::Create)),
            ["put", name, _] => runtime.block_on(store.put(name, bytes, PutMode::Overwrite)),
            ["list", start] => runtime.block_on(store.list(start)),
            ["delete", name] => runtime.block_on(store.delete(name)),
            _ => return Err(format!("it was asked {:?}", line.trim_end()).into()),
        };
        match answer {
            Ok(StoreReply::Ok(bytes)) => {
                writeln!(output, "ok\t{}", bytes.len())?;
                output.write_all(&bytes)?;
            }
            Ok(StoreReply::None) => writeln!(output, "none")?,
            Ok(StoreReply::Taken) => writeln!(output, "taken")?,
            Err(error) => writeln!(output, "error\t{}", one_line(&error.to_string()))?,
        }
        output.flush()?;
    }
}

/// Reads the bytes of a request.
fn read(from: &mut impl Read, length: &str) -> Result<Vec<u8>, BoxedError> {
    let length: u64 =
        length.parse().ok().filter(|length| *length <= MAX_BYTES).ok_or("a length that is none")?;
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err("the input ended within a request".into()),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Opens the store at a URL; returns it with the prefix of its objects.
fn open(url: &str) -> Result<(Box<dyn ObjectStore>, Path), BoxedError> {
    let parsed = Url::parse(url)?;
    match parsed.scheme() {
        "s3" => {
            let bucket = parsed.host_str().ok_or("the URL has no bucket: s3://bucket/prefix")?;
            let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build()?;
            Ok((Box::new(store), Path::from_url_path(parsed.path())?))
        }
        "file" => {
            let root = parsed.to_file_path().map_err(|()| "the URL has no path: file:///directory")?;
            std::fs::create_dir_all(&root)?;
            Ok((Box::new(LocalFileSystem::new_with_prefix(root)?), Path::default()))
        }
        other => Err(format!("there is no store {other}://: s3 and file are known").into()),
    }
}

struct PrefixedStore {
    store: Box<dyn ObjectStore>,
    prefix: Path,
}

impl PrefixedStore {
    fn path(&self, name: &str) -> Result<Path, Error> {
        let whole = format!("{}/{name}", self.prefix);
        Ok(Path::parse(whole.trim_matches('/'))?)
    }

    async fn get(&self, name: &str) -> Result<StoreReply, Error> {
        match self.store.get(&self.path(name)?).await {
            Ok(found) => Ok(StoreReply::Ok(found.bytes().await?.to_vec())),
            Err(Error::NotFound { .. }) => Ok(StoreReply::None),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<StoreReply, Error> {
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(&self.path(name)?, PutPayload::from(bytes), options).await {
            Ok(_) => Ok(StoreReply::Ok(Vec::new())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(StoreReply::Taken),
            Err(error) => Err(error),
        }
    }

    /// Returns the names that begin with `start`, a line each. The object store lists whole path
    /// components only, so the rest is filtered here.
    async fn list(&self, start: &str) -> Result<StoreReply, Error> {
        let above = self.path(start.rsplit_once('/').map_or("", |(above, _)| above))?;
        let all: Vec<_> = self.store.list(Some(&above)).try_collect().await?;
        let within = |path: &str| {
            let name = path.strip_prefix(self.prefix.as_ref())?.trim_start_matches('/').to_owned();
            name.starts_with(start).then_some(name)
        };
        let names: Vec<String> = all.iter().filter_map(|object| within(object.location.as_ref())).collect();
        Ok(StoreReply::Ok(names.iter().map(|name| format!("{name}\n")).collect::<String>().into_bytes()))
    }

    async fn delete(&self, name: &str) -> Result<StoreReply, Error> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(StoreReply::Ok(Vec::new())),
            Err(error) => Err(error),
        }
    }
}
