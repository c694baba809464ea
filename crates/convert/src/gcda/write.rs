//! [`Gcda`] to bytes.

use super::version::Layout;
use super::*;

pub(super) fn to_bytes(gcda: &Gcda) -> Vec<u8> {
    // A version that is not known cannot have been parsed; if it was made up, write it as the newest.
    let layout = gcda.version.layout().unwrap_or(Layout { word_length: 4, has_checksum: true, kinds: 10 });
    let mut out = Words { bytes: Vec::new(), byte_order: gcda.byte_order };
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
        for Counters { kind, values } in &function.counters {
            // Lengths are 32 bits: nothing that was read, or merged from it, has more.
            let length = (values.len() as u32).wrapping_mul(2 * layout.word_length);
            out.u32(kind.tag());
            match values {
                Values::Zeros(_) => out.u32(length.wrapping_neg()),
                Values::Listed(values) => {
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

struct Words {
    bytes: Vec<u8>,
    byte_order: ByteOrder,
}

impl Words {
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
