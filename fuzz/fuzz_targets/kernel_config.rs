//! `kerntune_attack`'s target `kernel_config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("kernel_config", bytes));
