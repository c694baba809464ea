//! Container images: an OCI image layout or an archive of `docker save`, unpacked into the work
//! directory.
//!
//! Every byte is checked against the digests that the image names. Nothing of an image is executed
//! here, and no path in it leads out of the directory that it is unpacked into.

mod digest;
mod documents;
mod layer;
mod layout;

pub use documents::ImageConfig;
pub(crate) use {documents::parse_all, layer::RootWriter};

use crate::{Error, Result, SourceRoot};
use documents::parse_config;
use kerntune_work::{Key, Progress, WorkDir};
use layout::ImageLayout;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Kind of result in the work directory.
const KIND: &str = "roots";
/// Directory of a result with the files of the image, and file with its configuration.
const ROOT: &str = "root";
const CONFIG: &str = "config.json";

/// An unpacked image.
#[derive(Debug, Clone)]
pub struct OciImage {
    /// Its files.
    pub root: SourceRoot,
    /// User, environment, directory and command that it names.
    pub config: ImageConfig,
}

impl OciImage {
    /// Unpacks the image at `path`, a directory or an archive, or finds it unpacked and unchanged.
    ///
    /// # Errors
    /// [`Error::Image`] with what is wrong with it; a disk that is full; an interrupt.
    pub fn open(work: &WorkDir, path: &Path, progress: &dyn Progress) -> Result<Self> {
        let unusable = |error: io::Error| Error::Image { path: path.to_owned(), what: error.to_string() };
        let layout = ImageLayout::open(path).map_err(unusable)?;
        let parts = layout.image().map_err(unusable)?;
        let layers: Vec<&str> = parts.layers.iter().map(|layer| layer.diff_id.as_str()).collect();
        let key = Key::new("oci-root/1", "")
            .field("config", &parts.config)
            .field("layers", layers.join(" "))
            .field("owners", layer::keeps_owners().to_string());
        let found = work.find_verified(KIND, &key.id());
        let directory = match found {
            Some(directory) => directory,
            None => {
                let staged = work.stage(KIND, &key)?;
                match staged.already() {
                    Some(directory) => directory,
                    None => {
                        staged.clear()?;
                        progress.begin(&format!("files of the image {}", path.display()), None);
                        let unpacked = unpack(&layout, &parts, staged.path(), progress);
                        progress.end();
                        if let Err(error) = unpacked {
                            staged.clear()?;
                            kerntune_work::interrupt::check()?;
                            return Err(unusable(error));
                        }
                        staged.publish()?
                    }
                }
            }
        };
        let root = SourceRoot::of(&directory.join(ROOT))?;
        Ok(Self { root, config: parse_config(&parts.config).map_err(unusable)? })
    }
}

/// Unpacks all layers into an empty directory.
fn unpack(
    layout: &ImageLayout,
    parts: &layout::ImageParts,
    directory: &Path,
    progress: &dyn Progress,
) -> io::Result<()> {
    // Programs in it may have set-user-ID bits, which are for nobody else on this machine.
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    fs::write(directory.join(CONFIG), &parts.config)?;
    let root = directory.join(ROOT);
    fs::create_dir(&root)?;
    let mut writer = RootWriter::new(&root)?;
    for layer in &parts.layers {
        layout.unpack(layer, &mut writer)?;
    }
    for note in writer.finish()? {
        progress.note(&format!("warning: {note}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
