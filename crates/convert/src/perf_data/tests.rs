use super::*;
use std::io::Cursor;

const TEXT: u64 = 0xffff_ffff_9a00_0000;
const WRONG_PATH: u64 = 1 << 24;

fn writer(is_pipe: bool, has_index: bool) -> PerfDataWriter {
    let mut writer = PerfDataWriter::new(WrittenMachine {
        hostname: "box".into(),
        release: "6.12.1".into(),
        build_id: [0xab; 20],
        text_at: TEXT,
        cpus: 4,
        is_pipe,
        has_index,
        ..WrittenMachine::default()
    });
    // Newest first: straight code led from 0x60 to 0x90.
    for cpu in [1, 2] {
        writer.sample(cpu, &[(TEXT + 0x90, TEXT + 0x200, 2), (TEXT + 0x50, TEXT + 0x60, 2)]);
    }
    writer
}

fn open(bytes: Vec<u8>) -> Result<PerfData<Cursor<Vec<u8>>>> {
    PerfData::open(Cursor::new(bytes))
}

#[test]
fn branches_come_back_as_they_were_written() {
    for (is_pipe, has_index) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut data = open(writer(is_pipe, has_index).to_bytes()).unwrap();
        assert_eq!(data.file.is_pipe, is_pipe);
        assert_eq!(data.file.hostname.as_deref(), Some("box"));
        assert_eq!(data.file.kernel_build_id.as_deref(), Some(&*"ab".repeat(20)));
        assert_eq!(data.file.kernel_place.as_ref().map(|place| place.address), Some(TEXT));
        let stacks = read_branches(&mut data).unwrap();
        assert_eq!((stacks.samples, stacks.entries, stacks.longest, stacks.parts.len()), (2, 4, 2, 1));
        let part = &stacks.parts[0];
        assert_eq!((part.kernel_at, part.cpus_online), (Some(TEXT), Some(4)));
        assert_eq!(part.cpus.keys().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(part.runs, [((TEXT + 0x60, TEXT + 0x90), 2)].into());
        assert_eq!(part.branches[&(TEXT + 0x50, TEXT + 0x60)], 2);
    }
}

#[test]
fn empty_and_wrong_entries_are_left_out_with_what_is_beside_them() {
    let mut writer = PerfDataWriter::new(WrittenMachine { text_at: TEXT, ..WrittenMachine::default() });
    let at = |offset: u64| TEXT + offset;
    writer.sample(
        0,
        &[
            (at(0x90), at(0x200), 0),
            (0, 0, 0),
            (at(0x50), at(0x60), 0),
            (at(0x55), at(0x58), WRONG_PATH),
            (at(0x30), at(0x40), 0),
            (at(0x20), at(0x35), 0),
        ],
    );
    let stacks = read_branches(&mut open(writer.to_bytes()).unwrap()).unwrap();
    assert_eq!((stacks.entries, stacks.empty_entries, stacks.speculated, stacks.backward_runs), (6, 1, 1, 1));
    assert_eq!(stacks.parts[0].runs, [((at(0x40), at(0x50)), 1)].into());
}

#[test]
fn damaged_files_are_refused_with_the_place() {
    let refused = |bytes: Vec<u8>| match open(bytes) {
        Err(error) => error.to_string(),
        Ok(mut data) => data.read(|_, _| Ok(())).unwrap_err().to_string(),
    };
    let whole = writer(false, false).to_bytes();
    assert!(refused(b"hello world".to_vec()).contains("68 65 6c 6c 6f 20 77 6f"));
    let mut swapped = whole.clone();
    swapped[..8].reverse();
    assert!(refused(swapped).contains("big-endian"));
    assert!(refused(whole[..200].to_vec()).contains("truncated at byte 200"));
    let mut small = whole.clone();
    // The size of the first record.
    small[264 + 6] = 4;
    let said = refused(small);
    assert!(said.contains("damaged at byte 264: a record of type 1 has 4 bytes"), "{said}");
    let mut unknown = whole.clone();
    unknown[112 + 24 + 7] = 0x80;
    assert!(refused(unknown).contains("fields that kerntune does not know"));
    let mut pipe = writer(true, false).to_bytes();
    pipe.truncate(pipe.len() - 12);
    assert!(refused(pipe).contains("truncated"));
}
