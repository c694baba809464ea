//! `kerntune_attack`'s target `suite_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("suite_lines", bytes));
