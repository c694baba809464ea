//! Trace to profile: pure algorithms
