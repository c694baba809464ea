//! `kerntune_attack`'s target `paper`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("paper", bytes));
