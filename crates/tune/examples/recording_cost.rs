//! What recording costs: CPU time of the same guest work with the recorder against without it, both under
//! icount, interleaved, as ratios. `make bench` runs this; docs/benchmarks.md has a baseline. CPU time, as
//! what else the host does disturbs it less than time on the clock; that of boot and translation, which a
//! run with next to no work shows, is taken off.
//!
//! Usage: `recording_cost [ROUNDS] [SCALE] [ROW,ROW…]`: only these rows; the work directory is
//! `KERNTUNE_DIR` or `.kerntune`.

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
    let images = [image(&work, &scale)?, image(&work, NEXT_TO_NOTHING)?];
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
    let configurations: Vec<Configuration> = configurations
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.split(',').any(|row| row == *name))
        .collect();
    let mut ratios = vec![Vec::new(); configurations.len()];
    for round in 1..=rounds {
        for (at, (name, capture)) in configurations.iter().enumerate() {
            // Each beside a plain run of its own, so that a slow minute of the host slows both.
            let plain = seconds(&kernel, &images, None)?;
            let recorded = seconds(&kernel, &images, capture.as_ref())?;
            ratios[at].push(recorded / plain);
            eprintln!("round {round}/{rounds}: {name}: {recorded:.2} s against {plain:.2} s");
        }
    }
    println!(
        "CPU time of the work of rr (scale {scale}), recorded / plain, median of {rounds} (least to greatest)"
    );
    for ((name, _), ratios) in configurations.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let (least, median, greatest) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!("  {name:28} {median:5.2}  ({least:.2} to {greatest:.2})");
    }
    Ok(())
}

/// Work so short that its run is boot and translation.
const NEXT_TO_NOTHING: &str = "0.01";

/// A guest that does the rows of `rr` at a scale.
fn image(work: &WorkDir, scale: &str) -> Result<GuestImage, Box<dyn Error>> {
    let mut workload = Workload::find("rr", &[])?;
    let command = ["rr", "--seed", "1", "--scale", scale].map(String::from).to_vec();
    let step = Step { region: None, operations: None, command, limit_seconds: None, metrics: Vec::new() };
    workload.measured = Run { warmup: Vec::new(), steps: vec![step] };
    Ok(GuestImage::build(work, &workload, &NoProgress)?)
}

/// Seconds of CPU that the first image takes more than the second.
fn seconds(
    kernel: &Kernel,
    images: &[GuestImage; 2],
    capture: Option<&CaptureRequest>,
) -> Result<f64, Box<dyn Error>> {
    let run = |image: &GuestImage| -> Result<f64, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let request =
            RunRequest { capture: capture.cloned(), ..RunRequest::new(kernel, &image.initramfs, "measured") };
        let before = cpu::of_children()?;
        Emulator::find()?.run(&request, directory.path(), &NoProgress)?;
        Ok(cpu::of_children()? - before)
    };
    Ok(run(&images[0])? - run(&images[1])?)
}
