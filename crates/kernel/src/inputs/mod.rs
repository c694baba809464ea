//! Inputs of a build: source tree, patches, and configurations with their fragments.
//!
//! Start from [`source`] and [`config`].

mod built_in_place;
pub(crate) mod config;
pub mod fragment;
pub(crate) mod packed;
pub(crate) mod patch;
pub(crate) mod patch_set;
pub(crate) mod regular_files;
pub(crate) mod release;
pub(crate) mod source;
