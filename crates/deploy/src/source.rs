//! Kernels to deploy: Debian packages, unpacked into a temporary directory.

use crate::{Error, Result};
use kerntune_work::{hash_file, IoContext, Job, RelativePath};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Marks a directory below `/lib/modules` as ours.
pub(crate) const MARK: &str = ".kerntune-deploy";
/// Drivers that arm a watchdog by themselves: module, option of the configuration, and parameter with
/// the time limit in seconds.
const WATCHDOGS: &[(&str, &str, &str)] = &[
    ("iTCO_wdt", "CONFIG_ITCO_WDT", "heartbeat"),
    ("sp5100_tco", "CONFIG_SP5100_TCO", "heartbeat"),
    ("i6300esb", "CONFIG_I6300ESB_WDT", "heartbeat"),
    ("ipmi_watchdog", "CONFIG_IPMI_WATCHDOG", "timeout"),
    ("hpwdt", "CONFIG_HP_WATCHDOG", "soft_margin"),
    ("wdat_wdt", "CONFIG_WDAT_WDT", "timeout"),
];
/// A timer of the kernel, for a machine without a device.
const SOFTDOG: (&str, &str, &str) = ("softdog", "CONFIG_SOFT_WATCHDOG", "soft_margin");

/// A kernel with its modules, unpacked.
#[derive(Debug)]
pub struct KernelFiles {
    directory: TempDir,
    /// Name of the kernel's files: `vmlinuz-NAME`, and of its directory below `/lib/modules`.
    pub name: String,
    /// Eight hex digits: a hash of the packages.
    pub id: String,
    /// The image.
    pub image: PathBuf,
    /// Size of the image in bytes.
    pub image_bytes: u64,
    /// Archive of the directory below `/lib/modules`, for `tar`.
    pub modules: PathBuf,
    /// Size of the archive in bytes.
    pub modules_bytes: u64,
    config: String,
    /// Device patterns and their drivers: modules, and what is built in.
    aliases: Vec<(String, String)>,
    drivers: Vec<String>,
}

/// Driver of a watchdog that the new kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watchdog {
    /// Name of the module.
    pub driver: String,
    /// Its parameter with the time limit in seconds.
    pub parameter: &'static str,
}

impl KernelFiles {
    /// Unpacks packages, which together have one kernel.
    ///
    /// # Errors
    /// A missing packer, a file that is no package, packages without a kernel or with several.
    pub fn unpack(packages: &[PathBuf]) -> Result<Self> {
        let first = packages.first().map_or(Path::new(""), PathBuf::as_path);
        let refuse = |reason: &str| Error::Package { path: first.into(), reason: reason.into() };
        let directory = tempfile::tempdir().at("make", Path::new("a temporary directory"))?;
        let tree = directory.path().join("tree");
        let mut hash = blake3::Hasher::new();
        for package in packages {
            hash.update(hash_file(package)?.as_bytes());
            let mut command = Command::new("dpkg-deb");
            command.arg("--extract").arg(package).arg(&tree);
            run(command, package)?;
        }
        let boot = names(&tree.join("boot"))?;
        let images: Vec<&str> = boot.iter().filter_map(|name| name.strip_prefix("vmlinuz-")).collect();
        let [name] = images[..] else {
            let several = if images.is_empty() { "no kernel" } else { "several kernels" };
            return Err(refuse(&format!("there is {several} in boot/: give the packages of one kernel")));
        };
        if !is_kernel_name(name) {
            return Err(refuse(&format!("`{}` is not the name of a kernel", name.escape_debug())));
        }
        let image = tree.join(format!("boot/vmlinuz-{name}"));
        if !image.symlink_metadata().at("look at", &image)?.is_file() {
            return Err(refuse("its kernel is not a file"));
        }
        let config = tree.join(format!("boot/config-{name}"));
        let config =
            fs::read_to_string(&config).map_err(|_| refuse("it has no boot/config-… of its kernel"))?;
        let modules = ["lib/modules", "usr/lib/modules"].map(|path| tree.join(path));
        let modules = modules.into_iter().find(|path| path.is_dir()).unwrap_or(tree.join("lib/modules"));
        let own = modules.join(name);
        let found = names(&modules)?;
        if found.iter().any(|other| other != name) {
            return Err(refuse(&format!("it has modules of another kernel than {name}")));
        }
        fs::create_dir_all(&own).at("make", &own)?;
        for list in ["build", "source"] {
            let link = own.join(list);
            if link.is_symlink() {
                fs::remove_file(&link).at("remove", &link)?;
            }
        }
        let has_modules = files(&own)?.iter().any(|path| path.contains(".ko"));
        if !has_modules && config.lines().any(|line| line == "CONFIG_MODULES=y") {
            return Err(refuse("its kernel has modules, and they are in another package: give that too"));
        }
        // initramfs-tools reads the lists of depmod.
        let mut depmod = Command::new("depmod");
        depmod.env("PATH", system_path()).arg("-b");
        let base = modules.parent().and_then(Path::parent).unwrap_or(&tree);
        // depmod looks below lib/modules of its base.
        depmod
            .arg(if modules.starts_with(tree.join("usr")) { tree.join("usr") } else { base.to_owned() })
            .arg(name);
        run(depmod, first)?;
        fs::write(own.join(MARK), "").at("write", own.join(MARK))?;
        let archive = directory.path().join("modules.tar");
        let mut tar = Command::new("tar");
        tar.args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--file"]).arg(&archive);
        tar.env_remove("TAR_OPTIONS").arg("--directory").arg(&modules).arg("--").arg(name);
        run(tar, first)?;
        let [loaded, built_in] = ["modules.alias", "modules.builtin.modinfo"]
            .map(|list| fs::read_to_string(own.join(list)).unwrap_or_default());
        let loaded = loaded.lines().filter_map(|line| line.strip_prefix("alias ")?.rsplit_once(' '));
        // MODULE.alias=PATTERN, each line ended by a NUL.
        let built_in = built_in.split('\0').filter_map(|line| line.split_once(".alias="));
        let aliases = loaded.chain(built_in.map(|(module, pattern)| (pattern, module)));
        let aliases = aliases.map(|(pattern, module)| (pattern.to_string(), module.to_string())).collect();
        let drivers = files(&own)?;
        Ok(Self {
            name: name.into(),
            id: hash.finalize().to_hex()[..8].into(),
            image_bytes: image.metadata().at("look at", &image)?.len(),
            image,
            modules_bytes: archive.metadata().at("look at", &archive)?.len(),
            modules: archive,
            config,
            aliases,
            drivers,
            directory,
        })
    }

    /// Returns the kernel's configuration.
    pub(crate) fn config(&self) -> &str {
        &self.config
    }

    /// Returns whether an option of the kernel's configuration is `y`.
    pub fn has(&self, option: &str) -> bool {
        self.config.lines().any(|line| line.strip_prefix(option) == Some("=y"))
    }

    /// Finds a watchdog that the new kernel can use on a machine with these devices, where the
    /// running kernel has these watchdog drivers. A device comes before `softdog`.
    pub fn watchdog(&self, devices: &[String], running: &[String]) -> Option<Watchdog> {
        let real = WATCHDOGS.iter().find(|(driver, option, _)| {
            let bound = running.iter().any(|name| name == driver);
            let patterns = self.aliases.iter().filter(|(_, module)| module == driver);
            let matches = || {
                let mut patterns = patterns.map(|(pattern, _)| pattern.as_bytes());
                patterns
                    .any(|pattern| devices.iter().any(|device| matches_pattern(pattern, device.as_bytes())))
            };
            self.has_driver(driver, option) && (bound || matches())
        });
        let found = real.or(self.has_driver(SOFTDOG.0, SOFTDOG.1).then_some(&SOFTDOG))?;
        Some(Watchdog { driver: found.0.into(), parameter: found.2 })
    }

    fn has_driver(&self, module: &str, option: &str) -> bool {
        let file = format!("/{module}.ko");
        self.has(option) || self.drivers.iter().any(|path| path.contains(&file))
    }

    /// Returns the temporary directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// Matches a pattern of `modules.alias`, with `*` and `?`.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, star_from)) = star else { return false };
                star = Some((star_at, star_from + 1));
                at = star_at + 1;
                from = star_from + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Returns whether a text can be the name of a kernel's files: it becomes part of paths, and of
/// commands of shells and of GRUB.
pub(crate) fn is_kernel_name(text: &str) -> bool {
    text.len() <= 120
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+~-".contains(c))
        && text.parse::<RelativePath>().is_ok()
}

fn system_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn names(directory: &Path) -> Result<Vec<String>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).at("list", directory)?;
    let entries =
        entries.map(|entry| Ok(entry.at("list", directory)?.file_name().to_string_lossy().into_owned()));
    entries.collect()
}

/// Lists the files below a directory, without following links.
fn files(directory: &Path) -> Result<Vec<String>> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).at("list", &next)? {
            let entry = entry.at("list", &next)?;
            match entry.file_type().at("look at", entry.path())?.is_dir() {
                true => left.push(entry.path()),
                false => found.push(entry.path().to_string_lossy().into_owned()),
            }
        }
    }
    Ok(found)
}

fn run(command: Command, package: &Path) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (end, said) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    let reason = format!("{program}: {}", crate::shell::last_line(&said));
    Err(Error::Package { path: package.into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_devices() {
        let device = b"pci:v00008086d000025ABsv00001AF4sd00001100bc08sc80i00";
        assert!(matches_pattern(b"pci:v00008086d000025ABsv*sd*bc*sc*i*", device));
        assert!(!matches_pattern(b"pci:v00008086d000025ACsv*sd*bc*sc*i*", device));
        assert!(matches_pattern(b"*a?c*", b"xxabcyy") && !matches_pattern(b"a*b", b"abc"));
        assert!(matches_pattern(b"", b"") && matches_pattern(b"**", b"") && !matches_pattern(b"?", b""));
    }

    #[test]
    fn hostile_names_are_no_kernels() {
        for name in ["", ".", "..", "-x", "a/b", "a b", "a'b", "$(x)", "a\nb", ".a", &"x".repeat(500)] {
            assert!(!is_kernel_name(name), "{name:?}");
        }
        assert!(is_kernel_name("6.12.117+deb12-cloud-amd64") && is_kernel_name("7.3.4~rc1"));
    }
}
