//! Readers of other programs' formats.

use kerntune_convert::autofdo::SampleProfile;
use kerntune_convert::gcda::{summarize, ByteOrder, Gcda, MergeWeights};
use kerntune_convert::gmon::{import, Gmon, GmonRecord, GmonTarget};
use kerntune_convert::perf::BranchStacks;
use kerntune_convert::perf_data::{read_branches, PerfData, PerfRecord};
use kerntune_convert::propeller::read_map;
use kerntune_kgmon::KgmonDump;
use kerntune_profile::{Address, FunctionIndex, Symbol};
use std::io::Cursor;

/// Counters of one object, merged with themselves.
pub fn gcda(bytes: &[u8]) {
    let Ok(gcda) = Gcda::parse(bytes) else { return };
    assert_eq!(gcda.to_bytes(), bytes, "what was read is written again");
    let _ = (gcda.sum_max(), gcda.total(), summarize([&gcda]));
    if let Ok(twice) = Gcda::merge(&gcda, &gcda, MergeWeights::EQUAL) {
        assert_eq!(Gcda::parse(&twice.to_bytes()).expect("what we write is read"), twice);
    }
}

/// Notes of one object.
pub fn gcno(bytes: &[u8]) {
    kerntune_optimize::foreign::gcno(bytes);
}

/// `gmon.out` of each format and kind of target, and the profile imported from it.
pub fn gmon(bytes: &[u8]) {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        for wide in [false, true] {
            let target = GmonTarget { byte_order, wide };
            let Ok(gmon) = Gmon::parse(bytes, target) else { continue };
            // Wide bins spread over many records, of which a kernel's dump has only some thousands.
            let wide = |record: &GmonRecord| matches!(record, GmonRecord::Histogram(of) if of.bins.iter().any(|bin| *bin > 1 << 20));
            if gmon.records.iter().any(wide) {
                let _ = import(&[gmon], Vec::new(), "attack");
                continue;
            }
            let again = gmon.to_bytes(target);
            assert_eq!(Gmon::parse(&again, target).expect("what we write is read").to_bytes(target), again);
            let symbol = |at: u32| Symbol {
                function: FunctionIndex(at),
                name: at.to_string(),
                address: Address(u64::from(at) << 12),
                size: 1 << 12,
                file: None,
                module: None,
            };
            let _ = import(&[gmon], (0..4).map(symbol).collect(), "attack");
        }
    }
}

/// A dump of the module kgmon, as it is and with a valid seal.
pub fn kgmon(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    kerntune_kgmon::seal(&mut sealed);
    for bytes in [bytes, &sealed] {
        let Ok(dump) = KgmonDump::read(bytes) else { continue };
        assert_eq!(KgmonDump::read(&dump.to_bytes()).as_ref(), Ok(&dump), "what we write is read");
        let _ = dump.add(&dump);
    }
}

/// LLVM's map of basic blocks in a kernel's image.
pub fn block_map(bytes: &[u8]) {
    let Ok(map) = read_map(bytes) else { return };
    // Each function and each block takes some bytes, so that the result cannot outgrow the input.
    let blocks: usize = map.iter().map(|function| 1 + function.blocks.len()).sum();
    assert!(blocks <= bytes.len());
}

/// A file of `perf record`.
pub fn perf_data(bytes: &[u8]) {
    let Ok(mut data) = PerfData::open(Cursor::new(bytes)) else { return };
    let mut words = 0;
    let read = data.read(|file, record| {
        if let PerfRecord::Sample(sample) = record {
            assert!(sample.event < file.events.len());
            words += sample.kernel.len() + sample.user.len() + 3 * sample.branches.len();
        }
        Ok(())
    });
    // Compressed data may be longer than the file, and each sample adds its instruction.
    let is_packed = bytes.windows(4).any(|window| window == b"\x28\xb5\x2f\xfd");
    assert!(is_packed || words <= bytes.len(), "{words} words of {} bytes", bytes.len());
    if read.is_ok() {
        let _ = read_branches(&mut data);
    }
}

/// Output of `perf script`.
pub fn perf_text(bytes: &[u8]) {
    let Ok(stacks) = BranchStacks::read(bytes) else { return };
    let _ = (stacks.silent_cpus(), stacks.unparsed_share());
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    assert!(stacks.sample_lines + stacks.strange.lines <= lines);
}

/// A sample profile as `llvm-profdata` prints it.
pub fn autofdo_text(bytes: &[u8]) {
    let _ = SampleProfile::parse(&String::from_utf8_lossy(bytes));
}
