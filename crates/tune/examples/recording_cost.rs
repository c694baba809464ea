//! What recording costs: CPU time of the same guest, from boot to power-off, with the recorder against
//! without it, both under icount, interleaved, as ratios. `make bench` runs this; docs/benchmarks.md has a
//! baseline. CPU time, as what else the host does disturbs it less than time on the clock.
//!
//! Usage: `recording_cost [ROUNDS] [SCALE] [WORD]`: only rows with this word; the work directory is `KERNTUNE_DIR` or `.kerntune`.

#[path = "support/cpu.rs"]
mod cpu;

use kerntune_guest::{GuestImage, Run, Step, Workload};
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_machine::{CaptureRequest, Emulator, RunRequest, Selection};
use kerntune_work::{NoProgress, WorkDir};
use std::error::Error;

/// A configuration's name, and what it captures.
type Configuration = (&'static str, Option<CaptureRequest>);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let scale = arguments.next().unwrap_or("4".into());
    let wanted = arguments.next().unwrap_or_default();
    let work = WorkDir::open(std::env::var("KERNTUNE_DIR").unwrap_or(".kerntune".into()))?;
    let kernel = build(&work, &BuildRequest::new("debian:6.12".parse()?, "base"), &NoProgress)?;
    let mut workload = Workload::find("rr", &[])?;
    let command = ["rr", "--seed", "1", "--scale", &scale].map(String::from).to_vec();
    let step = Step { region: None, operations: None, command, limit_seconds: None, metrics: Vec::new() };
    workload.measured = Run { warmup: Vec::new(), steps: vec![step] };
    let image = GuestImage::build(&work, &workload, &NoProgress)?;
    let model = Some(kerntune_tune::model::find("generic")?.text);
    let functions = || CaptureRequest { functions: true, ..CaptureRequest::default() };
    let net = Selection { only: vec!["net/".into()], skip: Vec::new() };
    let skip = net.resolve(kernel.symbols()?.functions())?;
    let configurations: [Configuration; 6] = [
        ("plain emulation (A/A)", None),
        ("counters only", Some(CaptureRequest::default())),
        ("functions in net/", Some(CaptureRequest { skip, ..functions() })),
        ("functions", Some(functions())),
        (
            "functions and edges",
            Some(CaptureRequest { functions: true, edges: true, ..CaptureRequest::default() }),
        ),
        (
            "functions, edges and model",
            Some(CaptureRequest { functions: true, edges: true, model, ..CaptureRequest::default() }),
        ),
    ];
    let configurations: Vec<Configuration> =
        configurations.into_iter().filter(|(name, _)| name.contains(&wanted)).collect();
    let mut ratios = vec![Vec::new(); configurations.len()];
    for round in 1..=rounds {
        for (at, (name, capture)) in configurations.iter().enumerate() {
            // Each beside a plain run of its own, so that a slow minute of the host slows both.
            let plain = seconds(&kernel, &image, None)?;
            let recorded = seconds(&kernel, &image, capture.clone())?;
            ratios[at].push(recorded / plain);
            eprintln!("round {round}/{rounds}: {name}: {recorded:.2} s against {plain:.2} s");
        }
    }
    println!(
        "CPU time of a run of rr (scale {scale}), recorded / plain, median of {rounds} (least to greatest)"
    );
    for ((name, _), ratios) in configurations.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let (least, median, greatest) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!("  {name:28} {median:5.2}  ({least:.2} to {greatest:.2})");
    }
    Ok(())
}

/// Seconds of CPU that a run takes.
fn seconds(
    kernel: &Kernel,
    image: &GuestImage,
    capture: Option<CaptureRequest>,
) -> Result<f64, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let request = RunRequest { capture, ..RunRequest::new(kernel, &image.initramfs, "measured") };
    let before = cpu::of_children()?;
    Emulator::find()?.run(&request, directory.path(), &NoProgress)?;
    Ok(cpu::of_children()? - before)
}
