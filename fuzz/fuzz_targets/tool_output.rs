//! `kerntune_attack`'s target `tool_output`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("tool_output", bytes));
