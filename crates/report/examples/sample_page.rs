//! Writes the page of the tests' models to standard output, for development: `cargo run -p
//! kerntune-report --example sample_page > /tmp/page.html`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use kerntune_report::html::{report, HtmlInput, ProvenanceLine, StepLine};
use std::time::Duration;

fn main() -> Result<(), kerntune_report::Error> {
    let line = |what: &str, base: &str, tuned: Option<&str>| ProvenanceLine {
        what: what.into(),
        base: base.into(),
        tuned: tuned.map(Into::into),
    };
    let step = |name: &str, result: &str, seconds: Option<u64>| StepLine {
        name: name.into(),
        result: result.into(),
        took: seconds.map(Duration::from_secs),
        resumed: false,
    };
    let page = report(&HtmlInput {
        title: "rr: clang-autofdo against clang -O2",
        comparison: Some(&sample::comparison()),
        before: Some(&sample::before()),
        after: Some(&sample::after()),
        provenance: &[
            line("Source", "Linux 6.12.90, linux-source-6.12 6.12.90-1~bpo12+1 (blake3 81ac…0d3e)", None),
            line(
                "Config",
                "embedded/kernel/base.config, embedded/kernel/required.config (blake3 5510…77f1)",
                None,
            ),
            line("Flags", "-O2", Some("-O2 -fprofile-sample-use=rr.prof")),
            line("Emulator", "QEMU 10.0.2, TCG, -icount shift=0, 1 CPU, 1 GiB", None),
        ],
        commands: &[
            "kerntune tune --workload rr --recipe clang-autofdo".into(),
            "kerntune compare 3f9a b204 --workload rr".into(),
        ],
        steps: &[
            step("build base kernel", "3f9ac01d77e2, 1,304 objects", Some(390)),
            step("record training run", "p-20250601-a1, 28,060,412 events, 0 lost", Some(41)),
            step("build tuned kernel", "b2047a5e91c4; 91.3 % of executed counts matched", Some(402)),
            step("compare", "3 runs", None),
        ],
        written: "kerntune 0.1.0, 2025-06-01 12:00 UTC",
    })?;
    print!("{page}");
    Ok(())
}
