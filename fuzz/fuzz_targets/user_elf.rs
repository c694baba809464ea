//! `kerntune_attack`'s target `user_elf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("user_elf", bytes));
