//! Untrusted `gmon.out` bytes: an error or a value, never a panic.

use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{export, import, Error, Gmon, GmonRecord, GmonTarget, Histogram, RawArc};
use kerntune_profile::{Address, FunctionIndex, Symbol, Tables};
use proptest::prelude::*;

fn target() -> impl Strategy<Value = GmonTarget> {
    (any::<bool>(), any::<bool>()).prop_map(|(big, wide)| GmonTarget {
        byte_order: if big { ByteOrder::Big } else { ByteOrder::Little },
        wide,
    })
}

fn record() -> impl Strategy<Value = GmonRecord> {
    let address = || any::<u32>().prop_map(u64::from);
    let histogram =
        (0u64..1 << 31, 1u64..1 << 30, 1u32..1 << 31, 0usize..4, prop::collection::vec(any::<u16>(), 0..40));
    let dimension = ["seconds", "microseconds", "nanoseconds", "instructions!!!"];
    prop_oneof![
        histogram.prop_map(move |(low, length, rate, unit, bins): (_, _, _, _, Vec<u16>)| {
            GmonRecord::Histogram(Histogram {
                low,
                high: low + length,
                rate,
                dimension: Histogram::dimension_of(dimension[unit]),
                abbreviation: b's',
                bins: bins.into_iter().map(u32::from).collect(),
            })
        }),
        (address(), address(), address()).prop_map(|(from, to, count)| GmonRecord::Arc(RawArc {
            from,
            to,
            count
        })),
        prop::collection::vec((address(), address()), 0..6).prop_map(GmonRecord::Blocks),
    ]
}

fn gmon() -> impl Strategy<Value = Gmon> {
    prop::collection::vec(record(), 0..8).prop_map(|records| Gmon { records })
}

fn symbols() -> Vec<Symbol> {
    let symbol = |(number, (address, size)): (u32, (u64, u64))| Symbol {
        function: FunctionIndex(number),
        name: format!("f{number}"),
        address: Address(address),
        size,
        file: None,
        module: None,
    };
    let ranges =
        [(0, 0), (1, 1 << 20), (1 << 20, 7), (1 << 30, 1 << 31), (u64::MAX - 8, 64), (u64::MAX - 8, 64)];
    (0..).zip(ranges).map(symbol).collect()
}

fn use_it(gmon: Gmon) {
    if let Ok(imported) = import(&[gmon.clone(), gmon], symbols(), "x") {
        let _ = export(&imported.tables, |_| true);
        let graph = kerntune_analyze::graph::CallGraph::of_tables(
            &imported.tables,
            |_| true,
            kerntune_analyze::graph::Propagation::Counts,
        );
        assert!(graph.unwrap().total_ns <= imported.busy_ticks);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(gmon in gmon(), target in target()) {
        let bytes = gmon.to_bytes(target);
        let again = Gmon::parse(&bytes, target).unwrap();
        prop_assert_eq!(&again, &gmon);
        prop_assert_eq!(again.to_bytes(target), bytes);
        use_it(gmon);
    }

    #[test]
    fn any_prefix_is_an_error_or_ends_at_a_record(gmon in gmon(), target in target(), cut in any::<prop::sample::Index>()) {
        let bytes = gmon.to_bytes(target);
        let cut = &bytes[..cut.index(bytes.len())];
        match Gmon::parse(cut, target) {
            Ok(part) => prop_assert_eq!(part.to_bytes(target), cut),
            Err(Error::NotGmon { .. }) => prop_assert!(cut.len() < 4),
            Err(Error::Truncated { at, needed, .. }) => {
                prop_assert_eq!(at, cut.len());
                prop_assert!(needed > 0 && at as u64 + needed <= bytes.len() as u64);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn flipped_bits_do_no_harm(
        gmon in gmon(), target in target(), other in target(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..4),
    ) {
        let mut bytes = gmon.to_bytes(target);
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(changed) = Gmon::parse(&bytes, other) {
            use_it(changed);
        }
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), target in target()) {
        let gnu = [&Gmon::default().to_bytes(target)[..], &bytes[..]].concat();
        for bytes in [bytes, gnu] {
            if let Ok(gmon) = Gmon::parse(&bytes, target) {
                use_it(gmon);
            }
        }
    }
}

#[test]
fn messages_say_what_and_where() {
    let parse = |bytes: &[u8]| Gmon::parse(bytes, GmonTarget::LITTLE_64).unwrap_err().to_string();
    let header = Gmon::default().to_bytes(GmonTarget::LITTLE_64);
    let with = |more: &[u8]| parse(&[&header[..], more].concat());
    assert!(parse(b"\x7fELF\x02\x01\x01\0\0\0\0\0")
        .starts_with("not a gmon.out: it begins with [7f, 45, 4c, 46]"));
    assert_eq!(parse(b"gmon\x02\0\0\0"), "gmon.out of version 2; only version 1 is known");
    assert!(with(&[7]).starts_with("damaged at byte 20: a record of unknown kind 7"));
    assert!(with(&[1, 0, 0]).starts_with("truncated at byte 23: an arc needs 6 more bytes"));
    let blocks = [&[2][..], &u32::MAX.to_le_bytes()].concat();
    assert!(with(&blocks).contains("a table of basic blocks needs 68719476720 more bytes"));
    let mut histogram = vec![0];
    histogram.extend([8u64, 8].iter().flat_map(|address| address.to_le_bytes()));
    histogram.extend([1u32, 100].iter().flat_map(|number| number.to_le_bytes()));
    histogram.extend([0; 18]);
    assert!(with(&histogram).starts_with("damaged at byte 20: a histogram from 0x8 to 0x8"));
    let unknown = |dimension: &str| Gmon {
        records: vec![GmonRecord::Histogram(Histogram {
            low: 0,
            high: 4,
            rate: 1,
            dimension: Histogram::dimension_of(dimension),
            abbreviation: b'x',
            bins: vec![1, 1],
        })],
    };
    let error = import(&[unknown("cycles")], symbols(), "x").unwrap_err().to_string();
    assert!(error.starts_with("a histogram that counts \"cycles\", not time"), "{error}");
    let error = import(&[unknown("seconds")], Vec::new(), "x").unwrap_err().to_string();
    assert!(error.starts_with("none of 2 addresses is in a function"), "{error}");
    assert_eq!(export(&Tables::default(), |_| true).unwrap().symbols, "");
}
