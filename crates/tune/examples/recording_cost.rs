//! Measures the cost of recording: CPU time of the same guest work with the recorder relative to
//! without it, both under icount. `make bench` runs this; docs/benchmarks.md has a baseline. CPU
//! time depends less on other load of the host than wall time. The time of boot and translation,
//! measured by a run with almost no work, is subtracted.
//!
//! One round runs all rows *at once on one core*: the host's scheduler interleaves them by
//! milliseconds, so a slow minute of the host (on a shared machine the same run takes 6 s or 10 s)
//! slows all alike. Each core of the host runs rounds of its own.
//!
//! Usage: `recording_cost [ROUNDS] [SCALE] [ROW;ROW…] [CPUS]`: only these rows and the plain ones,
//! in a guest with CPUS CPUs (1); the work directory is `KERNTUNE_DIR` or `.kerntune`.

#[path = "support/cpu.rs"]
mod cpu;

use kerntune_guest::{GuestImage, Workload, WorkloadRun, WorkloadStep};
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_machine::{CaptureRequest, Emulator, FunctionSelection, Machine, MachineDemands, RunRequest};
use kerntune_work::{NoProgress, WorkDir};
use std::error::Error;
use std::process::{Command, Stdio};

const PLAIN: &str = "plain emulation";
const ROWS: [&str; 10] = [
    PLAIN,
    "plain emulation (A/A)",
    "counters only",
    "functions in net/",
    "functions",
    "functions and edges",
    "functions, edges and model",
    "functions, edges and model zen4",
    "functions, edges and model zen4+tage",
    "functions, edges, model and data",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let work = WorkDir::open(std::env::var("KERNTUNE_DIR").unwrap_or(".kerntune".into()))?;
    if arguments.next_if_eq("one").is_some() {
        let (row, scale) = (arguments.next().ok_or("no row")?, arguments.next().ok_or("no scale")?);
        let cpus = arguments.next().ok_or("no CPUs")?.parse()?;
        println!("{}", one(&work, &row, &scale, cpus)?);
        return Ok(());
    }
    let rounds: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let scale = arguments.next().unwrap_or("16".into());
    let wanted = arguments.next().unwrap_or_default();
    let cpus: u32 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let rows: Vec<&str> = ROWS
        .into_iter()
        .filter(|row| wanted.is_empty() || *row == PLAIN || wanted.split(';').any(|name| name == *row))
        .collect();
    // Build them here, so that the rows' own processes only find them.
    prepare(&work, &scale)?;

    let cores = std::thread::available_parallelism()?.get().min(rounds);
    let results: Vec<Result<Vec<Vec<f64>>, String>> = std::thread::scope(|scope| {
        let on_core = |core: usize| {
            let (rows, scale) = (&rows, &scale);
            scope.spawn(move || {
                let mine = (core..rounds).step_by(cores);
                mine.map(|round| one_round(round, core, rows, scale, cpus).map_err(|error| error.to_string()))
                    .collect()
            })
        };
        let threads: Vec<_> = (0..cores).map(on_core).collect();
        threads.into_iter().map(|thread| thread.join().expect("a round does not panic")).collect()
    });
    let seconds: Vec<Vec<f64>> = results.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    println!(
        "CPU time of the work of rr (scale {scale}, {cpus} CPUs), recorded / plain, median of {rounds} (least to greatest)"
    );
    for (at, row) in rows.iter().enumerate().skip(1) {
        let (median, min, greatest) = spread(seconds.iter().map(|round| round[at] / round[0]));
        println!("  {row:28} {median:5.2}  ({min:.2} to {greatest:.2})");
    }
    let place = |name: &str| rows.iter().position(|row| *row == name);
    for whole in ["functions", "functions, edges and model"] {
        let (Some(part), Some(all)) = (place("functions in net/"), place(whole)) else { continue };
        let of_all = |round: &Vec<f64>| (round[part] - round[0]) / (round[all] - round[0]);
        let (median, min, greatest) = spread(seconds.iter().map(of_all));
        println!("  net/ adds {median:.2} ({min:.2} to {greatest:.2}) of what \"{whole}\" adds");
    }
    Ok(())
}

/// Returns median, minimum and maximum.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

/// Returns the seconds of every row, all running at once on one core.
fn one_round(
    round: usize,
    core: usize,
    rows: &[&str],
    scale: &str,
    cpus: u32,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let start = |row: &&str| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &core.to_string()]).arg(std::env::current_exe()?);
        command.args(["one", row, scale, &cpus.to_string()]).stdout(Stdio::piped()).spawn()
    };
    let children = rows.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut seconds = Vec::new();
    for (row, child) in rows.iter().zip(children) {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{row}: {}", output.status).into());
        }
        seconds.push(String::from_utf8(output.stdout)?.trim().parse()?);
    }
    let list: Vec<String> = seconds.iter().map(|value| format!("{value:.2}")).collect();
    eprintln!("round {}: {} s", round + 1, list.join(", "));
    Ok(seconds)
}

type PreparedGuests = (Kernel, [GuestImage; 2]);

/// Returns the kernel and the guests with the work and with almost none.
fn prepare(work: &WorkDir, scale: &str) -> Result<PreparedGuests, Box<dyn Error>> {
    let kernel = build(work, &BuildRequest::new("debian:6.12".parse()?, "base"), &NoProgress)?;
    Ok((kernel, [image(work, scale)?, image(work, NEXT_TO_NOTHING)?]))
}

/// Returns the seconds of the work of one row.
fn one(work: &WorkDir, row: &str, scale: &str, cpus: u32) -> Result<f64, Box<dyn Error>> {
    let (kernel, images) = prepare(work, scale)?;
    let functions = || CaptureRequest { functions: true, ..CaptureRequest::default() };
    let capture = match row {
        "counters only" => Some(CaptureRequest::default()),
        "functions in net/" => {
            let net = FunctionSelection { only: vec!["net/".into()], ..Default::default() };
            let skip = net.resolve(kernel.symbols()?.functions(), false)?;
            Some(CaptureRequest { skip, ..functions() })
        }
        "functions" => Some(functions()),
        "functions and edges" => Some(CaptureRequest { edges: true, ..functions() }),
        _ if row.starts_with("functions, edges and model") => {
            let name = row.rsplit(' ').next().filter(|name| *name != "model").unwrap_or("generic");
            let model = Some(kerntune_tune::model::find(name)?.text);
            Some(CaptureRequest { edges: true, model, ..functions() })
        }
        "functions, edges, model and data" => {
            let model = Some(kerntune_tune::model::find_with_data("generic")?.text);
            Some(CaptureRequest { edges: true, model, data: true, ..functions() })
        }
        _ => None,
    };
    seconds(&kernel, &images, capture.as_ref(), cpus)
}

/// Scale at which a run is boot and translation only.
const NEXT_TO_NOTHING: &str = "0.01";

/// Builds a guest that runs the rows of `rr` at a scale.
fn image(work: &WorkDir, scale: &str) -> Result<GuestImage, Box<dyn Error>> {
    let mut workload = Workload::find("rr", &[])?;
    let command = ["rr", "--seed", "1", "--scale", scale].map(String::from).to_vec();
    let step = WorkloadStep { command, ..WorkloadStep::default() };
    workload.measured = WorkloadRun { warmup: Vec::new(), steps: vec![step] };
    Ok(GuestImage::build(work, &workload, &NoProgress)?)
}

/// Returns the CPU seconds that the first image takes more than the second.
fn seconds(
    kernel: &Kernel,
    images: &[GuestImage; 2],
    capture: Option<&CaptureRequest>,
    cpus: u32,
) -> Result<f64, Box<dyn Error>> {
    let run = |image: &GuestImage| -> Result<f64, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let request = RunRequest {
            capture: capture.cloned(),
            demands: MachineDemands { cpus, ..MachineDemands::default() },
            ..RunRequest::new(kernel, &image.initramfs, "measured")
        };
        let before = cpu::of_children()?;
        Emulator::find()?.run(&request, directory.path(), &NoProgress)?;
        Ok(cpu::of_children()? - before)
    };
    Ok(run(&images[0])? - run(&images[1])?)
}
