//! `kerntune_attack`'s target `block_map`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("block_map", bytes));
