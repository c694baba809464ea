//! `kerntune_attack`'s target `model`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("model", bytes));
