//! `kerntune_attack`'s target `autofdo_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("autofdo_text", bytes));
