//! Exactness: recordings are reproducible, do not disturb the guest, and agree with the guest's own
//! ftrace.

use crate::support;
use kerntune_analyze::events::{self, replay, EventVisitor, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_guest::{CollectOptions, GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_machine::{CaptureRequest, Emulator, Machine, MachineDemands, RunRequest};
use kerntune_trace::EnterKind;
use kerntune_work::{NoProgress, WorkDir};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn functions(profile: &str) -> BTreeMap<(String, String), (u64, u64)> {
    let report = support::json(["report", profile, "functions", "--json"]);
    assert_eq!(report["lost_events"], 0);
    let rows = report["functions"].as_array().unwrap().iter();
    rows.map(|row| {
        let name = row["name"].as_str().unwrap().to_string();
        let file = row["file"].as_str().unwrap_or_default().to_string();
        ((name, file), (row["calls"].as_u64().unwrap(), row["self"].as_u64().unwrap()))
    })
    .collect()
}

#[test]
fn two_recordings_are_the_same() {
    let kernel = support::base_kernel();
    let record = || {
        let summary = support::json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
        summary["profile"].as_str().unwrap().to_string()
    };
    let (one, two) = (record(), record());
    assert_ne!(one, two);
    assert_eq!(functions(&one), functions(&two));
}

/// Returns nanoseconds by row, measured by the guest itself.
fn rows(guest_files: &Path) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for entry in
        std::fs::read_dir(guest_files.join("out")).or_else(|_| std::fs::read_dir(guest_files)).unwrap()
    {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("{\"row\"")) {
            let row: Value = serde_json::from_str(line).unwrap();
            rows.insert(row["row"].as_str().unwrap().to_string(), row["nanoseconds"].as_u64().unwrap());
        }
    }
    rows
}

#[test]
fn the_guest_does_not_notice_the_recorder() {
    let work = WorkDir::open(support::work_dir()).unwrap();
    let kernel = kerntune_kernel::find(&work, &support::base_kernel()).unwrap();
    let workload = Workload::find("rr", &[]).unwrap();
    let image = GuestImage::build(&work, &workload, &NoProgress).unwrap();
    let machine = Emulator::find().unwrap();
    let run = |capture| {
        let directory = tempfile::tempdir().unwrap();
        let request = RunRequest { capture, ..RunRequest::new(&kernel, &image.initramfs, "measured") };
        let outcome = machine.run(&request, directory.path(), &NoProgress).unwrap();
        rows(&outcome.guest_files)
    };
    let model = kerntune_tune::model::find("generic").unwrap().text;
    let without = run(None);
    let with =
        run(Some(CaptureRequest { functions: true, edges: true, model: Some(model), ..Default::default() }));
    assert_eq!(without.len(), 11, "{without:?}");
    for (row, nanoseconds) in &without {
        // One nanosecond is one instruction.
        let difference = with[row].abs_diff(*nanoseconds) as f64 / *nanoseconds as f64;
        assert!(difference <= 0.0005, "{row}: {nanoseconds} ns without, {} ns with the recorder", with[row]);
    }
}

/// Reads calls by function from the kernel's `trace_stat/function0`.
fn ftrace(path: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().skip(2).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_string(), words.next()?.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn calls_agree_with_the_kernels_own_function_profiler() {
    agree_with_ftrace(1, None);
}

/// For each CPU: the CPU of a call is known from the CPUs' turns.
#[test]
fn calls_on_two_cpus_agree_with_the_kernels_own_function_profiler() {
    agree_with_ftrace(2, None);
}

/// Retpolines and return thunks: calls are recognized by the stack pointer. The kernel of the tests
/// above has them too, but patches them away at boot, because its CPU needs none.
#[test]
fn calls_with_mitigations_agree_with_the_kernels_own_function_profiler() {
    agree_with_ftrace(1, Some("zen2"));
    agree_with_ftrace(2, Some("skylake"));
}

/// Calls by CPU and function.
struct CallCounts(BTreeMap<(usize, u32), u64>);

impl EventVisitor for CallCounts {
    type PerFrame = ();

    fn enter(&mut self, machine: &mut events::ReplayState<()>, function: u32, _: EnterKind) {
        *self.0.entry((machine.cpu(), function)).or_default() += 1;
    }
}

fn agree_with_ftrace(cpus: u32, mitigations: Option<&str>) {
    let id = support::ftrace_kernel();
    let work = WorkDir::open(support::work_dir()).unwrap();
    let kernel: Kernel = kerntune_kernel::find(&work, &id).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = support::workload(
        &directory,
        "description = \"TCP, counted by two witnesses\"\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
         [measured]\n[[measured.step]]\nregion = \"tcp\"\noperations = 1000\ncommand = [\"rr\", \"--only\", \"tcp_rr\"]\n",
    );
    let workload = Workload::load(Path::new(&file)).unwrap();
    let image = GuestImage::build(&work, &workload, &NoProgress).unwrap();
    let run = directory.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let request = RunRequest {
        capture: Some(CaptureRequest { functions: true, ..CaptureRequest::default() }),
        collect: CollectOptions { ftrace: true, ..CollectOptions::default() },
        demands: MachineDemands { cpus, mitigations, ..MachineDemands::default() },
        ..RunRequest::new(&kernel, &image.initramfs, "measured")
    };
    let outcome = Emulator::find().unwrap().run(&request, &run, &NoProgress).unwrap();
    let witness = |cpu| ftrace(&outcome.guest_files.join(format!("ftrace/measured-1-tcp/function{cpu}")));

    let recording = outcome.recording.as_ref().unwrap();
    let health = recording.health;
    assert_eq!(health.unmatched_returns + health.foreign_returns + health.unwound_frames, 0, "{health:?}");
    let symbols = kerntune_tune::record::symbols(&kernel).unwrap();
    let trace = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&trace, recording).unwrap();
    let (mut machine, mut calls) =
        (events::ReplayState::new(TraceBounds::of(recording)), CallCounts(BTreeMap::new()));
    let mut reader = trace.reader().unwrap();
    for chunk in 0..trace.chunks() {
        replay(&mut machine, &mut calls, &reader.read(chunk).unwrap()).unwrap();
    }
    let ours = |cpu: usize| {
        let mut ours: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, function), count) in calls.0.iter().filter(|((at, _), _)| *at == cpu) {
            *ours.entry(symbols[*function as usize].name.as_str()).or_default() += count;
        }
        ours
    };

    // The TCP path from the system call to the wire and back. It runs entirely between switching
    // the profiler on and off, so the counts must be equal.
    let path = [
        "tcp_sendmsg",
        "tcp_sendmsg_locked",
        "tcp_push",
        "__tcp_push_pending_frames",
        "tcp_write_xmit",
        "__tcp_transmit_skb",
        "__ip_queue_xmit",
        "__ip_local_out",
        "ip_output",
        "ip_finish_output2",
        "__dev_queue_xmit",
        "dev_hard_start_xmit",
        "loopback_xmit",
        "__netif_rx",
        "netif_rx_internal",
        "enqueue_to_backlog",
        "process_backlog",
        "__netif_receive_skb_one_core",
        "ip_rcv",
        "ip_rcv_core",
        "ip_local_deliver",
        "ip_local_deliver_finish",
        "ip_protocol_deliver_rcu",
        "tcp_v4_rcv",
        "tcp_v4_do_rcv",
        "tcp_rcv_established",
        "tcp_ack",
        "tcp_queue_rcv",
        "tcp_data_ready",
        "sock_def_readable",
        "tcp_recvmsg",
        "tcp_recvmsg_locked",
        "tcp_cleanup_rbuf",
        "__tcp_select_window",
        "tcp_schedule_loss_probe",
        "tcp_event_new_data_sent",
        "tcp_rate_skb_sent",
        "tcp_v4_early_demux",
        "net_rx_action",
        "sk_wait_data",
    ];
    let mut compared = 0;
    for cpu in 0..cpus as usize {
        let (witness, ours) = (witness(cpu), ours(cpu));
        for name in path {
            // The compiler may have inlined some; then neither side has them.
            let (Some(theirs), Some(count)) = (witness.get(name), ours.get(name)) else { continue };
            println!("CPU {cpu} {name:32} ftrace {theirs:6}  recorder {count:6}");
            assert_eq!(count, theirs, "{name} on CPU {cpu}");
            assert!(*count >= 100, "{name} was called {count} times on CPU {cpu}");
            compared += 1;
        }
    }
    assert!(compared >= 20 * cpus, "only {compared} functions of the TCP path were compared");
}
