//! The front-end model and function order: pure algorithms
