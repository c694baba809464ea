//! `kerntune_attack`'s target `function_order`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("function_order", bytes));
