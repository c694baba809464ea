//! What others call an instruction set and what belongs to it.

/// The names of an instruction set.
#[derive(Debug)]
pub struct Names {
    /// In texts.
    pub name: &'static str,
    /// QEMU's program for a whole machine.
    pub qemu: &'static str,
    /// What QEMU tells a plugin.
    pub qemu_target: &'static str,
    /// What Debian's ld.so puts in the place of `$LIB`.
    pub library_dir: &'static str,
    /// What ld.so puts in the place of `$PLATFORM`.
    pub platform: &'static str,
    /// `e_machine` of ELF files.
    pub elf_machine: u16,
}

/// What Kbuild calls things, in a build directory.
#[derive(Debug)]
pub struct KbuildNames {
    /// The directory below `arch/` that is compiled (`SRCARCH`).
    pub source: &'static str,
    /// The image that is booted, as a target of make.
    pub image: &'static str,
    /// Where make puts it.
    pub image_path: &'static str,
    /// The linker script of `vmlinux`.
    pub link_script: &'static str,
    /// Where it is noted how `asm-offsets.c` was compiled.
    pub offsets_command: &'static str,
    /// Objects that need everything that Kbuild generates, and what the code around the image is made with.
    pub prepared: [&'static str; 2],
}
