//! `kerntune_attack`'s target `guest_elf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("guest_elf", bytes));
