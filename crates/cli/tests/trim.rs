//! `kerntune trim` on Linux's own Makefiles, Kconfig and a run. The trimmed kernel is built in the
//! rehearsal.

use crate::support::{self, fails, json, kerntune};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn options_go_of_which_nothing_ran_and_nothing_goes_that_did() {
    let base = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let text =
        "description = \"x\"\n[training]\n[[training.step]]\ncommand = [\"rr\", \"--only\", \"getpid\"]\n\
                [measured]\n[[measured.step]]\ncommand = [\"rr\", \"--only\", \"udp_rr\"]\n";
    let workload = support::workload(&directory, text);
    let fragment = directory.path().join("off.config").display().to_string();
    let found =
        json(["trim", "--workload", &workload, "--plan", "--keep", "CONFIG_VET*", "-o", &fragment, "--json"]);
    assert_eq!(
        (&found["schema"], &found["base"]["id"], &found["trimmed"]),
        (&"kerntune-trim/1".into(), &base.into(), &Value::Null)
    );
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|row| row["option"].as_str().unwrap().to_string()).collect()
    };
    let (off, stay) = (names(&found["off"]), names(&found["stay"]));
    // A file system that is on no disk, and a missing disk; options that the kernel checks use,
    // that the guest needs to start, and that --keep names.
    for gone in ["EXT4_FS", "JBD2", "VIRTIO_BLK"] {
        assert!(off.contains(gone), "{gone} stays: {found}");
    }
    for kept in ["INET", "IO_URING", "POSIX_MQUEUE", "VIRTIO_CONSOLE", "SERIAL_8250", "VETH"] {
        assert!(stay.contains(kept) && !off.contains(kept), "{kept} goes");
    }
    let because = |option: &str| {
        let rows = found["stay"].as_array().unwrap();
        rows.iter().find(|row| row["option"] == option).unwrap()["because"].clone()
    };
    assert_eq!((because("VETH"), because("INET")), ("asked".into(), "ran".into()));
    // The fragment is complete, and Kconfig accepts it: a second plan finds none of its options
    // built in.
    let text = std::fs::read_to_string(&fragment).unwrap();
    for option in &off {
        assert!(text.contains(&format!("# CONFIG_{option} is not set\n")), "{option}");
    }
    let gone: u64 =
        found["gone"].as_array().unwrap().iter().map(|row| row["gone_bytes"].as_u64().unwrap()).sum();
    let of_text = gone as f64 / found["base"]["text_bytes"].as_u64().unwrap() as f64;
    println!("{} options, {:.1} % of the text", off.len(), 100.0 * of_text);
    assert!((0.05..0.6).contains(&of_text), "{of_text}");
    let said = support::run(["trim", "--workload", &workload, "--plan"]);
    assert!(said.contains("Nothing was built") && said.contains("EXT4_FS"), "{said}");
}

#[test]
fn what_is_no_option_is_refused() {
    fails(&mut kerntune(["trim", "--workload", "rr", "--keep", "CONFIG-X"]), 2, &["--keep", "CONFIG-X"]);
    fails(&mut kerntune(["trim", "--workload", "rr", "--keep", "@/nowhere"]), 2, &["/nowhere"]);
    fails(&mut kerntune(["trim"]), 2, &["--workload"]);
}
