//! Access to the blobs of an image, which is a directory or an archive.

use super::digest::{shown, Digest, HashedReader};
use super::documents::{
    chosen, parse, parse_diff_ids, Descriptor, DockerImage, ImageIndex, ImageManifest, DOCUMENT_MAX,
};
use super::layer::{RootWriter, IMAGE_MAX};
use flate2::bufread::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Largest number of layers, of members of an archive, and of indexes in an index.
const LAYERS_MAX: usize = 1024;
const MEMBERS_MAX: usize = 65_536;
const INDEXES_MAX: usize = 4;

const INDEX: &str = "index.json";
const DOCKER_MANIFEST: &str = "manifest.json";

/// An image that was opened, and not read yet.
pub(super) enum ImageLayout {
    Directory(PathBuf),
    /// An uncompressed archive: position and size of each file in it.
    Archive {
        path: PathBuf,
        members: BTreeMap<String, (u64, u64)>,
    },
}

/// Parts of one image.
pub(super) struct ImageParts {
    /// Document of the configuration.
    pub config: Vec<u8>,
    /// Layers from the lowest on.
    pub layers: Vec<ImageLayer>,
}

/// A layer.
pub(super) struct ImageLayer {
    name: String,
    /// Digest as it is stored; `None` if the image does not say.
    digest: Option<Digest>,
    /// Digest of the uncompressed archive.
    pub diff_id: Digest,
}

fn odd(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

fn blob(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

impl ImageLayout {
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return match path.join(INDEX).is_file() {
                true => Ok(Self::Directory(path.to_owned())),
                false => {
                    Err(odd(format!("it has no {INDEX}; for the files of a system as they are, give --root")))
                }
            };
        }
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        let _ = file.read(&mut magic)?;
        if magic.starts_with(&[0x1f, 0x8b]) || magic == [0x28, 0xb5, 0x2f, 0xfd] {
            return Err(odd("the archive is compressed: decompress it with gunzip or unzstd"));
        }
        file.seek(SeekFrom::Start(0))?;
        let mut members = BTreeMap::new();
        for entry in tar::Archive::new(BufReader::new(file)).entries_with_seek()? {
            let entry = entry?;
            if members.len() == MEMBERS_MAX {
                return Err(odd(format!("the archive has more than {MEMBERS_MAX} members")));
            }
            if entry.header().entry_type().is_file() {
                let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
                members.insert(name, (entry.raw_file_position(), entry.size()));
            }
        }
        if members.is_empty() {
            return Err(odd("it is no archive of an image"));
        }
        Ok(Self::Archive { path: path.to_owned(), members })
    }

    /// Opens a file of the image. Names are ours, or keys of `members`.
    fn file(&self, name: &str) -> io::Result<io::Take<File>> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(name);
                let meta = path.metadata().map_err(|error| odd(format!("{name}: {error}")))?;
                if !meta.is_file() {
                    return Err(odd(format!("{name} is no file")));
                }
                Ok(File::open(path)?.take(meta.len()))
            }
            Self::Archive { path, members } => {
                let (at, size) =
                    members.get(name).ok_or_else(|| odd(format!("it has no file {}", shown(name))))?;
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(*at))?;
                Ok(file.take(*size))
            }
        }
    }

    fn document(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.file(name)?;
        if file.limit() > DOCUMENT_MAX {
            return Err(odd(format!(
                "{} has {} bytes, and a document at most {DOCUMENT_MAX}",
                shown(name),
                file.limit()
            )));
        }
        let mut bytes = Vec::new();
        file.take(DOCUMENT_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a document by its digest.
    fn checked(&self, descriptor: &Descriptor) -> io::Result<Vec<u8>> {
        let digest = Digest::parse(&descriptor.digest)?;
        let bytes = self.document(&blob(&digest))?;
        match bytes.len() as u64 == descriptor.size && Digest::of(&bytes) == digest {
            true => Ok(bytes),
            false => Err(odd(format!("{digest} is not the document that has this digest"))),
        }
    }

    /// Finds the image for this architecture.
    pub fn image(&self) -> io::Result<ImageParts> {
        let is_docker = matches!(self, Self::Archive { members, .. } if !members.contains_key(INDEX));
        let parts = if is_docker { self.docker_image()? } else { self.oci_image()? };
        match parts.layers.len() > LAYERS_MAX {
            true => Err(odd(format!("it has more than {LAYERS_MAX} layers"))),
            false => Ok(parts),
        }
    }

    fn oci_image(&self) -> io::Result<ImageParts> {
        let mut bytes = self.document(INDEX)?;
        for _ in 0..INDEXES_MAX {
            let index: ImageIndex = parse("index", &bytes)?;
            let descriptor = chosen(&index)?;
            bytes = self.checked(descriptor)?;
            if descriptor.media_type.contains("index") || descriptor.media_type.contains("manifest.list") {
                continue;
            }
            let manifest: ImageManifest = parse("manifest", &bytes)?;
            let config = self.checked(&manifest.config)?;
            let stored = manifest.layers.iter().map(|layer| {
                let digest = Digest::parse(&layer.digest)?;
                Ok((blob(&digest), Some(digest)))
            });
            return with_layers(config, stored.collect::<io::Result<_>>()?);
        }
        Err(odd(format!("more than {INDEXES_MAX} indexes lead to its manifest")))
    }

    fn docker_image(&self) -> io::Result<ImageParts> {
        let images: Vec<DockerImage> = parse("manifest", &self.document(DOCKER_MANIFEST)?)?;
        let [image] = &images[..] else {
            return Err(odd(format!("the archive has {} images, and not one", images.len())));
        };
        let config = self.document(&image.config)?;
        with_layers(config, image.layers.iter().map(|name| (name.clone(), None)).collect())
    }

    /// Unpacks a layer on top of those below it, and checks its bytes.
    pub fn unpack(&self, layer: &ImageLayer, writer: &mut RootWriter) -> io::Result<()> {
        let mut stored = HashedReader::new(self.file(&layer.name)?, IMAGE_MAX);
        let mut buffered = BufReader::with_capacity(1 << 16, &mut stored);
        let head = buffered.fill_buf()?;
        let plain: Box<dyn Read + '_> = if head.starts_with(&[0x1f, 0x8b]) {
            Box::new(MultiGzDecoder::new(&mut buffered))
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Box::new(zstd::stream::read::Decoder::with_buffer(&mut buffered)?)
        } else {
            Box::new(&mut buffered)
        };
        let mut plain = HashedReader::new(plain, writer.left());
        writer.layer(&mut plain)?;
        plain.check(&layer.diff_id)?;
        drop(buffered);
        match &layer.digest {
            Some(digest) => stored.check(digest),
            None => Ok(()),
        }
    }
}

fn with_layers(config: Vec<u8>, stored: Vec<(String, Option<Digest>)>) -> io::Result<ImageParts> {
    let diff_ids = parse_diff_ids(&config)?;
    if diff_ids.len() != stored.len() {
        return Err(odd(format!(
            "its configuration has {} layers and its manifest {}",
            diff_ids.len(),
            stored.len()
        )));
    }
    let layers = stored.into_iter().zip(diff_ids);
    let layers = layers.map(|((name, digest), diff_id)| ImageLayer { name, digest, diff_id }).collect();
    Ok(ImageParts { config, layers })
}
