//! Drivers that a kernel has built in or as modules.

/// Returns the module with the driver of a kernel option that can be a module.
pub(crate) fn driver_module(option: &str) -> Option<&'static str> {
    Some(match option {
        "CONFIG_BLK_DEV_NULL_BLK" => "null_blk",
        "CONFIG_BLK_DEV_PMEM" => "nd_pmem",
        "CONFIG_BLK_DEV_RAM" => "brd",
        "CONFIG_CONFIGFS_FS" => "configfs",
        "CONFIG_EXT4_FS" => "ext4",
        "CONFIG_VIRTIO_BLK" => "virtio_blk",
        "CONFIG_VIRTIO_NET" => "virtio_net",
        "CONFIG_VIRTIO_PCI" => "virtio_pci",
        "CONFIG_X86_PMEM_LEGACY" => "nd_e820",
        "CONFIG_XFS_FS" => "xfs",
        _ => return None,
    })
}

/// Checks whether a configuration gives the option this value, which begins with `=`.
pub(crate) fn has_option(config: &str, option: &str, value: &str) -> bool {
    config.lines().any(|line| line.strip_suffix(value) == Some(option))
}
