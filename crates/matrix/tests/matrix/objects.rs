//! Stores that the helper program reaches. The helper is built separately (`make objects`); without
//! it, or without the server of PyPI's moto, these tests are skipped.

use crate::support::{results, MatrixBench};
use kerntune_matrix::{open, states, Error, RemoteStore, Store, HELPER};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

/// An S3 server on the loopback device, ended with the test.
struct MotoServer {
    child: Child,
    address: String,
}

impl Drop for MotoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Python with the packages that `scripts/setup cluster` installs and Debian lacks.
fn python() -> PathBuf {
    let own = Path::new("/var/lib/kerntune/python/bin/python");
    let named = env::var_os("KERNTUNE_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| if own.is_file() { own.into() } else { "python3".into() })
}

impl MotoServer {
    fn start() -> Option<Self> {
        let has = Command::new(python()).args(["-c", "import moto.server"]).stderr(Stdio::null()).status();
        if !has.is_ok_and(|status| status.success()) {
            eprintln!("skipped: Python has no moto with a server: `scripts/setup cluster` installs it");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python());
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moto = Self { child, address: format!("127.0.0.1:{port}") };
        let began = Instant::now();
        while TcpStream::connect(&moto.address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "moto does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        // An empty PUT creates a bucket.
        let put = format!(
            "import urllib.request as r; r.urlopen(r.Request('http://{}/kerntune', method='PUT')).read()",
            moto.address
        );
        assert!(Command::new(python()).args(["-c", &put]).status().unwrap().success());
        Some(moto)
    }
}

/// Puts the helper's target directory onto the PATH of this process; returns whether the helper is
/// there.
fn helper() -> bool {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../objects/target/release");
    let named = env::var_os("KERNTUNE_OBJECTS").map(PathBuf::from);
    let directory = named.unwrap_or(built);
    if !directory.join(HELPER).is_file() {
        eprintln!("skipped: there is no {HELPER} in {}: `make objects` builds it", directory.display());
        return false;
    }
    let path = env::var("PATH").unwrap_or_default();
    if !path.split(':').any(|part| Path::new(part) == directory) {
        env::set_var("PATH", format!("{}:{path}", directory.display()));
    }
    true
}

/// Checks the behavior of any store.
fn behaves(store: &dyn Store) {
    assert_eq!(store.get("results/a.json").unwrap(), None);
    assert!(store.put_new("results/a.json", b"one").unwrap());
    assert!(!store.put_new("results/a.json", b"two").unwrap());
    assert_eq!(store.get("results/a.json").unwrap().as_deref(), Some(&b"one"[..]));
    store.put("claims/a/0001", b"x").unwrap();
    store.put("claims/a/0001", b"").unwrap();
    store.put("claims/ab/0001", b"y").unwrap();
    assert_eq!(store.get("claims/a/0001").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(store.list("claims/a/").unwrap(), ["claims/a/0001"]);
    assert_eq!(store.list("claims/a").unwrap(), ["claims/a/0001", "claims/ab/0001"]);
    assert_eq!(store.list("").unwrap().len(), 3);
    let large = vec![7; 3_000_000];
    store.put("packs/large", &large).unwrap();
    assert_eq!(store.get("packs/large").unwrap(), Some(large));
    store.delete("claims/a/0001").unwrap();
    store.delete("claims/a/0001").unwrap();
    assert_eq!(store.list("claims/").unwrap(), ["claims/ab/0001"]);
}

#[test]
fn a_directory_by_the_helper_behaves_as_one_without() {
    if !helper() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    behaves(&*open(dir.path().join("ours").to_str().unwrap()).unwrap());
    behaves(&*open(&format!("file://{}", dir.path().join("theirs").display())).unwrap());
    let error = RemoteStore::open("gopher://x").unwrap_err();
    assert!(error.to_string().contains("s3 and file are known"), "{error}");
}

#[test]
fn machines_that_share_a_bucket_compute_each_task_once() {
    if !helper() {
        return;
    }
    let Some(moto) = MotoServer::start() else { return };
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "nobody"),
        ("AWS_SECRET_ACCESS_KEY", "nothing"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT", &format!("http://{}", moto.address)),
        ("AWS_ALLOW_HTTP", "true"),
    ] {
        env::set_var(name, value);
    }
    behaves(&*open("s3://kerntune/behaves").unwrap());
    let error = open("s3://no-such-bucket/x").map(|store| store.url()).unwrap_err();
    assert!(matches!(&error, Error::Store { .. }), "{error}");

    let bench = MatrixBench::new(1, 3);
    let alone = bench.store("alone");
    let single = bench.node("single");
    let plan = bench.plan(&single, &*alone);
    assert!(single.run(&plan, &alone, 2).unwrap().is_whole());
    let address = "s3://kerntune/matrices/one";
    let shared: Arc<dyn Store> = Arc::from(open(address).unwrap());
    plan.publish(&*shared).unwrap();
    let nodes = ["a", "b"].map(|name| bench.node(name));
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| {
                let store: Arc<dyn Store> = Arc::from(open(address).unwrap());
                assert!(node.run(&plan, &store, 1).unwrap().is_whole());
            });
        }
    });
    assert_eq!(results(&*shared), results(&*alone));
    assert!(states(&plan, &*shared).unwrap().iter().all(|task| task.computed == 1));
}

#[test]
fn without_the_helper_it_is_said_how_to_get_it() {
    if helper() {
        return;
    }
    let error = open("s3://bucket/prefix").map(|store| store.url()).unwrap_err().to_string();
    assert!(error.contains("make objects"), "{error}");
    assert!(fs::metadata("s3:").is_err());
}
