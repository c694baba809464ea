//! `kerntune_attack`'s target `results`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("results", bytes));
