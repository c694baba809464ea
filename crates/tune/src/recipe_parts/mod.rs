//! Parts that recipes are made of: their interface and context, shared steps, and excluded
//! objects.

pub mod base;
pub mod context;
pub mod exclude;
pub mod inputs;
pub mod instrumented;
pub mod part;
pub mod settings;
pub mod steps;
pub mod surrogate_kernel;
