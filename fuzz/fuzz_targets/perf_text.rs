//! `kerntune_attack`'s target `perf_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("perf_text", bytes));
