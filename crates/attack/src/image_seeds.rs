//! Seeds for the readers of container images.

use tar::{EntryType, Header};

/// An index, a manifest, a configuration, and the list of `docker save`.
pub fn documents() -> Vec<Vec<u8>> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let descriptor = format!(
        r#"{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{digest}","size":7,"platform":{{"architecture":"amd64","os":"linux"}}}}"#
    );
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{"User":"a:b","Env":["A=b","c"],"Entrypoint":["x"],"Cmd":["y"],"WorkingDir":"/w"}},"rootfs":{{"type":"layers","diff_ids":["{digest}"]}}}}"#
    );
    vec![
        format!(r#"{{"schemaVersion":2,"manifests":[{descriptor}]}}"#).into_bytes(),
        format!(r#"{{"schemaVersion":2,"config":{descriptor},"layers":[{descriptor},{descriptor}]}}"#)
            .into_bytes(),
        config.into_bytes(),
        br#"[{"Config":"c.json","RepoTags":["x:1"],"Layers":["a/layer.tar","b/layer.tar"]}]"#.to_vec(),
    ]
}

/// Layers with each kind of entry, whiteouts, long names, and names that would lead out.
pub fn layers() -> Vec<Vec<u8>> {
    let entry = |kind: EntryType, name: &str, link: &str, contents: &[u8]| {
        let mut header = Header::new_gnu();
        if let Some(gnu) = header.as_gnu_mut() {
            gnu.name[..name.len()].copy_from_slice(name.as_bytes());
            gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_uid(1);
        header.set_gid(2);
        header.set_mtime(3);
        header.set_size(contents.len() as u64);
        header.set_cksum();
        let mut bytes = [header.as_bytes(), contents].concat();
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    };
    let file = |name: &str| entry(EntryType::Regular, name, "", b"text");
    let link = |name: &str, to: &str| entry(EntryType::Symlink, name, to, b"");
    let hard = |name: &str, to: &str| entry(EntryType::Link, name, to, b"");
    let dir = |name: &str| entry(EntryType::Directory, name, "", b"");
    let pax = |name: &str| {
        entry(EntryType::XHeader, "x", "", format!("{} path={name}\n", name.len() + 9).as_bytes())
    };
    vec![
        [dir("./"), dir("a/"), file("a/b"), link("c", "a"), file("c/d"), hard("e", "a/b"), file("a/.wh.b")]
            .concat(),
        [link("up", "../../.."), file("up/beside"), hard("h", "up/beside"), file("up/.wh.beside"), file("h")]
            .concat(),
        [link("up", ".."), file("up/.wh..wh..opq"), file("../beside"), hard("h", "../beside")].concat(),
        [link("s", "/proc/self/fd"), file("s/0"), link("beside", "../beside"), file("beside")].concat(),
        [entry(EntryType::GNULongName, "long", "", b"a/long/name\0"), file("x"), pax("../beside"), file("y")]
            .concat(),
        [
            entry(EntryType::Char, "dev", "", b""),
            entry(EntryType::Fifo, "pipe", "", b""),
            file(".wh..."),
            file(".wh."),
        ]
        .concat(),
    ]
}
