//! Kernel modules of an image: their files, and the list that init loads.

use crate::drivers::{driver_module, has_option};
use crate::tree::{FileTree, TreeNode};
use crate::{DiskKind, Result, Workload};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Largest number of bytes in a module's name, as in the kernel.
const NAME_MAX: usize = 55;
/// Modules that init loads: on each line name, path and parameters, separated by tabs.
const LIST: &str = "/kt/modules";

/// Modules that the guest loads before anything else of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestModules {
    /// Release of their kernel (`uname -r`).
    pub release: String,
    /// The modules in the order in which they are loaded.
    pub modules: Vec<GuestModule>,
}

/// A module of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestModule {
    /// Name as in `/proc/modules`.
    pub name: String,
    /// Path below `/lib/modules/RELEASE`, such as `kernel/fs/ext4/ext4.ko`.
    pub path: PathBuf,
    /// ELF file.
    pub bytes: Vec<u8>,
    /// Names of modules before this one that it needs.
    pub depends: Vec<String>,
    /// Parameters, separated by blanks.
    pub parameters: String,
}

/// Checks whether a kernel can have a module of this name, which may have `-` for `_`.
pub fn is_module_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(known)
}

impl Workload {
    /// Returns the drivers of the workload's disk and network cards that are modules of a kernel
    /// with this configuration.
    pub fn driver_modules(&self, config: &str) -> Vec<&'static str> {
        let cards = self.network_cards > 0;
        let virtio = cards || self.disk.as_ref().is_some_and(|disk| disk.kind == DiskKind::Virtio);
        let mut options = self.disk.as_ref().map(|disk| disk.needs()).unwrap_or_default();
        options.extend(virtio.then_some("CONFIG_VIRTIO_PCI"));
        options.extend(cards.then_some("CONFIG_VIRTIO_NET"));
        let modules = options.into_iter().filter(|option| has_option(config, option, "=m"));
        modules.filter_map(driver_module).collect()
    }
}

impl GuestModules {
    /// Puts the files at the places where `modprobe` looks for them, and init's list.
    pub(crate) fn put_into(&self, tree: &mut FileTree) -> Result<()> {
        let mut own = |path: &Path, bytes: Vec<u8>| tree.put(path, TreeNode::Own { bytes, mode: 0o644 });
        let top = Path::new("/lib/modules").join(&self.release);
        let mut list = String::new();
        for GuestModule { name, path, bytes, parameters, .. } in &self.modules {
            let path = top.join(path);
            list += &format!("{name}\t{}\t{parameters}\n", path.display());
            own(&path, bytes.clone())?;
        }
        own(&top.join("modules.dep"), self.dependencies().into_bytes())?;
        own(Path::new(LIST), list.into_bytes())
    }

    /// Formats `modules.dep`: behind each module all that it needs, what is loaded first at the end.
    fn dependencies(&self) -> String {
        let line = |(at, module): (usize, &GuestModule)| {
            let mut needed: BTreeSet<&str> = module.depends.iter().map(String::as_str).collect();
            let mut line = format!("{}:", module.path.display());
            for before in self.modules[..at].iter().rev() {
                if needed.contains(before.name.as_str()) {
                    line += &format!(" {}", before.path.display());
                    needed.extend(before.depends.iter().map(String::as_str));
                }
            }
            line + "\n"
        };
        self.modules.iter().enumerate().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, depends: &[&str]) -> GuestModule {
        GuestModule {
            name: name.into(),
            path: format!("kernel/{name}.ko").into(),
            bytes: name.into(),
            depends: depends.iter().map(|name| (*name).into()).collect(),
            parameters: String::new(),
        }
    }

    #[test]
    fn modprobe_finds_everything_in_the_order_in_which_it_is_loaded() {
        let mut brd = module("brd", &[]);
        brd.parameters = "rd_nr=1 rd_size=65536".into();
        let modules = vec![
            module("crc16", &[]),
            module("mbcache", &[]),
            brd,
            module("jbd2", &["crc16"]),
            module("ext4", &["jbd2", "mbcache"]),
        ];
        let modules = GuestModules { release: "6.12".into(), modules };
        let mut tree = FileTree::default();
        tree.put(Path::new("/lib"), TreeNode::Link { target: "usr/lib".into() }).unwrap();
        modules.put_into(&mut tree).unwrap();
        tree.check().unwrap();
        let text = |path: &str| match &tree.nodes[Path::new(path)] {
            TreeNode::Own { bytes, .. } => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text("/usr/lib/modules/6.12/kernel/ext4.ko"), "ext4");
        let list = text(LIST);
        let order: Vec<&str> = list.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(order, ["crc16", "mbcache", "brd", "jbd2", "ext4"]);
        assert!(list.contains("brd\t/lib/modules/6.12/kernel/brd.ko\trd_nr=1 rd_size=65536\n"), "{list}");
        let dependencies = text("/usr/lib/modules/6.12/modules.dep");
        assert!(dependencies.contains("kernel/brd.ko:\nkernel/jbd2.ko: kernel/crc16.ko\n"), "{dependencies}");
        assert!(
            dependencies.ends_with("kernel/ext4.ko: kernel/jbd2.ko kernel/mbcache.ko kernel/crc16.ko\n"),
            "{dependencies}"
        );
    }

    #[test]
    fn drivers_that_are_modules_are_loaded() {
        let text = "network_cards = 1\n[disk]\nkind = \"brd\"\nsize_mb = 64\nfilesystem = \"ext4\"\n\
                    [[measured.step]]\ncommand = [\"rr\"]\n";
        let workload = Workload::parse(text, Path::new("x.toml")).unwrap();
        let config = "CONFIG_BLK_DEV_RAM=m\nCONFIG_EXT4_FS=y\nCONFIG_VIRTIO_NET=m\nCONFIG_XFS_FS=m\n";
        assert_eq!(workload.driver_modules(config), ["brd", "virtio_net"]);
        assert!(workload.disk.unwrap().lacking(config).is_empty());
    }

    #[test]
    fn names_are_those_that_a_kernel_can_have() {
        assert!(["ext4", "virtio-net", "nf_conntrack", "8021q"].into_iter().all(is_module_name));
        let long = "x".repeat(NAME_MAX + 1);
        assert!(!["", "-f", "../ext4", "a b", "ext4.ko", "a\t", &long].into_iter().any(is_module_name));
    }
}
