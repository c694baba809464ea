//! LLVM's map of basic blocks, as it stands in a kernel's image.
#![no_main]

use kerntune_convert::propeller::read_map;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(map) = read_map(bytes) else { return };
    // Each function takes some bytes, and each block some more: what is read never outgrows what was given.
    let blocks: usize = map.iter().map(|function| 1 + function.blocks.len()).sum();
    assert!(blocks <= bytes.len());
});
