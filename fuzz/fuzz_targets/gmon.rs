//! `kerntune_attack`'s target `gmon`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("gmon", bytes));
