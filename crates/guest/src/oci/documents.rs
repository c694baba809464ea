//! JSON documents of an image, by the OCI image specification and, for `docker save`, by Docker.

use super::digest::{shown, Digest};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use std::io;

/// Largest document, in bytes.
pub(super) const DOCUMENT_MAX: u64 = 4 << 20;

/// `index.json`, and an index in an index.
#[derive(Debug, Deserialize)]
pub(super) struct ImageIndex {
    pub manifests: Vec<Descriptor>,
}

/// Reference to a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    pub platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    pub architecture: String,
    pub os: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ImageManifest {
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

/// An image in the `manifest.json` of `docker save`: names of files.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerImage {
    pub config: String,
    pub layers: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ConfigDocument {
    architecture: String,
    os: String,
    #[serde(default)]
    config: Option<ContainerConfig>,
    rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContainerConfig {
    user: Option<String>,
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: Option<String>,
}

/// Settings that an image names for its command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// `USER[:GROUP]`, names or numbers; empty for root.
    pub user: String,
    /// Variables, in their order.
    pub environment: Vec<(String, String)>,
    /// Program and arguments; empty if the image names none.
    pub command: Vec<String>,
    /// Working directory; empty for the root.
    pub directory: String,
}

/// Parses a document.
pub(super) fn parse<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| io::Error::other(format!("its {what} cannot be read: {error}")))
}

fn document(bytes: &[u8]) -> io::Result<ConfigDocument> {
    let found: ConfigDocument = parse("configuration", bytes)?;
    match (found.os.as_str(), found.architecture.as_str()) {
        ("linux", "amd64") => Ok(found),
        (os, architecture) => Err(io::Error::other(format!(
            "it is for {}/{}, and a guest runs programs for linux/amd64",
            shown(os),
            shown(architecture)
        ))),
    }
}

/// Chooses the image for this architecture from an index.
pub(super) fn chosen(index: &ImageIndex) -> io::Result<&Descriptor> {
    let fits = |descriptor: &&Descriptor| {
        let platform = descriptor.platform.as_ref();
        platform.is_none_or(|platform| platform.os == "linux" && platform.architecture == "amd64")
    };
    let fitting: Vec<&Descriptor> = index.manifests.iter().filter(fits).collect();
    match fitting[..] {
        [one] => Ok(one),
        [] => Err(io::Error::other("it has no image for linux/amd64")),
        _ => Err(io::Error::other(format!(
            "it has {} images for linux/amd64, and not one: copy one of them (skopeo copy oci:DIR:NAME oci:OTHER)",
            fitting.len()
        ))),
    }
}

/// Parses the settings of an image's configuration.
pub(super) fn parse_config(bytes: &[u8]) -> io::Result<ImageConfig> {
    let found = document(bytes)?.config.unwrap_or_default();
    let pairs = found.env.unwrap_or_default();
    let environment =
        pairs.iter().filter_map(|pair| pair.split_once('=')).filter(|(name, _)| !name.is_empty());
    let config = ImageConfig {
        user: found.user.unwrap_or_default(),
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        command: [found.entrypoint, found.cmd].into_iter().flatten().flatten().collect(),
        directory: found.working_dir.unwrap_or_default(),
    };
    let texts = config.environment.iter().flat_map(|(name, value)| [name, value]).chain(&config.command);
    let has_nul = texts.chain([&config.user, &config.directory]).any(|text| text.contains('\0'));
    match has_nul {
        true => Err(io::Error::other("its configuration has a text with a NUL")),
        false => Ok(config),
    }
}

/// Parses the digests of the layers, uncompressed, from the lowest on.
pub(super) fn parse_diff_ids(bytes: &[u8]) -> io::Result<Vec<Digest>> {
    document(bytes)?.rootfs.diff_ids.iter().map(|text| Digest::parse(text)).collect()
}

/// Parses bytes as each of the documents.
pub(crate) fn parse_all(bytes: &[u8]) {
    if let Ok(index) = parse::<ImageIndex>("index", bytes) {
        let _ = chosen(&index);
    }
    let _ = parse::<ImageManifest>("manifest", bytes);
    let _ = parse::<Vec<DockerImage>>("manifest", bytes);
    let _ = (parse_config(bytes), parse_diff_ids(bytes));
}
