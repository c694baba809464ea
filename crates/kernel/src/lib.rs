//! Kernel source to kernel: Kbuild, config fragments, provenance
