//! `kerntune_attack`'s target `profile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("profile", bytes));
