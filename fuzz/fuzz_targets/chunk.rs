//! `kerntune_attack`'s target `chunk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("chunk", bytes));
