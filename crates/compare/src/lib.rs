//! Runs to statistics to verdict
