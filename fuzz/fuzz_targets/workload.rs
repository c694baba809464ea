//! `kerntune_attack`'s target `workload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("workload", bytes));
