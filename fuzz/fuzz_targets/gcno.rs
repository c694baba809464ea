//! `kerntune_attack`'s target `gcno`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("gcno", bytes));
