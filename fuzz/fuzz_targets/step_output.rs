//! `kerntune_attack`'s target `step_output`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("step_output", bytes));
