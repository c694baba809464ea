//! Kernels that users built themselves with exported files: whether compiler and linker took them.
//!
//! Start from [`OwnBuild::examine`]. It needs the linked image and the profile, and neither build
//! log nor objects.

mod image;
mod verdict;

pub use image::{OwnBuild, SCHEMA};
pub use verdict::{MIN_APART, MIN_FOUND};
