//! `kerntune_attack`'s target `gcda`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("gcda", bytes));
