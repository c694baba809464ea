//! Parts that recipes are made of: the base kernel, shared steps, and excluded objects.

pub mod base;
pub mod exclude;
pub mod recipe_spec;
pub mod steps;
pub mod surrogate_kernel;
