//! The profile model, its store, merge and difference
