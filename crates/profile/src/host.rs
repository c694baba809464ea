//! State of the machine that a profile of the running kernel was made on.

use crate::{Error, Result};
use kerntune_work::{read_file, write_atomic, Hash, IoContext};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// File with the running kernel's configuration, beside the tables.
pub const CONFIG_FILE: &str = "kernel.config";

/// Configuration and settings of the machine when the profile was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Configuration of the running kernel, in [`CONFIG_FILE`]; `None` if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HostConfig>,
    /// Places that were searched for the configuration; empty if it was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_looked: Vec<String>,
    /// Settings by name: `sysctl net.ipv4.tcp_sack`, `command_line`, `transparent_hugepage`,
    /// `clocksource`, `vulnerability meltdown`, `cpus`. A setting that this kernel does not have
    /// is absent.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// Origin and hash of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostConfig {
    /// File that it was read from: `/proc/config.gz`.
    pub source: String,
    /// BLAKE3 hash of the text.
    pub blake3: Hash,
}

impl HostState {
    /// Takes a configuration over and returns its text for [`save_config`].
    pub fn set_config(&mut self, source: &str, text: &str) {
        self.config = Some(HostConfig { source: source.into(), blake3: Hash::of(text.as_bytes()) });
    }
}

/// Writes the configuration that a manifest names into a profile's directory. Call it before
/// [`crate::Profile::save`], which seals the directory.
///
/// # Errors
/// The file cannot be written.
pub fn save_config(dir: &Path, text: &str) -> Result<()> {
    Ok(write_atomic(&dir.join(CONFIG_FILE), text.as_bytes())?)
}

/// Reads the configuration of a profile with this state; `None` if the profile has none.
///
/// # Errors
/// The file is missing, or is not the one that the manifest names.
pub fn load_config(dir: &Path, host: Option<&HostState>) -> Result<Option<String>> {
    let Some(config) = host.and_then(|host| host.config.as_ref()) else { return Ok(None) };
    let path = dir.join(CONFIG_FILE);
    let damaged = |what: &str| Error::Damaged { path: path.clone(), what: what.into() };
    let bytes = match read_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(damaged("it is missing")),
        other => other.at("read", &path)?,
    };
    if Hash::of(&bytes) != config.blake3 {
        return Err(damaged("it is not the file that manifest.json names (another BLAKE3 hash)"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| damaged("it is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelId, Manifest, Profile, Tables};

    #[test]
    fn a_configuration_is_kept_with_the_profile_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "host");
        assert_eq!(load_config(dir.path(), manifest.host.as_ref()).unwrap(), None);
        let mut host = HostState::default();
        host.set_config("/proc/config.gz", "CONFIG_SMP=y\n");
        host.settings.insert("cpus".into(), "2".into());
        manifest.host = Some(host);
        save_config(dir.path(), "CONFIG_SMP=y\n").unwrap();
        let profile = Profile { manifest, tables: Tables::default() };
        profile.save(dir.path()).unwrap();
        let loaded = crate::verify(dir.path()).unwrap();
        assert_eq!(loaded.host, profile.manifest.host);
        assert_eq!(load_config(dir.path(), loaded.host.as_ref()).unwrap().unwrap(), "CONFIG_SMP=y\n");
        std::fs::write(dir.path().join(CONFIG_FILE), "CONFIG_SMP=n\n").unwrap();
        let changed = load_config(dir.path(), loaded.host.as_ref()).unwrap_err().to_string();
        assert!(changed.contains("kernel.config") && changed.contains("BLAKE3"), "{changed}");
        assert!(crate::verify(dir.path()).is_err());
        std::fs::remove_file(dir.path().join(CONFIG_FILE)).unwrap();
        assert!(load_config(dir.path(), loaded.host.as_ref()).unwrap_err().to_string().contains("missing"));
    }
}
