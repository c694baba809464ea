//! Figures of two papers from a recording: McRae's trace of a receive from the network card's
//! interrupt to the switch to its reader ("Hardware Profiling of Kernels"), and McKusick's entries
//! of a cycle and of a recursive function ("Using gprof to Tune the 4.2BSD Kernel").

use crate::support::{base_kernel, json, run, work_dir};
use serde_json::Value;
use std::path::Path;

/// Returns an array of objects; empty if it is missing.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_receive_from_the_cards_interrupt_to_its_reader_and_recursion() {
    let kernel = base_kernel();
    let record = || json(["record", "--kernel", &kernel, "--workload", "paths", "--json"]);
    let profile = record()["profile"].as_str().unwrap().to_string();
    let path = work_dir().join("profiles").join(&profile).display().to_string();
    let trace = std::fs::read(Path::new(&path).join("run/trace.kt")).unwrap();

    // Two cards share an interrupt line; the only other interrupts come from the clock.
    let interrupts = json(["report", &path, "interrupts", "--json"]);
    let card = list(&interrupts["interrupts"])
        .iter()
        .find(|i| i["function"].as_str().unwrap().starts_with("asm_common_interrupt:0x"))
        .unwrap_or_else(|| panic!("{interrupts}"));
    assert!(card["count"].as_u64().unwrap() >= 600, "{card}");
    let vector = card["function"].as_str().unwrap();

    let text = run(["report", &path, "path", "--region", "nic_rr", "--nth", "100", "--all"]);
    let mut rest = text.as_str();
    for step in [
        "tcp_sendmsg",
        "Context switch: paths",
        ".. idle",
        vector,
        "vring_interrupt",
        "net_rx_action",
        "virtnet_poll",
        "tcp_v4_rcv",
        "sock_def_readable",
        "Context switch: swapper/0 [0] out, paths",
        "tcp_recvmsg",
    ] {
        let at = rest.find(step).unwrap_or_else(|| panic!("no {step} in the rest of\n{text}"));
        rest = &rest[at..];
    }
    let rows = json(["report", &path, "functions", "--json"]);
    let received = list(&rows["functions"]).iter().find(|f| f["name"] == "tcp_v4_rcv").unwrap();
    assert_eq!(received["calls"], 600, "there and back, 300 times");

    // Four instances: when the second is added to the first, the kernel walks from the second to
    // the fourth.
    let graph = json(["report", &path, "graph", "--function", "ep_loop_check_proc", "--json"]);
    let entry = list(&graph["entries"]).iter().find(|e| e["name"] == "ep_loop_check_proc").unwrap();
    assert_eq!((&entry["calls"], &entry["self_calls"]), (&300.into(), &600.into()), "{entry}");

    // The event propagates from instance to instance.
    let region = ["report", &path, "graph", "--function", "ep_poll_callback", "--region", "epoll_nested"];
    let graph = json(region.iter().copied().chain(["--json"]));
    let cycle = list(&graph["entries"]).iter().find(|e| e["kind"] == "cycle").unwrap();
    assert_eq!((&cycle["calls"], &cycle["self_calls"]), (&300.into(), &3000.into()), "{cycle}");
    let calls =
        |name: &str| list(&cycle["members"]).iter().find(|m| m["name"] == name).unwrap()["calls"].clone();
    assert_eq!([calls("ep_poll_callback"), calls("__wake_up")], [1200, 900]);

    // Even with cards a run is reproducible to the byte.
    run(["profile", "remove", &path]);
    assert_eq!(record()["profile"], profile.as_str());
    assert!(std::fs::read(Path::new(&path).join("run/trace.kt")).unwrap() == trace, "another trace");
}
