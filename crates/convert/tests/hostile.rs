//! Untrusted `.gcda` bytes: an error or a value, never a panic.

use kerntune_convert::gcda::{
    ByteOrder, CounterKind, CounterRecord, CounterValues, Gcda, GcdaFunction, GcovVersion, MergeWeights,
    ObjectSummary,
};
use kerntune_convert::Error;
use proptest::prelude::*;

const KINDS: [CounterKind; 4] =
    [CounterKind::Arcs, CounterKind::IndirectCall, CounterKind::Average, CounterKind::TimeProfiler];

fn values() -> impl Strategy<Value = CounterValues> {
    prop_oneof![
        (1u32..1000).prop_map(CounterValues::Zeros),
        prop::collection::vec(any::<i64>(), 0..12).prop_map(CounterValues::Listed),
    ]
}

fn function() -> impl Strategy<Value = GcdaFunction> {
    let counters = prop::collection::vec((any::<bool>(), values()), KINDS.len());
    let present =
        (1u32.., any::<u32>(), any::<u32>(), counters).prop_map(|(ident, lineno, cfg, counters)| {
            let chosen = KINDS.into_iter().zip(counters).filter(|(_, (there, _))| *there);
            GcdaFunction {
                ident,
                lineno_checksum: lineno,
                cfg_checksum: cfg,
                counters: chosen.map(|(kind, (_, values))| CounterRecord { kind, values }).collect(),
            }
        });
    prop_oneof![1 => Just(GcdaFunction::default()), 9 => present]
}

fn gcda() -> impl Strategy<Value = Gcda> {
    let version =
        prop_oneof![Just(b"B14*"), Just(b"B22*"), Just(b"B33*"), Just(b"B42p"), Just(b"B53*"), Just(b"B62*")];
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let summary = prop::option::of((any::<u32>(), any::<u32>()));
    let functions = prop::collection::vec(function(), 0..6);
    (version, order, any::<u32>(), any::<u32>(), summary, functions, any::<bool>()).prop_map(
        |(version, byte_order, stamp, checksum, summary, functions, end_marker)| Gcda {
            byte_order,
            version: GcovVersion(u32::from_be_bytes(*version)),
            stamp,
            checksum: if version == b"B14*" { 0 } else { checksum },
            summary: summary.map(|(runs, sum_max)| ObjectSummary { runs, sum_max }),
            functions,
            end_marker,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(gcda in gcda()) {
        let bytes = gcda.to_bytes();
        let again = Gcda::parse(&bytes).unwrap();
        prop_assert_eq!(&again, &gcda);
        prop_assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn any_prefix_is_an_error_or_ends_at_a_record(gcda in gcda(), cut in any::<prop::sample::Index>()) {
        let bytes = gcda.to_bytes();
        let cut = &bytes[..cut.index(bytes.len())];
        match Gcda::parse(cut) {
            Ok(part) => prop_assert_eq!(part.to_bytes(), cut),
            Err(Error::NotGcda { .. }) => prop_assert!(cut.len() < 4),
            Err(Error::Truncated { at, needed, .. }) => {
                prop_assert_eq!(at, cut.len());
                prop_assert!(needed > 0 && at as u64 + needed <= bytes.len() as u64);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn flipped_bits_do_no_harm(gcda in gcda(), flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4)) {
        let mut bytes = gcda.to_bytes();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(changed) = Gcda::parse(&bytes) {
            prop_assert_eq!(changed.to_bytes(), bytes);
            std::hint::black_box((changed.sum_max(), changed.total()));
            let _ = Gcda::merge(&changed, &gcda, MergeWeights { a: u32::MAX, b: 3 });
            let _ = Gcda::merge(&changed, &changed, MergeWeights { a: 2, b: u32::MAX });
        }
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Gcda::parse(&bytes);
        let with_header = [b"adcg*22B", &bytes[..]].concat();
        if let Ok(gcda) = Gcda::parse(&with_header) {
            prop_assert_eq!(gcda.to_bytes(), with_header);
        }
    }
}

/// Words after a little-endian GCC 12 header of 16 bytes.
fn parse(records: &[u32]) -> Result<Gcda, Error> {
    let header = [0x6763_6461, u32::from_be_bytes(*b"B22*"), 7, 0];
    let bytes: Vec<u8> = header.iter().chain(records).flat_map(|word| word.to_le_bytes()).collect();
    Gcda::parse(&bytes)
}

#[test]
fn messages_say_what_and_where() {
    let message = |records: &[u32]| parse(records).unwrap_err().to_string();
    assert!(message(&[0x0100_0000, 12, 5])
        .starts_with("truncated at byte 28: a function record needs 4 more bytes"));
    assert!(message(&[0x0100_0000, 3, 5, 6, 7])
        .starts_with("damaged at byte 16: a function record of length 3, not 12"));
    assert!(message(&[0x01a1_0000, 8, 0, 0]).contains("Arcs counters before any function"));
    assert!(message(&[0x0100_0000, 12, 5, 6, 7, 0x01a1_0000, 0x7fff_fff8])
        .contains("needs 2147483640 more bytes"));
    assert!(message(&[0x0100_0000, 12, 5, 6, 7, 0x01a1_0000, 4, 0])
        .contains("counter length 4 is not a multiple of 8"));
    assert!(message(&[0x0141_0000, 0]).contains("unknown record tag 0x01410000"));
    assert!(message(&[0, 0x0100_0000]).contains("4 bytes follow the end marker"));
    assert_eq!(
        Gcda::parse(b"\x7fELF\x02").unwrap_err().to_string(),
        "not a .gcda file: it begins with [7f, 45, 4c, 46], not with \"gcda\" in either byte order"
    );
    assert!(Gcda::parse(b"adcg*39A")
        .unwrap_err()
        .to_string()
        .starts_with("written by GCC 9.3 (version \"A93*\")"));
    assert!(matches!(Gcda::parse(b""), Err(Error::NotGcda { .. })));
}

#[test]
fn sum_max_saturates_on_disk() {
    let mut gcda = parse(&[0x0100_0000, 12, 5, 6, 7, 0x01a1_0000, 8, 1, 2]).unwrap();
    assert_eq!(gcda.sum_max(), 0x2_0000_0001);
    gcda.set_summary(1, gcda.sum_max());
    assert_eq!(gcda.to_bytes()[16..32], [0, 0, 0, 0xa1, 8, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}
