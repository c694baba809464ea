//! Measurements of two kernels: their comparison, its certainty, and its explanation.

pub mod compare;
pub mod explain;
pub mod layouts;
pub mod start_offset;
