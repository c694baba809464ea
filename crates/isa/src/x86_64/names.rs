//! Names of x86-64.

use crate::{IsaNames, KbuildNames};

/// Names of the instruction set.
pub const NAMES: IsaNames = IsaNames {
    name: "x86-64",
    qemu: "qemu-system-x86_64",
    qemu_target: "x86_64",
    library_dir: "lib/x86_64-linux-gnu",
    platform: "x86_64",
    elf_machine: 62,
};

/// Kbuild's names. They are part of a kernel's identity (`crates/kernel/tests/code_version.rs`).
pub const KBUILD: KbuildNames = KbuildNames {
    image: "bzImage",
    source: "x86",
    image_path: "arch/x86/boot/bzImage",
    link_script: "arch/x86/kernel/vmlinux.lds",
    offsets_command: "arch/x86/kernel/.asm-offsets.s.cmd",
    // The boot code includes a header that is generated for all objects, and a list of CPU
    // features.
    prepared: ["init/version-timestamp.o", "arch/x86/kernel/cpu/capflags.o"],
};
