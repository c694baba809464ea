//! `kerntune_attack`'s target `source_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("source_lines", bytes));
