//! x
mod prepare;
mod request;
pub use prepare::{prepare_blocks, PreparedBlocks};
pub use request::{mapped_request, ordered_request};
pub const NAME: &str = "clang-autofdo+propeller";
pub const NAME_THINLTO: &str = "clang-autofdo+thinlto+propeller";
pub fn prove(_: &kerntune_kernel::Kernel, _: &PreparedBlocks, _: &kerntune_kernel::Kernel) -> crate::Result<crate::layout::Proof> {
    unimplemented!()
}
