//! Everything that reads the bytes inside a chunk.
#![no_main]

use kerntune_trace::{counts::Counts, ChunkHeader, ChunkState, Decoder, TraceHeader};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = TraceHeader::parse(bytes);
    let _ = ChunkHeader::parse(bytes);
    let _ = Counts::parse(bytes);
    if let Ok(state) = ChunkState::parse(bytes) {
        let mut again = Vec::new();
        state.write(&mut again);
        assert_eq!(ChunkState::parse(&again), Ok(state));
    }
    for wide in [false, true] {
        let mut decoder = Decoder::with_width(bytes, wide);
        while let Ok(Some(_)) = decoder.next() {}
    }
});
