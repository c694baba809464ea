//! uftrace itself reads an export and reports the same figures.

use kerntune_analyze::TraceFile;
use kerntune_convert::uftrace::{files, records, tasks};
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, OpenStack, RecordedThread, Recording,
    RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};
use std::fs;
use std::ops::ControlFlow;
use std::process::Command;

const NAMES: [&str; 6] =
    ["entry_SYSCALL_64", "tcp_sendmsg", "lock_sock", "asm_sysvec_timer", "schedule", "[unknown code]"];

/// Encodes chunks: state at the beginning, then events with the nanoseconds before each.
fn trace(chunks: &[(ChunkState, &[(u64, Event)])]) -> (Vec<u8>, Recording) {
    let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap();
    let mut now = 1_000;
    let mut total = 0;
    for (sequence, (state, events)) in chunks.iter().enumerate() {
        let mut raw = Vec::new();
        state.write(&mut raw);
        let length = raw.len();
        let begin = now;
        for (delta, event) in *events {
            encode::event(&mut raw, *delta, *event);
            now += delta;
            if let Event::Idle { ns } = event {
                now += ns;
            }
        }
        total += events.len() as u64;
        let header = ChunkHeader {
            vcpu: 0,
            sequence: sequence as u32,
            events: events.len() as u32,
            begin,
            end: now,
            state: length as u32,
            payload: (raw.len() - length) as u32,
            compressed: 0,
        };
        writer.chunk(header, &raw).unwrap();
    }
    let (bytes, chunks) = writer.finish().unwrap();
    let thread = |pid, comm: &str| RecordedThread { task: 1, pid, tgid: pid, comm: comm.into() };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: 5,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: Vec::new(),
        threads: vec![thread(0, "swapper"), thread(57, "rr"), thread(57, "rr again")],
        chunks,
        events: total,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    };
    (bytes, recording)
}

#[test]
fn uftrace_reports_the_same_calls_and_times() {
    let enter = |function, how| Event::Enter { function, how };
    let running = |frames: &[(u32, EnterKind)]| ChunkState {
        user: frames.is_empty(),
        regions: Vec::new(),
        stacks: vec![OpenStack { thread: 1, running: true, frames: frames.to_vec() }],
        ..ChunkState::default()
    };
    let open = [(0, EnterKind::Syscall), (1, EnterKind::Call)];
    let (bytes, recording) = trace(&[
        (
            running(&[]),
            &[
                (0, enter(0, EnterKind::Syscall)),
                (1_000, enter(1, EnterKind::Call)),
                (2_000, enter(2, EnterKind::Call)),
                (3_000, Event::Exit), // lock_sock: 3 us
            ],
        ),
        (
            running(&open),
            &[
                (1_000, enter(2, EnterKind::Jump)),
                (500, enter(3, EnterKind::Interrupt)),
                (7_000, Event::Resume), // the interrupt: 7 us
                (500, Event::Exit),     // lock_sock by a jump: 1 us net, and tcp_sendmsg with it
                (1_000, enter(4, EnterKind::Call)),
                (1_000, Event::Switch { thread: 0 }),
                (0, enter(4, EnterKind::Call)),
                (2_000, Event::Switch { thread: 1 }),
                (1_000, Event::Exit), // schedule: 4 us by the clock on the wall
                (1_000, Event::Leave),
            ],
        ),
    ]);
    let source = bytes.as_slice();
    let trace = TraceFile::open(&source, &recording).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let tasks = tasks(&recording.threads);
    assert_eq!(tasks.iter().map(|task| task.tid).collect::<Vec<_>>(), [0, 57, (1 << 22) + 2]);
    for (name, bytes) in files(&tasks, NAMES.iter().copied()) {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    let mut data = vec![Vec::new(); tasks.len()];
    let count = records(
        &trace,
        &mut |thread, bytes| {
            data[thread].extend_from_slice(bytes);
            Ok(())
        },
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    assert_eq!(count as usize * 16, data.iter().map(Vec::len).sum::<usize>());
    for (task, bytes) in tasks.iter().zip(&data) {
        fs::write(directory.path().join(format!("{}.dat", task.tid)), bytes).unwrap();
    }

    let output = Command::new("uftrace")
        .args(["report", "--no-pager", "--color=no", "-s", "func", "-d"])
        .arg(directory.path())
        .output()
        .expect("uftrace is installed by scripts/setup");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Total, self, calls, name.
    let row = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{text}"));
        line.split_whitespace().map(String::from).collect()
    };
    let figures = |name: &str| {
        let row = row(name);
        (row[0].clone(), row[2].clone(), row[4].clone())
    };
    let expect =
        |total: &str, own: &str, calls: &str| (total.to_string(), own.to_string(), calls.to_string());
    // 3 + 8 us: the second one includes the interrupt, which uftrace cannot tell from a callee.
    assert_eq!(figures("lock_sock"), expect("11.000", "4.000", "2"), "{text}");
    assert_eq!(figures("asm_sysvec_timer"), expect("7.000", "7.000", "1"), "{text}");
    assert_eq!(figures("tcp_sendmsg"), expect("14.000", "3.000", "1"), "{text}");
    assert_eq!(figures("entry_SYSCALL_64"), expect("21.000", "3.000", "1"), "{text}");
}
