//! Limits of an initramfs.

/// Largest file of an initramfs, in bytes: the format has 32 bits for the size.
const FILE_MAX: u64 = u32::MAX as u64;
/// Largest initial RAM disk that QEMU loads, in bytes (`x86_load_linux` of QEMU's
/// `hw/i386/x86-common.c`, by the kernel's `initrd_addr_max`).
const IMAGE_MAX: u64 = (1 << 31) - 1;

/// Returns the reason why a file of this size is too large; `None` if it is not.
pub(crate) fn too_large(bytes: u64) -> Option<String> {
    (bytes > FILE_MAX).then(|| {
        format!("it has {bytes} bytes, and an initramfs holds no file of 4 GiB or more; pack a smaller one")
    })
}

/// Returns the reason why an image of that many bytes cannot be unpacked in a guest with that much
/// memory; `None` if it can. The kernel frees the archive only after unpacking all of it.
pub(crate) fn too_large_for(bytes: u64, memory_mb: u32) -> Option<String> {
    let mib = bytes.div_ceil(1 << 20);
    if bytes > IMAGE_MAX {
        return Some(format!(
            "{mib} MiB are to be packed, and no initial RAM disk has 2 GiB or more; pack less"
        ));
    }
    (mib * 2 > memory_mb.into()).then(|| {
        format!(
            "{mib} MiB are to be packed, and to unpack them a guest needs twice that and some more: `memory_mb` is {memory_mb}; \
             raise it, or pack less"
        )
    })
}
