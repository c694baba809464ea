//! Writer: [`Gcda`] to bytes.

use super::version::GcdaLayout;
use super::*;

pub(super) fn to_bytes(gcda: &Gcda) -> Vec<u8> {
    // A parsed file has a supported version; a made-up one is written in the newest layout.
    let layout =
        gcda.version.layout().unwrap_or(GcdaLayout { word_length: 4, has_checksum: true, kinds: 10 });
    let mut out = WordWriter { bytes: Vec::new(), byte_order: gcda.byte_order };
    out.u32(MAGIC);
    out.u32(gcda.version.0);
    out.u32(gcda.stamp);
    if layout.has_checksum {
        out.u32(gcda.checksum);
    }
    if let Some(ObjectSummary { runs, sum_max }) = gcda.summary {
        out.all([TAG_OBJECT_SUMMARY, SUMMARY_WORDS * layout.word_length, runs, sum_max]);
    }
    for function in &gcda.functions {
        if function.is_absent() {
            out.all([TAG_FUNCTION, 0]);
            continue;
        }
        out.all([TAG_FUNCTION, FUNCTION_WORDS * layout.word_length]);
        out.all([function.ident, function.lineno_checksum, function.cfg_checksum]);
        for CounterRecord { kind, values } in &function.counters {
            // Lengths are 32 bits; parsed files, and merges of them, have no longer records.
            let length = (values.len() as u32).wrapping_mul(2 * layout.word_length);
            out.u32(kind.tag());
            match values {
                CounterValues::Zeros(_) => out.u32(length.wrapping_neg()),
                CounterValues::Listed(values) => {
                    out.u32(length);
                    // The low word first, in either byte order.
                    values.iter().for_each(|&value| out.all([value as u32, (value >> 32) as u32]));
                }
            }
        }
    }
    if gcda.end_marker {
        out.u32(0);
    }
    out.bytes
}

struct WordWriter {
    bytes: Vec<u8>,
    byte_order: ByteOrder,
}

impl WordWriter {
    fn u32(&mut self, word: u32) {
        self.bytes.extend(match self.byte_order {
            ByteOrder::Little => word.to_le_bytes(),
            ByteOrder::Big => word.to_be_bytes(),
        });
    }

    fn all<const N: usize>(&mut self, words: [u32; N]) {
        words.into_iter().for_each(|word| self.u32(word));
    }
}
