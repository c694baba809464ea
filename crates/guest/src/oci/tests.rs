use super::digest::Digest;
use super::*;
use crate::CommandSystem;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tar::{EntryType, Header};

/// Kind, name, contents or link, mode.
type Entry<'a> = (EntryType, &'a str, &'a str, u32);

const FILE: EntryType = EntryType::Regular;
const DIR: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Symlink;
const HARD: EntryType = EntryType::Link;

/// An archive with these names as they are, which no builder would write.
fn layer(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, name, text, mode) in entries {
        let mut header = Header::new_gnu();
        let place = &mut header.as_gnu_mut().unwrap().name;
        place[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_000_000_000);
        let contents = if matches!(*kind, LINK | HARD) { "" } else { text };
        if matches!(*kind, LINK | HARD) {
            header.set_link_name_literal(text).unwrap();
        }
        header.set_size(contents.len() as u64);
        header.set_cksum();
        bytes.extend(header.as_bytes());
        bytes.extend(contents.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

const SETTINGS: &str = r#"{"User":"web","Env":["PATH=/bin","MODE=a=b","odd"],"Entrypoint":["/bin/serve"],"Cmd":["-v"],"WorkingDir":"/srv"}"#;

/// Writes an OCI layout; each layer as it is stored, and uncompressed.
fn layout(directory: &Path, layers: &[(Vec<u8>, Vec<u8>)], architecture: &str) {
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        fs::write(blobs.join(digest.hex()), bytes).unwrap();
        format!(r#"{{"digest":"{digest}","size":{}}}"#, bytes.len())
    };
    let diff_ids: Vec<String> =
        layers.iter().map(|(_, plain)| format!("\"{}\"", Digest::of(plain))).collect();
    let config = put(format!(
        r#"{{"architecture":"{architecture}","os":"linux","config":{SETTINGS},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
        diff_ids.join(",")
    )
    .as_bytes());
    let stored: Vec<String> = layers.iter().map(|(stored, _)| put(stored)).collect();
    let manifest = put(format!(r#"{{"config":{config},"layers":[{}]}}"#, stored.join(",")).as_bytes());
    fs::write(directory.join("index.json"), format!(r#"{{"schemaVersion":2,"manifests":[{manifest}]}}"#))
        .unwrap();
}

struct Images {
    dir: tempfile::TempDir,
    work: WorkDir,
}

impl Images {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        Self { dir, work }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self, name: &str) -> Result<OciImage> {
        OciImage::open(&self.work, &self.at(name), &kerntune_work::NoProgress)
    }

    /// The unpacked files of an image with these layers.
    fn of_layers(&self, name: &str, layers: &[&[Entry]]) -> Result<PathBuf> {
        let layers: Vec<(Vec<u8>, Vec<u8>)> =
            layers.iter().map(|entries| (layer(entries), layer(entries))).collect();
        layout(&self.at(name), &layers, "amd64");
        self.open(name).map(|image| image.root.directory().to_owned())
    }

    fn refused(&self, name: &str, layers: &[&[Entry]]) -> String {
        let error = self.of_layers(name, layers).unwrap_err().to_string();
        let left: Vec<_> = self.work.root().join("roots").read_dir().unwrap().flatten().collect();
        let is_kept = |entry: &&fs::DirEntry| {
            entry.path().is_dir() && entry.path().read_dir().unwrap().next().is_some()
        };
        assert_eq!(left.iter().filter(is_kept).count(), 0, "{name}");
        error
    }
}

const BASE: &[Entry] = &[
    (DIR, "./", "", 0o755),
    (DIR, "etc/", "", 0o755),
    (FILE, "etc/passwd", "web:x:33:33::/srv:/bin/sh\n", 0o644),
    (FILE, "etc/gone", "x", 0o644),
    (FILE, "etc/old/a", "x", 0o644),
    (DIR, "usr/lib", "", 0o555),
    (FILE, "usr/lib/tool", "tool", 0o4755),
    (HARD, "usr/lib/same", "usr/lib/tool", 0o4755),
    (LINK, "lib", "/usr/lib", 0o777),
    (EntryType::Char, "dev/mem", "", 0o666),
    (DIR, "srv", "", 0o700),
];

const UPPER: &[Entry] = &[
    (FILE, "etc/.wh.gone", "", 0),
    (FILE, "etc/old/.wh..wh..opq", "", 0),
    (FILE, "etc/old/b", "new", 0o600),
    (FILE, "lib/more", "more", 0o644),
    (FILE, ".wh..wh.plnk", "", 0),
];

#[test]
fn layers_lie_on_top_of_each_other() {
    let images = Images::new();
    for (name, pack) in
        [("plain", <[u8]>::to_vec as fn(&[u8]) -> Vec<u8>), ("gzip", gzip), ("zstd", zstandard)]
    {
        let layers: Vec<_> = [BASE, UPPER].map(|entries| (pack(&layer(entries)), layer(entries))).into();
        layout(&images.at(name), &layers, "amd64");
        let image = images.open(name).unwrap();
        let at = image.root.directory();
        let read = |path: &str| fs::read_to_string(at.join(path)).ok();
        assert_eq!(read("etc/gone"), None);
        assert_eq!(read("etc/old/a"), None);
        assert_eq!(read("etc/old/b").as_deref(), Some("new"));
        assert_eq!(read("usr/lib/more").as_deref(), Some("more"), "through a link that is inside");
        let tool = at.join("usr/lib/tool").metadata().unwrap();
        assert_eq!(tool.ino(), at.join("usr/lib/same").metadata().unwrap().ino());
        assert_eq!((tool.mode() & 0o7777, tool.mtime()), (0o4755, 1_000_000_000));
        assert!(!at.join("dev/mem").exists());
        let private = at.parent().unwrap().metadata().unwrap();
        assert_eq!(private.mode() & 0o777, 0o700, "it has programs with set-user-ID bits");
        assert_eq!(image.config.command, ["/bin/serve", "-v"]);
        let system = CommandSystem::of_root(image.root.clone(), &image.config, None).unwrap();
        assert_eq!((system.process.user.uid, system.directory.as_path()), (33, Path::new("/srv")));
        assert_eq!(system.environment["MODE"], "a=b");
        assert_eq!(system.environment["PATH"], "/bin:/kt/bin");
    }
    // The same contents are unpacked once.
    assert_eq!(images.work.list(KIND).unwrap().len(), 1);
}

#[test]
fn a_damaged_root_is_made_again() {
    let images = Images::new();
    let at = images.of_layers("image", &[BASE]).unwrap();
    fs::write(at.join("etc/passwd"), "changed").unwrap();
    assert_eq!(images.of_layers("image", &[BASE]).unwrap(), at);
    assert!(fs::read_to_string(at.join("etc/passwd")).unwrap().starts_with("web:"));
}

#[test]
fn no_name_of_a_layer_leads_out() {
    let images = Images::new();
    let victim = images.at("victim");
    fs::write(&victim, "as it was").unwrap();
    let (absolute, above) = (victim.display().to_string(), images.dir.path().display().to_string());
    for (number, entries) in [
        &[(FILE, "../../../victim", "x", 0o644)][..],
        &[(FILE, "a/../../victim", "x", 0o644)],
        &[(LINK, "up", "../../../..", 0o777), (FILE, "up/../victim", "x", 0o644)],
        &[(HARD, "own", "../../../../victim", 0o644)],
        &[(LINK, "own", &absolute, 0o777), (HARD, "file", "own/x", 0o644)],
        &[(HARD, "own", &absolute, 0o644), (FILE, "own", "x", 0o644)],
        &[(LINK, "loop", "loop", 0o777), (FILE, "loop/x", "x", 0o644)],
        &[(FILE, "file", "x", 0o644), (FILE, "file/x", "x", 0o644)],
        &[(EntryType::GNUSparse, "sparse", "x", 0o644)],
    ]
    .iter()
    .enumerate()
    {
        images.refused(&format!("refused-{number}"), &[entries]);
    }
    // These go where they would inside.
    let at = images
        .of_layers(
            "inside",
            &[
                &[
                    (DIR, "victim-is-not-here", "", 0o755),
                    (LINK, "out", &above, 0o777),
                    (LINK, "link", &absolute, 0o777),
                    (LINK, "up", "../../../../../../..", 0o777),
                    (FILE, "/absolute", "x", 0o644),
                    (FILE, "up/file", "x", 0o644),
                ],
                &[
                    (FILE, "up/.wh.victim", "", 0),
                    (FILE, ".wh...", "", 0),
                    (FILE, "up/.wh..wh..opq", "", 0),
                    (FILE, "link", "replaced", 0o644),
                ],
            ],
        )
        .unwrap();
    assert!(!at.join("absolute").exists() && fs::read_to_string(at.join("link")).unwrap() == "replaced");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was");
    assert_eq!(victim.metadata().unwrap().nlink(), 1);
}

#[test]
fn bytes_that_are_not_those_of_the_digest_are_refused() {
    let images = Images::new();
    let good = layer(BASE);
    let damaged = |name: &str, change: &dyn Fn(&Path)| {
        layout(&images.at(name), &[(gzip(&good), good.clone())], "amd64");
        change(&images.at(name));
        images.open(name).unwrap_err().to_string()
    };
    let blob = |at: &Path, bytes: &[u8]| at.join("blobs/sha256").join(Digest::of(bytes).hex());
    let other = damaged("other", &|at| fs::write(blob(at, &gzip(&good)), gzip(&layer(UPPER))).unwrap());
    assert!(other.contains("have the digest"), "{other}");
    let longer = damaged("longer", &|at| {
        let path = blob(at, &gzip(&good));
        fs::write(&path, [gzip(&good), b"more".to_vec()].concat()).unwrap();
    });
    assert!(longer.contains("cannot be used"), "{longer}");
    let missing = damaged("missing", &|at| fs::remove_file(blob(at, &gzip(&good))).unwrap());
    assert!(missing.contains("No such file"), "{missing}");
    let cut = damaged("cut", &|at| fs::write(blob(at, &gzip(&good)), &gzip(&good)[..99]).unwrap());
    assert!(cut.contains("cannot be used"), "{cut}");
    let index = damaged("index", &|at| {
        let text = fs::read_to_string(at.join("index.json")).unwrap().replace("sha256:", "sha256:../");
        fs::write(at.join("index.json"), text).unwrap();
    });
    assert!(index.contains("is no SHA-256 digest"), "{index}");
    layout(&images.at("arm"), &[(good.clone(), good.clone())], "arm64");
    assert!(images.open("arm").unwrap_err().to_string().contains("it is for linux/arm64"));
    fs::create_dir(images.at("tree")).unwrap();
    assert!(images.open("tree").unwrap_err().to_string().contains("--root"));
    fs::write(images.at("text"), "no archive").unwrap();
    fs::write(images.at("compressed"), gzip(&good)).unwrap();
    assert!(
        images.open("text").is_err() && images.open("compressed").unwrap_err().to_string().contains("gunzip")
    );
}

/// Packs a directory as an archive, with the names as `tar -C DIR .` gives them.
fn archived(directory: &Path, to: &Path) {
    let mut builder = tar::Builder::new(fs::File::create(to).unwrap());
    builder.append_dir_all(".", directory).unwrap();
    builder.finish().unwrap();
}

#[test]
fn archives_are_read_as_directories_are() {
    let images = Images::new();
    layout(&images.at("image"), &[(gzip(&layer(BASE)), layer(BASE))], "amd64");
    archived(&images.at("image"), &images.at("image.tar"));
    let root = images.open("image").unwrap().root;
    assert_eq!(images.open("image.tar").unwrap().root, root);

    // `docker save`: names instead of digests.
    let saved = images.at("saved");
    fs::create_dir(&saved).unwrap();
    fs::write(saved.join("layer.tar"), layer(BASE)).unwrap();
    let blobs = images.at("image/blobs/sha256");
    let is_config = |path: &PathBuf| fs::read(path).unwrap().starts_with(b"{\"architecture\"");
    let config = blobs.read_dir().unwrap().map(|entry| entry.unwrap().path()).find(is_config).unwrap();
    fs::copy(config, saved.join("c.json")).unwrap();
    fs::write(
        saved.join("manifest.json"),
        r#"[{"Config":"c.json","RepoTags":["x:1"],"Layers":["layer.tar"]}]"#,
    )
    .unwrap();
    archived(&saved, &images.at("saved.tar"));
    assert_eq!(images.open("saved.tar").unwrap().root, root);
    fs::write(saved.join("layer.tar"), layer(UPPER)).unwrap();
    archived(&saved, &images.at("other.tar"));
    images
        .work
        .remove(KIND, &root.directory().parent().unwrap().file_name().unwrap().to_string_lossy())
        .unwrap();
    assert!(images.open("other.tar").unwrap_err().to_string().contains("have the digest"));
}
