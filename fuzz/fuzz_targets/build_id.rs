//! `kerntune_attack`'s target `build_id`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("build_id", bytes));
