//! `kerntune_attack`'s target `console`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("console", bytes));
