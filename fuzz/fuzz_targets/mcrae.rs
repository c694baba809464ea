//! `kerntune_attack`'s target `mcrae`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("mcrae", bytes));
