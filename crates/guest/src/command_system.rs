//! The system that a command runs in: this machine, or another root with settings of its own.

use crate::accounts;
use crate::environment::{command_environment, with_own};
use crate::host::GUEST_PATH;
use crate::oci::ImageConfig;
use crate::{Error, ProcessAttributes, Result, SourceRoot};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Root, user and environment of a command; the same in its first run and in the guest.
#[derive(Debug, Clone)]
pub struct CommandSystem {
    /// Its files.
    pub root: SourceRoot,
    /// Working directory inside.
    pub directory: PathBuf,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// User, limits and mask.
    pub process: ProcessAttributes,
}

impl CommandSystem {
    /// Describes this machine, with a directory of it.
    ///
    /// # Errors
    /// /proc is not there.
    pub fn of_this_machine(directory: &Path) -> Result<Self> {
        Ok(Self {
            root: SourceRoot::default(),
            directory: directory.to_owned(),
            environment: command_environment(std::env::vars_os(), directory),
            process: ProcessAttributes::of_caller()?,
        })
    }

    /// Describes another root, with nothing of this machine but the limits of resources. A relative
    /// `directory` begins at the settings' own.
    ///
    /// # Errors
    /// A user that the root does not have, a directory that it does not have.
    pub fn of_root(root: SourceRoot, config: &ImageConfig, directory: Option<&Path>) -> Result<Self> {
        let unknown = |what: String| Error::OtherRoot { root: root.directory().to_owned(), what };
        let account = accounts::find(&root, &config.user)
            .ok_or_else(|| unknown(format!("it has no user {}", config.user)))?;
        let above = Path::new("/").join(&config.directory);
        let directory: PathBuf = above.join(directory.unwrap_or("".as_ref())).components().collect();
        let at = root.resolve(&directory).and_then(|path| root.symlink_metadata(&path));
        if !at.is_ok_and(|meta| meta.is_dir()) {
            return Err(unknown(format!("it has no directory {}", directory.display())));
        }
        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), GUEST_PATH.join(":")),
            ("HOME".to_owned(), account.home.clone()),
        ]);
        environment.extend(config.environment.iter().cloned());
        let environment = with_own(environment, &directory);
        let process =
            ProcessAttributes { user: account.user, umask: 0o022, ..ProcessAttributes::of_caller()? };
        Ok(Self { root, directory, environment, process })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn another_root_has_nothing_of_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("etc")).unwrap();
        fs::create_dir_all(dir.path().join("srv/app")).unwrap();
        fs::write(dir.path().join("etc/passwd"), "app:x:1000:1000::/home/app:/bin/sh\n").unwrap();
        let root = SourceRoot::of(dir.path()).unwrap();
        let config = ImageConfig {
            user: "app".into(),
            directory: "srv".into(),
            environment: vec![("TOKEN".into(), "mine".into())],
            ..ImageConfig::default()
        };
        let system = CommandSystem::of_root(root.clone(), &config, Some(Path::new("app"))).unwrap();
        let variables: Vec<(&str, &str)> =
            system.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            variables,
            [
                ("HOME", "/home/app"),
                ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/kt/bin"),
                ("PWD", "/srv/app"),
                ("TOKEN", "mine")
            ]
        );
        assert_eq!(system.process.user.uid, 1000);
        for (config, directory, why) in [
            (ImageConfig { user: "none".into(), ..ImageConfig::default() }, None, "no user none"),
            (ImageConfig::default(), Some("/none"), "no directory /none"),
            (ImageConfig::default(), Some("/etc/passwd"), "no directory /etc/passwd"),
        ] {
            let error = CommandSystem::of_root(root.clone(), &config, directory.map(Path::new)).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
