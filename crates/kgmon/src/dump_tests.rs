use super::*;

/// Writes a dump in the module's format.
fn bytes(arcs: &[(u64, u64, u64)], samples: &[(u64, u64)], modules: &[(u64, u64, u64, &str)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend((HEADER as u32).to_le_bytes());
    out.extend(0b10_0111_u64.to_le_bytes());
    for word in 1..=21_u64 {
        // Sequence, text, anchor, clocks, counts and capacities are numbered in order; the end of
        // the text comes after its start.
        out.extend(word.to_le_bytes());
    }
    for count in [4, 2, arcs.len(), samples.len(), modules.len(), 0] {
        out.extend((count as u32).to_le_bytes());
    }
    let mut release = b"6.12.117-kt".to_vec();
    release.resize(64, 0);
    out.extend(release);
    for (caller, callee, calls) in arcs {
        out.extend([caller, callee, calls].iter().flat_map(|word| word.to_le_bytes()));
    }
    for (ip, count) in samples {
        out.extend([ip, count].iter().flat_map(|word| word.to_le_bytes()));
    }
    for (start, end, gone, name) in modules {
        out.extend([start, end, gone].iter().flat_map(|word| word.to_le_bytes()));
        let mut text = name.as_bytes().to_vec();
        text.resize(56, 0);
        out.extend(text);
    }
    out.resize(out.len() + TRAILER, 0);
    seal(&mut out);
    out
}

fn arc(caller: u64, callee: u64, calls: u64) -> CallSiteCount {
    CallSiteCount { caller, callee, calls }
}

#[test]
fn a_dump_is_read_in_order_and_what_is_there_twice_is_added() {
    let dump =
        KgmonDump::read(&bytes(&[(9, 3, 1), (7, 3, 5), (9, 3, 2)], &[(8, 1), (2, 4)], &[(1, 2, 1, "veth")]))
            .unwrap();
    assert_eq!(dump.arcs, [arc(7, 3, 5), arc(9, 3, 3)]);
    assert_eq!(dump.samples, [SampleCount { ip: 2, count: 4 }, SampleCount { ip: 8, count: 1 }]);
    assert_eq!(dump.modules, [ModuleRange { name: "veth".into(), start: 1, end: 2, gone: true }]);
    assert_eq!((dump.sequence, dump.text, dump.anchor, dump.real_ns), (1, Some((2, 3)), 4, 5));
    assert_eq!((dump.mono_ns, dump.since_ns, dump.counting_ns, dump.sampling_ns), (6, 7, 8, 9));
    assert_eq!((dump.period_ns, dump.tick_ns, dump.resolution_ns, dump.lost_calls), (10, 11, 12, 13));
    assert_eq!((dump.lost_samples, dump.late_samples, dump.user_samples), (14, 15, 16));
    assert_eq!((dump.idle_samples, dump.kernel_samples, dump.arc_capacity), (17, 18, 19));
    assert_eq!((dump.sample_capacity, dump.memory_bytes), (20, 21));
    assert!(dump.counting && dump.sampling && dump.direct && dump.random && !dump.stalled && !dump.taken);
    assert_eq!(dump.release, "6.12.117-kt");
}

#[test]
fn what_is_written_is_read_again() {
    let written = bytes(&[(7, 3, 5), (9, 3, 1)], &[(2, 4), (8, 1)], &[(1, 2, 1, "veth"), (3, 4, 0, "ext4")]);
    let dump = KgmonDump::read(&written).unwrap();
    assert_eq!(dump.to_bytes(), written);
    let long = KgmonDump { release: "r".repeat(100), ..dump };
    assert_eq!(KgmonDump::read(&long.to_bytes()).unwrap().release, "r".repeat(63));
}

#[test]
fn what_is_cut_off_longer_or_changed_is_refused() {
    let whole = bytes(&[(7, 3, 5)], &[(8, 1)], &[]);
    KgmonDump::read(&whole).unwrap();
    for length in 0..whole.len() {
        KgmonDump::read(&whole[..length]).unwrap_err();
    }
    KgmonDump::read(&[&whole[..], &[0; 8]].concat()).unwrap_err();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        KgmonDump::read(&changed).unwrap_err();
    }
    let mut later = whole;
    later[8] = 2;
    assert_eq!(KgmonDump::read(&later), Err(DumpFormatError::Version(2)));
    assert_eq!(KgmonDump::read(b"gmon"), Err(DumpFormatError::Magic));
}

#[test]
fn two_dumps_are_added_if_they_are_of_one_kernel() {
    let one = KgmonDump::read(&bytes(&[(7, 3, 5)], &[(8, 1)], &[(1, 2, 1, "a"), (3, 4, 0, "b")])).unwrap();
    let two = KgmonDump::read(&bytes(&[(7, 3, 2), (9, 3, 1)], &[(8, 2)], &[(3, 4, 0, "b")])).unwrap();
    let sum = one.add(&two).unwrap();
    assert_eq!(sum.arcs, [arc(7, 3, 7), arc(9, 3, 1)]);
    assert_eq!(sum.samples, [SampleCount { ip: 8, count: 3 }]);
    assert_eq!(sum.modules.iter().map(|m| &m.name[..]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((sum.lost_calls, sum.kernel_samples), (26, 36));
    one.add(&KgmonDump { anchor: 1, ..two.clone() }).unwrap_err();
    let huge = KgmonDump { arcs: vec![arc(7, 3, u64::MAX)], ..two };
    one.add(&huge).unwrap_err();
}
