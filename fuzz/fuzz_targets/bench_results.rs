//! `kerntune_attack`'s target `bench_results`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("bench_results", bytes));
