//! Readers of files that kerntune stores, and another machine may have written.

use kerntune_work::{CommitHash, Hash, Id, Label, NameError, PlainName, RelativePath};
use std::path::{Component, Path};

/// Names from files: a valid name stays below the directory to which it is joined, and a message
/// shows it on one line.
pub fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let one: [Result<String, NameError>; 5] = [
        text.parse::<Id>().map(Into::into),
        text.parse::<Hash>().map(Into::into),
        text.parse::<CommitHash>().map(Into::into),
        text.parse::<PlainName>().map(Into::into),
        text.parse::<Label>().map(Into::into),
    ];
    let path = text.parse::<RelativePath>().map(String::from);
    for refused in one.iter().chain([&path]).filter_map(|name| name.as_ref().err()) {
        assert!(!refused.to_string().contains(char::is_control), "controls in a message");
    }
    for name in one.into_iter().chain([path.clone()]).flatten() {
        assert_eq!(name, text, "another name");
        assert!(!name.contains(char::is_control));
        let below = Path::new("/d").join(&name);
        let mut parts = below.components().skip(2);
        assert!(below.starts_with("/d") && parts.all(|part| matches!(part, Component::Normal(_))));
    }
    if let Ok(path) = path {
        assert!(!Path::new(&path).is_absolute() && !path.ends_with('/'));
    }
}

/// A sealed file: opening returns the sealed value.
pub fn sealed(bytes: &[u8]) {
    let Ok(value) = kerntune_work::parse_sealed::<serde_json::Value>(bytes, Path::new("attack")) else {
        return;
    };
    let again = kerntune_work::seal_bytes(&value).expect("JSON that was read can be written");
    let same = kerntune_work::parse_sealed::<serde_json::Value>(&again, Path::new("attack"));
    assert_eq!(same.expect("what we seal opens"), value);
}

/// Documents of a container image.
pub fn image_documents(bytes: &[u8]) {
    kerntune_guest::fuzz_entry::image_documents(bytes);
}

/// A layer of a container image: nothing is written outside of its root.
pub fn image_layer(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (root, beside) = (dir.path().join("root"), dir.path().join("beside"));
    std::fs::create_dir(&root).expect("made");
    std::fs::write(&beside, "as it was").expect("written");
    kerntune_guest::fuzz_entry::image_layer(bytes, &root);
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("listed").count(),
        2,
        "something was made or removed elsewhere"
    );
    let meta = beside.symlink_metadata().expect("it is there");
    assert!(meta.is_file() && std::os::unix::fs::MetadataExt::nlink(&meta) == 1);
    assert_eq!(std::fs::read(&beside).expect("read"), b"as it was", "it was overwritten");
}

/// Texts of another kernel's package.
pub fn package(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::package(&String::from_utf8_lossy(bytes));
}
