//! `kerntune_attack`'s target `json_manifests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kerntune_attack::run("json_manifests", bytes));
