//! Kernels as shipped by a distribution: made a kernel of the work directory without source and
//! without a build.

pub(crate) mod files;
pub(crate) mod image_elf;
pub(crate) mod kallsyms;
mod packages;
pub(crate) mod payload;
pub(crate) mod shipped;
pub(crate) mod symbol_table;
#[cfg(test)]
mod test_image;
