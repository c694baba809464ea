//! Requests and packets passed to functions of a simulated kernel, which are read from its memory.

use crate::counters::BlockCounters;
use crate::inline_counters::InlineCounters;
use crate::recorder::Recorder;
use kerntune_isa::{GuestIsa, Isa, Register, StoppedCpu};
use kerntune_trace::io::{IoFile, IoOperation, IoSpec, PacketLayout, RequestLayout, RequestRow};
use kerntune_trace::mark::Mark;
use kerntune_trace::{
    CaptureSpec, FunctionKind, FunctionSpec, ProbeKind, RecorderSpec, TaskOffsets, VERSION,
};
use std::collections::HashMap;

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const PROBES: [ProbeKind; 6] = [
    ProbeKind::Issue,
    ProbeKind::Complete,
    ProbeKind::CompleteBatch,
    ProbeKind::Release,
    ProbeKind::Send,
    ProbeKind::Receive,
];
const REQUESTS: RequestLayout =
    RequestLayout { queue: 0, flags: 8, bytes: 12, sector: 16, next: 24, batch: 8, disk: 32, disk_name: 4 };
const PACKETS: PacketLayout = PacketLayout { bytes: 8, device: 16, device_name: 1 };
const QUEUE: u64 = 0x1000;
const MARKS: u64 = 0x9000;

#[derive(Default)]
struct FakeMemory {
    bytes: HashMap<u64, u8>,
    registers: HashMap<Register, u64>,
}

impl FakeMemory {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.bytes.extend((at..).zip(bytes.iter().copied()));
    }
    fn word(&mut self, at: u64, value: u64) {
        self.write(at, &value.to_le_bytes());
    }
}

impl StoppedCpu for FakeMemory {
    fn register(&mut self, register: Register) -> u64 {
        self.registers.get(&register).copied().unwrap_or(0)
    }
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let read = |(byte, at): (&mut u8, u64)| self.bytes.get(&at).map(|value| *byte = *value).is_some();
        into.iter_mut().zip(address..).all(read)
    }
}

struct IoMachine {
    recorder: Recorder,
    board: InlineCounters,
    memory: FakeMemory,
    directory: tempfile::TempDir,
}

impl IoMachine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let function = |(at, probe): (usize, ProbeKind)| FunctionSpec {
            address: KERNEL + 16 * at as u64,
            size: 16,
            kind: FunctionKind::Plain,
            skip: false,
            probe: Some(probe),
            conditional: false,
        };
        let spec = RecorderSpec {
            version: VERSION,
            output: directory.path().display().to_string(),
            capture: CaptureSpec { functions: true, edges: false, weights: false },
            functions: PROBES.into_iter().enumerate().map(function).collect(),
            binaries: vec![],
            points: vec![],
            tags: None,
            task: TaskOffsets { pid: 0, tgid: 4, comm: 8 },
            stack_pointer: false,
            per_cpu: None,
            model: None,
            data: None,
            io: Some(IoSpec { requests: Some(REQUESTS), packets: Some(PACKETS) }),
            stream: None,
            loads: None,
        };
        let mut memory = FakeMemory::default();
        // A queue, its disk, and the names of a disk and a network device.
        memory.word(QUEUE + 32, 0x2000);
        memory.write(0x2004, b"vda");
        memory.write(0x2007, &[0; 29]);
        memory.write(0x3001, b"lo");
        memory.write(0x3003, &[0; 14]);
        let recorder = Recorder::new(&spec, 1).unwrap();
        Self { recorder, board: InlineCounters::default(), memory, directory }
    }

    fn at(&mut self, now: u64, probe: ProbeKind, argument: u64) {
        self.board.kernel = now;
        self.memory.registers.insert(GuestIsa::ARGUMENTS[0], argument);
        let function = PROBES.iter().position(|known| *known == probe).unwrap() as u32;
        self.recorder.on_probe(&self.board, function, 0, &mut self.memory).unwrap();
    }

    fn issue(&mut self, now: u64, request: u64, operation: u32, sector: u64, bytes: u32) {
        self.memory.word(request, QUEUE);
        self.memory.write(request + 8, &(operation | 0x2800).to_le_bytes());
        self.memory.write(request + 12, &bytes.to_le_bytes());
        self.memory.word(request + 16, sector);
        self.at(now, ProbeKind::Issue, request);
    }

    fn mark(&mut self, now: u64, mark: Mark, name: &str) {
        self.board.kernel = now;
        self.memory.write(MARKS, name.as_bytes());
        self.memory.write(MARKS + name.len() as u64, &[0; 256]);
        self.memory.registers.insert(GuestIsa::ARGUMENTS[0], MARKS);
        let boards = [self.board];
        self.recorder.on_mark(&boards, &mut BlockCounters::new(8), mark, 0, &mut self.memory).unwrap();
    }

    fn finish(mut self) -> IoFile {
        self.recorder.finish(&mut BlockCounters::new(8)).unwrap();
        let bytes = std::fs::read(self.directory.path().join(kerntune_trace::files::IO)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn row(file: &IoFile, region: u32, operation: IoOperation) -> &RequestRow {
    file.requests.iter().find(|row| (row.region, row.operation) == (region, operation)).unwrap()
}

#[test]
fn requests_are_counted_where_they_are_issued() {
    let mut machine = IoMachine::new();
    // Issued outside of regions: pending when the region begins, and shows the device's last
    // position.
    machine.issue(100, 0xa00, 0, 8, 4096);
    machine.mark(200, Mark::Begin, "work");
    machine.issue(300, 0xb00, 0, 16, 4096);
    machine.issue(310, 0xc00, 1, 24, 8192);
    machine.issue(320, 0xd00, 0, 1000, 512);
    machine.at(400, ProbeKind::Complete, 0xa00);
    machine.at(420, ProbeKind::Complete, 0xb00);
    machine.at(430, ProbeKind::Complete, 0xb00);
    machine.issue(500, 0xe00, 2, 0, 0);
    // A batch of two.
    machine.memory.word(0xc00 + 24, 0xe00);
    machine.memory.word(0xe00 + 24, 0);
    machine.memory.word(0xf08, 0xc00);
    machine.at(600, ProbeKind::CompleteBatch, 0xf00);
    machine.mark(700, Mark::End, "work");
    machine.at(820, ProbeKind::Complete, 0xd00);
    let file = machine.finish();
    assert!(file.requests.iter().all(|row| row.device == "vda") && file.unread == 0);

    let read = &row(&file, 0, IoOperation::Read).requests;
    assert_eq!((read.count, read.completed, read.completed_later, read.issued_before), (2, 1, 1, 1));
    assert_eq!((read.unfinished, read.again, read.sequential), (0, 0, 1), "16 is where the first ended");
    assert_eq!(read.bytes, [(512, 1), (4096, 1)]);
    assert_eq!(read.seeks, [((1000 - 40) * 512, 1)], "the write ended at sector 40");
    assert_eq!(read.depths, [(2, 1), (4, 1)]);
    assert_eq!(read.times, [(120, 1), (500, 1)]);
    let write = &row(&file, 0, IoOperation::Write).requests;
    assert_eq!((write.count, write.sequential, &write.depths[..]), (1, 1, &[(3, 1)][..]));
    assert_eq!(write.times, [(290, 1)]);
    let flush = &row(&file, 0, IoOperation::Flush).requests;
    assert_eq!((flush.count, &flush.depths[..], &flush.times[..]), (1, &[(3, 1)][..], &[(100, 1)][..]));
    assert!(flush.bytes.is_empty() && flush.seeks.is_empty() && flush.sequential == 0);
}

#[test]
fn what_ends_unseen_is_not_under_way_for_ever() {
    let mut machine = IoMachine::new();
    machine.mark(10, Mark::Begin, "one");
    machine.issue(100, 0xa00, 0, 8, 4096);
    // The driver had no room: the same request is issued again.
    machine.issue(150, 0xa00, 0, 8, 4096);
    machine.at(200, ProbeKind::Complete, 0xa00);
    // Merged into another request and freed.
    machine.issue(300, 0xb00, 0, 16, 4096);
    machine.at(310, ProbeKind::Release, 0xb00);
    // Its memory is reused for another request before any completion was seen.
    machine.issue(400, 0xc00, 0, 24, 4096);
    machine.issue(500, 0xc00, 0, 0, 512);
    machine.mark(600, Mark::End, "one");
    machine.mark(700, Mark::Begin, "two");
    machine.at(800, ProbeKind::Complete, 0xc00);
    // A request at an unreadable address.
    machine.at(900, ProbeKind::Issue, 0xdead);
    machine.issue(950, 0xe00, 1, 0, 512);
    machine.mark(990, Mark::End, "two");
    let file = machine.finish();
    let one = &row(&file, 0, IoOperation::Read).requests;
    assert_eq!((one.count, one.again, one.completed, one.completed_later, one.unfinished), (4, 1, 1, 1, 2));
    assert_eq!(one.depths, [(1, 4)]);
    assert_eq!(one.times, [(50, 1), (300, 1)]);
    let two = &row(&file, 1, IoOperation::Read).requests;
    assert_eq!((two.count, two.issued_before), (0, 1));
    assert_eq!(row(&file, 1, IoOperation::Write).requests.unfinished, 1);
    assert_eq!(file.unread, 1);
}

#[test]
fn packets_are_counted_in_regions_alone() {
    let mut machine = IoMachine::new();
    let packet = |machine: &mut IoMachine, bytes: u32| {
        machine.memory.write(0x4008, &bytes.to_le_bytes());
        machine.memory.word(0x4010, 0x3000);
    };
    packet(&mut machine, 66);
    machine.at(1, ProbeKind::Send, 0x4000);
    machine.mark(10, Mark::Begin, "work");
    machine.at(20, ProbeKind::Send, 0x4000);
    packet(&mut machine, 1500);
    machine.at(30, ProbeKind::Send, 0x4000);
    machine.at(40, ProbeKind::Send, 0x4000);
    // The receiver's argument points to the packet.
    machine.memory.word(0x5000, 0x4000);
    machine.at(50, ProbeKind::Receive, 0x5000);
    machine.mark(60, Mark::End, "work");
    machine.at(70, ProbeKind::Receive, 0x5000);
    let file = machine.finish();
    let [received, sent] = &file.packets[..] else { panic!("{:?}", file.packets) };
    assert_eq!((received.sent, &received.device[..], &received.bytes[..]), (false, "lo", &[(1500, 1)][..]));
    assert_eq!((sent.sent, &sent.bytes[..]), (true, &[(66, 1), (1500, 2)][..]));
}
