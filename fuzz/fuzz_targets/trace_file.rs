//! `kerntune_attack`'s target `trace_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("trace_file", bytes));
